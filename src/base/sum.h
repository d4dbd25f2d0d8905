/* SPDX-License-Identifier: Apache-2.0
 * Sums that hostile numbers cannot overflow: they stop at the largest value,
 * and a result that holds it says so (model/result.c). A handful of spans of
 * the longest duration that is let in is too much for 64 bits of
 * picoseconds. */
#ifndef BASE_SUM_H
#define BASE_SUM_H

#include <math.h>
#include <stdint.h>

static inline int64_t sat_add(int64_t a, int64_t b) {
    int64_t s;
    if (!__builtin_add_overflow(a, b, &s)) return s;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t sat_sub(int64_t a, int64_t b) {
    int64_t s;
    if (!__builtin_sub_overflow(a, b, &s)) return s;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* Holds sums of sums, such as the whole that shares are taken of, and means
 * over many: it is wide enough that none stops early. */
__extension__ typedef __int128 wide;

/* Returns v, cut to what an int64_t holds. */
static inline int64_t wide_narrow(wide v) {
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

/* Returns the mean of n finite numbers, of which x is the last and mean that of
 * the others. The result is finite, though a sum of them may not be. */
static inline double mean_step(double mean, double x, double n) {
    double by = x - mean;
    return isfinite(by) ? mean + by / n : mean - mean / n + x / n;
}

/* Return the product and the sum of two counts, of which -1 is one that is not
 * known; -1 if either is negative or the result does not fit. */
static inline int64_t known_mul(int64_t a, int64_t b) {
    int64_t v;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &v)) return -1;
    return v;
}

static inline int64_t known_add(int64_t a, int64_t b) {
    int64_t v;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &v)) return -1;
    return v;
}

/* Do *to += v and *to -= v. */
static inline void sat_inc(int64_t *to, int64_t v) { *to = sat_add(*to, v); }
static inline void sat_dec(int64_t *to, int64_t v) { *to = sat_sub(*to, v); }

#endif
