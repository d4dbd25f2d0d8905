/* SPDX-License-Identifier: Apache-2.0
 * How long a step would take if something in it were different: the step's
 * graph (deps.h) run forwards with changed durations. A plan starts as the
 * program without its profiler; a hint changes the plan. */
#ifndef ANALYZE_STEPS_REPLAY_H
#define ANALYZE_STEPS_REPLAY_H

#include "analyze/steps/deps.h"

/* Durations in ps, by piece and by work of a deps. */
struct plan {
    const struct deps *d;
    int64_t *host; /* by piece; of a call that waits: its part after that */
    int64_t *work; /* by work; WORK_GONE: is not run at all */
    bool *go;      /* by piece: a call that would wait does not */
    bool *ahead;   /* by work: done for the next step, beside this one */
    int64_t gap;   /* ps between two works of a graph */
    int64_t stall; /* ps that the step bears of what happens in others */
};

#define WORK_GONE INT64_C(-1)

/* Makes the plan of the program without its profiler: the cost of recording
 * that the pieces bear (deps.h) is taken off, so many times. */
int plan_init(struct plan *p, const struct deps *d, const struct trace *t,
              double times, struct ops_err *e);

/* Makes p (of some deps) the plan of the step as it was traced, with all that
 * the profiler did in it. */
void plan_as_traced(struct plan *p);

/* Does plan_init's work for a plan that is there. */
void plan_as_bare(struct plan *p, const struct trace *t, double times);

int plan_copy(struct plan *to, const struct plan *from, struct ops_err *e);
void plan_free(struct plan *p);

/* Makes to (of the same deps) what from is. */
void plan_assign(struct plan *to, const struct plan *from);

/* Runs the plan. Returns the ps from the step's begin to the end of its host
 * side and of all its device work, and its stall; -1 if out of memory. O(pieces
 * + works). */
int64_t replay(const struct plan *p);

#endif
