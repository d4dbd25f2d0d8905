/* SPDX-License-Identifier: Apache-2.0
 * Gaps: the device's work by start, over all its streams; a gap is where the
 * next begins after all before it have ended. Before the first and after the
 * last piece of work lie gaps without end, which the steps cut. */
#include "analyze/steps/gaps.h"

#include "analyze/shared/phases.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

/* One piece of device work. */
struct device_work {
    row_id row, launch; /* launch: or ROW_NONE */
};

struct device_works {
    const struct trace *t;
    struct device_work *v;
    size_t n, cap;
};

void gaps_free(struct gaps *g) {
    free(g->v);
    *g = (struct gaps){0};
}

/* The work of a device, row by row, the links beside them. What takes no time
 * ends no gap. */
static bool take_work(struct device_works *p, uint32_t device) {
    const struct trace *t = p->t;
    const struct lists *of = &t->of_device;
    for (size_t k = of->first[device]; k < of->first[device + 1]; k++) {
        const struct track *tr = &t->tracks[of->v[k]];
        if (tr->kind != TRACK_STREAM) continue;
        size_t l = trace_link_at(t, tr->first);
        for (row_id r = tr->first; r < tr->end; r++) {
            if (!span_is_device_work(t, r) || t->spans.dur[r] == 0) continue;
            while (l < t->links.n && t->links.device[l] < r) l++;
            bool linked = l < t->links.n && t->links.device[l] == r;
            if (!VEC_ROOM(p->v, p->n, p->cap)) return false;
            p->v[p->n++] = (struct device_work){r, linked ? t->links.host[l]
                                                          : ROW_NONE};
        }
    }
    return true;
}

/* By start, then by launch: streams have no order of their own. */
static struct sort_key *by_start(const struct device_works *p) {
    struct sort_key *k = malloc((p->n + 1) * sizeof *k);
    if (k == NULL) return NULL;
    const int64_t *ts = p->t->spans.ts;
    for (size_t i = 0; i < p->n; i++) {
        row_id l = p->v[i].launch;
        k[i] = (struct sort_key){sort_signed(ts[p->v[i].row]),
                                 l == ROW_NONE ? UINT64_MAX
                                               : sort_signed(ts[l]),
                                 (uint32_t)i};
    }
    if (sort_keys(k, p->n)) return k;
    free(k);
    return NULL;
}

static bool push_gap(struct gaps *g, struct gap gap) {
    if (!VEC_ROOM(g->v, g->n, g->cap)) return false;
    g->v[g->n++] = gap;
    return true;
}

/* All gaps, whatever the steps are. */
static bool sweep_work(const struct device_works *p, struct gaps *all) {
    struct sort_key *k = by_start(p);
    if (k == NULL) return false;
    struct gap open = {INT64_MIN, INT64_MAX, ROW_NONE, ROW_NONE, ROW_NONE, 0};
    bool ok = true;
    for (size_t i = 0; ok && i < p->n; i++) {
        struct device_work w = p->v[k[i].row];
        int64_t start = p->t->spans.ts[w.row], end = span_end(p->t, w.row);
        if (start > open.start) {
            open.end = start;
            open.after = w.row;
            open.launch = w.launch;
            ok = push_gap(all, open);
        }
        if (end > open.start) {
            open.start = end;
            open.before = w.row;
        }
    }
    open.end = INT64_MAX;
    open.after = open.launch = ROW_NONE;
    ok = ok && push_gap(all, open);
    free(k);
    return ok;
}

/* The parts of the gaps that lie in a step. */
static bool cut_to_step(const struct trace *t, const struct gaps *all,
                        uint32_t step, struct gaps *out) {
    const struct step *st = &t->steps[step];
    int64_t end = st->ts + st->dur;
    size_t i; /* the first gap that ends after the step's start */
    BOUND(i, 0, all->n, all->v[i].end <= st->ts);
    for (; i < all->n && all->v[i].start < end; i++) {
        struct gap g = all->v[i];
        if (g.start < st->ts) g.start = st->ts;
        if (g.end > end) g.end = end;
        g.step = step;
        if (g.start < g.end && !push_gap(out, g)) return false;
    }
    return true;
}

int gaps_find(struct gaps *g, const struct trace *t, const struct phase_view *v,
              const bool *step_in, struct ops_err *e) {
    assert(v->device != ROW_NONE);
    *g = (struct gaps){0};
    struct device_works p = {.t = t};
    struct gaps all = {0};
    bool ok = take_work(&p, v->device) && sweep_work(&p, &all);
    const struct source *s = &t->sources[v->source];
    for (size_t i = s->step_first; ok && i < s->step_end; i++)
        if (!step_in || step_in[i]) ok = cut_to_step(t, &all, (uint32_t)i, g);
    free(p.v);
    gaps_free(&all);
    if (ok) return 0;
    gaps_free(g);
    return fail_oom(e);
}
