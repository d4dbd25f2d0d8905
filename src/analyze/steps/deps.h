/* SPDX-License-Identifier: Apache-2.0
 * What a step had to wait for: its host line (timeline.h), the device work
 * that the line launched, and between them the dependencies
 *
 *   program order   a piece of the line runs after the one before it
 *   launch          device work starts after the call that launched it
 *   stream order    and after the work before it on its stream
 *   other streams   and, where the trace shows that it waited on, after the
 *                   work of another stream that ended just then
 *   synchronising   a call that waits ends after the work that it waits for
 *
 * `critical` walks it backwards as traced; replay.h runs it forwards with
 * other durations. A step stands alone: it begins with an idle device, as a
 * program does that waits for the device after every step. */
#ifndef ANALYZE_STEPS_DEPS_H
#define ANALYZE_STEPS_DEPS_H

#include "analyze/steps/timeline.h"
#include <stdbool.h>

#define DEP_NONE UINT32_MAX

/* Device work of the step, in the order of launching. */
struct work {
    uint32_t row;
    int64_t ts, dur;
    uint32_t lane;  /* its stream, numbered from 0 within the step */
    uint32_t piece; /* of the line: where it was launched */
    uint32_t call;  /* the launching call, or ROW_NONE */
    uint32_t prev;  /* the work before it on its lane, or DEP_NONE */
    uint32_t after; /* work of another lane that it waited for, or DEP_NONE */
};

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
    int64_t call; /* ps: what a launching call takes, median */
};

/* Is piece i of the line a call that launches a kernel and does not wait? */
bool deps_launches(const struct deps *d, const struct trace *t, size_t i);

/* The graph of a step; h is of the step's source. O(n log n) in what the step
 * holds. */
int deps_build(struct deps *d, const struct host_side *h, uint32_t step,
               struct ops_err *e);
void deps_free(struct deps *d);

/* The host side of a step: from its marker to the next one's start. */
void deps_host_side(const struct trace *t, uint32_t step, int64_t *ts,
                    int64_t *end);

/* The step of the median length (of two the shorter), or ROW_NONE. */
int deps_typical(const struct trace *t, uint32_t source, uint32_t *out,
                 struct ops_err *e);

/* At most max steps of the source that stand for all of them, in time order:
 * by their length those just below the median, the second quarter. What
 * disturbs a step makes it longer (a profiler's flush, another program), and
 * the shortest may be cut ones. Where steps are of several kinds (every tenth
 * evaluates), or with all, some of every length. in (may be NULL) says which
 * count. Their number goes to *n; out has room for max. */
int deps_choose(const struct trace *t, uint32_t source, const bool *in,
                bool all, uint32_t *out, size_t max, size_t *n,
                struct ops_err *e);

#endif
