/* SPDX-License-Identifier: Apache-2.0
 * Steps as memory sees them: allocations are host events, so a step runs from
 * its marker's start to the next marker's start, whatever the device does. */
#ifndef ANALYZE_MEMORY_MEM_STEPS_H
#define ANALYZE_MEMORY_MEM_STEPS_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct scope;
struct trace;

/* The steps of one source in time order. Zeroed is empty. */
struct mem_steps {
    struct mem_step {
        int64_t start, end; /* ps; end is the next step's start, of the last
                               one its marker's end */
        uint32_t step;      /* index in trace->steps */
    } * v;
    size_t n;
};

/* scope may be NULL: all steps; else those that it takes, of which two need
 * not be neighbours. O(steps log steps). */
int mem_steps_init(struct mem_steps *m, const struct trace *t,
                   const struct scope *scope, uint32_t source,
                   struct ops_err *e);
void mem_steps_free(struct mem_steps *m);

/* The last step that starts at or before ts, or m->n: before the first.
 * O(log steps). */
size_t mem_steps_at(const struct mem_steps *m, int64_t ts);

#endif
