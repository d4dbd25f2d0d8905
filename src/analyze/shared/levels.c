/* SPDX-License-Identifier: Apache-2.0
 * Levels: the ends of all intervals in the order of time, counted up and
 * down. */
#include "analyze/shared/levels.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/vec.h"
#include <assert.h>

void levels_free(struct levels *l) {
    free(l->v);
    *l = (struct levels){0};
}

/* From ts on it is n; ts does not fall. */
static bool put(struct levels *l, int64_t ts, uint32_t n) {
    struct level *last = l->n > 0 ? &l->v[l->n - 1] : NULL;
    if (last != NULL && last->n == n) return true;
    if (last != NULL && last->ts == ts) {
        last->n = n;
        return true;
    }
    if (last == NULL && n == 0) return true;
    if (!VEC_ROOM(l->v, l->n, l->cap)) return false;
    __int128 before = 0;
    last = l->n > 0 ? &l->v[l->n - 1] : NULL; /* it may have moved */
    if (last != NULL)
        before = last->before + (__int128)last->n * ((__int128)ts - last->ts);
    l->v[l->n++] = (struct level){before, ts, n};
    return true;
}

bool levels_of(const struct intervals *const *sets, size_t count,
               struct levels *out) {
    size_t all = 0, n = 0;
    assert(out->n == 0);
    for (size_t i = 0; i < count; i++) all += 2 * sets[i]->n;
    struct sort_key *ends = vec_alloc(all + 1, sizeof *ends);
    if (ends == NULL) return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sets[i]->n; k++) {
            const struct interval *v = &sets[i]->v[k];
            ends[n++] = (struct sort_key){sort_signed(v->start), 1, 0};
            ends[n++] = (struct sort_key){sort_signed(v->end), 0, 0};
        }
    bool ok = sort_keys(ends, n);
    uint32_t now = 0;
    for (size_t i = 0, to; ok && i < n; i = to) {
        for (to = i; to < n && ends[to].hi == ends[i].hi; to++)
            now += ends[to].lo ? 1u : UINT32_MAX; /* one up, or one down */
        ok = put(out, (int64_t)sort_signed((int64_t)ends[i].hi), now);
    }
    assert(!ok || now == 0);
    free(ends);
    return ok;
}

bool levels_within(const struct levels *l, const struct intervals *set,
                   struct levels *out) {
    size_t at = 0;
    assert(out->n == 0);
    for (size_t i = 0; i < set->n; i++) {
        const struct interval *s = &set->v[i];
        while (at + 1 < l->n && l->v[at + 1].ts <= s->start) at++;
        uint32_t n = at < l->n && l->v[at].ts <= s->start ? l->v[at].n : 0;
        if (!put(out, s->start, n)) return false;
        for (size_t k = at; k < l->n && l->v[k].ts < s->end; k++) {
            if (l->v[k].ts > s->start && !put(out, l->v[k].ts, l->v[k].n))
                return false;
            at = k;
        }
        if (!put(out, s->end, 0)) return false;
    }
    return true;
}

/* The sum before ts. */
static __int128 until(const struct levels *l, int64_t ts) {
    size_t i;
    BOUND(i, 0, l->n, l->v[i].ts <= ts);
    if (i == 0) return 0;
    const struct level *v = &l->v[i - 1];
    return v->before + (__int128)v->n * ((__int128)ts - v->ts);
}

__int128 levels_sum(const struct levels *l, int64_t start, int64_t end) {
    return end <= start ? 0 : until(l, end) - until(l, start);
}
