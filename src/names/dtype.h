/* SPDX-License-Identifier: Apache-2.0
 * Data types: what tensors hold and what kernels compute in. The one table of
 * their names and sizes, and of how others spell them. TF32 is a way to compute
 * (tensors hold fp32, the matrix units round to 19 bits), so it has no size of
 * its own but a peak of its own. */
#ifndef NAMES_DTYPE_H
#define NAMES_DTYPE_H

#include "base/bytes.h"

/* clang-format off */
enum dtype {
    DTYPE_UNKNOWN,
    /* types that are computed in: these have a peak */
    DTYPE_FP64, DTYPE_FP32, DTYPE_TF32, DTYPE_FP16, DTYPE_BF16, DTYPE_FP8,
    DTYPE_FP4, DTYPE_INT8, DTYPE_UINT8,
    /* types that are held, but hardly computed in */
    DTYPE_INT64, DTYPE_INT32, DTYPE_INT16, DTYPE_INT4, DTYPE_INT2, DTYPE_INT1,
    DTYPE_UINT64, DTYPE_UINT32, DTYPE_UINT16, DTYPE_UINT4, DTYPE_UINT2,
    DTYPE_UINT1, DTYPE_BOOL, DTYPE_COMPLEX32, DTYPE_COMPLEX64, DTYPE_COMPLEX128,
    DTYPE_N,
};
/* clang-format on */

enum { DTYPE_HLO_N = 34 }; /* XLA's numbers of element types end before it */

/* Returns the name that every table prints, "bf16"; "" when unknown. */
const char *dtype_name(enum dtype d);

/* Returns the bits of one element in memory; 0 when unknown. */
int dtype_bits(enum dtype d);

/* Each of these returns DTYPE_UNKNOWN for what it does not know. */

/* Finds a type by the name that tables print. */
enum dtype dtype_by_name(struct bytes name);

/* Reads any spelling: Float, c10::BFloat16, long int, f32, DT_HALF, fp32. */
enum dtype dtype_of_any(struct bytes text);

/* Reads what torch records for an input: "float", "c10::BFloat16", "long int".
 * Scalars and lists ("Scalar", "Int", "TensorList") are no types. */
enum dtype dtype_of_torch(struct bytes type);

/* Finds a type by the number of c10::ScalarType. */
enum dtype dtype_of_scalar_type(size_t number);

/* Finds a type by XLA's number of an element type (PrimitiveType). */
enum dtype dtype_of_hlo(size_t number);

/* Returns how XLA writes the element type of that number, "f32"; "?" if it is
 * not known. */
const char *dtype_hlo_spelling(size_t number);

#endif
