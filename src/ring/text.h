/* SPDX-License-Identifier: Apache-2.0
 * Bytes that a program gave as text. A protobuf string must be UTF-8: one byte
 * that is not makes XProf and TensorBoard refuse the whole file. */
#ifndef RING_TEXT_H
#define RING_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/pbw.h"

/* Bytes of the UTF-8 character at s[0..n), 0 when it is none. */
static inline size_t text_char(const uint8_t *s, size_t n) {
    uint8_t a = s[0];
    size_t k = a < 0x80   ? 1
               : a < 0xc2 ? 0
               : a < 0xe0 ? 2
               : a < 0xf0 ? 3
               : a < 0xf5 ? 4
                          : 0;
    if (k == 0 || k > n) return 0;
    for (size_t i = 1; i < k; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((a == 0xe0 && s[1] < 0xa0) || (a == 0xed && s[1] > 0x9f) ||
        (a == 0xf0 && s[1] < 0x90) || (a == 0xf4 && s[1] > 0x8f))
        return 0; /* longer than need be, a surrogate, beyond Unicode */
    return k;
}

/* Writes '?' over what is not UTF-8; returns whether there was any. */
static inline int text_mend(uint8_t *s, size_t n) {
    int mended = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = text_char(s + i, n - i);
        if (k != 0) continue;
        s[i] = '?';
        k = 1;
        mended = 1;
    }
    return mended;
}

/* How much of a text of n bytes fits into `most` without cutting a character.
 */
static inline size_t text_cut(const char *s, size_t n, size_t most) {
    if (n <= most) return n;
    n = most;
    while (n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80) n--;
    return n > 0 ? n : most; /* all continuation: no text */
}

/* pbw_bytes of a string field: mended where it is written. */
static inline uint8_t *text_field(uint8_t *p, uint32_t field, const char *s,
                                  size_t n) {
    p = pbw_bytes(p, field, s, n);
    text_mend(p - n, n);
    return p;
}

#endif
