/* SPDX-License-Identifier: Apache-2.0
 * One pass: events come in time order, so stretches do, too. */
#include "analyze/memory/mem_timeline.h"

#include "analyze/memory/live.h"
#include "analyze/shared/mem_scope.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

void mem_timeline_free(struct mem_timeline *m) {
    free(m->v);
    *m = (struct mem_timeline){0};
}

static bool counts(const struct live *l, const struct mem_scope *in, size_t i) {
    return mem_scope_has(in, l->t->mem.ts[l->first + i]);
}

/* The stretch that event i is in. Times fit a double's 53 bits well enough to
 * choose one; the points themselves stay exact. */
static size_t stretch_of(const struct live *l, size_t i, size_t from, size_t to,
                         size_t stretches) {
    const int64_t *ts = l->t->mem.ts + l->first;
    double whole = (double)(ts[to] - ts[from]);
    if (whole <= 0) return 0;
    size_t s = (size_t)((double)(ts[i] - ts[from]) / whole * (double)stretches);
    return s < stretches ? s : stretches - 1;
}

/* The highest and the last event of a stretch, in time order. */
static void emit(struct mem_timeline *m, uint32_t highest, uint32_t last) {
    m->v[m->n++] = highest;
    if (last != highest) m->v[m->n++] = last;
}

static void thin_out(struct mem_timeline *m, const struct live *l,
                     const struct mem_scope *in, size_t from, size_t to,
                     size_t stretches) {
    size_t now = SIZE_MAX;
    uint32_t highest = 0, last = 0;
    for (size_t i = from; i <= to; i++) {
        if (!counts(l, in, i)) continue;
        size_t s = stretch_of(l, i, from, to, stretches);
        if (s != now && now != SIZE_MAX) emit(m, highest, last);
        if (s != now || l->level[i] > l->level[highest]) highest = (uint32_t)i;
        now = s;
        last = (uint32_t)i;
    }
    if (now != SIZE_MAX) emit(m, highest, last);
}

int mem_timeline_init(struct mem_timeline *m, const struct live *l,
                      const struct mem_scope *in, size_t points,
                      struct ops_err *e) {
    assert(points >= 2);
    size_t n = 0, from = 0, to = 0;
    *m = (struct mem_timeline){0};
    for (size_t i = 0; i < l->n; i++) {
        if (!counts(l, in, i)) continue;
        if (n++ == 0) from = i;
        to = i;
    }
    if (n == 0) return 0;
    m->v = vec_alloc(n < points ? n : points, sizeof *m->v);
    if (!m->v) return fail_oom(e);
    if (n > points) {
        thin_out(m, l, in, from, to, points / 2);
        assert(m->n <= points);
        return 0;
    }
    for (size_t i = from; i <= to; i++)
        if (counts(l, in, i)) m->v[m->n++] = (uint32_t)i;
    return 0;
}
