/* SPDX-License-Identifier: Apache-2.0
 * Spellings as rows: the first that matches decides. They are those of torch
 * 2.1 to 2.13, JAX 0.4 to 0.11, TensorFlow 2.x and XLA of the same years. */
#include "names/compiler_names.h"

#include <stddef.h>

enum where { WHOLE, START, END, ANY };

/* clang-format off */
static const struct {
    const char *text;
    enum where where;
    enum compile_class class;
} rows[] = {
    /* torch: record_function of every phase that Dynamo times, and from 2.12
     * on a twin around it that has the phase's bare name */
    {"entire_backward_compile", WHOLE, CC_TORCH_BW},
    {"backward._backward_impl (dynamo_timed)", WHOLE, CC_TORCH_BW},
    {"compile_id=", ANY, CC_TORCH_ID},
    {"CachingAutotuner.", START, CC_TORCH_TUNE},
    {"benchmark_all_configs (dynamo_timed)", END, CC_TORCH_TUNE},
    {" (dynamo_timed)", END, CC_TORCH},
    {"dynamo", WHOLE, CC_TORCH},
    {"entire_frame_compile", WHOLE, CC_TORCH},
    {"inductor_compile", WHOLE, CC_TORCH},
    {"backend_compile", WHOLE, CC_JIT_COMPILE}, /* torch: inside dynamo */
    {"Torch-Compiled Region", START, CC_REGION},
    {"CompiledFunction", WHOLE, CC_FUNCTION},
    {"TorchDynamo Cache Lookup", WHOLE, CC_GUARD},
    /* JAX */
    {"PjitFunction(", START, CC_JIT},
    {"trace_to_jaxpr", START, CC_JIT_TRACE},
    {"lower_sharding_computation", WHOLE, CC_JIT_LOWER},
    {"lower_parallel_callable", WHOLE, CC_JIT_LOWER},
    {"lower_mesh_computation", WHOLE, CC_JIT_LOWER},
    {"backend_compile_and_load", WHOLE, CC_JIT_COMPILE},
    /* TensorFlow */
    {"tf.function-graph_building", WHOLE, CC_TF_TRACE},
    /* XLA */
    {"XlaAutotuner", START, CC_XLA_TUNE},
    {"GemmFusionAutotuner", START, CC_XLA_TUNE},
    {"XlaCompile", START, CC_XLA},
    {"XlaPass", START, CC_XLA},
    {"XlaEmit", START, CC_XLA},
    {"XlaOptimize", START, CC_XLA},
    {"XlaMemoryScheduler", START, CC_XLA},
    {"HLO passes", START, CC_XLA},
    {"CpuCompiler::", START, CC_XLA},
    {"GpuCompiler::", START, CC_XLA},
    {"NVPTXCompiler::", START, CC_XLA},
    {"AMDGPUCompiler::", START, CC_XLA},
    {"FusionCompiler::Compile", START, CC_XLA},
    {"JitCompiler::Compile", START, CC_XLA},
    {"ThunkEmitter::", START, CC_XLA},
    {"TaskDispatcher::dispatch", START, CC_XLA},
    {"DeviceCompiler::Compile", START, CC_XLA},
    {"PjRtCpuClient::Compile", START, CC_XLA},
    {"TfrtCpuClient::Compile", START, CC_XLA},
    {"PjRtStreamExecutorClient::Compile", START, CC_XLA},
    {"StreamExecutorGpuClient::Compile", START, CC_XLA},
    {"PjRtCApiClient::Compile", START, CC_XLA},
    {"PjRtCApiCompiler::Compile", START, CC_XLA},
    {"TpuCompile", START, CC_XLA},
    {"TPUCompile", START, CC_XLA},
    /* CUDA, HIP */
    {"cudaStreamBeginCapture", START, CC_CAPTURE_BEGIN},
    {"cuStreamBeginCapture", START, CC_CAPTURE_BEGIN},
    {"hipStreamBeginCapture", START, CC_CAPTURE_BEGIN},
    {"cudaStreamEndCapture", START, CC_CAPTURE_END},
    {"cuStreamEndCapture", START, CC_CAPTURE_END},
    {"hipStreamEndCapture", START, CC_CAPTURE_END},
    {"cudaGraphInstantiate", START, CC_GRAPH_BUILD},
    {"cuGraphInstantiate", START, CC_GRAPH_BUILD},
    {"hipGraphInstantiate", START, CC_GRAPH_BUILD},
    {"cudaGraphExecUpdate", START, CC_GRAPH_BUILD},
    {"cuGraphExecUpdate", START, CC_GRAPH_BUILD},
    {"Driver Compiler", WHOLE, CC_DRIVER},
    {"COMPILER", WHOLE, CC_DRIVER},
};
/* clang-format on */

static bool matches(struct bytes name, const char *text, enum where where) {
    size_t n = strlen(text);
    if (name.n < n) return false;
    switch (where) {
    case WHOLE: return name.n == n && memcmp(name.p, text, n) == 0;
    case START: return memcmp(name.p, text, n) == 0;
    case END: return memcmp(name.p + name.n - n, text, n) == 0;
    case ANY: return memmem(name.p, name.n, text, n) != NULL;
    }
    return false;
}

enum compile_class compile_classify(struct bytes name) {
    /* names of kernels run to megabytes; no compiler's does */
    if (name.n > 1000) return CC_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (matches(name, rows[i].text, rows[i].where)) return rows[i].class;
    return CC_NONE;
}

/* Digits that end at p; moves p before them. -1: none, or too many. */
static int64_t digits_before(struct bytes s, size_t *p) {
    size_t end = *p, i = end;
    int64_t v = 0;
    while (i > 0 && s.p[i - 1] >= '0' && s.p[i - 1] <= '9') i--;
    if (i == end || end - i > 9) return -1;
    for (size_t k = i; k < end; k++) v = v * 10 + (s.p[k] - '0');
    *p = i;
    return v;
}

bool compile_id_of(struct bytes name, int64_t *frame, int64_t *again) {
    size_t at = name.n;
    int64_t k = digits_before(name, &at);
    if (k < 0 || at == 0 || name.p[at - 1] != '/') return false;
    at--;
    int64_t f = digits_before(name, &at);
    if (f < 0) return false;
    *frame = f;
    *again = k;
    return true;
}
