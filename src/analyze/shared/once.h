/* SPDX-License-Identifier: Apache-2.0
 * Total time of calls that may contain or overlap each other: each instant of a
 * track counts once, so that f() that calls itself takes as long as the
 * outermost call did. */
#ifndef ANALYZE_SHARED_ONCE_H
#define ANALYZE_SHARED_ONCE_H

#include <stdint.h>

/* A zeroed one has counted nothing yet. */
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
