/* SPDX-License-Identifier: Apache-2.0
 * The level over time in few points: each point is an event of the profile,
 * exact, and the highest level of every stretch is among them. */
#ifndef ANALYZE_MEMORY_MEM_TIMELINE_H
#define ANALYZE_MEMORY_MEM_TIMELINE_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct live;
struct mem_scope;

/* Zeroed is empty. */
struct mem_timeline {
    uint32_t *v; /* events of the allocator, in time order */
    size_t n;
};

/* At most `points` (>= 2) of the events that count: all where they fit; else
 * the time is cut into points / 2 equal stretches, and each gives its highest
 * level and its last. O(events). */
int mem_timeline_init(struct mem_timeline *m, const struct live *l,
                      const struct mem_scope *in, size_t points,
                      struct ops_err *e);
void mem_timeline_free(struct mem_timeline *m);

#endif
