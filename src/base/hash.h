/* SPDX-License-Identifier: Apache-2.0
 * Hashes. There are two kinds, and they are not to be mixed up.
 *
 *     hash_...    for tables in memory. They are keyed with numbers that every
 *                 process draws for itself, so that nobody can write a file
 *                 whose names or ids all fall into one slot. What they return
 *                 must reach no output and decide no order.
 *     fixed_...   the same in every process, and easy to forge: for numbers
 *                 that people may see or that are sorted by; never for a
 *                 table.
 *
 * The step is a product of 128 bits, folded. One that is all known can be
 * steered (a factor of 0 forgets the other side); here each factor holds a
 * secret. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HASH_SECRETS = 4 };

/* The secrets are drawn before main() begins and do not change after that. */
extern __attribute__((visibility("hidden"))) uint64_t hash_secret[HASH_SECRETS];

/* Draws the secrets from a number instead. Only tests call it, while no table
 * is in use: results must not depend on the secrets. */
void hash_seed(uint64_t seed);

static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_u64(uint64_t x) {
    const uint64_t *s = hash_secret;
    return hash_fold(hash_fold(x ^ s[0], s[1]) ^ s[2], s[3]);
}

/* Returns the hash of two numbers; their order counts. */
static inline uint64_t hash_pair(uint64_t a, uint64_t b) {
    return hash_u64(hash_fold(a ^ hash_secret[2], b ^ hash_secret[3]) + a);
}

static inline uint64_t hash_read8(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline uint64_t hash_read4(const uint8_t *p) {
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Makes two numbers of up to 16 bytes; other bytes make two other numbers. */
static inline void hash_short(const uint8_t *p, size_t n, uint64_t *a,
                              uint64_t *b) {
    if (n >= 8) {
        *a = hash_read8(p);
        *b = hash_read8(p + n - 8);
    } else if (n >= 4) {
        *a = hash_read4(p);
        *b = hash_read4(p + n - 4);
    } else if (n > 0) { /* p may be NULL when there is nothing */
        *a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
        *b = 0;
    } else {
        *a = *b = 0;
    }
}

static inline uint64_t hash_bytes(const void *data, size_t n) {
    const uint64_t *s = hash_secret;
    const uint8_t *p = data;
    uint64_t a, b, h = s[0];
    size_t left = n;
    for (; left > 16; p += 16, left -= 16)
        h = hash_fold(hash_read8(p) ^ s[1], hash_read8(p + 8) ^ h);
    hash_short(p, left, &a, &b);
    h = hash_fold(a ^ s[1], b ^ h);
    return hash_fold(h ^ s[2] ^ n, s[3]);
}

static inline uint64_t fixed_pair(uint64_t h, uint64_t w) {
    return hash_fold(h ^ w, 0x9e3779b97f4a7c15u);
}

static inline uint64_t fixed_bytes(const void *data, size_t n) {
    const uint8_t *p = data;
    uint64_t h = 0x2545f4914f6cdd1du ^ n, w = 0;
    for (; n >= 8; p += 8, n -= 8) h = fixed_pair(h, hash_read8(p));
    if (n > 0) memcpy(&w, p, n);
    return fixed_pair(h, w);
}

#endif
