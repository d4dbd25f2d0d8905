/* SPDX-License-Identifier: Apache-2.0
 * A walk over a host thread together with its Python frames, as one stack: who
 * runs inside whom, and at every instant which of them is innermost.
 *
 *     python   |-- main ------------------------------|
 *     thread      |-- aten::linear -----|   |- relu -|
 *                    |- aten::addmm -|
 *     walk     enter main, linear, addmm, relu; each instant spent on the
 *              innermost of them
 *
 * A caller says which spans it wants and what each stands for (a token): a
 * module, a call path, a function. Time spent is handed out piece by piece, so
 * that sums are exact by construction: the pieces of a thread are the union
 * of its wanted spans, each instant once.
 *
 * Frames of the profiler's own (SPAN_OVERHEAD among Python's) are in nobody's
 * time, and the walk looks through them.
 *
 * Spans of the two tracks may cross: a region is opened inside of the short
 * call that opens it and outlives it. Of two that cross, the later one wins,
 * the earlier one ends where it begins. */
#ifndef ANALYZE_CODE_THREAD_WALK_H
#define ANALYZE_CODE_THREAD_WALK_H

#include "base/err.h"
#include "base/sum.h"
#include "model/trace.h"

#define TOKEN_NONE UINT32_MAX /* the token of nothing at all */

struct thread_walk {
    const struct trace *t;
    void *ctx;
    /* Is this span part of the stack? The walk looks through others. */
    bool (*wants)(void *ctx, row_id row);
    /* Is told that the span begins, inside what outer stands for; returns its
     * token. */
    uint32_t (*enter)(void *ctx, row_id row, uint32_t outer);
    /* Is told that from..to was spent in row itself, in nothing inside it. */
    void (*spend)(void *ctx, row_id row, uint32_t token, int64_t from,
                  int64_t to);
    bool python;     /* Python frames, too? */
    wide own;        /* set by the walk: ps of the profiler's own frames */
    uint32_t *token; /* set by the walk, by row: the span's token; of one that
                        is not wanted, that of what is around it */
};

/* Walks all threads, in the order of their tracks, rows by time. The caller
 * frees token. O(n). */
int thread_walk(struct thread_walk *l, struct ops_err *e);

/* Finds the token of what was innermost on a thread at an instant. Calls for
 * one thread should come in order of time: then each costs O(1) amortised. */
struct innermost_at {
    const struct thread_walk *l;
    uint32_t *python; /* by track: the Python track beside a thread */
    row_id *near;     /* by track: where the last answer was */
};
int innermost_at_init(struct innermost_at *a, const struct thread_walk *l,
                      struct ops_err *e);
void innermost_at_free(struct innermost_at *a);
uint32_t innermost_at(struct innermost_at *a, uint32_t track, int64_t ts);

#endif
