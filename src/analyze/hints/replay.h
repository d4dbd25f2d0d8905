/* SPDX-License-Identifier: Apache-2.0
 * How long a step would take if something in it were different: the step's
 * graph (deps.h) run forwards with changed durations. A plan starts as the
 * program without its profiler; a hint changes the plan. */
#ifndef ANALYZE_HINTS_REPLAY_H
#define ANALYZE_HINTS_REPLAY_H

#include "analyze/steps/deps.h"

/* Durations in ps, by piece and by work of a deps. */
struct plan {
    const struct deps *d;
    int64_t *host; /* by piece; of a call that waits: its part after that */
    int64_t *work; /* by work; WORK_GONE: is not run at all */
    bool *go;      /* by piece: a call that would wait does not */
    bool *ahead;   /* by work: done for the next step, beside this one */
    int64_t stall; /* ps that the step bears of what happens in others */
};

#define WORK_GONE INT64_C(-1)

/* per_event: ps that recording a host event cost (overhead.h); 0 or less:
 * as traced. */
int plan_init(struct plan *p, const struct deps *d, const struct trace *t,
              int64_t per_event, struct ops_err *e);
int plan_copy(struct plan *to, const struct plan *from, struct ops_err *e);
void plan_free(struct plan *p);

/* to (of the same deps) becomes what from is. */
void plan_assign(struct plan *to, const struct plan *from);

/* Runs it: ps from the step's begin to the end of its host side and of all its
 * device work, and its stall; -1: out of memory. O(pieces + works). */
int64_t replay(const struct plan *p);

#endif
