/* SPDX-License-Identifier: Apache-2.0
 * Arrays that are in order, and how long an array is. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Gives the number of elements of an array (not of a pointer). */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Sets i, a variable of the caller, to the first index in [lo, hi) for which
 * "before" is false, hi if there is none: in an ordered array the condition, an
 * expression in i, is true for the first elements and false for the rest.
 * O(log n). Example, the first step that ends after ts:
 *
 *     size_t i;
 *     BOUND(i, 0, nsteps, steps[i].end <= ts);
 */
#define BOUND(i, lo, hi, before)                                               \
    do {                                                                       \
        size_t bound_lo_ = (lo), bound_hi_ = (hi);                             \
        while (bound_lo_ < bound_hi_) {                                        \
            (i) = bound_lo_ + (bound_hi_ - bound_lo_) / 2;                     \
            if (before) bound_lo_ = (i) + 1;                                   \
            else bound_hi_ = (i);                                              \
        }                                                                      \
        (i) = bound_lo_;                                                       \
    } while (0)

/* Returns the index of the first of n ordered numbers that is not below x; n if
 * all are. */
static inline size_t lower_bound(const int64_t *v, size_t n, int64_t x) {
    size_t i;
    BOUND(i, 0, n, v[i] < x);
    return i;
}

/* Returns the index of the first of n ordered numbers that is above x; n if
 * none is. */
static inline size_t upper_bound(const int64_t *v, size_t n, int64_t x) {
    size_t i;
    BOUND(i, 0, n, v[i] <= x);
    return i;
}

#endif
