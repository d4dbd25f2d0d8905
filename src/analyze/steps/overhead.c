/* SPDX-License-Identifier: Apache-2.0
 * The cost of recording, from measurements of the same program with and without
 * its profiler. It is one table; each figure says where it is from. */
#include "analyze/steps/overhead.h"

#include "analyze/shared/missing.h"
#include "base/facts.h"
#include "base/sort.h"
#include "model/format.h"
#include "names/op_names.h"
#include <stdlib.h>
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
     * 0.10: 0.17 us per event, 0.195 per Python frame. */
    TF_NS = 750,
    JAX_NS = 170,
};

/* Trivial ops tell how fast this host records. torch's aten::t and
 * aten::transpose do nothing but call another op, so that their own time is
 * mostly that of recording. On the machine of the figures above it was as
 * below; a host that takes less time for it records faster. (A host that takes
 * more is disturbed by other things: no more than the figures is taken off.) */
enum {
    WRAPPER_NS = 1000,       /* own time with no option on ... */
    WRAPPER_OPTION_NS = 300, /* ... and more for shapes and for memory */
    WRAPPERS_MIN = 10,       /* fewer tell nothing */
    WRAPPERS_MAX = 4096,     /* more tell nothing new */
    WRAPPED_MAX = 64,        /* spans inside one; with more it is none */
};

/* Returns the time that a call of one op by another takes in the outer one; -1
 * if it calls none or more. */
static int64_t wrapper_time(const struct trace *t, row_id r, row_id end) {
    if (r + 1 >= end || t->spans.parent[r + 1] != r) return -1;
    int64_t last = span_end(t, r + 1);
    for (row_id k = r + 2; k < end && t->spans.ts[k] < span_end(t, r); k++)
        if (t->spans.ts[k] >= last || k > r + WRAPPED_MAX) return -1;
    return t->spans.dur[r] - t->spans.dur[r + 1];
}

/* Returns the median of such times in ps; -1 if there are too few. */
static int64_t wrapper_median(const struct trace *t, uint32_t source) {
    str_id name[2] = {strs_find(&t->strs, bytes_of(op_thin[0])),
                      strs_find(&t->strs, bytes_of(op_thin[1]))};
    int64_t v[WRAPPERS_MAX];
    size_t n = 0;
    const struct lists *l = &t->of_source;
    size_t k = l->first[source], end = l->first[source + 1];
    if (name[0] == STR_NONE && name[1] == STR_NONE) return -1;
    for (; k < end && n < WRAPPERS_MAX; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; r < tr->end && n < WRAPPERS_MAX; r++) {
            str_id id = t->spans.name[r];
            if (id == 0 || (id != name[0] && id != name[1])) continue;
            int64_t d = wrapper_time(t, r, tr->end);
            if (d > 0) v[n++] = d;
        }
    }
    qsort(v, n, sizeof *v, sort_by_value);
    return n >= WRAPPERS_MIN ? v[n / 2] : -1;
}

/* Scales ns to this host: the result is between a half and all of it. */
static int64_t scaled(const struct trace *t, uint32_t source, int64_t ns) {
    const struct source *s = &t->sources[source];
    int64_t usual = WRAPPER_NS +
                    WRAPPER_OPTION_NS * (s->has_shapes + s->has_memory);
    int64_t here = wrapper_median(t, source) / PS_PER_NS;
    if (here <= 0 || here >= usual) return ns;
    return here * 2 > usual ? ns * here / usual : ns / 2;
}

int64_t overhead_per_event(const struct trace *t, uint32_t source) {
    const struct source *s = &t->sources[source];
    int64_t ns = -1;
    if (s->by_opscope) {
        /* opscope's recorder measures what a scope costs on the machine and in
         * the program where it runs. More than 10 us is no such figure. */
        const char *text = trace_meta_get(t, source, FACT_SCOPE_COST_PS);
        char *end;
        if (text == NULL) return -1;
        long long ps = strtoll(text, &end, 10);
        return *end == '\0' && ps > 0 && ps <= 10 * PS_PER_US ? ps : -1;
    }
    if (source_is_torchs(s) && s->has_device) {
        ns = TORCH_CUDA_NS +
             TORCH_CUDA_OPTION_NS * (s->has_shapes + s->has_memory);
        ns = scaled(t, source, ns);
    } else if (source_is_torchs(s)) {
        ns = TORCH_CPU_NS + TORCH_SHAPES_NS * s->has_shapes +
             TORCH_STACK_NS * s->has_stacks + TORCH_MEMORY_NS * s->has_memory;
    } else if (s->format->writer == WRITER_XPROF) {
        ns = framework_of(t, source) == FW_JAX ? JAX_NS : TF_NS;
    }
    return ns < 0 ? -1 : ns * PS_PER_NS;
}
