/* SPDX-License-Identifier: Apache-2.0
 * How many of several sets of times hold an instant, as steps over time: what a
 * sum over many devices is asked of. The answer for a window costs two
 * searches, however many sets there are. */
#ifndef ANALYZE_SHARED_LEVELS_H
#define ANALYZE_SHARED_LEVELS_H

#include "analyze/shared/intervals.h"

/* From ts on n sets hold, up to the next. */
struct level {
    __int128 before; /* lengths of all sets before ts, added up */
    int64_t ts;
    uint32_t n;
};

/* Zeroed is empty. */
struct levels {
    struct level *v;
    size_t n, cap;
};

/* The levels of count unions. O(n log n). False: out of memory. */
bool levels_of(const struct intervals *const *sets, size_t count,
               struct levels *out);

/* The same inside of a set (a union) alone. O(n + m). */
bool levels_within(const struct levels *l, const struct intervals *set,
                   struct levels *out);

/* The lengths of all sets within [start, end), added up. O(log n). */
__int128 levels_sum(const struct levels *l, int64_t start, int64_t end);

void levels_free(struct levels *l);

#endif
