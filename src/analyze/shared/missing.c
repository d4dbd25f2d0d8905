/* SPDX-License-Identifier: Apache-2.0
 * A table holds, for each thing that may be missing, the sentence, and the
 * remedy in a program that records itself; other remedies stand in the
 * formats. Another table has what is the same for all formats of a framework:
 * nobody is told what to do in another one's words. */
#include "analyze/shared/missing.h"

#include "base/array.h"
#include "base/facts.h"
#include "model/result.h"
#include "model/trace.h"
#include "names/name_class.h"
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

/* clang-format off */
static const char *const advice[ADVICES][FRAMEWORKS] = {
    [ADVICE_STEPS] = {
        [FW_TORCH] = "call prof.step() once a step, with a schedule",
        [FW_TF] = "put tf.profiler.experimental.Trace(\"train\", step_num=i) "
                  "around each step",
        [FW_JAX] = "put jax.profiler.StepTraceAnnotation(\"train\", "
                   "step_num=i) around each step",
        [FW_OTHER] = "record while the program trains, and mark each step",
    },
    [ADVICE_REGION] = {
        [FW_TORCH] = "torch.profiler.record_function(\"name\")",
        [FW_TF] = "tf.profiler.experimental.Trace(\"name\")",
        [FW_JAX] = "jax.profiler.TraceAnnotation(\"name\")",
        [FW_OTHER] = "a span of its own",
    },
    [ADVICE_WAIT] = {
        [FW_TORCH] = "call torch.cuda.synchronize() before the profiler stops",
        [FW_TF] = "read a result (loss.numpy()) before the profiler stops",
        [FW_JAX] = "call block_until_ready() on a result before the profiler "
                   "stops",
        [FW_OTHER] = "wait for the device before the recording stops",
    },
    [ADVICE_ROOM] = {
        [FW_TORCH] = "record fewer steps, or raise Kineto's "
                     "ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB",
        [FW_TF] = "record fewer steps",
        [FW_JAX] = "record fewer steps",
        [FW_OTHER] = "record fewer steps",
    },
    [ADVICE_OP] = {
        [FW_TORCH] = "launch it in a registered op (torch.library.custom_op)",
        [FW_TF] = "launch it in a kernel of a registered op",
        [FW_JAX] = "launch it by jax.ffi",
        [FW_OTHER] = "launch it inside a span that says what it is",
    },
    [ADVICE_GRAPH] = {
        [FW_TORCH] = "leave the graph out once",
        [FW_TF] = "XLA_FLAGS=--xla_gpu_enable_command_buffer= launches them "
                  "one by one",
        [FW_JAX] = "XLA_FLAGS=--xla_gpu_enable_command_buffer= launches them "
                   "one by one",
    },
    [ADVICE_FUSED] = {
        [FW_TORCH] = "run once without torch.compile to see them one by one",
        [FW_TF] = "run once without jit_compile=True to see them one by one",
        [FW_JAX] = "run once under jax.disable_jit() to see them one by one",
    },
    [ADVICE_ALLOC] = {
        [FW_TORCH] = "allocate by torch::empty in it",
        [FW_TF] = "allocate by the op's context (allocate_temp) in it",
        [FW_JAX] = "ask for scratch memory by the call's own signature",
    },
    [ADVICE_PIECES] = {
        [FW_TORCH] = "call torch.cuda.memory._record_memory_history() early "
                     "and torch.cuda.memory._dump_snapshot(FILE) later, and "
                     "give FILE, alone or beside the trace",
    },
    [ADVICE_HLO] = {
        [FW_TF] = "compile with jit_compile=True; ask for enable_hlo_proto in "
                  "the profiler's options",
        [FW_JAX] = "compile with jax.jit; ask for enable_hlo_proto in the "
                   "profiler's options",
    },
};
/* clang-format on */

/* What a program that records itself does instead. */
static const char *const own_advice[ADVICES] = {
    [ADVICE_STEPS] = "call ops_step(i) first thing in the loop",
    [ADVICE_REGION] = "OPS_SCOPE(\"name\")",
    [ADVICE_WAIT] = "wait for the device before ops_stop()",
    [ADVICE_ROOM] = "record fewer steps",
    [ADVICE_OP] = "take ops_correlation() inside the scope that launches it",
    [ADVICE_ALLOC] = "call ops_alloc(p, bytes, tag) where it allocates",
    [ADVICE_PIECES] = "`memory` and `allocs` have what the program itself said "
                      "by ops_alloc()",
};

/* The same of a program in Python. */
static const char *const python_advice[ADVICES] = {
    [ADVICE_STEPS] = "call opscope.step(i) first thing in the loop",
    [ADVICE_REGION] = "opscope.scope(\"name\")",
    [ADVICE_WAIT] = "wait for the device before the program ends",
    [ADVICE_ROOM] = "record fewer steps",
};

/* Was JAX at work? It calls programs by names of its own. */
static bool names_jax(const struct trace *t) {
    for (size_t i = 0; i < t->strs.n; i++) {
        struct bytes b = strs_bytes(&t->strs, (str_id)i);
        if (BYTES_STARTS(b, "PjitFunction(") || BYTES_STARTS(b, "jit_"))
            return true;
    }
    return false;
}

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
    if (trace_meta_get(t, source, "hlo_module") || names_jax(t)) return FW_JAX;
    return FW_TF;
}

const char *missing_advice(const struct trace *t, enum advice what) {
    if (missing_own_python(t)) return python_advice[what];
    if (missing_own(t)) return own_advice[what];
    for (uint32_t i = 0; i < t->nsources; i++)
        if (!t->sources[i].by_opscope && !t->sources[i].process_view &&
            t->sources[i].format->role != ROLE_CURVES)
            return advice[what][framework_of(t, i)];
    for (uint32_t i = 0; what == ADVICE_STEPS && i < t->nsources; i++)
        if (t->sources[i].process_view) return missing_inside_fix(t);
    return advice[what][FW_OTHER];
}

/* Is the program that was watched from outside one in Python? */
static bool is_python(const struct trace *t) {
    for (uint32_t i = 0; i < t->nsources; i++) {
        const char *argv = t->sources[i].process_view
                               ? trace_meta_get(t, i, FACT_ARGV)
                               : NULL;
        if (argv == NULL) continue;
        size_t n = strcspn(argv, " "), from = n;
        while (from > 0 && argv[from - 1] != '/') from--;
        if (strncmp(argv + from, "python", 6) == 0 ||
            strstr(argv, ".py ") != NULL ||
            (strlen(argv) > 3 && strcmp(argv + strlen(argv) - 3, ".py") == 0))
            return true;
    }
    return false;
}

bool missing_own_python(const struct trace *t) {
    return missing_own(t) && is_python(t);
}

const char *missing_inside_fix(const struct trace *t) {
    return is_python(t)
               ? "opscope record looks into programs that import torch, "
                 "tensorflow or jax (not under python -I, -E or -S); in "
                 "others: import opscope, opscope.start(\"logs\"), "
                 "opscope.step(i), with opscope.scope(\"name\")"
               : "#include <opscope/record.h>, call ops_start(\"logs\", "
                 "NULL), mark OPS_SCOPE(\"name\") and ops_step(i), "
                 "link with -lopscope-record";
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

bool missing_is_beside(const struct trace *t, enum missing_what what) {
    for (uint32_t i = 0; i < t->nsources; i++)
        if (t->sources[i].beside &&
            (what == MISSING_STACKS ? t->sources[i].has_stacks
                                    : missing_has(t, i, what)))
            return true;
    return false;
}

/* Was the tracer switched on by `opscope record`? Then its recording stands
 * beside. */
static bool is_by_record(const struct trace *t) {
    for (size_t i = 0; i < t->nsources; i++)
        if (t->sources[i].beside && t->sources[i].by_opscope) return true;
    return false;
}

const char *missing_fix(const struct trace *t, uint32_t source,
                        enum missing_what w) {
    static const char *const asked[MISSING_KINDS] = {
        [MISSING_DEVICE] = ("opscope has torch trace every device that it "
                            "finds: it found none, or none was used"),
        [MISSING_MEMORY] = "opscope record --memory, or memory=True",
        [MISSING_SHAPES] = "opscope record --shapes, or shapes=True",
        [MISSING_STACKS] = "opscope record --stacks, or stacks=True",
    };
    static const char *const of_tf[MISSING_KINDS] = {
        [MISSING_MEMORY] = "opscope record --memory, with "
                           "TF_ENABLE_ONEDNN_OPTS=0 in the environment: the "
                           "allocator of oneDNN tells of no block under "
                           "256 KiB",
        [MISSING_STACKS] = "opscope record --stacks, or stacks=True",
    };
    static const char *const traced[MISSING_KINDS] = {
        [MISSING_DEVICE] = MISSING_UNTRACED "opscope record --steps 2..4",
        [MISSING_MEMORY] = MISSING_UNTRACED
        "opscope record --memory --steps 2..4",
        [MISSING_SHAPES] = MISSING_UNTRACED
        "opscope record --shapes --steps 2..4",
        [MISSING_STACKS] = MISSING_UNTRACED
        "opscope record --stacks --steps 2..4",
    };
    const struct source *s = &t->sources[source];
    bool torch = source_is_torchs(s);
    bool tf = !torch && framework_of(t, source) == FW_TF && !s->process_view;
    const char *by_record = torch ? asked[w] : tf ? of_tf[w] : NULL;
    if (by_record != NULL && is_by_record(t)) return by_record;
    if (s->by_opscope && missing_own_python(t)) return traced[w];
    if (s->by_opscope) return table[w].own;
    if (s->process_view) return missing_inside_fix(t);
    if (framework_of(t, source) == FW_JAX && s->format->fix_jax[w] != NULL)
        return s->format->fix_jax[w];
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

const char *missing_why(enum missing_what what) { return table[what].why; }

/* Says what is missing. Where there is HLO, it has the FLOPs. */
static bool say(struct result *r, const struct trace *t, enum missing_what what,
                bool detail) {
    bool some = false;
    uint32_t lacks = ROW_NONE;
    for (uint32_t i = 0; i < t->nsources; i++) {
        /* the profile found inside such a file is a source of its own and
         * counts */
        if (t->sources[i].format->role == ROLE_CURVES && t->nsources > 1)
            continue;
        if (missing_has(t, i, what)) some = true;
        if (t->sources[i].beside || missing_has(t, i, what)) continue;
        if (lacks == ROW_NONE &&
            (!t->sources[i].process_view || t->nsources == 1))
            lacks = i;
    }
    if (lacks == ROW_NONE || missing_is_beside(t, what)) return some;
    bool counted = what == MISSING_SHAPES && t->hlo != NULL &&
                   !source_is_torchs(&t->sources[lacks]);
    (detail ? result_lacks : result_missing)(
        r, counted ? "input shapes of the host's ops" : table[what].what,
        table[what].why, missing_fix(t, lacks, what));
    return some;
}

/* Does the source have device work? */
static bool has_work(const struct trace *t, uint32_t source) {
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind == TRACK_STREAM && tr->first < tr->end) return true;
    }
    return false;
}

/* Counts the calls of a thread that launch device work. */
static int64_t launches_of(const struct trace *t, const struct track *tr) {
    int64_t n = 0;
    if (tr->kind != TRACK_THREAD) return 0;
    for (row_id r = tr->first; r < tr->end; r++)
        n += t->spans.kind[r] == SPAN_API &&
             (t->name_class[t->spans.name[r]] & CLASS_LAUNCH);
    return n;
}

int64_t missing_launches(const struct trace *t) {
    const struct lists *l = &t->of_source;
    int64_t n = 0;
    for (uint32_t i = 0; i < t->nsources; i++) {
        if (has_work(t, i)) continue;
        for (size_t k = l->first[i]; k < l->first[i + 1]; k++)
            n += launches_of(t, &t->tracks[l->v[k]]);
    }
    return n;
}

bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what) {
    return say(r, t, what, false);
}

bool missing_too(struct result *r, const struct trace *t,
                 enum missing_what what) {
    return say(r, t, what, true);
}
