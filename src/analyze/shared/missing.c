/* SPDX-License-Identifier: Apache-2.0
 * A table holds, for each thing that may be missing, the sentence, and the
 * remedy in a program that records itself; other remedies stand in the
 * formats. */
#include "analyze/shared/missing.h"

#include "base/array.h"
#include "model/result.h"
#include "model/trace.h"
#include <string.h>

static const struct {
    const char *what, *why, *own;
} table[] = {
    [MISSING_DEVICE] =
        {"device time", "no device was recorded",
         "a program that uses a device hands its times in: ops_device_span(), "
         "or a tracer given to ops_device_tracer_add()"},
    [MISSING_MEMORY] =
        {"memory", "no allocation was recorded",
         "call ops_alloc(p, bytes, tag) where the program allocates and "
         "ops_free(p) before it frees"},
    [MISSING_SHAPES] =
        {"input shapes and FLOPs", "the ops' input shapes were not recorded",
         "say it in the scope: ops_arg_int(\"flops\", n), "
         "ops_arg_int(\"bytes\", n), ops_arg_text(\"shape\", text)"},
    [MISSING_STACKS] =
        {"Python stacks", "no Python frame was recorded",
         "the program's own scopes say where it is: OPS_SCOPE(\"name\")"},
};

/* TensorFlow and JAX write the same files, which may carry compiled programs;
 * only TensorFlow has executors and eager calls. */
enum framework framework_of(const struct trace *t, uint32_t source) {
    static const char *const tf[] = {"ExecutorState::Process", "EagerExecute",
                                     "FunctionRun"};
    if (t->sources[source].by_opscope) return FW_OTHER;
    switch (t->sources[source].format->writer) {
    case WRITER_TORCH: return FW_TORCH;
    case WRITER_TF: return FW_TF;
    case WRITER_ANY: return FW_OTHER;
    case WRITER_XPROF: break;
    }
    for (size_t i = 0; i < COUNT(tf); i++)
        if (strs_find(&t->strs, bytes_of(tf[i])) != STR_NONE) return FW_TF;
    return trace_meta_get(t, source, "hlo_module") ? FW_JAX : FW_TF;
}

bool missing_has(const struct trace *t, uint32_t source,
                 enum missing_what what) {
    const struct source *s = &t->sources[source];
    switch (what) {
    case MISSING_DEVICE: return s->has_device;
    case MISSING_MEMORY: return s->has_memory;
    case MISSING_SHAPES: return s->has_shapes;
    default: return s->has_stacks || s->by_opscope; /* no Python in it */
    }
}

const char *missing_fix(const struct trace *t, uint32_t source,
                        enum missing_what w) {
    const struct source *s = &t->sources[source];
    if (s->by_opscope) return table[w].own;
    if (s->process_view)
        return "opscope record looks on from outside: call opscope/record.h in "
               "the program, link with -lopscope-record";
    if (s->format->fix[w] != NULL) return s->format->fix[w];
    if (s->format->fix_all != NULL) return s->format->fix_all;
    return "record it in the program that wrote this file";
}

bool missing_own(const struct trace *t) {
    bool own = false;
    for (size_t i = 0; i < t->nsources; i++) {
        if (t->sources[i].process_view)
            continue; /* beside it, by opscope record */
        if (!t->sources[i].by_opscope) return false;
        own = true;
    }
    return own;
}

const char *missing_step_fix(const struct trace *t) {
    bool ours = missing_own(t);
    for (size_t i = 0; i < t->nsources; i++) ours |= t->sources[i].process_view;
    return ours ? "call ops_step(i) at the top of the training loop "
                  "(opscope/record.h), link with -lopscope-record"
                : "record while the program trains, and mark each step";
}

const char *missing_why(enum missing_what what) { return table[what].why; }

bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what) {
    bool some = false;
    uint32_t lacks = ROW_NONE;
    for (uint32_t i = 0; i < t->nsources; i++) {
        /* the profile found inside such a file is a source of its own and
         * counts */
        if (t->sources[i].format->role == ROLE_CURVES && t->nsources > 1)
            continue;
        if (missing_has(t, i, what)) some = true;
        else if (lacks == ROW_NONE &&
                 (!t->sources[i].process_view || t->nsources == 1))
            lacks = i;
    }
    if (lacks != ROW_NONE)
        result_missing(r, table[what].what, table[what].why,
                       missing_fix(t, lacks, what));
    return some;
}
