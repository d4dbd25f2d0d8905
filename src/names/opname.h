/* SPDX-License-Identifier: Apache-2.0
 * The spelling of TensorFlow ops: conv/Relu:_FusedConv2D is the node conv/Relu
 * that ran as _FusedConv2D. Spans keep the full text; this takes it apart. */
#ifndef NAMES_OPNAME_H
#define NAMES_OPNAME_H

#include "base/bytes.h"
#include <stdbool.h>

/* Splits name:Type at the first colon when both sides are spelled as
 * TensorFlow spells them: the name [A-Za-z0-9._][A-Za-z0-9_./>-]*, the type
 * [A-Z_][A-Za-z0-9_]*. False, and the outputs untouched, for all else. */
bool name_split_tf(struct bytes full, struct bytes *name, struct bytes *type);

/* What kind of op it is: the type of name:Type, "Dataset" for tf.data
 * iterators, else empty. */
struct bytes name_op_type(struct bytes full);

#endif
