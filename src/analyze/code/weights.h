/* SPDX-License-Identifier: Apache-2.0
 * The weights that a layer's op was called with, counted from the recorded
 * input shapes. torch does not record the parameters of a module; but its
 * layers hand them to a few known ops, always at the same places. */
#ifndef ANALYZE_CODE_WEIGHTS_H
#define ANALYZE_CODE_WEIGHTS_H

#include "model/trace.h"

/* Returns how many numbers these inputs (op_weight_inputs()) have; -1: no
 * shapes were recorded. Reads the span's arguments. */
int64_t weights_of(const struct trace *t, row_id row, unsigned inputs);

/* The same on "[[32, 3, 8, 8], [16, 3, 3, 3], [16]]". */
int64_t weights_from(struct bytes dims, unsigned inputs);

#endif
