/* SPDX-License-Identifier: Apache-2.0
 * A sorted list of markers; all else is a search in it. */
#include "analyze/memory/mem_steps.h"

#include "analyze/analyze.h"
#include "base/sort.h"
#include "base/vec.h"
#include <stdlib.h>

void mem_steps_free(struct mem_steps *m) {
    free(m->v);
    *m = (struct mem_steps){0};
}

/* The source's steps by start, all of them: a step ends where the next one
 * starts, chosen or not. */
static size_t sorted(const struct trace *t, uint32_t source,
                     struct sort_key *keys) {
    size_t n = 0;
    const struct source *src = &t->sources[source];
    for (size_t i = src->step_first; i < src->step_end; i++) {
        const struct step *s = &t->steps[i];
        keys[n++] = (struct sort_key){sort_signed(s->marker_ts),
                                      sort_signed(s->marker_dur), (uint32_t)i};
    }
    return sort_keys(keys, n) ? n : SIZE_MAX;
}

static void fill(struct mem_steps *m, const struct trace *t,
                 const struct scope *scope, const struct sort_key *keys,
                 size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &t->steps[keys[i].row];
        if (scope && !scope->all && scope->by_step &&
            !scope->step_in[keys[i].row])
            continue;
        int64_t end = s->marker_ts + s->marker_dur;
        if (i + 1 < n) end = t->steps[keys[i + 1].row].marker_ts;
        m->v[m->n++] = (struct mem_step){s->marker_ts, end, keys[i].row};
    }
}

int mem_steps_init(struct mem_steps *m, const struct trace *t,
                   const struct scope *scope, uint32_t source,
                   struct ops_err *e) {
    *m = (struct mem_steps){0};
    const struct source *src = &t->sources[source];
    size_t most = src->step_end - src->step_first;
    struct sort_key *keys = vec_alloc(most + 1, sizeof *keys);
    m->v = vec_alloc(most + 1, sizeof *m->v);
    size_t n = keys && m->v ? sorted(t, source, keys) : SIZE_MAX;
    if (n != SIZE_MAX) fill(m, t, scope, keys, n);
    free(keys);
    if (n != SIZE_MAX) return 0;
    mem_steps_free(m);
    return fail_oom(e);
}

size_t mem_steps_at(const struct mem_steps *m, int64_t ts) {
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->v[mid].start <= ts) lo = mid + 1;
        else hi = mid;
    }
    return lo == 0 ? m->n : lo - 1;
}
