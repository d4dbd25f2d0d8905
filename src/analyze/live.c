/* SPDX-License-Identifier: Apache-2.0
 * Where the source wrote the level after each event, that is the truth. Else
 * it is replayed from the blocks that must have been there at the start:
 * those whose free is in the window and whose allocation is not. */
#include "analyze/live.h"
#include "base/sum.h"
#include "base/map.h"
#include "base/vec.h"
#include <stdlib.h>

#define ADDR_GONE (LIVE_NONE - 1) /* in the map: freed, or never allocated */

void live_free(struct live *l) {
    free(l->level);
    free(l->mate);
    *l = (struct live){0};
}

static size_t lower(const struct trace *t, unsigned allocator) {
    size_t lo = 0, hi = t->mem.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->mem.allocator[mid] < allocator)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
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
    if (m->allocated[l->first] >= 0)
        return diff_of(m->allocated[l->first], m->bytes[l->first]);
    int64_t freed = 0, sum = 0, low = 0;
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

static void find_levels(struct live *l) {
    const struct mem_events *m = &l->t->mem;
    int64_t level = l->base;
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        if (m->allocated[k] >= 0) {
            level = m->allocated[k];
            l->recorded = true;
        } else {
            sum_add(&level, m->bytes[k]);
        }
        l->level[i] = level;
    }
}

int live_init(struct live *l, const struct trace *t, uint16_t allocator,
              struct ops_err *e) {
    *l = (struct live){.t = t, .first = lower(t, allocator)};
    l->n = lower(t, allocator + 1u) - l->first;
    l->level = vec_alloc(l->n + 1, sizeof *l->level);
    l->mate = vec_alloc(l->n + 1, sizeof *l->mate);
    if (!l->level || !l->mate || !pair(l)) {
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
    const int64_t *at = l->t->mem.ts + l->first;
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (at[mid] <= ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == 0 ? LIVE_NONE : (uint32_t)(lo - 1);
}
