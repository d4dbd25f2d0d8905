/* SPDX-License-Identifier: Apache-2.0
 * What one call of an op costs, from the shapes of its inputs: floating-point
 * operations (a multiply and an add are two) and the bytes that it must at
 * least move, each tensor once. The rules are broader than torch's own:
 * convolution of any rank and its gradients, attention, recurrent nets,
 * normalisation, pointwise ops, reductions, optimizers. The seven ops that
 * torch itself counts are marked: tables of ops are compared with torch's.
 *
 * Counts of matrix work are exact. Those of pointwise work are by convention
 * (one for an addition, a few for an exponential), which matters little: such
 * ops wait for memory. */
#ifndef ANALYZE_COST_OP_COST_H
#define ANALYZE_COST_OP_COST_H

#include "model/trace.h"
#include "names/dtype.h"

struct op_cost {
    int64_t flops, bytes; /* -1: not known */
    enum dtype type;      /* of the tensors that it works on; as recorded: TF32
                             is fp32 here */
    bool matrix;          /* the FLOPs are products of matrices */
    int parts;            /* products that may run as one kernel each: 2 for
                             the gradients of a convolution */
};

struct cost_rule;
struct op_inputs;

/* Returns the rule for an op's name, or NULL. O(rules): callers keep it by
 * name. */
const struct cost_rule *op_cost_rule(struct bytes name);

/* Is it a rule for products of matrices? */
bool op_cost_is_matrix(const struct cost_rule *rule);

/* Is it one for ops that work on each element by itself, or (reduces) for those
 * that sum, normalise or move them: what a compiler makes one loop of? */
bool op_cost_is_pointwise(const struct cost_rule *rule);
bool op_cost_reduces(const struct cost_rule *rule);

/* Works out the cost of this span by that rule. list: the type of tensors in
 * lists, which torch does not record (DTYPE_UNKNOWN: not known). Returns false
 * if shapes were not recorded. Reads the span's arguments: microseconds. */
bool op_cost_of(const struct trace *t, row_id row, const struct cost_rule *rule,
                enum dtype list, struct op_cost *out);

/* Does the same from inputs. */
void op_cost_from(const struct op_inputs *in, const struct cost_rule *rule,
                  enum dtype list, struct op_cost *out);

/* Returns the number of the rule for an op whose FLOPs torch itself counts
 * (with_flops=True); 0 if it does not. */
uint8_t torch_flops_rule(struct bytes name);

/* Returns the FLOPs of this span as torch counts them; -1 if its shapes were
 * not recorded or do not fit. Reads the span's arguments: microseconds. */
int64_t torch_flops_of(const struct trace *t, row_id row, uint8_t rule);

/* Does the same from inputs. */
int64_t torch_flops_from(const struct op_inputs *in, uint8_t rule);

#endif
