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

/* Sorts by (hi, lo), equal keys in their old order. Returns false if out of
 * memory: the order is then unchanged. */
bool sort_keys(struct sort_key *v, size_t n);

/* Sorts plain numbers in the same way. */
bool sort_numbers(uint64_t *v, size_t n);

/* Compares two int64_t for qsort, the smaller first. */
int sort_by_value(const void *a, const void *b);

/* Returns a number whose unsigned order is the signed order of v. */
static inline uint64_t sort_signed(int64_t v) {
    return (uint64_t)v ^ (UINT64_C(1) << 63);
}

#endif
