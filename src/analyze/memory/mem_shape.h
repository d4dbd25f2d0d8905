/* SPDX-License-Identifier: Apache-2.0
 * Shape and type of the tensor in a block, where the op that made room for it
 * recorded them. */
#ifndef ANALYZE_MEMORY_MEM_SHAPE_H
#define ANALYZE_MEMORY_MEM_SHAPE_H

#include "base/bytes.h"
#include <stdint.h>

struct trace;

struct mem_shape {
    struct bytes dims; /* "[32, 3, 64, 64]", in the mapped file; n is 0: not
                          recorded */
    const char *dtype; /* "fp32", or NULL: not recorded */
};

/* Of the tensor that this op (a row, or ROW_NONE) allocated in a block of so
 * many bytes. Nothing when they do not fit the block. Reads the span's
 * arguments: microseconds. */
struct mem_shape mem_shape_of(const struct trace *t, uint32_t op,
                              int64_t bytes);

/* The same from the recorded inputs: a JSON list of strings, such as
 * ["[2, 3]", "6", ...] of aten::empty. */
struct mem_shape mem_shape_from(struct bytes op, struct bytes concrete,
                                int64_t bytes);

#endif
