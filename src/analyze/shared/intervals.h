/* SPDX-License-Identifier: Apache-2.0
 * Sets of times: sorted, disjoint intervals. They are collected in any order
 * with intervals_add, then joined once by intervals_union; all else asks of the
 * union. Intervals are half-open, [start, end); empty ones vanish. */
#ifndef ANALYZE_SHARED_INTERVALS_H
#define ANALYZE_SHARED_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    int64_t start, end; /* ps */
    int64_t before;     /* length of all intervals before this one; set by
                           intervals_union */
};

/* A zeroed set is empty. */
struct intervals {
    struct interval *v;
    size_t n, cap;
};

void intervals_free(struct intervals *s);

/* Adds [start, end). Returns false if out of memory. */
bool intervals_add(struct intervals *s, int64_t start, int64_t end);

/* Adds [start, end) to a set whose intervals are added by rising start: an
 * interval that touches or lies in the last one makes that one longer instead.
 * The set stays a union but for `before`, which intervals_union sets. */
bool intervals_extend(struct intervals *s, int64_t start, int64_t end);

/* Sorts and joins what overlaps or touches. O(n log n), O(n) when sorted. */
void intervals_union(struct intervals *s);

/* Returns the length of the whole set (a union). O(1). */
int64_t intervals_length(const struct intervals *s);

/* Returns the length of the set (a union) within [start, end). O(log n). */
int64_t intervals_overlap(const struct intervals *s, int64_t start,
                          int64_t end);

/* Is that instant inside (a union; ends are outside)? O(log n). */
bool intervals_contain(const struct intervals *s, int64_t ts);

/* Set out to a or b, a and b, a without b. a and b are unions, out is an empty
 * set, and a union afterwards. O(n + m). Return false if out of memory. */
bool intervals_or(const struct intervals *a, const struct intervals *b,
                  struct intervals *out);
bool intervals_and(const struct intervals *a, const struct intervals *b,
                   struct intervals *out);
bool intervals_sub(const struct intervals *a, const struct intervals *b,
                   struct intervals *out);

/* The union of many unions, given one after the other. A zeroed one is
 * empty. */
struct intervals_many {
    struct intervals v[40]; /* of 1, 2, 4, ... of them each, or empty */
    bool full[40];
};

/* Adds a union, which it takes over. O(n log count) for all of them. */
bool intervals_many_add(struct intervals_many *m, struct intervals *s);

/* Puts the union of all into out, an empty set; m is empty afterwards. Returns
 * false if out of memory. */
bool intervals_many_take(struct intervals_many *m, struct intervals *out);

/* Sets before[i], for i up to a->n, to the length that a's first i intervals
 * share with b; both are unions. O(n log m), O(n + m) where they lie close. */
void intervals_common(const struct intervals *a, const struct intervals *b,
                      int64_t *before);

/* Returns the length that a and b have in common within [start, end); before is
 * from intervals_common. O(log n + log m). */
int64_t intervals_common_in(const struct intervals *a,
                            const struct intervals *b, const int64_t *before,
                            int64_t start, int64_t end);

/* Returns the length that two unions have in common. O(n log m), n of the
 * smaller; O(n + m) where they lie close. */
int64_t intervals_common_length(const struct intervals *a,
                                const struct intervals *b);

/* Gives back the memory that growing left over. */
void intervals_trim(struct intervals *s);

/* Total time of calls that may contain or overlap each other: each instant of a
 * track counts once, so that f() that calls itself takes as long as the
 * outermost call did. A zeroed one has counted nothing yet. */
struct once {
    int64_t end;    /* of what was added on that track */
    uint32_t track; /* + 1; 0: none */
};

/* Returns how much [start, end) adds. Tracks come one after the other, and on
 * each of them starts rise. */
static inline int64_t once_add(struct once *o, uint32_t track, int64_t start,
                               int64_t end) {
    if (o->track != track + 1) *o = (struct once){start, track + 1};
    int64_t from = o->end > start ? o->end : start;
    if (end <= from) return 0;
    o->end = end;
    return end - from;
}

#endif
