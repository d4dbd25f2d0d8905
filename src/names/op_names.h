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

/* Two ops of torch that call just one other: they show what a call costs. */
extern const char *const op_thin[2];

#endif
