/* SPDX-License-Identifier: Apache-2.0
 * Floating-point operations of an op, from its recorded input shapes: torch's
 * own formulas (a multiply and an add are two), for the names that torch has
 * one for. */
#ifndef ANALYZE_COST_FLOPS_H
#define ANALYZE_COST_FLOPS_H

#include "model/trace.h"

enum flops_rule {
    FLOPS_NONE,
    FLOPS_CONV2D,    /* 2 N Ho Wo kh kw Cin Cout / groups */
    FLOPS_GEMM,      /* mm: 2 M K N of inputs 0 and 1 */
    FLOPS_ADD_GEMM,  /* addmm: of inputs 1 and 2 */
    FLOPS_BATCH,     /* bmm: 2 B M K N of inputs 0 and 1 */
    FLOPS_ADD_BATCH, /* baddbmm: of inputs 1 and 2 */
    FLOPS_POINTWISE, /* mul, add: elements of input 0 */
};

/* The rule for an op's name. */
enum flops_rule flops_rule_of(struct bytes name);

/* What the span computes by that rule, or -1: its shapes were not recorded or
 * do not fit. Reads the span's arguments: microseconds. */
int64_t flops_of(const struct trace *t, row_id row, enum flops_rule rule);

/* The rule on shapes alone: dims as JSON ("[[32, 3, 8, 8], [4, 3, 3, 3]]"),
 * types and concrete inputs as JSON lists of strings; either may be empty.
 * -1 when they do not fit. */
int64_t flops_from(enum flops_rule rule, struct bytes dims, struct bytes types,
                   struct bytes concrete);

#endif
