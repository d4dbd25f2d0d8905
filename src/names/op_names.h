/* SPDX-License-Identifier: Apache-2.0
 * What the name of an op says, in torch's and TensorFlow's spelling. TensorFlow
 * writes name:Type: conv/Relu:_FusedConv2D is the node conv/Relu that ran as
 * _FusedConv2D. Spans keep the full text. */
#ifndef NAMES_OP_NAMES_H
#define NAMES_OP_NAMES_H

#include "base/bytes.h"
#include <stdbool.h>

/* Splits name:Type at the first colon when both sides are spelled as TensorFlow
 * spells them: the name [A-Za-z0-9._][A-Za-z0-9_./>-]*, the type
 * [A-Z_][A-Za-z0-9_]*. Returns false for all else; the outputs are then
 * untouched. */
bool name_split_tf(struct bytes full, struct bytes *name, struct bytes *type);

/* Returns what kind of op it is: the type of name:Type, "Dataset" for tf.data
 * iterators, else empty. */
struct bytes name_op_type(struct bytes full);

/* Is it a view: an op that moves no data? */
bool op_is_view(struct bytes name);

/* Does it only ask for memory, or ask about a tensor? */
bool op_only_allocates(struct bytes name);

/* Is it the framework's own work around ops: autograd's nodes, caches? */
bool op_is_bookkeeping(struct bytes name);

/* Is it an op of torch's own library? */
static inline bool op_is_aten(struct bytes name) {
    return BYTES_STARTS(name, "aten::");
}

/* Does an op of TensorFlow only look at a shape or a handle? What it takes is
 * then what calling an op costs. */
bool op_is_thin(struct bytes name);

/* Does it work on many tensors at once: torch's foreach and fused ops? */
static inline bool op_is_joined(struct bytes name) {
    return BYTES_STARTS(name, "aten::_foreach_") ||
           BYTES_STARTS(name, "aten::_fused_");
}

/* Is it in a namespace that torch itself does not have? */
bool op_is_custom(struct bytes name);

/* Does it write into its input: aten::add_? */
static inline bool op_is_in_place(struct bytes name) {
    return BYTES_STARTS(name, "aten::") && name.p[name.n - 1] == '_';
}

/* Is it a mark without work, which torch's own tables leave out? */
bool op_is_mark(struct bytes name);

/* May the program use the result only to look at it: does the op reduce,
 * compare or pick? */
bool op_feeds_a_look(struct bytes name);

/* Does it make a tensor of what the host holds (torch.from_numpy, tensor())? */
bool op_takes_host_data(struct bytes name);

/* Does it make a tensor from no other one (aten::empty, aten::randn)? */
bool op_makes_tensor(struct bytes name);

/* Does it only make room for a tensor that its caller fills? */
static inline bool op_makes_room(struct bytes name) {
    return BYTES_STARTS(name, "aten::empty") ||
           BYTES_STARTS(name, "aten::new_empty");
}

/* Does it copy a tensor elsewhere (aten::_to_copy)? */
bool op_copies_tensor(struct bytes name);

/* Finds which inputs of an op that makes a tensor are its size and its type.
 * Returns false if it is no such op, or not known. */
bool op_size_inputs(struct bytes name, int *size, int *type);

/* Returns which inputs of a layer's op are weights, a bit each; 0 if none. */
unsigned op_weight_inputs(struct bytes name);

/* Is it the call of torch's optimizer that clears gradients? Only this call and
 * the optimizer's step are of CLASS_OPTIMIZER. */
static inline bool name_is_zero_grad(struct bytes name) {
    return BYTES_STARTS(name, "Optimizer.zero_grad");
}

/* Does it add a gradient to .grad, behind the op that made the gradient? */
bool name_is_accumulate(struct bytes name);

/* Is it a node of autograd's backward pass (AddmmBackward0,
 * CheckpointFunctionBackward), or the engine's call of one? */
bool name_is_backward(struct bytes name);

/* Spans that do nothing but call one other: their own time is mostly that of
 * recording. */
enum thin_op {
    THIN_DETACH,
    THIN_TO,
    THIN_T,
    THIN_TRANSPOSE,
    THIN_ITEM,
    THIN_RESHAPE,
    THIN_EMPTY_LIKE,
    THIN_ACCUMULATE,
    THIN_T_BACKWARD,
    THIN_EAGER_EXECUTE, /* TensorFlow's, "EagerExecute: Mul" */
    THIN_EAGER_KERNEL,
    THIN_PJIT, /* JAX's, "PjitFunction(step)" */
    THIN_OPS,
};

/* Returns which of them it is, or -1. */
int op_thin(struct bytes name);

/* Is it the call by which autograd's engine runs a node? The node's name stands
 * behind it. */
#define NAME_ENGINE_CALL "autograd::engine::evaluate_function: "
static inline bool name_is_engine_call(struct bytes name) {
    return BYTES_STARTS(name, NAME_ENGINE_CALL);
}

/* Is it torch's own part of a checkpoint, which keeps what it needs to compute
 * again, or starts that? */
bool op_is_checkpoint(struct bytes name);

/* Does torch have no good kernel of it for NHWC (channels_last)? */
bool op_lacks_nhwc(struct bytes name);

/* What an op of torch, or a node of its backward pass, may be of attention that
 * is written out: a product, a softmax of it, a product. */
enum attention_part {
    PART_NONE,
    PART_PRODUCT, /* of batches of matrices; aten::matmul and aten::einsum may
                     be others, too: one of op_is_batched_product is in them */
    PART_SOFTMAX,
    PART_BETWEEN, /* scale, mask, dropout, views: what a fused kernel does, too,
                     or what feeds it */
    PART_BESIDE,  /* has nothing to do with it, but may stand in between */
};
enum attention_part op_attention_part(struct bytes name);

/* Is it the product of two batches of matrices? */
bool op_is_batched_product(struct bytes name);

/* Does the size of its result depend on the data, if it waits for the device?
 * (aten::index waits where it is given a mask.) */
bool op_asks_for_shape(struct bytes name);

/* Is it the call of a gradient of an op that takes or puts rows? */
bool op_is_rows_gradient(struct bytes name);

/* Does it change a variable: TensorFlow's AssignSubVariableOp,
 * ResourceApplyAdam, as ops and as what calls them one by one? */
bool op_is_update(struct bytes name);

/* Is it the runtime clearing up behind itself, at times of its own choice? */
bool name_is_housekeeping(struct bytes name);

/* Did somebody name it as an evaluation? */
bool name_is_evaluation(struct bytes name);

#endif
