/* SPDX-License-Identifier: Apache-2.0
 * The profiler's own cost: what recording a host event costs the program, by
 * the recorder that did it. Traces of launch-heavy programs run up to three
 * times as slow as the bare program; a step time that does not say so misleads.
 * What a step would take without it: bare.h. */
#ifndef ANALYZE_STEPS_OVERHEAD_H
#define ANALYZE_STEPS_OVERHEAD_H

#include "model/trace.h"

/* What recording costs in one source. */
struct overhead {
    bool known;
    bool told; /* by the recorder itself, which measured it: no estimate */
    int64_t event[SPAN_KINDS]; /* ps for an event of that kind */
    int64_t view;              /* ps less for an op that only makes a view */
    int64_t engine;            /* ps more for a call of autograd's engine */
    int64_t builtin;           /* ps for the Python frame of a C function */
    int64_t graph;             /* ps more, by kernel, for launching a graph */
    /* The true cost is between so many times these figures. */
    double least, most;
    int64_t besides; /* ps that launching a graph may have cost more than its
                        events tell; 0: nothing is known of such */
};

/* Finds what recording cost in that source. O(its spans). */
int overhead_read(struct overhead *o, const struct trace *t, uint32_t source,
                  struct ops_err *e);

/* Returns what recording that row cost, ps. */
int64_t overhead_cost(const struct overhead *o, const struct trace *t,
                      row_id r);

/* Does this row cost the program something when it is recorded? */
static inline bool overhead_counts(const struct trace *t, row_id r) {
    uint8_t k = t->spans.kind[r];
    return (k == SPAN_OP || k == SPAN_ANNOTATION || k == SPAN_API ||
            k == SPAN_PYTHON || k == SPAN_RUNTIME) &&
           !(t->spans.flags[r] & SPAN_DERIVED);
}

#endif
