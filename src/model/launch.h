/* SPDX-License-Identifier: Apache-2.0
 * What all launches of one kernel variant share: the op it was compiled from,
 * its launch shape (CUPTI's details) and the compiled module, "jit_step(8623)".
 * Profilers repeat them on every kernel; kept once, in the row's category, a
 * table of millions of kernels reads them a few times only. */
#ifndef MODEL_LAUNCH_H
#define MODEL_LAUNCH_H

#include "model/trace.h"

struct launch {
    struct bytes hlo_op, tf_op, details, module; /* n is 0: not recorded */
};

/* The category of these facts, made when new; 0 when there is nothing to say
 * or no room for more categories. */
uint32_t launch_cat(struct trace *t, const struct launch *l);

/* The facts of a category; false when it has none. Borrowed from the trace. */
bool launch_of_cat(const struct trace *t, uint32_t cat, struct launch *out);

#endif
