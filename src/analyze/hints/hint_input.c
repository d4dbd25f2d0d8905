/* SPDX-License-Identifier: Apache-2.0
 * input-bound: the step begins with waiting for its batch. Repaired, the batch
 * is made beside the step before: what the step's thread does for it goes,
 * but for the copies, which have rules of their own. Where few CPUs are left
 * for it, the step waits on. Time before the first kernel in which nothing was
 * recorded is a guess, and said to be one. */
#include "analyze/hints/hint.h"

#include "analyze/shared/phases.h"
#include "base/facts.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/args.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/frame_name.h"
#include "names/input_names.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

/* Returns the stage or region that a span of the input pipeline is part of. */
static row_id stage_of(const struct trace *t, row_id row) {
    uint32_t r = row;
    for (int i = 0; r != ROW_NONE && i < HINT_CLIMB;
         i++, r = t->spans.parent[r])
        if (!span_is_step_mark(t, r) &&
            (span_is_input(t, r) || t->spans.kind[r] == SPAN_ANNOTATION))
            return r;
    return row;
}

/* Returns the CPUs that the program may use; -1 if that was not recorded. Of
 * one whose framework traced it, opscope's recording beside that tells. */
static int64_t cpus_of(const struct hint_case *c) {
    const struct trace *t = c->t;
    for (uint32_t i = 0; i < t->nsources; i++) {
        if (i != c->source && t->sources[i].companion_of != c->source) continue;
        const char *text = trace_meta_get(t, i, FACT_CPU_ALLOWED);
        if (text != NULL) return strtoll(text, NULL, 10);
    }
    /* tf.data says at its root how many it counts on */
    str_id root = strs_find(&t->strs, bytes_of(input_root));
    const struct lists *l = &t->of_source;
    size_t k = l->first[c->source], end = l->first[c->source + 1];
    for (; root != STR_NONE && k < end; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        for (row_id r = tr->first; r < tr->end; r++)
            if (t->spans.name[r] == root)
                return args_int(t, r, "cpu_budget", -1);
    }
    return -1;
}

/* Does a stage that can make several elements at once do so? tf.data fuses a
 * map that makes one at a time with the batch behind it, and says how many. */
static bool makes_several(const struct trace *t, row_id row) {
    return args_int(t, row, "parallelism", 2) > 1 ||
           BYTES_IS(args_get(t, row, "autotune").text, "true");
}

/* Does a stage of any source make several at once? One pass over the spans: a
 * file may have any number of stages. */
static bool runs_parallel(const struct trace *t) {
    for (row_id r = 0; r < t->spans.n; r++) {
        str_id name = t->spans.name[r];
        if ((t->name_class[name] & CLASS_INPUT) &&
            input_is_parallel(strs_bytes(&t->strs, name)) &&
            makes_several(t, r))
            return true;
    }
    return false;
}

/* tf.data calls Python by ops of these types. A generator stage without them is
 * one of its own, as of the iterator that serves several devices. */
static bool calls_python(struct bytes name) {
    struct bytes type = name_op_type(name);
    if (type.n == 0) type = name;
    return BYTES_IS(type, "PyFunc") || BYTES_IS(type, "EagerPyFunc");
}

static bool is_generator(const struct trace *t, str_id name) {
    return (t->name_class[name] & CLASS_INPUT) &&
           bytes_ends(strs_bytes(&t->strs, name), "::Generator");
}

/* Is it a generator's Python that takes the time, and not that of a map behind
 * it? */
static bool generator_is_slow(const struct trace *t) {
    int64_t in_generators = 0, in_python = 0;
    for (row_id r = 0; r < t->spans.n; r++) {
        str_id name = t->spans.name[r];
        if (is_generator(t, name)) sat_inc(&in_generators, t->spans.dur[r]);
        else if (calls_python(strs_bytes(&t->strs, name)))
            sat_inc(&in_python, t->spans.dur[r]);
    }
    return in_generators > in_python / 2;
}

void hint_input_read(struct hint_case *c) {
    bool may = false, python = false;
    c->cpus = cpus_of(c);
    for (str_id id = 0; id < c->t->strs.n; id++) {
        struct bytes name = strs_bytes(&c->t->strs, id);
        python |= calls_python(name);
        if (!(c->t->name_class[id] & CLASS_INPUT)) continue;
        c->prefetches |= input_is_prefetch(name);
        may |= input_is_parallel(name);
        c->generator |= is_generator(c->t, id);
    }
    c->generator = c->generator && python && generator_is_slow(c->t);
    c->parallel = may && runs_parallel(c->t);
}

/* Returns how many ops of the line come before the step's first kernel or, with
 * no device, before the first op that computes. */
static size_t leading_ops(const struct hint_case *c,
                          const struct hint_step *s) {
    size_t i = 0;
    bool device = s->d.nworks > 0;
    for (; i < s->nops; i++) {
        row_id row = s->ops[i].row;
        if (device ? !s->ops[i].lead
                   : row != ROW_NONE && (c->t->spans.kind[row] != SPAN_OP ||
                                         phases_computes(c->t, row)))
            return i;
    }
    return 0; /* nothing is computed: nobody knows what comes before it */
}

/* Is it work of the CPU before the first kernel: an op that launches nothing
 * (without a device every op is the CPU's), or a pause of every step that no
 * Python between ops explains? */
static bool may_be_input(const struct hint_case *c, const struct hint_step *s,
                         const struct step_op *p) {
    if (p->row != ROW_NONE &&
        (p->kernels || p->copies || p->waits || s->d.nworks == 0))
        return false;
    if (p->row == ROW_NONE && p->once) return false;
    row_id row = stage_of(c->t,
                          s->d.line.v[hint_longest(s, p->first, p->end)].row);
    if (row != ROW_NONE &&
        args_get(c->t, row, "tf_function_call").type != ARG_NONE)
        return false; /* the function was called: it is on its way to its ops */
    return hint_host(s, p->first, p->end) >= HINT_PAUSE_US * PS_PER_US;
}

/* Does the step begin with what was just made by the host: a tensor of its data
 * or a copy to the device? Where the steps were inferred, the code that made it
 * stands at the end of the step before. */
static bool begins_with_data(const struct hint_case *c,
                             const struct hint_step *s) {
    if (c->t->sources[c->source].step_rule != STEPS_INFERRED || s->nops == 0)
        return false;
    const struct step_op *p = &s->ops[0];
    if (p->row == ROW_NONE) return false;
    return p->copies > 0 ||
           op_takes_host_data(
               strs_bytes(&c->t->strs, c->t->spans.name[p->row]));
}

/* The batch is still to be made, beside the step: with so few CPUs that all of
 * its work takes longer, the step takes that. */
static void share_cpus(const struct hint_case *c, struct hint_step *s,
                       int64_t made, uint32_t at) {
    int64_t rest = 0;
    for (uint32_t i = 0; i < s->d.line.n; i++) sat_inc(&rest, s->trial.host[i]);
    if (c->cpus <= 0) return;
    int64_t least = sat_add(rest, made) / c->cpus;
    if (least > rest) sat_inc(&s->trial.host[at], least - rest);
}

static void repair_input(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    /* A process with no steps that does nothing but input is a loader's worker:
     * nobody waits for it here. */
    const struct source *from = &c->t->sources[c->source];
    bool whole = from->step_rule == STEPS_WHOLE;
    bool worker = whole;
    for (size_t i = 0; worker && i < s->nops; i++)
        worker = s->ops[i].row == ROW_NONE || s->ops[i].input;
    if (worker) return;
    /* what a single step begins with may be the program's start, a region
     * begins with anything, a program that records itself says what is input,
     * and where ops are called one by one Python is on its way to the first */
    bool guess = !whole && c->t->base == NULL && s->jitted == NULL &&
                 from->step_end - from->step_first > 1 &&
                 c->framework != FW_OTHER;
    size_t lead = guess ? leading_ops(c, s) : 0;
    size_t last = guess && begins_with_data(c, s) ? s->nops - 1 : SIZE_MAX;
    int64_t made = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->optimizer) continue;
        bool near = i < lead || i == last; /* to the step's first kernel */
        if (!p->input && !(near && may_be_input(c, s, p))) continue;
        uint32_t most = hint_longest(s, p->first, p->end);
        row_id row = stage_of(c->t, s->d.line.v[most].row);
        int64_t cut = hint_remove(s, p->first, p->end, false);
        if (cut > 0) hint_saw_piece(f, s, most, row, cut);
        if (!p->input) sat_inc(&f->other, cut);
        sat_inc(&made, cut);
        at = p->first;
    }
    if (made > 0) share_cpus(c, s, made, at);
}

#define JAX_ADVICE(workers)                                                    \
    "make the next batches in another thread that hands them over through a "  \
    "queue, or by grain.python.DataLoader(worker_count=" workers               \
    "), and jax.device_put each while the step before it runs"

#define TF_ADVICE                                                              \
    "dataset.map(fn, num_parallel_calls=tf.data.AUTOTUNE)"                     \
    ".batch(n).prefetch(tf.data.AUTOTUNE); dataset.cache() after "             \
    "what is the same in every epoch"

/* Returns a thread that makes batches beside the training already, or NULL. */
static const struct track *loader_of(const struct hint_case *c) {
    const struct trace *t = c->t;
    uint32_t own = phases_step_thread(t, c->source);
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].source == c->source && i != own &&
            t->tracks[i].kind == TRACK_THREAD && phases_input_thread(t, i))
            return &t->tracks[i];
    return NULL;
}

/* Returns the framework whose loader gives a program of JAX its batches, as the
 * frames around the wait for them tell; FW_OTHER if they do not. */
static enum framework feeder_of(const struct hint_case *c,
                                const struct hint_found *f) {
    if (c->framework != FW_JAX) return FW_OTHER;
    if (hint_is_within(c, f, frame_name_is_tf_data)) return FW_TF;
    if (hint_is_within(c, f, frame_name_is_torch_loader)) return FW_TORCH;
    return FW_OTHER;
}

/* Writes what to do where the table's words ask for too much: for more workers
 * than there are CPUs, or for pinned memory where no device reads it; or where
 * they are not about the framework that loads. */
static void say_less(const struct hint_case *c, const struct hint_found *f,
                     bool device, struct hint_words *w) {
    enum { WORKERS = 8 }; /* as in the table */
    bool few = c->cpus > 0 && c->cpus < WORKERS;
    int n = few ? (int)c->cpus : WORKERS;
    enum framework feeder = feeder_of(c, f);
    if (device && !few && feeder == FW_OTHER) return;
    if (c->framework == FW_TORCH || feeder == FW_TORCH)
        snprintf(w->repair, sizeof w->repair,
                 "let workers make the batches beside the training: "
                 "DataLoader(dataset, num_workers=%d, %spersistent_workers="
                 "True, prefetch_factor=4)",
                 n, device && feeder != FW_TORCH ? "pin_memory=True, " : "");
    else if (feeder == FW_TF)
        snprintf(w->repair, sizeof w->repair, "%s", TF_ADVICE);
    else if (c->framework == FW_JAX && few)
        snprintf(w->repair, sizeof w->repair, JAX_ADVICE("%d"), n);
}

/* Writes what to do where the pipeline has some of it already. */
static void say_more(const struct hint_case *c, const struct hint_found *f,
                     struct hint_words *w) {
    const struct track *loader = c->framework == FW_OTHER ? loader_of(c) : NULL;
    if (loader != NULL)
        snprintf(w->repair, sizeof w->repair,
                 "%.*s makes the batches, but not as fast as they are trained "
                 "on: several such threads, larger reads, less to do for a "
                 "batch (once for all epochs what is the same in each)",
                 CUT(80, strs_text(&c->t->strs, loader->name)));
    if (f->other * 2 > f->time) return;
    if (c->framework == FW_TF && c->generator)
        snprintf(w->repair, sizeof w->repair,
                 "a Python generator makes the batches one after the other: "
                 "keras.utils.PyDataset(workers=%d, use_multiprocessing=True) "
                 "makes several at once; so does a dataset of indices with "
                 ".map(fn, num_parallel_calls=tf.data.AUTOTUNE)"
                 ".prefetch(tf.data.AUTOTUNE)",
                 c->cpus > 0 && c->cpus < 8 ? (int)c->cpus : 8);
    else if (c->framework == FW_TF && c->parallel && c->prefetches)
        snprintf(w->repair, sizeof w->repair,
                 "the pipeline runs in parallel and ahead already, and does "
                 "not keep up: dataset.cache() after what is the same in every "
                 "epoch, .batch() before .map() so that the function works on "
                 "whole batches, or what it makes stored once");
    else if (c->framework == FW_TF && c->parallel)
        snprintf(w->repair, sizeof w->repair,
                 "it maps in parallel already: .prefetch(tf.data.AUTOTUNE) at "
                 "its end; dataset.cache() after what is the same in every "
                 "epoch");
    else if (c->framework == FW_TORCH && c->parallel)
        snprintf(
            w->repair, sizeof w->repair,
            "its workers do not keep up: more of them, up to the number "
            "of CPUs, prefetch_factor=4; or less to do for a batch (stored "
            "once what is the same in every epoch, transforms on the "
            "device)");
}

static void say_input(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char a[48], b[48], cpus[64] = "", where[HINT_TEXT];
    const char *name = hint_name(c, f->row);
    int64_t time = hint_of_step(c, f->time);
    bool device = c->steps[0].d.nworks > 0;
    const char *first = device ? "its first kernel" : "its first op";
    bool guess = f->other * 2 > f->time;
    if (guess)
        snprintf(w->title, sizeof w->title,
                 "%s of the step go by before %s: perhaps its input",
                 hint_time(c, time, a), first);
    else
        snprintf(w->title, sizeof w->title, "the step waits %s for its input",
                 hint_time(c, time, a));
    if (guess) w->confidence = "assumed";
    hint_where(c, f, where);
    if (c->cpus > 0)
        snprintf(cpus, sizeof cpus, "; the program has %lld CPU%s",
                 (long long)c->cpus, c->cpus == 1 ? "" : "s");
    snprintf(w->evidence, sizeof w->evidence,
             "%s a step%s%s, most of it in %.*s%.*s%s%s%s%s",
             hint_time(c, time, a), device || guess ? " before " : "",
             device || guess ? first : "",
             CUT(120, *name ? name : "code with no event"), CUT(300, where),
             f->other ? "; of it " : "",
             f->other ? hint_time(c, hint_of_step(c, f->other), b) : "",
             f->other ? " is a guess: nothing there was recorded as input" : "",
             cpus);
    say_less(c, f, device, w);
    say_more(c, f, w);
}

const struct hint_rule hint_input_bound = {
    .id = "input-bound",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "workers make the next batch beside the step, as many as there "
               "are CPUs (not recorded: enough)",
    .see = "input",
    .advice[FW_TORCH] = "let workers make the batches beside the training: "
                        "DataLoader(dataset, num_workers=8, pin_memory=True, "
                        "persistent_workers=True, prefetch_factor=4)",
    .advice[FW_TF] = TF_ADVICE,
    .advice[FW_JAX] = JAX_ADVICE("8"),
    .advice[FW_OTHER] =
        ("make the next batch in another thread while this one is "
         "trained on, and hand it over through a queue"),
    .repair = repair_input,
    .say = say_input,
};
