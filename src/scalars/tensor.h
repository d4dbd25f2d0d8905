/* SPDX-License-Identifier: Apache-2.0
 * TensorProto, as far as summaries need it: its numbers as doubles, whichever
 * of the twelve forms they have, and its texts. */
#ifndef SCALARS_TENSOR_H
#define SCALARS_TENSOR_H

#include "base/bytes.h"
#include <stdbool.h>

enum { TENSOR_DIMS = 4, TENSOR_VALUES_MAX = 1 << 20 };

/* Zeroed, then tensor_read as often as you like, then tensor_free: the room
 * for values is used again. */
struct tensor {
    unsigned dtype; /* TensorFlow's DataType, 0: not given */
    bool is_text;   /* DT_STRING */
    unsigned ndims; /* of which TENSOR_DIMS are kept */
    uint64_t dims[TENSOR_DIMS];
    size_t n, cap;
    double *v;         /* the numbers as recorded: one may stand for
                                  all elements */
    struct bytes text; /* the first text */
    size_t ntexts;
    bool oom;
};

/* False: damaged, or of a type that has no numbers and no texts. Costs one pass
 * over the bytes. */
bool tensor_read(struct tensor *t, struct bytes b);
void tensor_free(struct tensor *t);

/* One number, whatever its shape: [], [1], [1, 1]? */
static inline bool tensor_is_scalar(const struct tensor *t) {
    uint64_t elements = 1;
    for (unsigned i = 0; i < t->ndims && i < TENSOR_DIMS; i++)
        elements = t->dims[i] == 1 ? elements : 0;
    return !t->is_text && t->n == 1 && elements == 1;
}

#endif
