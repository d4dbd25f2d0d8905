/* SPDX-License-Identifier: Apache-2.0
 * Arrows that the source drew between spans: each end names a thread and a
 * time; the span that it means is the innermost one there. */
#include "model/seal.h"

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>

/* Binds the ends on one track, in time order in v[0..n), to the innermost span
 * that holds each (both ends count). One walk over the rows: what ended before
 * one arrow's end is not looked at again for a later one. */
static void bind_track(const struct trace *t, const struct sort_key *v,
                       size_t n, row_id *bound) {
    assert(n > 0);
    const struct track *tr = &t->tracks[t->half_flows.v[v[0].row].track];
    row_id next = tr->first, at = ROW_NONE;
    for (size_t i = 0; i < n; i++) {
        int64_t ts = t->half_flows.v[v[i].row].ts;
        row_id known = t->half_flows.v[v[i].row].row;
        for (; next < tr->end && t->spans.ts[next] <= ts; next++) at = next;
        while (at != ROW_NONE && span_end(t, at) < ts) at = t->spans.parent[at];
        bound[v[i].row] = known != ROW_NONE ? known : at;
    }
}

/* The row of each end, or ROW_NONE, by its number in half_flows; v is room for
 * the keys. */
static bool bind(const struct trace *t, struct sort_key *v, row_id *bound) {
    const struct half_flows *h = &t->half_flows;
    for (size_t i = 0; i < h->n; i++)
        v[i] = (struct sort_key){h->v[i].track, sort_signed(h->v[i].ts),
                                 (row_id)i};
    if (!sort_keys(v, h->n)) return false;
    for (size_t i = 0, end; i < h->n; i = end) {
        for (end = i + 1; end < h->n && v[end].hi == v[i].hi;) end++;
        bind_track(t, v + i, end - i, bound);
    }
    return true;
}

static bool add_flow(struct flows *f, row_id from, row_id to) {
    if (f->n == f->cap) {
        size_t cap = vec_next_cap(f->cap, f->n + 1);
        if (!vec_resize(&f->from, cap, sizeof *f->from) ||
            !vec_resize(&f->to, cap, sizeof *f->to))
            return false;
        f->cap = cap;
    }
    f->from[f->n] = from;
    f->to[f->n++] = to;
    return true;
}

/* Joins the ends of one id, which stand in time order in v[0..n). */
static bool join(struct trace *t, const struct sort_key *v, size_t n,
                 const row_id *bound) {
    row_id before = ROW_NONE;
    size_t arrows = 0;
    for (size_t i = 0; i < n; i++) {
        const struct half_flow *h = &t->half_flows.v[v[i].row];
        row_id here = bound[v[i].row];
        if (h->phase != 's' && before != ROW_NONE && here != ROW_NONE) {
            if (!add_flow(&t->flows, before, here)) return false;
            arrows++;
        }
        if (h->phase != 'i') before = h->phase == 'f' ? ROW_NONE : here;
    }
    if (arrows == 0) trace_note(t, NOTE_FLOW_DANGLING, 1);
    return true;
}

static bool order_flows(struct flows *f) {
    struct sort_key *v = malloc((f->n + 1) * sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < f->n; i++)
        v[i] = (struct sort_key){f->from[i], f->to[i], 0};
    bool ok = sort_keys(v, f->n);
    for (size_t i = 0; ok && i < f->n; i++) {
        f->from[i] = (row_id)v[i].hi;
        f->to[i] = (row_id)v[i].lo;
    }
    free(v);
    return ok;
}

bool seal_flows(struct trace *t) {
    const struct half_flows *h = &t->half_flows;
    size_t n = h->n;
    struct sort_key *v = malloc((n + 1) * sizeof *v);
    row_id *bound = malloc((n + 1) * sizeof *bound);
    bool ok = v != NULL && bound != NULL && bind(t, v, bound);
    for (size_t i = 0; ok && i < n; i++) {
        /* ids are unique within a source only */
        uint64_t source = t->tracks[h->v[i].track].source;
        v[i] = (struct sort_key){hash_pair(h->v[i].id, source),
                                 sort_signed(h->v[i].ts), (row_id)i};
    }
    ok = ok && sort_keys(v, n);
    for (size_t i = 0, end; ok && i < n; i = end) {
        for (end = i + 1; end < n && v[end].hi == v[i].hi;) end++;
        ok = join(t, v + i, end - i, bound);
    }
    free(v);
    free(bound);
    return ok && order_flows(&t->flows);
}
