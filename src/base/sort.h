/* SPDX-License-Identifier: Apache-2.0
 * A stable natural merge sort. Profiles come as a few sorted runs laid one
 * behind the other, which this merges in O(n log runs); sorted input costs one
 * pass. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_key {
    uint64_t hi, lo; /* compared in this order */
    uint32_t row;    /* carried along */
};

/* Sorts by (hi, lo), equal keys in their old order. False: out of memory (the
 * order is then unchanged). */
bool sort_keys(struct sort_key *v, size_t n);

/* The same for plain numbers. */
bool sort_numbers(uint64_t *v, size_t n);

/* Rising order of int64_t, for qsort. */
int sort_by_value(const void *a, const void *b);

/* Signed order as unsigned order. */
static inline uint64_t sort_signed(int64_t v) {
    return (uint64_t)v ^ (UINT64_C(1) << 63);
}

#endif
