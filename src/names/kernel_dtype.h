/* SPDX-License-Identifier: Apache-2.0
 * What a device kernel's name says about its arithmetic: is it a product of
 * matrices (GEMM, convolution, attention), on which units, in which type. The
 * hint about precision and the roofline's peak both rest on it, so what a name
 * does not say for certain is DTYPE_UNKNOWN. */
#ifndef NAMES_KERNEL_DTYPE_H
#define NAMES_KERNEL_DTYPE_H

#include "base/bytes.h"
#include "names/dtype.h"

struct kernel_kind {
    bool matrix;      /* multiplies matrices; products with a vector, depthwise
                         convolutions and helpers (split-K sums, layout
                         changes) do not: matrix units would not speed them */
    bool tensor;      /* on matrix units (tensor cores, MFMA, WMMA) */
    enum dtype dtype; /* of what is multiplied; DTYPE_FP32 with matrix: full
                         fp32, neither TF32 nor 16 bits */
};

/* By name alone. O(length), some microseconds: remember it per name. */
struct kernel_kind kernel_kind_of(struct bytes name);

/* The two questions one at a time. op: the type of the inputs of the op that
 * launched it, where recorded, else DTYPE_UNKNOWN: it decides what the name
 * leaves open, except that fp32 inputs do not tell TF32 from fp32. */
bool kernel_is_matrix(struct bytes name);
enum dtype kernel_dtype(struct bytes name, enum dtype op);

/* The same for a kind that was worked out before. */
enum dtype kernel_kind_dtype(struct kernel_kind k, enum dtype op);

#endif
