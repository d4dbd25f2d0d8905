/* SPDX-License-Identifier: Apache-2.0
 * What the names of compilers' spans mean: the one place that knows their
 * spellings. A new spelling = one row in compiler_names.c. */
#ifndef NAMES_COMPILER_NAMES_H
#define NAMES_COMPILER_NAMES_H

#include "base/bytes.h"
#include <stdbool.h>
#include <stdint.h>

enum compile_class {
    CC_NONE,
    CC_TORCH,    /* TorchDynamo, AOTAutograd, Inductor at work */
    CC_TORCH_BW, /* the same for a backward graph */
    CC_TORCH_TUNE,
    CC_TORCH_ID, /* an annotation that tells the compile id */
    CC_REGION,   /* Torch-Compiled Region: compiled code runs */
    CC_FUNCTION, /* CompiledFunction in it, which has the inputs' shapes */
    CC_GUARD,    /* TorchDynamo Cache Lookup */
    CC_JIT,      /* PjitFunction(f): a call of a jitted function */
    CC_JIT_TRACE,
    CC_JIT_LOWER,
    CC_JIT_COMPILE,
    CC_XLA, /* XLA's passes and code generators */
    CC_XLA_TUNE,
    CC_TF_TRACE, /* tf.function records a graph */
    CC_CAPTURE_BEGIN,
    CC_CAPTURE_END,
    CC_GRAPH_BUILD, /* instantiates or updates a graph */
    CC_DRIVER,      /* the driver compiles device code */
};

/* Returns the class of a name. O(length). */
enum compile_class compile_classify(struct bytes name);

/* Does compiled code run in it: a compiled region, or what stands for one? */
bool name_is_compiled_region(struct bytes name);

/* Is it a kernel that torch.compile wrote, or the launch of one? Kernels that
 * people write in Triton have other names. */
bool name_is_inductor_kernel(struct bytes name);

/* Does it call a function that was compiled: of jax.jit, of tf.function? */
bool name_is_compiled_call(struct bytes name);

/* Reads 12 and 3 from "...: 12/3" or "...compile_id=12/3". Returns false if the
 * name holds no such id. */
bool compile_id_of(struct bytes name, int64_t *frame, int64_t *again);

#endif
