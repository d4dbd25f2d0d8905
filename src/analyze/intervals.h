/* SPDX-License-Identifier: Apache-2.0
 * Sets of times: sorted, disjoint intervals. Collect in any order with
 * intervals_add, then intervals_union once; all else asks of the union.
 * Intervals are half-open, [start, end); empty ones vanish. */
#ifndef ANALYZE_INTERVALS_H
#define ANALYZE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    int64_t start, end; /* ps */
    int64_t before;     /* length of all intervals before this one; set by
                           intervals_union */
};

/* Zeroed is empty. */
struct intervals {
    struct interval *v;
    size_t n, cap;
};

void intervals_free(struct intervals *s);

/* Adds [start, end). False: out of memory. */
bool intervals_add(struct intervals *s, int64_t start, int64_t end);

/* Adds [start, end) to a set whose intervals are added by rising start: what
 * touches or lies in the last one makes it longer instead. The set stays a
 * union but for `before`, which intervals_union sets. */
bool intervals_extend(struct intervals *s, int64_t start, int64_t end);

/* Sorts and joins what overlaps or touches. O(n log n), O(n) when sorted. */
void intervals_union(struct intervals *s);

/* Length of the whole set (a union). O(1). */
int64_t intervals_length(const struct intervals *s);

/* Length of the part of the set (a union) within [start, end). O(log n). */
int64_t intervals_overlap(const struct intervals *s, int64_t start,
                          int64_t end);

/* Is that instant inside (a union; ends are outside)? O(log n). */
bool intervals_contain(const struct intervals *s, int64_t ts);

/* out = a or b, out = a and b, out = a without b; a and b unions, out another,
 * empty set, and a union afterwards. O(n + m). False: out of memory. */
bool intervals_or(const struct intervals *a, const struct intervals *b,
                  struct intervals *out);
bool intervals_and(const struct intervals *a, const struct intervals *b,
                   struct intervals *out);
bool intervals_sub(const struct intervals *a, const struct intervals *b,
                   struct intervals *out);

#endif
