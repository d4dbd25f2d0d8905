/* SPDX-License-Identifier: Apache-2.0
 * What a step had to wait for: its host line, the device work that the line
 * launched, and between them the dependencies
 *
 *   program order   a piece of the line runs after the one before it
 *   launch          device work starts after the call that launched it
 *   stream order    and after the work before it on its stream
 *   other streams   and, where the trace says or shows that it waited, after
 *                   the work of another stream
 *   synchronising   a call that waits ends after the work that it waits for
 *
 * `critical` walks it backwards as traced; replay.h runs it forwards with
 * other durations. A step stands alone: it begins with an idle device, as a
 * program does that waits for the device after every step. */
#ifndef ANALYZE_STEPS_DEPS_H
#define ANALYZE_STEPS_DEPS_H

#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_err;
struct overhead;
struct trace;

/* ---- the program's own line through a step (timeline.c) ----
 *
 * Wall-clock time cut into pieces, each with the one host span that the program
 * was in. The step's thread leads; where it only waits inside a region or
 * records nothing, a thread that it feeds (autograd, an executor) takes over.
 * So the pieces of a step are disjoint, in order, and cover the step's host
 * side without a hole. */

struct piece {
    int64_t ts, dur; /* ps, as traced */
    row_id row;      /* the innermost span, or ROW_NONE: nothing recorded */
    int64_t cost;    /* ps that recording took in it, an estimate: half of an
                        event's at its begin and half at its end */
    bool input;      /* the step's thread waits for or prepares its input */
};

/* A zeroed one is empty. */
struct timeline {
    struct piece *v;
    size_t n, cap;
    int64_t ts, end; /* the host side of the step */
};

/* Which threads a source's program runs on; it is set up once per source. */
struct host_side {
    const struct trace *t;
    uint32_t source;
    uint32_t own;      /* the step's thread, or ROW_NONE */
    uint32_t *threads; /* the others that run ops or calls */
    size_t nthreads;
    uint32_t *python; /* tracks of Python frames of all of these */
    size_t npython;
    const int64_t *first; /* by step: its first kernel launch (phases.h) */
    int64_t *made;        /* the same where it is our own */
    /* what recording costs, for the pieces' cost; NULL: nothing. Borrowed, set
     * by whoever asks for it */
    const struct overhead *overhead;
};

/* first, from phases_first_launches, is borrowed: it is the same for all
 * sources. If it is NULL, it is made here. */
int host_side_init(struct host_side *h, const struct trace *t, uint32_t source,
                   const int64_t *first, struct ops_err *e);
void host_side_free(struct host_side *h);

/* Makes the line through [ts, end). O(n log n) in the spans inside and the
 * source's threads. */
int timeline_build(struct timeline *l, const struct host_side *h, int64_t ts,
                   int64_t end, struct ops_err *e);
void timeline_free(struct timeline *l);

/* Returns the piece that holds that instant, clamped to the first and last; the
 * line must not be empty. O(log n). */
size_t timeline_at(const struct timeline *l, int64_t ts);

/* ---- the graph (deps.c) ---- */

#define DEP_NONE UINT32_MAX

/* Device work of the step, in the order of launching. */
struct work {
    row_id row;
    int64_t ts, dur;
    uint32_t lane;  /* its stream, numbered from 0 within the step */
    uint32_t piece; /* of the line: where it was launched */
    row_id call;    /* the launching call, or ROW_NONE */
    uint32_t prev;  /* the work before it on its lane, or DEP_NONE */
    uint32_t after; /* work of another lane that it waited for, or DEP_NONE */
    bool in_graph;  /* launched together with the work before it, by a graph */
    bool kernel;    /* it computes */
};

/* Returns when the work was launched; without a call, when it began. */
int64_t work_launched(const struct trace *t, const struct work *w);

static inline int64_t work_end(const struct work *w) { return w->ts + w->dur; }

/* What stands beside a piece of the line. */
struct stop {
    uint32_t first, end; /* works [first, end) are launched in it */
    uint32_t wait;       /* the work that it waits for, launched in it or
                            before it, or DEP_NONE */
    int64_t tail;        /* ps: what the waiting call did after that */
};

struct deps {
    uint32_t step; /* index in trace->steps */
    struct timeline line;
    struct stop *stops; /* by piece */
    struct work *works;
    size_t nworks, cap_works;
    uint32_t nlanes;
    int64_t call;          /* ps: what a launching call takes, median */
    int64_t kernels, busy; /* ps: how long kernels ran, in sum; and in which one
                              or several ran */
};

/* Is piece i of the line a call that launches a kernel and does not wait? */
bool deps_launches(const struct deps *d, const struct trace *t, size_t i);

/* Makes the graph of a step; h is of the step's source. O(n log n) in what the
 * step holds. */
int deps_build(struct deps *d, const struct host_side *h, uint32_t step,
               struct ops_err *e);
void deps_free(struct deps *d);

/* Finds the step of the median length (of two the shorter); ROW_NONE if there
 * is no step. */
int deps_typical(const struct trace *t, uint32_t source, uint32_t *out,
                 struct ops_err *e);

/* Which steps may be chosen. */
struct step_choice {
    uint32_t source;
    const bool *in; /* by step: may it be chosen? NULL: all may */
    bool all;       /* some of every length, not only typical ones */
    size_t max;     /* so many at the most */
};

/* Chooses steps that stand for all of them, in time order: by their length
 * those just below the median, the second quarter. What disturbs a step makes
 * it longer (a profiler's flush, another program), and the shortest may be cut
 * ones. Where steps are of several kinds (every tenth evaluates), some of every
 * length are chosen. Their number goes to *n; out has room for max. */
int deps_choose(const struct trace *t, const struct step_choice *c,
                uint32_t *out, size_t *n, struct ops_err *e);

#endif
