/* SPDX-License-Identifier: Apache-2.0
 * Two cursors, one on the thread's rows and one on its Python frames, are
 * merged by start; own.h keeps which spans are open and which has the time. */
#include "analyze/code/thread_walk.h"

#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

struct walk {
    struct thread_walk *l;
    struct own own;
};

/* Is it a frame of the hooks by which opscope watches the program? */
static bool is_own_frame(const struct trace *t, row_id r) {
    return t->spans.kind[r] == SPAN_OVERHEAD &&
           t->tracks[t->spans.track[r]].kind == TRACK_PYTHON;
}

static void spend(void *ctx, row_id row, int64_t from, int64_t to) {
    struct thread_walk *l = ((struct walk *)ctx)->l;
    if (is_own_frame(l->t, row)) l->own += to - from;
    else l->spend(l->ctx, row, l->token[row], from, to);
}

static uint32_t top_token(const struct walk *w) {
    row_id top = own_top(&w->own);
    return top == ROW_NONE ? TOKEN_NONE : w->l->token[top];
}

/* Does a stand before b: earlier, or around it? */
static bool is_before(const struct spans *sp, row_id a, row_id b) {
    if (sp->ts[a] != sp->ts[b]) return sp->ts[a] < sp->ts[b];
    return sp->dur[a] >= sp->dur[b];
}

/* Walks one thread; either track may be missing. */
static bool walk_pair(struct walk *w, const struct track *python,
                      const struct track *thread) {
    const struct spans *sp = &w->l->t->spans;
    const struct track none = {0};
    if (python == NULL) python = &none;
    if (thread == NULL) thread = &none;
    row_id i = python->first, j = thread->first;
    while (i < python->end || j < thread->end) {
        bool frame = j >= thread->end ||
                     (i < python->end && is_before(sp, i, j));
        row_id r = frame ? i++ : j++;
        own_until(&w->own, sp->ts[r], spend, w);
        w->l->token[r] = top_token(w);
        bool ours = is_own_frame(w->l->t, r);
        if ((sp->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) ||
            (!ours && !w->l->wants(w->l->ctx, r)))
            continue;
        int64_t end = span_end(w->l->t, r);
        own_cross(&w->own, end);
        if (!ours) w->l->token[r] = w->l->enter(w->l->ctx, r, top_token(w));
        if (!own_open(&w->own, r, end)) return false;
    }
    own_until(&w->own, INT64_MAX, spend, w);
    assert(w->own.n == 0);
    return true;
}

int thread_walk(struct thread_walk *l, struct ops_err *e) {
    const struct trace *t = l->t;
    struct walk w = {.l = l};
    uint32_t *python = trace_python_tracks(t);
    l->token = vec_alloc(t->spans.n + 1, sizeof *l->token);
    bool ok = python && l->token;
    for (size_t i = 0; ok && i < t->spans.n; i++) l->token[i] = TOKEN_NONE;
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        own_begin(&w.own, t->sources[tr->source].rounding_ps);
        if (tr->kind == TRACK_THREAD) {
            uint32_t p = l->python ? python[i] : ROW_NONE;
            ok = walk_pair(&w, p == ROW_NONE ? NULL : &t->tracks[p], tr);
        } else if (tr->kind == TRACK_PYTHON && l->python &&
                   tr->thread >= t->ntracks) {
            ok = walk_pair(&w, tr, NULL); /* its thread has nothing else */
        }
    }
    free(w.own.v);
    free(python);
    return ok ? 0 : fail_oom(e);
}

int innermost_at_init(struct innermost_at *a, const struct thread_walk *l,
                      struct ops_err *e) {
    const struct trace *t = l->t;
    *a = (struct innermost_at){.l = l};
    a->python = trace_python_tracks(t);
    a->near = malloc((t->ntracks + 1) * sizeof *a->near);
    if (!a->python || !a->near) {
        innermost_at_free(a);
        return fail_oom(e);
    }
    for (size_t i = 0; i < t->ntracks; i++) a->near[i] = t->tracks[i].first;
    return 0;
}

void innermost_at_free(struct innermost_at *a) {
    free(a->python);
    free(a->near);
    *a = (struct innermost_at){0};
}

/* Returns the innermost row of the track that runs at ts, or ROW_NONE: it goes
 * from the last answer in steps that double, then by halves, then up. */
static row_id row_at(struct innermost_at *a, uint32_t track, int64_t ts) {
    enum { CLIMB = 10000 }; /* made-up depths must not cost n times n */
    const struct trace *t = a->l->t;
    if (track >= t->ntracks) return ROW_NONE;
    const struct track *tr = &t->tracks[track];
    const int64_t *start = t->spans.ts;
    row_id lo = a->near[track], hi = lo;
    if (lo > tr->first && start[lo - 1] > ts) lo = tr->first;
    for (row_id step = 1; hi < tr->end && start[hi] <= ts; step *= 2) {
        lo = hi + 1;
        hi = step < tr->end - lo ? lo + step : tr->end;
    }
    lo += (row_id)upper_bound(start + lo, hi - lo, ts);
    a->near[track] = lo; /* the first that starts after ts */
    row_id r = lo == tr->first ? ROW_NONE : lo - 1;
    for (int i = 0; r != ROW_NONE && span_end(t, r) < ts; i++)
        r = i < CLIMB ? t->spans.parent[r] : ROW_NONE;
    return r;
}

uint32_t innermost_at(struct innermost_at *a, uint32_t track, int64_t ts) {
    const struct trace *t = a->l->t;
    if (track >= t->ntracks) return TOKEN_NONE;
    row_id r = row_at(a, track, ts);
    row_id p = a->l->python ? row_at(a, a->python[track], ts) : ROW_NONE;
    if (r == ROW_NONE || (p != ROW_NONE && is_before(&t->spans, r, p))) r = p;
    return r == ROW_NONE ? TOKEN_NONE : a->l->token[r];
}
