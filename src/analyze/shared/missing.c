/* SPDX-License-Identifier: Apache-2.0
 * One table: per thing, the sentence and the remedy by format. */
#include "analyze/shared/missing.h"
#include "model/trace.h"

static const struct {
    const char *what, *why;
    const char *kineto, *xspace, *stepstats, *own; /* remedies */
} table[] = {
    [MISSING_DEVICE] =
        {"device time", "no device was recorded",
         "add ProfilerActivity.CUDA (or XPU, ...) to the profiler's activities",
         "profile on a machine with a GPU or TPU, with device_tracer_level 1",
         "run the session on a machine with a GPU",
         "a program that uses a device hands its times in: ops_device_span(), "
         "or a tracer given to ops_device_tracer_add()"},
    [MISSING_MEMORY] =
        {"memory", "no allocation was recorded",
         "profile with profile_memory=True",
         "the profiler records allocations of device allocators only: profile "
         "a run on a GPU or TPU",
         "run with RunOptions(trace_level=RunOptions.FULL_TRACE)",
         "call ops_alloc(p, bytes, tag) where the program allocates and "
         "ops_free(p) before it frees"},
    [MISSING_SHAPES] =
        {"input shapes and FLOPs", "the ops' input shapes were not recorded",
         "profile with record_shapes=True",
         "the profiler does not record the inputs of host ops",
         "RunMetadata has the outputs of nodes only",
         "say it in the scope: ops_arg_int(\"flops\", n), "
         "ops_arg_int(\"bytes\", n), ops_arg_text(\"shape\", text)"},
    [MISSING_STACKS] =
        {"Python stacks", "no Python frame was recorded",
         "profile with with_stack=True",
         "profile with python_tracer_level=1",
         "RunMetadata has no Python frames; take an xplane profile",
         "the program's own scopes say where it is: OPS_SCOPE(\"name\")"},
};

static bool source_has(const struct source *s, enum missing_what w) {
    switch (w) {
    case MISSING_DEVICE: return s->has_device;
    case MISSING_MEMORY: return s->has_memory;
    case MISSING_SHAPES: return s->has_shapes;
    default: return s->has_stacks || s->own; /* no Python in it */
    }
}

static bool is_event_file(const struct source *s) {
    return s->format && strcmp(s->format, "tfevents") == 0;
}

static const char *remedy(const struct source *s, enum missing_what w) {
    if (s->own) return table[w].own;
    if (s->outside)
        return "opscope record looks on from outside: call opscope/record.h in "
               "the program, link with -lopscope-record";
    if (s->format && strcmp(s->format, "kineto") == 0) return table[w].kineto;
    if (s->format && strcmp(s->format, "xspace") == 0) return table[w].xspace;
    if (s->format && strcmp(s->format, "stepstats") == 0)
        return table[w].stepstats;
    if (s->format && strcmp(s->format, "snapshot") == 0)
        return "a memory snapshot tells of memory only: give a torch.profiler "
               "trace of the same run beside it";
    if (is_event_file(s))
        return "an event file tells of scalars only: give the profile of the "
               "same run, <logdir>/plugins/profile/<run>";
    return "record it in the program that wrote this file";
}

bool missing_own(const struct trace *t) {
    bool own = false;
    for (size_t i = 0; i < t->nsources; i++) {
        if (t->sources[i].outside) continue; /* beside it, by opscope record */
        if (!t->sources[i].own) return false;
        own = true;
    }
    return own;
}

const char *missing_step_fix(const struct trace *t) {
    bool ours = missing_own(t);
    for (size_t i = 0; i < t->nsources; i++) ours |= t->sources[i].outside;
    return ours ? "call ops_step(i) at the top of the training loop "
                  "(opscope/record.h), link with -lopscope-record"
                : "record while the program trains, and mark each step";
}

bool missing_has(const struct trace *t, uint32_t source,
                 enum missing_what what) {
    return source_has(&t->sources[source], what);
}

const char *missing_why(enum missing_what what) { return table[what].why; }

const char *missing_fix(const struct trace *t, uint32_t source,
                        enum missing_what what) {
    return remedy(&t->sources[source], what);
}

bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what) {
    bool some = false;
    const struct source *lacks = NULL;
    for (size_t i = 0; i < t->nsources; i++) {
        /* what was found inside it is a source of its own, which counts */
        if (is_event_file(&t->sources[i]) && t->nsources > 1) continue;
        if (source_has(&t->sources[i], what))
            some = true;
        else if (!lacks && (!t->sources[i].outside || t->nsources == 1))
            lacks = &t->sources[i];
    }
    if (lacks)
        result_missing(r, table[what].what, table[what].why,
                       remedy(lacks, what));
    return some;
}
