/* SPDX-License-Identifier: Apache-2.0
 * What all launches of one kernel variant share: the op it was compiled from,
 * its launch shape (CUPTI's details) and the compiled module, "jit_step(8623)".
 * Profilers repeat these on every kernel; they are kept once, in the row's
 * category, so that a table of millions of kernels reads them only a few
 * times. */
#ifndef MODEL_LAUNCH_H
#define MODEL_LAUNCH_H

#include "model/trace.h"

struct launch {
    struct bytes hlo_op, tf_op, details, module; /* n is 0: not recorded */
};

/* Returns the category of these facts, made when new; 0 if there is nothing to
 * say or no room for more categories. */
uint32_t launch_cat(struct trace *t, const struct launch *l);

/* Gives the facts of a category, borrowed from the trace. Returns false if it
 * has none. */
bool launch_of_cat(const struct trace *t, uint32_t cat, struct launch *out);

#endif
