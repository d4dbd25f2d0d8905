/* SPDX-License-Identifier: Apache-2.0
 * Data types: what tensors hold and what kernels compute in. TF32 is a way to
 * compute (tensors hold fp32, the matrix units round to 19 bits), so it has no
 * size of its own but a peak of its own. bf16 is 16 bits. */
#ifndef NAMES_DTYPE_H
#define NAMES_DTYPE_H

#include "base/bytes.h"
#include <stdbool.h>

enum dtype {
    DTYPE_UNKNOWN,
    DTYPE_FP64,
    DTYPE_FP32,
    DTYPE_TF32, /* fp32 in memory */
    DTYPE_FP16,
    DTYPE_BF16,
    DTYPE_FP8,
    DTYPE_FP4,
    DTYPE_INT8,
    /* held, hardly computed in: these have no peak */
    DTYPE_INT64,
    DTYPE_INT32,
    DTYPE_INT16,
    DTYPE_BOOL,
    DTYPE_COMPLEX64,
    DTYPE_COMPLEX128,
    DTYPE_N,
};

/* "bf16"; "" when unknown. */
const char *dtype_name(enum dtype d);

/* Bits of one element in memory; 0 when unknown. */
int dtype_bits(enum dtype d);

/* By its name above, DTYPE_UNKNOWN when there is none. */
enum dtype dtype_by_name(struct bytes name);

/* From the type that torch records for an input: "float", "c10::BFloat16",
 * "long int", ...; scalars and lists are DTYPE_UNKNOWN. */
enum dtype dtype_of_torch(struct bytes type);

#endif
