/* SPDX-License-Identifier: Apache-2.0
 * Names and what they mean, as rows: a pattern, how it is matched, the class.
 * A pattern matches at the start of the name, at its end, or anywhere. */
#include "names/opclass.h"

#include <stdbool.h>

enum where { START, END, ANY };

struct row {
    const char *text;
    enum where where;
    uint16_t class;
};

/* clang-format off */
static const struct row rows[] = {
    /* steps */
    {"ProfilerStep#", START, NAME_STEP},
    {"Profiled batch", START, NAME_STEP},
    /* input pipelines */
    {"enumerate(DataLoader)#", START, NAME_INPUT},
    {"enumerate(DataPipe)#", START, NAME_INPUT},
    {"Iterator::", START, NAME_INPUT | NAME_ITERATOR},
    {"IteratorGetNext", START, NAME_INPUT},
    {":IteratorGetNext", END, NAME_INPUT},
    {":OptionalGetValue", END, NAME_INPUT},
    /* collectives: host regions, ops, kernels, HLO */
    {"nccl", START, NAME_COMM},
    {"rccl", START, NAME_COMM},
    {"gloo:", START, NAME_COMM | NAME_COMM_CPU},
    {"mpi:", START, NAME_COMM | NAME_COMM_CPU},
    {"ucc:", START, NAME_COMM | NAME_COMM_CPU},
    {"xccl:", START, NAME_COMM},
    {"hccl:", START, NAME_COMM},
    {"MPI_", START, NAME_COMM | NAME_COMM_CPU},
    {"c10d::", START, NAME_COMM},
    {"record_param_comms", START, NAME_COMM},
    {"void ncclKernel", START, NAME_COMM},
    {"ncclDevKernel", ANY, NAME_COMM},
    {"nvshmem", ANY, NAME_COMM},
    {"cross_device_reduce", ANY, NAME_COMM},
    {"mscclKernel", ANY, NAME_COMM},
    {"rcclGenericKernel", ANY, NAME_COMM},
    {"one_shot_all_reduce", ANY, NAME_COMM},
    {"two_shot_all_reduce", ANY, NAME_COMM},
    {"multimem_all_reduce", ANY, NAME_COMM},
    /* TensorFlow's ops; CollectiveExecutor:: is machinery */
    {"CollectiveReduce", START, NAME_COMM},
    {"CollectiveGather", START, NAME_COMM},
    {"CollectiveBcast", START, NAME_COMM},
    {"CollectiveAllToAll", START, NAME_COMM},
    {"CollectivePermute", START, NAME_COMM},
    {":CollectiveReduce", ANY, NAME_COMM},
    {":CollectiveGather", ANY, NAME_COMM},
    {":CollectiveBcast", ANY, NAME_COMM},
    {":CollectiveAllToAll", ANY, NAME_COMM},
    {":NcclAllReduce", END, NAME_COMM},
    {"NcclAllReduce", START, NAME_COMM},
    {"Horovod", START, NAME_COMM},
    {":Horovod", ANY, NAME_COMM},
    /* Horovod's own timeline */
    {"NCCL_", START, NAME_COMM},
    {"GLOO_", START, NAME_COMM | NAME_COMM_CPU},
    {"all-reduce", START, NAME_COMM_HLO},
    {"all-gather", START, NAME_COMM_HLO},
    {"all-to-all", START, NAME_COMM_HLO},
    {"ragged-all-to-all", START, NAME_COMM_HLO},
    {"reduce-scatter", START, NAME_COMM_HLO},
    {"collective-permute", START, NAME_COMM_HLO},
    {"collective-broadcast", START, NAME_COMM_HLO},
    /* newer JAX names HLO after its own primitives */
    {"all_reduce", START, NAME_COMM_HLO},
    {"all_gather", START, NAME_COMM_HLO},
    {"all_to_all", START, NAME_COMM_HLO},
    {"reduce_scatter", START, NAME_COMM_HLO},
    {"collective_permute", START, NAME_COMM_HLO},
    {"ppermute", START, NAME_COMM_HLO},
    {"psum", START, NAME_COMM_HLO},
    /* driver and runtime calls */
    {"cudaLaunch", START, NAME_LAUNCH},
    {"cuLaunch", START, NAME_LAUNCH},
    {"hipLaunch", START, NAME_LAUNCH},
    {"hipExtLaunch", START, NAME_LAUNCH},
    {"hipModuleLaunch", START, NAME_LAUNCH},
    {"hipExtModuleLaunch", START, NAME_LAUNCH},
    {"cudaGraphLaunch", START, NAME_LAUNCH | NAME_GRAPH},
    {"cuGraphLaunch", START, NAME_LAUNCH | NAME_GRAPH},
    {"hipGraphLaunch", START, NAME_LAUNCH | NAME_GRAPH},
    {"zeCommandListAppendLaunch", START, NAME_LAUNCH},
    {"urEnqueueKernelLaunch", START, NAME_LAUNCH},
    {"cudaMemcpy", START, NAME_COPY},
    {"cudaMemset", START, NAME_COPY},
    {"cuMemcpy", START, NAME_COPY},
    {"cuMemset", START, NAME_COPY},
    {"hipMemcpy", START, NAME_COPY},
    {"hipMemset", START, NAME_COPY},
    {"Memcpy", START, NAME_COPY},
    {"Memset", START, NAME_COPY},
    {"cudaDeviceSynchronize", START, NAME_SYNC},
    {"cudaStreamSynchronize", START, NAME_SYNC},
    {"cudaEventSynchronize", START, NAME_SYNC},
    {"cuStreamSynchronize", START, NAME_SYNC},
    {"cuCtxSynchronize", START, NAME_SYNC},
    {"cuEventSynchronize", START, NAME_SYNC},
    {"hipDeviceSynchronize", START, NAME_SYNC},
    {"hipStreamSynchronize", START, NAME_SYNC},
    {"hipEventSynchronize", START, NAME_SYNC},
    {"zeCommandQueueSynchronize", START, NAME_SYNC},
    {"zeEventHostSynchronize", START, NAME_SYNC},
    {"urQueueFinish", START, NAME_SYNC},
    {"BlockHostUntilDone", START, NAME_SYNC}, /* XLA's own span around it */
    {"cudaMalloc", START, NAME_ALLOC},
    {"cudaFree", START, NAME_ALLOC},
    {"cudaHostAlloc", START, NAME_ALLOC},
    {"cuMemAlloc", START, NAME_ALLOC},
    {"cuMemFree", START, NAME_ALLOC},
    {"hipMalloc", START, NAME_ALLOC},
    {"hipFree", START, NAME_ALLOC},
    {"hipHostMalloc", START, NAME_ALLOC},
    /* phases of training */
    {"Optimizer.", START, NAME_OPTIMIZER},
    {"autograd::engine::evaluate_function", START, NAME_BACKWARD},
    {"Backward0", END, NAME_BACKWARD},
    {"Backward1", END, NAME_BACKWARD},
    /* wrappers around an op */
    {"EagerExecute", START, NAME_WRAPPER},
    {"EagerKernelExecute", START, NAME_WRAPPER},
    {"FunctionRun", START, NAME_WRAPPER},
    /* kernels on matrix units; the names of XProf's and torch's lists and
     * those of Hopper and later that they lack */
    {"h884", ANY, NAME_TENSOR_CORE},
    {"s884", ANY, NAME_TENSOR_CORE},
    {"h1688", ANY, NAME_TENSOR_CORE},
    {"s1688", ANY, NAME_TENSOR_CORE},
    {"c1688", ANY, NAME_TENSOR_CORE},
    {"i8816", ANY, NAME_TENSOR_CORE},
    {"i16832", ANY, NAME_TENSOR_CORE},
    {"16816", ANY, NAME_TENSOR_CORE},
    {"hmma", ANY, NAME_TENSOR_CORE},
    {"wgmma", ANY, NAME_TENSOR_CORE},
    {"nvjet", START, NAME_TENSOR_CORE},
    {"tensorop", ANY, NAME_TENSOR_CORE},
    {"flash_fwd", ANY, NAME_TENSOR_CORE},
    {"flash_bwd", ANY, NAME_TENSOR_CORE},
    {"fmha_cutlass", ANY, NAME_TENSOR_CORE},
    {"xmma_", ANY, NAME_TENSOR_CORE},
    {"dgrad_1x1_stride_2x2", ANY, NAME_TENSOR_CORE},
    {"first_layer_wgrad_kernel", ANY, NAME_TENSOR_CORE},
    {"conv2d_c1_k1", ANY, NAME_TENSOR_CORE},
};
/* clang-format on */

static bool find(struct bytes in, const char *text, size_t n) {
    if (in.n < n) return false;
    return memmem(in.p, in.n, text, n) != NULL;
}

static bool matches(struct bytes name, const struct row *r) {
    size_t n = strlen(r->text);
    if (name.n < n) return false;
    switch (r->where) {
    case START: return memcmp(name.p, r->text, n) == 0;
    case END: return memcmp(name.p + name.n - n, r->text, n) == 0;
    case ANY: return find(name, r->text, n);
    }
    return false;
}

uint16_t name_classify(struct bytes name) {
    uint16_t class = 0;
    /* A kernel's arguments and a 1 MB name tell nothing more. */
    struct bytes head = {name.p, name.n < 4096 ? name.n : 4096};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (matches(rows[i].where == END ? name : head, &rows[i]))
            class |= rows[i].class;
    /* xmma kernels exist for plain fp32 units, too. */
    if ((class & NAME_TENSOR_CORE) && find(head, "ffma", 4))
        class &= (uint16_t)~NAME_TENSOR_CORE;
    /* A function of the host that waits its turn on a stream is no kernel. */
    if ((class & NAME_LAUNCH) && find(head, "LaunchHostFunc", 14))
        class &= (uint16_t)~NAME_LAUNCH;
    return class;
}

uint16_t cat_classify(struct bytes cat) {
    static const struct {
        const char *cat;
        uint16_t class;
    } cats[] = {
        {"ops_input", NAME_INPUT}, {"ops_comm", NAME_COMM | NAME_COMM_CPU},
        {"ops_copy", NAME_COPY},   {"ops_wait", NAME_SYNC},
        {"ops_epoch", NAME_EPOCH},
    };
    for (size_t i = 0; i < sizeof cats / sizeof *cats; i++)
        if (bytes_eq(cat, cats[i].cat, strlen(cats[i].cat)))
            return cats[i].class;
    return 0;
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
    static const char step[] = "ProfilerStep#";
    if (BYTES_STARTS(name, "ProfilerStep#")) return sizeof step - 2;
    return 0;
}
