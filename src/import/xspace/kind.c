/* SPDX-License-Identifier: Apache-2.0
 * What events and lines of an XSpace are, told by their names. The file has
 * no field for it: the frameworks' readers, too, go by the text. Adding a
 * spelling = one row in a table here. */
#include "base/array.h"
#include "base/xspace.h"
#include "import/xspace/xspace.h"
#include "names/hlo_text.h"
#include "names/op_names.h"
#include "names/pattern.h"

#include <ctype.h>

/* Machinery of TensorFlow, XLA and PjRt that no "::" in the name gives away. */
/* clang-format off */
static const char *const machinery[] = {
    "ThreadpoolListener*", "ExecutorState*", "ExecutorDoneCallback*", "PjRt*",
    "PJRT_*", "CommonPjRt*", "TFE_*", "EagerExecute*", "EagerKernelExecute*",
    "EagerCopyToDevice*", "EagerRemoteExecute*", "FunctionRun*", "SessionRun*",
    "RunGraph*", "TfOpRun*", "TraceContext*", "KernelAndDeviceFunc*",
    "ValidateInputTypeAndPlacement*", "ParallelFor*", "PrefetchProduce*",
    "PrefetchConsume*", "ParallelInterleave*", "ParallelMapProduce*",
    "ParallelMapConsume*", "MapAndBatchProduce*", "MapAndBatchConsume*",
    "ParseExampleProduce*", "ParseExampleConsume*", "ParallelBatchProduce*",
    "ParallelBatchConsume*", "MemoryAllocation*", "MemoryDeallocation*",
    "RemotePerfCounter*", "WhileOp-*", "ForOp*", "BatchingSessionRun*",
    "ProcessBatch*", "TfrtModelRun*", "ServingModelRun*", "KernelLaunch*",
    "KernelExecute*", "EnqueueRequestLocked*", "RunProgramRequest*",
    "HostCallbackRequest*", "TransferH2DRequest*", "TransferD2HRequest*",
    "TransferPreprocessedH2DRequest*", "OnDeviceSend*", "OnDeviceRecv*",
    "CustomWait*", "PjrtAsyncWait*", "DoEnqueue*", "WriteHbm*", "ReadHbm*",
    "TpuExecuteOp*", "CompleteCallbacks*", "TPUPartitionedCallOp-*",
    "Linearize*", "Delinearize*", "TransferBufferFromDevice*",
    "Wait for donation holds*", "Wait for usage holds*", "Handle input*",
    "AllocateOutputBuffers*", "Build buffer allocations*",
    "Resolve constant globals*", "H2D Dispatch*", "D2H Dispatch*",
    "D2D Dispatch*", "DevicePut*", "PjitFunction(*", "ParseArguments*",
    "ComputeSemaphoreAcquire*", "command_buffer*", "convert_to_tensor*",
    "tf.constant*", "end: *", "ThenExecuteCallback*", "BlockHostUntilReady*",
    "np.asarray(jax.Array)", "MegaScale: *", "ThunkExecutor*", NULL,
};

/* Waits that the GPU tracer writes on device lines. */
static const char *const device_waits[] = {
    "cuEventSynchronize*", "cuStreamWaitEvent*", "cuStreamSynchronize*",
    "cuCtxSynchronize*", "cudaEventSynchronize*", "cudaStreamSynchronize*",
    "cudaDeviceSynchronize*", "cudaStreamWaitEvent*", NULL,
};
/* clang-format on */

/* Is it cuLaunchKernel, cudaMalloc, hipMemcpy: the prefix, then a capital? */
static bool is_driver_call(struct bytes b) {
    static const char *const prefixes[] = {"cuda", "cu", "hip", "nccl"};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (b.n > n && isupper(b.p[n]) && memcmp(b.p, prefixes[i], n) == 0)
            return true;
    }
    return BYTES_STARTS(b, "hsa_");
}

/* Is it an op of TensorFlow's executor, name:Type? C++ functions that PjRt
 * traces as Function:Function look the same. They are told apart by where they
 * run: with no TensorFlow in the plane only a scoped name, or one that says its
 * type, is believed. */
static bool is_tf_op(const struct xplane *p, struct bytes b) {
    struct bytes name, type;
    if (!name_split_tf(b, &name, &type) || name.p[0] == '_') return false;
    if (BYTES_STARTS(name, "ThenExecuteCallback")) return false;
    if (p->tf) return true;
    return memchr(name.p, '/', name.n) != NULL || BYTES_STARTS(name, "tf.") ||
           (name.n >= type.n && memcmp(name.p, type.p, type.n) == 0);
}

bool xname_is_function(struct bytes b) {
    return BYTES_STARTS(b, "__inference_") || BYTES_STARTS(b, "__forward_") ||
           BYTES_STARTS(b, "__backward_");
}

static void host_name(const struct xplane *p, struct xname *n) {
    struct bytes b = n->name;
    static const char eager[] = "EagerLocalExecute: ";
    n->kind = SPAN_ANNOTATION;
    if (b.n > 0 && b.p[0] == '$') {
        n->kind = SPAN_PYTHON;
    } else if (BYTES_IS(b, "MemoryAllocation") ||
               BYTES_IS(b, "MemoryDeallocation")) {
        n->kind = SPAN_RUNTIME;
        n->role = b.p[6] == 'A' ? XROLE_ALLOC : XROLE_FREE;
    } else if (BYTES_STARTS(b, "EagerLocalExecute: ") &&
               b.n > sizeof eager - 1) {
        struct bytes op = {b.p + sizeof eager - 1, b.n - sizeof eager + 1};
        n->kind = xname_is_function(op) ? SPAN_RUNTIME : SPAN_OP;
        n->flags = n->kind == SPAN_OP ? SPAN_EAGER : 0;
        if (n->kind == SPAN_OP) n->name = op;
    } else if (BYTES_IS(b, "EagerExecute")) {
        n->kind = SPAN_RUNTIME;
        n->role = p->eager_local ? XROLE_RUNTIME_SURE : XROLE_EAGER;
    } else if (BYTES_STARTS(b, "Iterator::") || is_tf_op(p, b)) {
        n->kind = SPAN_OP;
    } else if (BYTES_STARTS(b, "NVTX:")) {
        n->kind = SPAN_ANNOTATION;
    } else if (is_driver_call(b)) {
        n->kind = SPAN_API;
    } else if (word_in("::", b) || pattern_in(machinery, b) ||
               word_in(":XLA GPU module", b) ||
               (p->tf && BYTES_IS(b, "Loop"))) { /* of a ring's reduction */
        n->kind = SPAN_RUNTIME;
    }
}

static void gpu_name(struct xname *n) {
    static const char *const overheads[] = {"COMPILER", "BUFFER_FLUSH",
                                            "INSTRUMENTATION", "RESOURCE",
                                            NULL};
    struct bytes b = n->name;
    n->kind = SPAN_KERNEL;
    if (BYTES_STARTS(b, "Memcpy") || BYTES_STARTS(b, "UM_BYTES_TRANSFER"))
        n->kind = SPAN_COPY;
    else if (BYTES_STARTS(b, "Memset")) n->kind = SPAN_MEMSET;
    else if (pattern_in(device_waits, b)) n->kind = SPAN_SYNC;
    else if (BYTES_STARTS(b, "UM_") || BYTES_STARTS(b, "Memory "))
        n->kind = SPAN_OTHER;
    else if (pattern_in(overheads, b)) n->kind = SPAN_OVERHEAD;
}

bool xname_is_tf(struct bytes b) {
    /* clang-format off */
    static const char *const marks[] = {
        "ExecutorState::*", "EagerExecute*", "EagerLocalExecute*",
        "FunctionRun*", "SessionRun*", "RunGraph*", "TfOpRun*",
        "KernelAndDeviceFunc::*", "TFE_*", "TfrtModelRun*", "Iterator::*",
        "IteratorGetNext*", NULL,
    };
    /* clang-format on */
    return pattern_in(marks, b);
}

void xname_classify(const struct xplane *p, struct xname *n) {
    if (p->own) {
        xname_own(p, n);
        return;
    }
    switch (p->kind) {
    case XPLANE_HOST:
    case XPLANE_FACTS: host_name(p, n); break;
    case XPLANE_GPU: gpu_name(n); break;
    case XPLANE_XLA: n->kind = SPAN_KERNEL; break;
    case XPLANE_OTHER: n->kind = SPAN_OTHER; break;
    }
    /* An XLA op's name is its whole HLO text. On the host the display name is
     * the op's type alone, which says less. */
    if (p->kind != XPLANE_HOST && n->display.n > 0) n->name = n->display;
    /* There a transfer runs beside the ops: what stands among them is where
     * the core starts it and waits for it. */
    if (p->kind == XPLANE_XLA && hlo_is_transfer(n->name, n->cat))
        n->kind = SPAN_COPY;
}

enum xline_kind xline_classify(const struct xplane *p, const struct xline *l) {
    /* clang-format off */
    static const char *const derived[] = {
        "Steps*", "XLA Modules*", "XLA Ops*", "Framework Name Scope*",
        "Framework Ops*", "Launch Stats*", "Source code*", "Source Code*",
        "Host Offload Ops*", "Tensor Core Sync Flag*", "XLA TraceMe*",
        "Overlay*", "Sparse Core Steps*", "Sparse Core Modules*",
        "Sparse Core Syncs*", "Async XLA Ops*", NULL,
    };
    /* clang-format on */
    if (p->own) return xline_own(p, l);
    if (p->kind == XPLANE_HOST || p->kind == XPLANE_FACTS) return XLINE_HOST;
    if (BYTES_IS(l->name, XSPACE_COUNTERS_LINE) ||
        BYTES_STARTS(l->name, "counters_"))
        return XLINE_COUNTERS;
    /* lines that the readers of XSpace derive have ids from here on */
    const int64_t first = -559038737;
    if (l->id >= first && l->id <= first + 389) return XLINE_DERIVED;
    if (p->kind == XPLANE_XLA) {
        if (BYTES_IS(l->name, "XLA Ops") ||
            BYTES_IS(l->name, "Sparse Core Ops"))
            return XLINE_STREAM;
        return BYTES_STARTS(l->name, "Async") ? XLINE_ASYNC : XLINE_DERIVED;
    }
    if (p->kind == XPLANE_OTHER) return XLINE_OTHER;
    if (BYTES_STARTS(l->name, "CUPTI overhead")) return XLINE_OVERHEAD;
    return pattern_in(derived, l->name) ? XLINE_DERIVED : XLINE_STREAM;
}
