/* SPDX-License-Identifier: Apache-2.0
 * How long rows of an op table waited for ops of other threads. A tf.function
 * is called on one thread and runs on others; a stage of an input pipeline
 * hands its element to a function that runs elsewhere. The caller's own time is
 * then the time of those ops once more. */
#ifndef ANALYZE_OPS_OP_WAITS_H
#define ANALYZE_OPS_OP_WAITS_H

#include "base/err.h"
#include "model/trace.h"

struct host_tree;

typedef void op_waited(void *ctx, row_id row, int64_t ps);

/* Tells the waits of kept rows, piece by piece: the time in which the
 * framework's machinery, right inside a region or a pipeline's stage, had the
 * thread, while an op had another one. Torch's files have no such spans.
 * O(n log n). */
int op_waits_each(const struct trace *t, const struct host_tree *h,
                  op_waited *take, void *ctx, struct ops_err *e);

#endif
