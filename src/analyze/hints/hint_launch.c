/* SPDX-License-Identifier: Apache-2.0
 * The host is too slow for the device: launch-bound (many small kernels, each
 * launched by itself), python-overhead (long stretches of Python that record
 * nothing). */
#include "analyze/hints/hint.h"

#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/compiler_names.h"
#include <stdio.h>
#include <string.h>

/* Could this op be part of a graph that is launched at once, and is it not
 * yet? */
static bool graphable(const struct hint_case *c, const struct hint_step *s,
                      const struct step_op *p) {
    if (p->lead || p->input || p->optimizer || p->waits || p->copies)
        return false;
    uint32_t call = p->work < p->work_end ? s->d.works[p->work].call : ROW_NONE;
    return call == ROW_NONE || !(span_class(c->t, call) & CLASS_GRAPH);
}

/* Is the device busy as it is, or does the program launch most of its kernels
 * by graphs already? Then launching is not what holds it up. */
static bool launches_well(const struct hint_case *c,
                          const struct hint_step *s) {
    int64_t busy = 0, in_graphs = 0, kernels = 0;
    int64_t dur = c->t->steps[s->d.step].dur;
    for (size_t w = 0; w < s->d.nworks; w++) {
        row_id call = s->d.works[w].call;
        sat_inc(&busy, s->d.works[w].dur);
        kernels++;
        in_graphs += call != ROW_NONE && (span_class(c->t, call) & CLASS_GRAPH);
    }
    return busy >= dur - dur / 100 * HINT_RESTRUCTURE_PERCENT ||
           in_graphs * 2 > kernels;
}

static void repair_launch(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    int64_t host = 0, device = 0, kernels = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (!graphable(c, s, p)) continue;
        host += hint_host(s, p->first, p->end);
        for (uint32_t w = p->work; w < p->work_end; w++) {
            int64_t dur = s->trial.work[w];
            if (dur == WORK_GONE) continue;
            sat_inc(&device, dur);
            kernels++;
        }
    }
    /* Is the host slower than the device in the ops that could be captured? How
     * much that costs the replay tells. */
    if (kernels < HINT_GRAPH_KERNELS || host <= device || launches_well(c, s))
        return;
    host = kernels = 0;    /* from here on: of what is captured */
    bool launched = false; /* the graph that is under way was paid for */
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        bool in = graphable(c, s, p);
        /* a long pause has another cause */
        if (in && p->row == ROW_NONE &&
            hint_host(s, p->first, p->end) >= HINT_PAUSE_US * PS_PER_US)
            in = false;
        for (uint32_t k = p->first; in && k < p->end; k++) {
            host += s->trial.host[k];
            s->trial.host[k] = 0;
        }
        if (in && !launched && p->kernels > 0) {
            s->trial.host[p->first] = HINT_CALL_US * PS_PER_US;
            launched = true;
        }
        if (in) kernels += p->kernels;
        else launched = false;
    }
    f->other += kernels;
    hint_saw(f, ROW_NONE, host);
}

/* How the kernels that could be captured are launched now, over all steps. */
struct launched {
    int64_t all;
    int64_t compiled; /* by code that torch.compile made */
    int64_t graphs;   /* beside them, those that graphs launch already */
};

static bool is_compiled(const struct hint_case *c, const struct work *w) {
    if (name_is_inductor_kernel(hint_bytes(c->t, w->row))) return true;
    row_id r = w->call;
    for (int i = 0; i < HINT_CLIMB && r != ROW_NONE; i++) {
        if (name_is_compiled_region(hint_bytes(c->t, r))) return true;
        r = c->t->spans.parent[r];
    }
    return false;
}

static struct launched count_launched(const struct hint_case *c) {
    struct launched n = {0};
    for (size_t k = 0; k < c->nsteps; k++) {
        const struct hint_step *s = &c->steps[k];
        for (size_t i = 0; i < s->nops; i++) {
            const struct step_op *p = &s->ops[i];
            bool in = graphable(c, s, p);
            for (uint32_t w = p->work; w < p->work_end; w++) {
                const struct work *work = &s->d.works[w];
                n.all += in;
                n.compiled += in && is_compiled(c, work);
                n.graphs += work->call != ROW_NONE &&
                            (span_class(c->t, work->call) & CLASS_GRAPH);
            }
        }
    }
    return n;
}

/* Says what to do with a program that torch.compile has worked on already. */
static void say_compiled(const struct hint_case *c, struct hint_words *w) {
    struct launched n = count_launched(c);
    if (n.compiled == 0) return;
    bool most = n.compiled * 2 >= n.all;
    size_t at = strlen(w->evidence);
    cut_fmt(w->evidence + at, sizeof w->evidence - at,
            "; compiled code launches %.0f %% of them",
            100.0 * (double)n.compiled / (double)n.all);
    if (most && n.graphs > 0)
        cut_fmt(w->repair, sizeof w->repair,
                "torch.compile makes CUDA graphs of a part only: "
                "TORCH_LOGS=perf_hints says why the rest is skipped (inputs "
                "that are changed in place, tensors of the CPU, new shapes)");
    else if (most)
        cut_fmt(w->repair, sizeof w->repair,
                "the program is compiled already: give its torch.compile "
                "mode='reduce-overhead' (CUDA graphs; shapes must stay the "
                "same); or a larger batch");
    else
        cut_fmt(w->repair, sizeof w->repair,
                "most kernels are launched outside of what is compiled: take "
                "that part into the torch.compile, too (fullgraph=True tells "
                "what breaks it), with mode='reduce-overhead' (CUDA graphs), "
                "or capture it by torch.cuda.make_graphed_callables");
}

static void say_launch(const struct hint_case *c, const struct hint_found *f,
                       struct hint_words *w) {
    char a[48], each[48];
    int64_t n = f->other > 0 ? f->other : 1;
    int64_t time = hint_of_step(c, f->time);
    human_time(time / n, each, sizeof each);
    snprintf(w->title, sizeof w->title,
             "launching %lld kernels a step takes longer than running them",
             (long long)(f->other / (int64_t)c->nsteps));
    snprintf(w->evidence, sizeof w->evidence,
             "%s of host time a step for %lld kernels: %s each, without "
             "the profiler's own cost",
             hint_time(c, time, a), (long long)(f->other / (int64_t)c->nsteps),
             each);
    if (c->framework == FW_TORCH) say_compiled(c, w);
}

const struct hint_rule hint_launch_bound = {
    .id = "launch-bound",
    .confidence = "simulated",
    .assumes = "forward and backward become a graph launch each; the "
               "optimizer, copies and waits stay as they are",
    .see = "launch",
    .advice[FW_TORCH] =
        "model = torch.compile(model, mode='reduce-overhead') (CUDA "
        "graphs), or torch.cuda.make_graphed_callables(model, "
        "sample_args); or a larger batch",
    .advice[FW_TF] = "put the step under @tf.function(jit_compile=True)",
    .advice[FW_JAX] =
        "one jax.jit around the whole step, jax.lax.scan for loops",
    .advice[FW_OTHER] =
        "capture the step into a CUDA graph and launch it at once",
    .repair = repair_launch,
    .say = say_launch,
};
