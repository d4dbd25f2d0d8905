/* SPDX-License-Identifier: Apache-2.0
 * Names and what they mean, as rows of patterns. */
#include "names/name_class.h"

#include "base/array.h"
#include "names/pattern.h"
#include <assert.h>

/* clang-format off */
static const struct pattern classes[] = {
    {CLASS_STEP, NAMES("ProfilerStep#*", "Profiled batch*")},
    {CLASS_INPUT, NAMES("enumerate(DataLoader)#*", "enumerate(DataPipe)#*",
        "IteratorGetNext*", "*:IteratorGetNext", "*:OptionalGetValue")},
    {CLASS_INPUT | CLASS_ITERATOR, NAMES("Iterator::*")},
    /* collectives: host regions, ops, kernels */
    {CLASS_COMM, NAMES("nccl*", "rccl*", "xccl:*", "hccl:*", "c10d::*",
        "record_param_comms*", "void ncclKernel*", "*ncclDevKernel*",
        "*nvshmem*", "*cross_device_reduce*", "*mscclKernel*",
        "*rcclGenericKernel*", "*one_shot_all_reduce*",
        "*two_shot_all_reduce*", "*multimem_all_reduce*")},
    {CLASS_COMM | CLASS_COMM_CPU, NAMES("gloo:*", "mpi:*", "ucc:*", "MPI_*")},
    /* TensorFlow's ops; CollectiveExecutor:: is machinery */
    {CLASS_COMM, NAMES("CollectiveReduce*", "CollectiveGather*",
        "CollectiveBcast*", "CollectiveAllToAll*", "CollectivePermute*",
        "*:CollectiveReduce*", "*:CollectiveGather*", "*:CollectiveBcast*",
        "*:CollectiveAllToAll*", "NcclAllReduce*", "*:NcclAllReduce",
        "Horovod*", "*:Horovod*")},
    /* Horovod's own timeline */
    {CLASS_COMM, NAMES("NCCL_*")},
    {CLASS_COMM | CLASS_COMM_CPU, NAMES("GLOO_*")},
    /* HLO; newer JAX names HLO after its own primitives. "send" alone may be
     * anybody's scope. */
    {CLASS_COMM_HLO, NAMES("all-reduce*", "all-gather*", "all-to-all*",
        "ragged-all-to-all*", "reduce-scatter*", "collective-permute*",
        "collective-broadcast*", "all_reduce*", "all_gather*", "all_to_all*",
        "reduce_scatter*", "collective_permute*", "ppermute*", "psum*",
        "barrier-cores*", "send.*", "send-done*", "recv.*", "recv-done*")},
    /* driver and runtime calls */
    {CLASS_LAUNCH, NAMES("cudaLaunch*", "cuLaunch*", "hipLaunch*",
        "hipExtLaunch*", "hipModuleLaunch*", "hipExtModuleLaunch*",
        "zeCommandListAppendLaunch*", "urEnqueueKernelLaunch*")},
    {CLASS_LAUNCH | CLASS_GRAPH, NAMES("cudaGraphLaunch*", "cuGraphLaunch*",
        "hipGraphLaunch*")},
    {CLASS_COPY, NAMES("cudaMemcpy*", "cudaMemset*", "cuMemcpy*", "cuMemset*",
        "hipMemcpy*", "hipMemset*", "Memcpy*", "Memset*")},
    /* the last two are spans of XLA's and JAX's own around it */
    {CLASS_SYNC, NAMES("cudaDeviceSynchronize*", "cudaStreamSynchronize*",
        "cudaEventSynchronize*", "cuStreamSynchronize*", "cuCtxSynchronize*",
        "cuEventSynchronize*", "hipDeviceSynchronize*",
        "hipStreamSynchronize*", "hipEventSynchronize*",
        "zeCommandQueueSynchronize*", "zeEventHostSynchronize*",
        "urQueueFinish*", "BlockHostUntilDone*", "np.asarray(jax.Array)")},
    {CLASS_ALLOC, NAMES("cudaMalloc*", "cudaFree*", "cudaHostAlloc*",
        "cuMemAlloc*", "cuMemFree*", "hipMalloc*", "hipFree*",
        "hipHostMalloc*")},
    /* phases of training */
    {CLASS_OPTIMIZER, NAMES("Optimizer.*")},
    {CLASS_BACKWARD, NAMES("autograd::engine::evaluate_function*",
        "*Backward0", "*Backward1")},
    /* wrappers around an op */
    {CLASS_WRAPPER, NAMES("EagerExecute*", "EagerKernelExecute*",
        "FunctionRun*")},
    /* kernels on matrix units; the names of XProf's and torch's lists and
     * those of Hopper and later that they lack */
    {CLASS_TENSOR_CORE, NAMES("*h884*", "*s884*", "*h1688*", "*s1688*",
        "*c1688*", "*i8816*", "*i16832*", "*16816*", "*hmma*", "*wgmma*",
        "nvjet*", "*tensorop*", "*flash_fwd*", "*flash_bwd*",
        "*fmha_cutlass*", "*xmma_*", "*dgrad_1x1_stride_2x2*",
        "*first_layer_wgrad_kernel*", "*conv2d_c1_k1*")},
};

/* The categories that opscope's own recorder writes. */
static const struct pattern own_classes[] = {
    {CLASS_INPUT, NAMES("ops_input")},
    {CLASS_COMM | CLASS_COMM_CPU, NAMES("ops_comm")},
    {CLASS_COPY, NAMES("ops_copy")},
    {CLASS_SYNC, NAMES("ops_wait")},
    {CLASS_EPOCH, NAMES("ops_epoch")},
};
/* clang-format on */

uint16_t name_classify(struct bytes name) {
    unsigned class = pattern_all(classes, COUNT(classes), name);
    /* xmma kernels exist for plain fp32 units, too. */
    if ((class & CLASS_TENSOR_CORE) && pattern_fits("*ffma*", name))
        class &= ~(unsigned)CLASS_TENSOR_CORE;
    /* A function of the host that waits its turn on a stream is no kernel. */
    if ((class & CLASS_LAUNCH) && pattern_fits("*LaunchHostFunc*", name))
        class &= ~(unsigned)CLASS_LAUNCH;
    return (uint16_t) class;
}

uint16_t cat_classify(struct bytes cat) {
    return (uint16_t)pattern_first(own_classes, COUNT(own_classes), cat, 0);
}

/* What the queues of an MTIA do beside running a program. */
static const struct pattern queue_words[] = {
    {QUEUE_WAIT, NAMES("event_wait*", "event_record*")},
    {QUEUE_COPY, NAMES("dma_request*")},
};

enum queue_word queue_word_of(struct bytes name) {
    return (enum queue_word)pattern_first(queue_words, COUNT(queue_words), name,
                                          QUEUE_WORK);
}

int64_t name_step_number(struct bytes name) {
    size_t i = name.n;
    while (i > 0 && name.p[i - 1] >= '0' && name.p[i - 1] <= '9') i--;
    if (i == name.n || i == 0 || name.n - i > 18) return -1;
    if (name.p[i - 1] != '#' && name.p[i - 1] != ' ') return -1;
    int64_t v = 0;
    for (; i < name.n; i++) v = v * 10 + (name.p[i] - '0');
    return v;
}

size_t name_group_prefix(struct bytes name) {
    return BYTES_STARTS(name, "ProfilerStep#") ? strlen("ProfilerStep") : 0;
}

const char *coll_kind_name(enum coll_kind k) {
    static const char *const names[COLL_KINDS] = {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
        "broadcast",  "reduce",     "gather",         "scatter",    "permute",
        "send",       "recv",       "send_recv",      "other",
    };
    assert(k < COLL_KINDS);
    return names[k];
}

/* clang-format off */
/* The first word found decides, so the longer ones come first. TensorFlow's
 * CollectiveReduce and CollectiveGather give the result to all. */
static const struct pattern kinds[] = {
    {COLL_REDUCE_SCATTER, NAMES("reducescatter", "psumscatter")},
    {COLL_ALL_REDUCE, NAMES("allreduce", "psum", "collectivereduce",
        "crossdevicereduce")},
    {COLL_ALL_GATHER, NAMES("allgather", "collectivegather")},
    {COLL_ALL_TO_ALL, NAMES("alltoall")},
    {COLL_BARRIER, NAMES("barrier")},
    {COLL_BROADCAST, NAMES("broadcast", "bcast")},
    {COLL_PERMUTE, NAMES("permute")},
    {COLL_SEND_RECV, NAMES("sendrecv")},
    {COLL_SCATTER, NAMES("scatter")},
    {COLL_GATHER, NAMES("gather")},
    {COLL_REDUCE, NAMES("reduce")},
    {COLL_RECV, NAMES("recv")},
    {COLL_SEND, NAMES("send")},
};
/* clang-format on */

/* The letters of the name alone count, so that all_reduce, AllReduce and
 * all-reduce are one spelling. */
enum coll_kind coll_kind_of(struct bytes name) {
    uint8_t text[96]; /* what names a collective stands at its start */
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < sizeof text && name.p[i] != '('; i++) {
        uint8_t c = name.p[i];
        if (c >= 'A' && c <= 'Z') c = (uint8_t)(c - 'A' + 'a');
        if (c >= 'a' && c <= 'z') text[n++] = c;
    }
    return (enum coll_kind)words_first(kinds, COUNT(kinds),
                                       (struct bytes){text, n}, COLL_OTHER);
}
