/* SPDX-License-Identifier: Apache-2.0
 * Where the source wrote the level after each event, that is the truth. Else
 * it is replayed from the blocks that must have been there at the start:
 * those whose free is in the window and whose allocation is not. */
#include "analyze/memory/live.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/vec.h"
#include <stdlib.h>

#define ADDR_GONE (LIVE_NONE - 1) /* in the map: freed, or never allocated */

void live_free(struct live *l) {
    free(l->level);
    free(l->mate);
    free(l->before_end);
    *l = (struct live){0};
}

/* Pairs by address. An allocation at an address that is still taken ends the
 * one before it: its free was not recorded. */
static bool pair(struct live *l) {
    const struct mem_events *m = &l->t->mem;
    struct map open = {0};
    bool ok = true;
    for (size_t i = 0; i < l->n && ok; i++) {
        size_t k = l->first + i;
        l->mate[i] = LIVE_NONE;
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

/* Bytes that were there before the first event. */
static int64_t find_base(struct live *l) {
    const struct mem_events *m = &l->t->mem;
    if (l->n == 0) return 0;
    if (m->allocated[l->first] >= 0) {
        int64_t base = m->allocated[l->first] - m->bytes[l->first];
        return base > 0 ? base : 0; /* less is a total that is wrong */
    }
    int64_t freed = 0, sum = 0, low = 0, known = 0;
    for (size_t i = 0; i < l->nbefore; i++)
        sum_add(&known, l->t->before[l->before_first + i].bytes);
    if (l->nbefore > 0) return known;
    for (size_t i = 0; i < l->n; i++) {
        int64_t b = m->bytes[l->first + i];
        if (b < 0 && l->mate[i] == LIVE_NONE && m->addr[l->first + i] != 0)
            sum_sub(&freed, b);
        sum_add(&sum, b);
        if (sum < low) low = sum;
    }
    /* the level cannot have been below zero */
    int64_t least = diff_of(0, low);
    return freed > least ? freed : least;
}

/* A block whose address was given out again is gone, too: what the event that
 * did so ended stands in its level for a moment. */
static void find_levels(struct live *l) {
    const struct mem_events *m = &l->t->mem;
    int64_t level = l->base;
    for (size_t i = 0; i < l->n; i++) l->level[i] = 0;
    for (size_t i = 0; i < l->n; i++)
        if (m->bytes[l->first + i] >= 0 && l->mate[i] != LIVE_NONE &&
            m->bytes[l->first + l->mate[i]] >= 0)
            l->level[l->mate[i]] = m->bytes[l->first + i];
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        sum_sub(&level, l->level[i]);
        if (m->allocated[k] >= 0) {
            level = m->allocated[k];
            l->recorded = true;
        } else {
            sum_add(&level, m->bytes[k]);
        }
        if (level < 0) level = 0; /* after a recorded one that is wrong */
        l->level[i] = level;
    }
}

/* The known blocks from before the window, and which event freed each: the
 * first free of its address that no allocation in the window explains. */
static bool find_before(struct live *l, uint32_t allocator) {
    const struct trace *t = l->t;
    size_t at = 0, end = t->nbefore;
    while (at < end) {
        size_t mid = at + (end - at) / 2;
        if (t->before[mid].allocator < allocator) at = mid + 1;
        else end = mid;
    }
    for (end = at; end < t->nbefore; end++)
        if (t->before[end].allocator != allocator) break;
    if (at == end) return true;
    l->before_first = at;
    l->nbefore = end - at;
    l->before_end = vec_alloc(l->nbefore, sizeof *l->before_end);
    struct map by_addr = {0};
    bool ok = l->before_end != NULL;
    for (size_t i = 0; ok && i < l->nbefore; i++) {
        l->before_end[i] = LIVE_NONE;
        ok = map_set(&by_addr, t->before[at + i].addr, (uint32_t)i);
    }
    for (size_t i = 0; ok && i < l->n; i++) {
        if (t->mem.bytes[l->first + i] >= 0 || l->mate[i] != LIVE_NONE)
            continue;
        uint32_t b = map_get(&by_addr, t->mem.addr[l->first + i]);
        if (b != MAP_NONE && l->before_end[b] == LIVE_NONE)
            l->before_end[b] = (uint32_t)i;
    }
    map_free(&by_addr);
    return ok;
}

int live_init(struct live *l, const struct trace *t, uint32_t allocator,
              struct ops_err *e) {
    *l = (struct live){.t = t, .first = t->mem_first[allocator]};
    l->n = t->mem_first[allocator + 1u] - l->first;
    l->level = vec_alloc(l->n + 1, sizeof *l->level);
    l->mate = vec_alloc(l->n + 1, sizeof *l->mate);
    if (!l->level || !l->mate || !pair(l) || !find_before(l, allocator)) {
        live_free(l);
        return fail_oom(e);
    }
    l->base = find_base(l);
    find_levels(l);
    return 0;
}

uint32_t live_peak(const struct live *l, bool (*in)(const void *ctx, int64_t),
                   const void *ctx) {
    uint32_t best = LIVE_NONE;
    for (size_t i = 0; i < l->n; i++) {
        if (in && !in(ctx, l->t->mem.ts[l->first + i])) continue;
        if (best == LIVE_NONE || l->level[i] > l->level[best])
            best = (uint32_t)i;
    }
    return best;
}

uint32_t live_event_at(const struct live *l, int64_t ts) {
    if (l->n == 0) return LIVE_NONE;
    const int64_t *at = l->t->mem.ts + l->first;
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (at[mid] <= ts) lo = mid + 1;
        else hi = mid;
    }
    return lo == 0 ? LIVE_NONE : (uint32_t)(lo - 1);
}

/* Takes the oldest blocks as freed until `over` bytes are gone: *r says which.
 * Returns what is still over; less than 0: so much is in no block now. */
static int64_t take_oldest(const struct live *l, uint32_t after, int64_t over,
                           struct live_rest *r) {
    for (size_t i = 0; over > 0 && i < l->nbefore; i++) {
        r->gone_before = i + 1;
        if (live_has_before(l, i, after))
            over -= l->t->before[l->before_first + i].bytes;
    }
    for (size_t i = 0; over > 0 && i < l->n; i++) {
        r->gone = i + 1;
        if (live_has(l, i, after)) over -= l->t->mem.bytes[l->first + i];
    }
    return over;
}

struct live_rest live_rest(const struct live *l, uint32_t after) {
    const struct mem_events *m = &l->t->mem;
    struct live_rest r = {.before = l->base};
    int64_t known = 0;
    for (size_t i = 0; i < l->n && after != LIVE_NONE && i <= after; i++) {
        int64_t bytes = m->bytes[l->first + i];
        if (live_has(l, i, after)) sum_add(&known, bytes);
        if (bytes < 0 && l->mate[i] == LIVE_NONE) sum_add(&r.before, bytes);
    }
    for (size_t i = 0; i < l->nbefore; i++) {
        int64_t bytes = l->t->before[l->before_first + i].bytes;
        if (!live_has_before(l, i, after)) continue;
        sum_add(&known, bytes);
        sum_sub(&r.before, bytes);
    }
    /* frees of blocks without an address may be of blocks in the window */
    if (r.before < 0) r.before = 0;
    int64_t over = sum_of(known, r.before) - live_level(l, after);
    int64_t cut = over < 0 ? 0 : over < r.before ? over : r.before;
    r.before -= cut;
    r.lost = -take_oldest(l, after, over - cut, &r);
    return r;
}

void live_say_gone(struct result *r) {
    result_remark(r,
                  "More was allocated and not freed than was in use: frees "
                  "were not recorded. The oldest blocks are taken as freed.");
}
