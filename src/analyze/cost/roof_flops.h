/* SPDX-License-Identifier: Apache-2.0
 * The FLOPs that roofline counts, call by call, for tables that show them
 * beside other things: one count on all screens. */
#ifndef ANALYZE_COST_ROOF_FLOPS_H
#define ANALYZE_COST_ROOF_FLOPS_H

#include "base/err.h"
#include "model/trace.h"

struct selection;

/* Takes the FLOPs of one call: row is an op of the host, or a kernel or
 * instruction that stands for itself. */
typedef void flops_take(void *ctx, row_id row, int64_t flops);

/* Tells all FLOPs that are known of the selected spans. O(spans). */
int roof_flops_each(const struct trace *t, const struct selection *in,
                    flops_take *take, void *ctx, struct ops_err *e);

#endif
