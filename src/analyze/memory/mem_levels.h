/* SPDX-License-Identifier: Apache-2.0
 * Live bytes of one allocator over time: the level after each of its events,
 * and which free belongs to which allocation. */
#ifndef ANALYZE_MEMORY_MEM_LEVELS_H
#define ANALYZE_MEMORY_MEM_LEVELS_H

#include "base/err.h"
#include "model/result.h"
#include "model/trace.h"

struct mem_scope;

/* Event i of the allocator is row first + i of trace->mem. */
struct mem_levels {
    const struct trace *t;
    size_t first, n;
    int64_t *level; /* bytes in use after event i */
    uint32_t *mate; /* of an allocation: the event that ended it; of a free:
                       its allocation; EVENT_NONE: not in the window */
    int64_t base;   /* bytes in use before event 0: blocks from before the
                       window; a lower bound unless recorded */
    bool recorded;  /* the source told the level; else it is replayed */
    bool apart;     /* it left some of them out, which were replayed */
    size_t before_first, nbefore; /* rows of trace->before: blocks from before
                                     the window that the source knows */
    uint32_t *before_end; /* by those: the event that freed it, or EVENT_NONE */
};

#define EVENT_NONE UINT32_MAX

/* Works out levels and pairs of an allocator. O(events). */
int mem_levels_init(struct mem_levels *l, const struct trace *t,
                    uint32_t allocator, struct ops_err *e);
void mem_levels_free(struct mem_levels *l);

/* Returns the event in scope after which most is in use, the first of equals;
 * EVENT_NONE if there is no event. */
uint32_t mem_peak(const struct mem_levels *l, const struct mem_scope *in);

/* Returns the last event at or before ts, or EVENT_NONE. */
uint32_t mem_event_at(const struct mem_levels *l, int64_t ts);

/* Returns the bytes in use after that event (EVENT_NONE: before the first). */
static inline int64_t mem_level_after(const struct mem_levels *l,
                                      uint32_t after) {
    return after == EVENT_NONE ? l->base : l->level[after];
}

/* Is event i an allocation whose block is there after event `after`? */
static inline bool mem_alive(const struct mem_levels *l, size_t i,
                             uint32_t after) {
    return after != EVENT_NONE && i <= after &&
           l->t->mem.bytes[l->first + i] >= 0 &&
           (l->mate[i] == EVENT_NONE || l->mate[i] > after);
}

/* Is the i-th known block from before the window there after event `after`? */
static inline bool mem_alive_before(const struct mem_levels *l, size_t i,
                                    uint32_t after) {
    return after == EVENT_NONE || l->before_end[i] == EVENT_NONE ||
           l->before_end[i] > after;
}

/* What is in use after an event but in no known block; neither is negative. */
struct mem_rest {
    int64_t before; /* blocks from before the window of which only the sum is
                       known */
    int64_t lost;   /* the rest of the level: events that were not recorded,
                       or blocks without an address */
    /* Where more was allocated and not freed than is in use, frees are missing.
     * Then the oldest blocks are taken as freed: the first gone_before of those
     * known from before, and allocations before event gone. */
    size_t gone_before, gone;
};

/* Returns the rest: known blocks that are not gone + before + lost are the
 * level. O(events). */
struct mem_rest mem_rest(const struct mem_levels *l, uint32_t after);

/* Adds the remark that blocks were taken as freed. */
void mem_say_gone(struct result *r);

/* These are mem_alive and mem_alive_before without the blocks that are gone. */
static inline bool mem_held(const struct mem_levels *l, size_t i,
                            uint32_t after, const struct mem_rest *r) {
    return i >= r->gone && mem_alive(l, i, after);
}
static inline bool mem_held_before(const struct mem_levels *l, size_t i,
                                   uint32_t after, const struct mem_rest *r) {
    return i >= r->gone_before && mem_alive_before(l, i, after);
}

#endif
