/* SPDX-License-Identifier: Apache-2.0
 * Who launched what an XLA device ran. A call of the host that hands a program
 * over has stats "_pt" and "_p" (a kind and a number), the program's run on the
 * device, or an op in it, the same as "_ct" and "_c". The ops of a run carry no
 * launch of their own: each belongs to the run around it. */
#include "import/xspace/xspace.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <stdlib.h>

uint64_t xruns_key(const struct xpiece *w, enum xcode type, enum xcode of) {
    if (!fact_has(w, type) || !fact_has(w, of)) return 0;
    return hash_pair((uint64_t)fact_int(w, of, 0),
                     (uint64_t)fact_int(w, type, 0)) |
           1;
}

void xruns_add(struct xpiece *w, const struct xline *l, int64_t ts,
               int64_t dur) {
    struct xruns *r = &w->runs;
    uint64_t key = xruns_key(w, XSTAT_CONSUMER_TYPE, XSTAT_CONSUMER);
    bool op = l->kind == XLINE_STREAM;
    if (!l->modules && !(op && key != 0)) return;
    if (!ts_is_sane(ts) || dur < 0 || dur > DUR_LIMIT) return;
    if (!VEC_ROOM(r->v, r->n, r->cap)) w->t->oom = true;
    else
        r->v[r->n++] = (struct xrun){.plane = w->plane,
                                     .ts = ts,
                                     .end = l->modules ? ts + dur : INT64_MIN,
                                     .key = key};
}

/* Compares by plane, then start; a run stands before the ops that begin with
 * it. */
static int by_start(const void *a, const void *b) {
    const struct xrun *x = a, *y = b;
    if (x->plane != y->plane) return x->plane < y->plane ? -1 : 1;
    if (x->ts != y->ts) return x->ts < y->ts ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

/* Gives runs without a key that of the first op in them which has one; then
 * keeps the runs alone. */
static void settle(struct xruns *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct xrun *x = &r->v[i], *run = kept > 0 ? &r->v[kept - 1] : NULL;
        if (x->end != INT64_MIN) r->v[kept++] = *x;
        else if (run != NULL && run->plane == x->plane && run->key == 0 &&
                 x->ts < run->end)
            run->key = x->key;
    }
    r->n = kept;
}

/* Returns the key of the run of that plane at an instant; 0 if there is
 * none. */
static uint64_t key_at(const struct xruns *r, const struct xplane *p,
                       int64_t ts) {
    size_t i;
    BOUND(i, 0, r->n,
          r->v[i].plane < p || (r->v[i].plane == p && r->v[i].ts <= ts));
    if (i == 0 || r->v[i - 1].plane != p || ts >= r->v[i - 1].end) return 0;
    return r->v[i - 1].key;
}

/* Returns the key of a place: what a plane and its tracks have in common. */
static uint64_t place_key(uint32_t device, int64_t pid) {
    return hash_pair(device, (uint64_t)pid);
}

/* Lists the planes of XLA devices by their places, the first of each. Returns
 * false if out of memory. */
static bool list_planes(const struct xspace *x, struct map *by) {
    for (size_t i = 0; i < x->nplanes; i++) {
        const struct xplane *p = &x->planes[i];
        if (p->kind != XPLANE_XLA) continue;
        uint32_t *at = map_at(by, place_key(p->device, p->pid));
        if (at == NULL) return false;
        if (*at == MAP_NONE) *at = (uint32_t)i;
    }
    return true;
}

/* Returns the XLA device's plane that a stream belongs to, or NULL. */
static const struct xplane *
plane_of(const struct xspace *x, const struct map *by, const struct track *tr) {
    if (tr->source != x->source || tr->kind != TRACK_STREAM) return NULL;
    uint32_t i = map_get(by, place_key(tr->device, tr->pid));
    if (i == MAP_NONE || x->planes[i].device != tr->device) return NULL;
    return &x->planes[i];
}

void xruns_link(struct xspace *x, struct xruns *r) {
    struct trace *t = x->t;
    if (r->n == 0) return;
    struct map by = {0};
    const struct xplane **plane = calloc(t->ntracks + 1, sizeof *plane);
    if (plane == NULL || !list_planes(x, &by)) {
        t->oom = true;
        map_free(&by);
        free(plane);
        return;
    }
    qsort(r->v, r->n, sizeof *r->v, by_start);
    settle(r);
    for (size_t i = 0; i < t->ntracks; i++)
        plane[i] = plane_of(x, &by, &t->tracks[i]);
    for (row_id row = 0; row < t->spans.n; row++) {
        const struct xplane *p = plane[t->spans.track[row]];
        uint64_t key = p != NULL ? key_at(r, p, t->spans.ts[row]) : 0;
        if (key != 0) trace_link_device(t, x->source, key, row);
    }
    map_free(&by);
    free(plane);
}
