/* SPDX-License-Identifier: Apache-2.0
 * The name scopes that an op's name spells out, as a path. What belongs to the
 * backward pass is found by how the frameworks spell it, and stands where its
 * forward scope stands:
 *
 *   TensorFlow  gradient_tape/net/conv/Conv2DBackpropFilter  net/conv/...
 *               gradients/conv/Conv2D_grad/ReluGrad       conv/Conv2D/ReluGrad
 *   JAX         jit(step)/transpose(jvp(layer0))/dot_general
 *                                            jit(step)/layer0/dot_general
 *   tf.data     Iterator::Root::Map[0]       Iterator / Root / Map[0] */
#ifndef ANALYZE_CODE_SCOPE_PATH_H
#define ANALYZE_CODE_SCOPE_PATH_H

#include "analyze/code/paths.h"

/* The node of a TensorFlow op or tf.data iterator, by its span's name;
 * PATH_NONE when it is empty. Sets *backward. */
uint32_t scope_path_tf(struct paths *p, struct bytes name, bool *backward);

/* The node of an op of XLA, by its framework op's name. */
uint32_t scope_path_xla(struct paths *p, struct bytes op_name, bool *backward);

#endif
