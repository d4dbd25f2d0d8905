/* SPDX-License-Identifier: Apache-2.0
 * Arrows that the source drew between spans: each end names a thread and a
 * time; the span that it means is the innermost one there. */
#include "model/seal.h"

#include "base/sort.h"
#include "base/vec.h"
#include <stdlib.h>

/* The innermost span of a track that holds ts (both ends count), or
 * ROW_NONE. */
static row_id span_at(const struct trace *t, uint32_t track, int64_t ts) {
    const struct track *tr = &t->tracks[track];
    row_id lo = tr->first, hi = tr->end;
    while (lo < hi) {
        row_id mid = lo + (hi - lo) / 2;
        if (t->spans.ts[mid] <= ts) lo = mid + 1;
        else hi = mid;
    }
    if (lo == tr->first) return ROW_NONE;
    row_id r = lo - 1;
    while (r != ROW_NONE && span_end(t, r) < ts) r = t->spans.parent[r];
    return r;
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
static bool join(struct trace *t, const struct sort_key *v, size_t n) {
    row_id before = ROW_NONE;
    size_t arrows = 0;
    for (size_t i = 0; i < n; i++) {
        const struct half_flow *h = &t->half_flows.v[v[i].row];
        row_id here = span_at(t, h->track, h->ts);
        if (h->phase != 's' && before != ROW_NONE && here != ROW_NONE) {
            if (!add_flow(&t->flows, before, here)) return false;
            arrows++;
        }
        before = h->phase == 'f' ? ROW_NONE : here;
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
    size_t n = t->half_flows.n;
    struct sort_key *v = malloc((n + 1) * sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < n; i++)
        v[i] = (struct sort_key){t->half_flows.v[i].id,
                                 sort_signed(t->half_flows.v[i].ts), (row_id)i};
    bool ok = sort_keys(v, n);
    for (size_t i = 0, end; ok && i < n; i = end) {
        for (end = i + 1; end < n && v[end].hi == v[i].hi;) end++;
        ok = join(t, v + i, end - i);
    }
    free(v);
    return ok && order_flows(&t->flows);
}
