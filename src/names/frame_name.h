/* SPDX-License-Identifier: Apache-2.0
 * The names of Python frames, as the profilers spell them, taken apart:
 *
 *   torch            pkg/file.py(12): func
 *                    <built-in method f of T object at 0x7f..>
 *                    nn.Module: Conv2d_3
 *   TensorFlow, JAX  $file.py:12 func,  $builtins len,  $<unknown> items */
#ifndef NAMES_FRAME_NAME_H
#define NAMES_FRAME_NAME_H

#include "base/bytes.h"
#include <stdbool.h>
#include <stdint.h>

struct frame_name {
    struct bytes function; /* never empty for a name that is not */
    struct bytes file;     /* n is 0: none, a call into C or a module's */
    int64_t line;          /* of the function's definition; -1: none */
};

struct frame_name frame_name_split(struct bytes name);

/* Returns the name without what differs from run to run: the address of the
 * object that a method was called on. It is name itself or made in buf. */
enum { FRAME_NAME_MAX = 512 };
struct bytes frame_name_stable(struct bytes name, char buf[FRAME_NAME_MAX]);

/* Is it code of the program itself: a file that is neither Python's own nor of
 * a known package? This is a guess, made by the path. */
bool frame_name_is_users(const struct frame_name *f);

/* Is it the call of a torch module: "nn.Module: Conv2d_3"? */
static inline bool frame_name_is_module(struct bytes name) {
    return BYTES_STARTS(name, "nn.Module: ");
}

/* Is it a function of C: "<built-in method f ...>"? */
static inline bool frame_name_is_builtin(struct bytes name) {
    return BYTES_STARTS(name, "<built-in");
}

/* Is it a function through which JAX runs what it was asked to: the call of an
 * op, a gradient, a jitted function? What is called inside is JAX's own, or
 * part of what it traces. */
bool frame_name_is_jaxs(struct bytes name);

/* Does the function wait for work that runs elsewhere? */
bool frame_name_waits(struct bytes name);

/* Does the function take from a queue that another thread or process fills? */
bool frame_name_takes(struct bytes name);

/* Is it in the code that hands over the batches of tf.data, or of torch's
 * DataLoader? */
bool frame_name_is_tf_data(struct bytes name);
bool frame_name_is_torch_loader(struct bytes name);

/* Is it a C++ function of torch that records stacks, or of its allocator? Such
 * functions are the innermost frames of every stack of an allocation. */
bool frame_name_is_recorder(struct bytes name);

#endif
