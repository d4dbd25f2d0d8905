/* SPDX-License-Identifier: Apache-2.0
 * The profiler's own cost: what recording a host event costs the program, by
 * the recorder that did it. Traces of launch-heavy programs run up to twice as
 * slow as the bare program; a step time that does not say so misleads. */
#ifndef ANALYZE_STEPS_OVERHEAD_H
#define ANALYZE_STEPS_OVERHEAD_H

#include "model/trace.h"

/* Returns the ps that recording a host event (op, annotation, API call or
 * Python frame) of that source costs; -1 if not known. */
int64_t overhead_per_event(const struct trace *t, uint32_t source);

/* Does this row cost the program something when it is recorded? */
static inline bool overhead_counts(const struct trace *t, row_id r) {
    uint8_t k = t->spans.kind[r];
    return (k == SPAN_OP || k == SPAN_ANNOTATION || k == SPAN_API ||
            k == SPAN_PYTHON || k == SPAN_RUNTIME) &&
           !(t->spans.flags[r] & SPAN_DERIVED);
}

/* Returns the step without that cost. The program would have waited for the
 * device instead, so the device's busy time bounds it from below. */
static inline int64_t overhead_bare(int64_t dur, int64_t busy, int64_t events,
                                    int64_t per_event) {
    int64_t cost = events * per_event;
    int64_t bare = cost < dur ? dur - cost : 0;
    return bare > busy ? bare : busy;
}

#endif
