/* SPDX-License-Identifier: Apache-2.0
 * What the name of a device kernel, or of a copy, says. Of a kernel: is it a
 * product of matrices (GEMM, convolution, attention), on which units, in which
 * type. The hint about precision and the roofline's peak both rest on that, so
 * what a name does not say for certain is DTYPE_UNKNOWN. */
#ifndef NAMES_KERNEL_NAMES_H
#define NAMES_KERNEL_NAMES_H

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

/* Returns what the name alone says. O(length), some microseconds: callers keep
 * the answer for each name. */
struct kernel_kind kernel_kind_of(struct bytes name);

/* Returns the type that such a kernel computes in. op is the type of the inputs
 * of the op that launched it, DTYPE_UNKNOWN if not recorded. It decides what
 * the name leaves open, except that fp32 inputs do not tell TF32 from fp32. */
enum dtype kernel_kind_dtype(struct kernel_kind k, enum dtype op);

/* Is it an op that XLA wrote on a kernel? The marks of a whole program
 * ("XlaModule:") and of a CUDA graph ("command_buffer") are none. */
static inline bool kernel_op_is_known(struct bytes op) {
    return op.n > 0 && !BYTES_STARTS(op, "command_buffer") &&
           !BYTES_STARTS(op, "XlaModule:");
}

/* What a kernel does, as far as its name says. */
enum kernel_class {
    KERNEL_OTHER, /* its name does not say */
    KERNEL_GEMM,  /* products of matrices, also with a vector */
    KERNEL_CONVOLUTION,
    KERNEL_ATTENTION, /* fused: flash attention and its helpers */
    KERNEL_NORMALIZATION,
    KERNEL_SOFTMAX,
    KERNEL_POOLING,
    KERNEL_OPTIMIZER, /* fused: one kernel that steps many tensors */
    KERNEL_REDUCTION, /* sums and the like, those of split-K included */
    KERNEL_INDEXING,  /* gathers, scatters, embeddings */
    KERNEL_POINTWISE, /* each element by itself */
    KERNEL_COPY,      /* moves data: copies, layouts, concatenation */
    KERNEL_COLLECTIVE,
    KERNEL_CLASSES,
};

/* Returns what the name alone says: one that is not known is KERNEL_OTHER. */
enum kernel_class kernel_class_of(struct bytes name);

/* Returns the word that tables print: "gemm". */
const char *kernel_class_name(enum kernel_class c);

/* Is it one kernel for many tensors: torch's foreach and fused optimizers? */
bool kernel_is_joined(struct bytes name);

/* Could one pass over memory do the kernel's work together with that of its
 * neighbours? Pointwise kernels could, and the sums and norms between them;
 * statistics that all elements wait for need a pass of their own. */
enum kernel_fusable { FUSE_NOT, FUSE_POINTWISE, FUSE_REDUCE, FUSE_STATS };
enum kernel_fusable kernel_fusable(struct bytes name);

/* Is it a kernel of cuDNN that only moves data into the layout that its
 * convolutions want, or back? */
bool kernel_is_layout(struct bytes name);

/* Is it a norm or pool that works in NCHW, where kernels for NHWC exist that
 * come near the memory's speed? */
bool kernel_is_slow_nchw(struct bytes name);

/* Is it a kernel that a library launches around the real one? */
bool kernel_is_helper(struct bytes name);

/* Which way a copy goes, by its name: "Memcpy HtoD (Pinned -> Device)". */
enum copy_kind {
    COPY_H2D,
    COPY_D2H,
    COPY_D2D,
    COPY_P2P,
    COPY_H2H,
    COPY_OTHER,
    COPY_MEMSET,
    COPY_KINDS,
};
enum copy_kind copy_kind_of(struct bytes name);

#endif
