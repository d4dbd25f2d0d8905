/* SPDX-License-Identifier: Apache-2.0
 * Sums that hostile numbers cannot overflow: they stop at the largest value.
 * A handful of spans of the longest duration that is let in is too much for
 * 64 bits of picoseconds. */
#ifndef BASE_SUM_H
#define BASE_SUM_H

#include <stdint.h>

static inline int64_t sum_of(int64_t a, int64_t b) {
    int64_t s;
    if (!__builtin_add_overflow(a, b, &s)) return s;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t diff_of(int64_t a, int64_t b) {
    int64_t s;
    if (!__builtin_sub_overflow(a, b, &s)) return s;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* *to += v, *to -= v */
static inline void sum_add(int64_t *to, int64_t v) { *to = sum_of(*to, v); }
static inline void sum_sub(int64_t *to, int64_t v) { *to = diff_of(*to, v); }

#endif
