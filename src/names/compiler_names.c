/* SPDX-License-Identifier: Apache-2.0
 * Spellings as rows: the first that fits decides. They are those of torch 2.1
 * to 2.13, JAX 0.4 to 0.11, TensorFlow 2.x and XLA of the same years. */
#include "names/compiler_names.h"

#include "base/array.h"
#include "names/pattern.h"

/* clang-format off */
static const struct pattern classes[] = {
    /* torch: record_function of every phase that Dynamo times, and from 2.12
     * on a twin around it that has the phase's bare name */
    {CC_TORCH_BW, NAMES("entire_backward_compile",
        "backward._backward_impl (dynamo_timed)")},
    {CC_TORCH_ID, NAMES("*compile_id=*")},
    {CC_TORCH_TUNE, NAMES("CachingAutotuner.*",
        "*benchmark_all_configs (dynamo_timed)")},
    {CC_TORCH, NAMES("* (dynamo_timed)", "dynamo", "entire_frame_compile",
        "inductor_compile")},
    {CC_REGION, NAMES("Torch-Compiled Region*")},
    {CC_FUNCTION, NAMES("CompiledFunction")},
    {CC_GUARD, NAMES("TorchDynamo Cache Lookup")},
    /* JAX; torch has a backend_compile, too, inside dynamo */
    {CC_JIT, NAMES("PjitFunction(*")},
    {CC_JIT_TRACE, NAMES("trace_to_jaxpr*")},
    {CC_JIT_LOWER, NAMES("lower_sharding_computation",
        "lower_parallel_callable", "lower_mesh_computation")},
    {CC_JIT_COMPILE, NAMES("backend_compile", "backend_compile_and_load")},
    {CC_TF_TRACE, NAMES("tf.function-graph_building")},
    {CC_XLA_TUNE, NAMES("XlaAutotuner*", "GemmFusionAutotuner*")},
    {CC_XLA, NAMES("XlaCompile*", "XlaPass*", "XlaEmit*", "XlaOptimize*",
        "XlaMemoryScheduler*", "HLO passes*", "CpuCompiler::*",
        "GpuCompiler::*", "NVPTXCompiler::*", "AMDGPUCompiler::*",
        "FusionCompiler::Compile*", "JitCompiler::Compile*", "ThunkEmitter::*",
        "TaskDispatcher::dispatch*", "DeviceCompiler::Compile*",
        "PjRtCpuClient::Compile*", "TfrtCpuClient::Compile*",
        "PjRtStreamExecutorClient::Compile*",
        "StreamExecutorGpuClient::Compile*", "PjRtCApiClient::Compile*",
        "PjRtCApiCompiler::Compile*", "TpuCompile*", "TPUCompile*")},
    /* CUDA, HIP */
    {CC_CAPTURE_BEGIN, NAMES("cudaStreamBeginCapture*",
        "cuStreamBeginCapture*", "hipStreamBeginCapture*")},
    {CC_CAPTURE_END, NAMES("cudaStreamEndCapture*", "cuStreamEndCapture*",
        "hipStreamEndCapture*")},
    {CC_GRAPH_BUILD, NAMES("cudaGraphInstantiate*", "cuGraphInstantiate*",
        "hipGraphInstantiate*", "cudaGraphExecUpdate*", "cuGraphExecUpdate*")},
    {CC_DRIVER, NAMES("Driver Compiler", "COMPILER")},
};
/* clang-format on */

enum compile_class compile_classify(struct bytes name) {
    /* names of kernels may have megabytes; no name of a compiler has */
    if (name.n > 1000) return CC_NONE;
    return (enum compile_class)pattern_first(classes, COUNT(classes), name,
                                             CC_NONE);
}

bool name_is_compiled_region(struct bytes name) {
    static const char *const list[] = {"Torch-Compiled Region*",
                                       "CompiledFunction*",
                                       "## Call CompiledFxGraph*", NULL};
    return pattern_in(list, name);
}

bool name_is_inductor_kernel(struct bytes name) {
    static const char *const list[] = {"triton_poi_*",  "triton_red_*",
                                       "triton_per_*",  "triton_mix_*",
                                       "triton_for_*",  "triton_tem_*",
                                       "triton_spl_*",  "triton_mm*",
                                       "triton_unk_*",  "triton__*",
                                       "triton_flex_*", NULL};
    return pattern_in(list, name);
}

/* Returns the number that ends at p, and moves p before it; -1 if there is none
 * or it is too long. */
static int64_t digits_before(struct bytes s, size_t *p) {
    size_t end = *p, i = end;
    int64_t v = 0;
    while (i > 0 && s.p[i - 1] >= '0' && s.p[i - 1] <= '9') i--;
    if (i == end || end - i > 9) return -1;
    for (size_t k = i; k < end; k++) v = v * 10 + (s.p[k] - '0');
    *p = i;
    return v;
}

bool name_is_compiled_call(struct bytes name) {
    static const char *const list[] = {"PjitFunction(*",
                                       "EagerLocalExecute: __inference_*",
                                       NULL};
    return pattern_in(list, name);
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
