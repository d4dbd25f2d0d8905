/* SPDX-License-Identifier: Apache-2.0
 * Two passes: who has each thread at each instant (own.h), machinery included;
 * then what of the machinery's time overlaps the union of all ops' own time. A
 * thread that is in machinery is in no op of its own, so that the union needs
 * not be kept by thread. */
#include "analyze/ops/op_waits.h"

#include "analyze/shared/host_tree.h"
#include "analyze/shared/intervals.h"
#include "analyze/shared/own.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/span_class.h"
#include <stdlib.h>

/* A stretch in which machinery had the thread of a row. */
struct stretch {
    row_id row;
    int64_t from, to;
};

struct waits {
    const struct trace *t;
    const struct host_tree *h;
    struct intervals ops; /* an op had a thread */
    struct stretch *v;
    size_t n, cap;
    bool oom;
};

/* May the row wait for ops that it had started elsewhere? Machinery inside of
 * an op proper carries that op out. */
static bool may_wait(const struct trace *t, row_id r) {
    return t->spans.kind[r] == SPAN_ANNOTATION || span_is_input(t, r);
}

static void spend(void *ctx, row_id r, int64_t from, int64_t to) {
    struct waits *w = ctx;
    uint8_t kind = w->t->spans.kind[r];
    if (kind == SPAN_OP && !intervals_add(&w->ops, from, to)) w->oom = true;
    row_id row = kind == SPAN_RUNTIME ? w->h->up[r] : ROW_NONE;
    if (row == ROW_NONE || !may_wait(w->t, row)) return;
    if (!VEC_ROOM(w->v, w->n, w->cap)) {
        w->oom = true;
        return;
    }
    w->v[w->n++] = (struct stretch){row, from, to};
}

static bool walk_track(struct waits *w, const struct track *tr) {
    const struct spans *s = &w->t->spans;
    struct own own = {0};
    bool ok = true;
    own_begin(&own, w->t->sources[tr->source].rounding_ps);
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        if (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED | SPAN_INSTANT)) continue;
        int64_t end = span_end(w->t, r);
        own_until(&own, s->ts[r], spend, w);
        own_cross(&own, end);
        ok = own_open(&own, r, end);
    }
    if (ok) own_until(&own, INT64_MAX, spend, w);
    free(own.v);
    return ok && !w->oom;
}

int op_waits_each(const struct trace *t, const struct host_tree *h,
                  op_waited *take, void *ctx, struct ops_err *e) {
    bool ok = true;
    for (uint32_t source = 0; ok && source < t->nsources; source++) {
        struct waits w = {.t = t, .h = h};
        const struct lists *l = &t->of_source;
        if (source_is_torchs(&t->sources[source])) continue;
        for (size_t k = l->first[source]; ok && k < l->first[source + 1]; k++)
            if (host_tree_has(h, l->v[k]))
                ok = walk_track(&w, &t->tracks[l->v[k]]);
        if (w.n > 0) intervals_union(&w.ops);
        for (size_t i = 0; ok && i < w.n; i++) {
            int64_t waited = intervals_overlap(&w.ops, w.v[i].from, w.v[i].to);
            if (waited > 0) take(ctx, w.v[i].row, waited);
        }
        intervals_free(&w.ops);
        free(w.v);
    }
    return ok ? 0 : fail_oom(e);
}
