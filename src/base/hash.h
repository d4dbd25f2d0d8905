/* SPDX-License-Identifier: Apache-2.0
 * A quick hash of bytes, for tables in memory only: 8 bytes a step. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_step(uint64_t h, uint64_t w) {
    __uint128_t m = (__uint128_t)(h ^ w) * 0x9e3779b97f4a7c15u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_bytes(const void *data, size_t n) {
    const uint8_t *p = data;
    uint64_t h = 0x2545f4914f6cdd1du ^ n, w;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&w, p, 8);
        h = hash_step(h, w);
    }
    w = 0;
    if (n > 0) memcpy(&w, p, n); /* p may be NULL when there is nothing */
    return hash_step(h, w);
}

#endif
