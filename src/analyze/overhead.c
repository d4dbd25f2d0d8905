/* SPDX-License-Identifier: Apache-2.0
 * Cost of recording, from measurements of the same program with and without
 * its profiler. One table; each figure says where it is from. */
#include "analyze/overhead.h"

#include <string.h>

enum {
    /* PyTorch with CUDA activities: CUPTI callbacks make every host event
     * dear. Nine training loops with shapes and memory on an H200, bare
     * against traced (torch 2.11), fit 3.4 us per op, annotation, API call or
     * Python frame; four more give 2.2 with no option on (1.1 to 3.5, the
     * machine is noisy). Shapes and memory share the difference. */
    TORCH_CUDA_NS = 2200,
    TORCH_CUDA_OPTION_NS = 600,
    /* PyTorch, CPU only: 0.44 us per op alone, 0.37 more with shapes, 0.22
     * with stacks, 0.11 with memory (torch 2.13, 1000 adds a step). */
    TORCH_CPU_NS = 440,
    TORCH_SHAPES_NS = 370,
    TORCH_STACK_NS = 220,
    TORCH_MEMORY_NS = 110,
    /* TensorFlow 2.21 eager: 24.6 against 17.2 us per op of ten events; JAX
     * 0.10: 0.17 us per event, 0.195 per Python frame. Both write XSpace; JAX
     * is told by its HLO modules. */
    TF_NS = 750,
    JAX_NS = 170,
};

static int64_t torch_ns(const struct source *s) {
    if (s->has_device)
        return TORCH_CUDA_NS +
               TORCH_CUDA_OPTION_NS * (s->has_shapes + s->has_memory);
    return TORCH_CPU_NS + TORCH_SHAPES_NS * s->has_shapes +
           TORCH_STACK_NS * s->has_stacks + TORCH_MEMORY_NS * s->has_memory;
}

int64_t overhead_per_event(const struct trace *t, uint32_t source) {
    const struct source *s = &t->sources[source];
    int64_t ns = -1;
    if (strcmp(s->format, "kineto") == 0) {
        ns = torch_ns(s);
    } else if (strcmp(s->format, "xspace") == 0) {
        bool jax = trace_meta_get(t, source, "hlo_module") != NULL;
        ns = jax ? JAX_NS : TF_NS;
    }
    return ns < 0 ? -1 : ns * PS_PER_NS;
}
