/* SPDX-License-Identifier: Apache-2.0
 * The inputs of a torch op as its arguments give them: shapes, types and the
 * values of what is no tensor. torch writes them as JSON lists: "Input Dims"
 * has one list of sizes per input, empty for what is no tensor (and for a
 * tensor of no dimension: the type tells them apart), a list of lists for a
 * list of tensors; "Concrete Inputs" is a list of strings, "[1, 1]" for a list
 * of numbers. */
#ifndef ANALYZE_SHARED_OP_INPUTS_H
#define ANALYZE_SHARED_OP_INPUTS_H

#include "model/trace.h"
#include "names/dtype.h"

enum { OP_INPUTS_MAX = 24, OP_DIMS_MAX = 16 };

struct op_input {
    int n; /* dimensions; -1: a list of tensors, or not plain */
    int64_t d[OP_DIMS_MAX];
    int64_t numel;    /* elements, of all tensors of a list; 0: no tensor;
                            -1: too many for 63 bits, or not readable */
    int64_t matrices; /* of a list: elements of those with two dimensions or
                            more; else 0 */
    enum dtype type;  /* DTYPE_UNKNOWN: no tensor, or a list */
};

struct op_inputs {
    int n;
    struct op_input v[OP_INPUTS_MAX];
    struct bytes concrete; /* JSON list of strings; may be empty */
};

/* Reads a span's arguments: microseconds. Returns false if it has no shapes. */
bool op_inputs_of(const struct trace *t, row_id row, struct op_inputs *out);

/* Reads the three texts; types and concrete may be empty. */
void op_inputs_from(struct bytes dims, struct bytes types,
                    struct bytes concrete, struct op_inputs *out);

/* Returns the text of value i, quotes taken off; empty if there is none. */
struct bytes op_inputs_text(const struct op_inputs *in, int i);

/* Reads the numbers of value i, "[2, 2]" or "3", at most max. Returns how many
 * there are; 0 if it is no list of numbers. */
int op_inputs_ints(const struct op_inputs *in, int i, int64_t *v, int max);

/* Is value i True? */
bool op_inputs_true(const struct op_inputs *in, int i);

/* Returns string i of a JSON list of strings, quotes taken off; an empty one
 * if there is none. */
struct bytes op_inputs_string(struct bytes list, int i);

/* Returns how many elements a tensor of shape "[32, 3]" has; -1 if the text is
 * no such list, or they do not fit into 63 bits. */
int64_t op_inputs_numel(struct bytes dims);

#endif
