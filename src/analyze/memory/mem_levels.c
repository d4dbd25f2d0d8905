/* SPDX-License-Identifier: Apache-2.0
 * Where the source wrote the level after each event, that level is true. Else
 * it is replayed from the blocks that must have been there at the start: those
 * whose free is in the window and whose allocation is not. What the source's
 * level leaves out (MEM_APART) is replayed in the same way, and added to it. */
#include "analyze/memory/mem_levels.h"

#include "analyze/analyze.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/vec.h"
#include <stdlib.h>

#define ADDR_GONE (EVENT_NONE - 1) /* in the map: freed, or never allocated */

void mem_levels_free(struct mem_levels *l) {
    free(l->level);
    free(l->mate);
    free(l->before_end);
    *l = (struct mem_levels){0};
}

/* Joins allocations and frees by address. An allocation at an address that is
 * still taken ends the one before it, whose free was not recorded. */
static bool pair(struct mem_levels *l) {
    const struct mem_events *m = &l->t->mem;
    struct map open = {0};
    bool ok = true;
    for (size_t i = 0; i < l->n && ok; i++) {
        size_t k = l->first + i;
        l->mate[i] = EVENT_NONE;
        if (m->addr[k] == 0) continue;
        uint32_t *at = map_at(&open, m->addr[k]);
        ok = at != NULL;
        if (!ok) break;
        bool taken = *at != MAP_NONE && *at != ADDR_GONE;
        if (taken) l->mate[*at] = (uint32_t)i;
        if (taken && m->bytes[k] < 0) l->mate[i] = *at;
        *at = m->bytes[k] < 0 ? ADDR_GONE : (uint32_t)i;
    }
    map_free(&open);
    return ok;
}

/* Is event i one that the source's levels leave out? */
static bool is_apart(const struct mem_levels *l, size_t i) {
    return l->t->mem.allocated[l->first + i] == MEM_APART;
}

/* Returns the bytes that must have been there before the first event, by the
 * events that the source's levels leave out, or by the others: what is freed
 * and was not allocated, and never so little that the level is below zero. */
static int64_t least_before(const struct mem_levels *l, bool apart) {
    const struct mem_events *m = &l->t->mem;
    int64_t freed = 0, sum = 0, low = 0;
    for (size_t i = 0; i < l->n; i++) {
        int64_t b = m->bytes[l->first + i];
        if (is_apart(l, i) != apart) continue;
        if (b < 0 && l->mate[i] == EVENT_NONE && m->addr[l->first + i] != 0)
            sat_dec(&freed, b);
        sat_inc(&sum, b);
        if (sum < low) low = sum;
    }
    int64_t least = sat_sub(0, low);
    return freed > least ? freed : least;
}

/* Returns the bytes before the first event of those that the source's levels
 * count. */
static int64_t counted_before(const struct mem_levels *l) {
    const struct mem_events *m = &l->t->mem;
    size_t i = 0;
    while (i < l->n && is_apart(l, i)) i++;
    if (i == l->n) return 0;
    if (m->allocated[l->first + i] >= 0) {
        int64_t base = m->allocated[l->first + i] - m->bytes[l->first + i];
        return base > 0 ? base : 0; /* less is a total that is wrong */
    }
    int64_t known = 0;
    for (i = 0; i < l->nbefore; i++)
        sat_inc(&known, l->t->before[l->before_first + i].bytes);
    return l->nbefore > 0 ? known : least_before(l, false);
}

/* Finds the known blocks from before the window, and which event freed each:
 * the first free of its address that no allocation in the window explains. */
static bool find_before(struct mem_levels *l, uint32_t allocator) {
    const struct trace *t = l->t;
    size_t at, end;
    BOUND(at, 0, t->nbefore, t->before[at].allocator < allocator);
    BOUND(end, at, t->nbefore, t->before[end].allocator == allocator);
    if (at == end) return true;
    l->before_first = at;
    l->nbefore = end - at;
    l->before_end = vec_alloc(l->nbefore, sizeof *l->before_end);
    struct map by_addr = {0};
    bool ok = l->before_end != NULL;
    for (size_t i = 0; ok && i < l->nbefore; i++) {
        l->before_end[i] = EVENT_NONE;
        ok = map_set(&by_addr, t->before[at + i].addr, (uint32_t)i);
    }
    for (size_t i = 0; ok && i < l->n; i++) {
        if (t->mem.bytes[l->first + i] >= 0 || l->mate[i] != EVENT_NONE)
            continue;
        uint32_t b = map_get(&by_addr, t->mem.addr[l->first + i]);
        if (b != MAP_NONE && l->before_end[b] == EVENT_NONE)
            l->before_end[b] = (uint32_t)i;
    }
    map_free(&by_addr);
    return ok;
}

int mem_levels_init(struct mem_levels *l, const struct trace *t,
                    uint32_t allocator, struct ops_err *e) {
    *l = (struct mem_levels){.t = t, .first = t->mem_first[allocator]};
    l->n = t->mem_first[allocator + 1u] - l->first;
    l->level = vec_alloc(l->n + 1, sizeof *l->level);
    l->mate = vec_alloc(l->n + 1, sizeof *l->mate);
    if (!l->level || !l->mate || !pair(l) || !find_before(l, allocator)) {
        mem_levels_free(l);
        return fail_oom(e);
    }
    int64_t level = counted_before(l), apart = least_before(l, true);
    l->base = sat_add(level, apart);
    const struct mem_events *m = &t->mem;
    /* A block whose address was given out again is gone, too: the block that
     * this event ended stands in its level for a moment. */
    for (size_t i = 0; i < l->n; i++) l->level[i] = 0;
    for (size_t i = 0; i < l->n; i++)
        if (m->bytes[l->first + i] >= 0 && l->mate[i] != EVENT_NONE &&
            m->bytes[l->first + l->mate[i]] >= 0)
            l->level[l->mate[i]] = m->bytes[l->first + i];
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        sat_dec(is_apart(l, i) ? &apart : &level, l->level[i]);
        if (is_apart(l, i)) {
            sat_inc(&apart, m->bytes[k]);
            l->apart = true;
        } else if (m->allocated[k] >= 0) {
            level = m->allocated[k];
            l->recorded = true;
        } else {
            sat_inc(&level, m->bytes[k]);
        }
        if (level < 0) level = 0; /* after a recorded one that is wrong */
        if (apart < 0) apart = 0;
        l->level[i] = sat_add(level, apart);
    }
    return 0;
}

uint32_t mem_peak(const struct mem_levels *l, const struct mem_scope *in) {
    uint32_t best = EVENT_NONE;
    for (size_t i = 0; i < l->n; i++) {
        if (!mem_scope_has(in, l->t->mem.ts[l->first + i])) continue;
        if (best == EVENT_NONE || l->level[i] > l->level[best])
            best = (uint32_t)i;
    }
    return best;
}

uint32_t mem_event_at(const struct mem_levels *l, int64_t ts) {
    if (l->n == 0) return EVENT_NONE;
    size_t after = upper_bound(l->t->mem.ts + l->first, l->n, ts);
    return after == 0 ? EVENT_NONE : (uint32_t)(after - 1);
}

struct mem_rest mem_rest(const struct mem_levels *l, uint32_t after) {
    const struct mem_events *m = &l->t->mem;
    struct mem_rest r = {.before = l->base};
    int64_t known = 0;
    for (size_t i = 0; i < l->n && after != EVENT_NONE && i <= after; i++) {
        int64_t bytes = m->bytes[l->first + i];
        if (mem_alive(l, i, after)) sat_inc(&known, bytes);
        if (bytes < 0 && l->mate[i] == EVENT_NONE) sat_inc(&r.before, bytes);
    }
    for (size_t i = 0; i < l->nbefore; i++) {
        int64_t bytes = l->t->before[l->before_first + i].bytes;
        if (!mem_alive_before(l, i, after)) continue;
        sat_inc(&known, bytes);
        sat_dec(&r.before, bytes);
    }
    /* frees of blocks without an address may belong to blocks in the window */
    if (r.before < 0) r.before = 0;
    int64_t over = sat_add(known, r.before) - mem_level_after(l, after);
    int64_t cut = over < 0 ? 0 : over < r.before ? over : r.before;
    r.before -= cut;
    over -= cut;
    /* the oldest blocks are taken as freed until nothing is too much */
    for (size_t i = 0; over > 0 && i < l->nbefore; i++) {
        r.gone_before = i + 1;
        if (mem_alive_before(l, i, after))
            over -= l->t->before[l->before_first + i].bytes;
    }
    for (size_t i = 0; over > 0 && i < l->n; i++) {
        r.gone = i + 1;
        if (mem_alive(l, i, after)) over -= m->bytes[l->first + i];
    }
    r.lost = -over; /* less than 0 is over: so much is in no block */
    return r;
}

void mem_say_gone(struct result *r) {
    result_remark(r,
                  "More was allocated and not freed than was in use: frees "
                  "were not recorded. The oldest blocks are taken as freed.");
}
