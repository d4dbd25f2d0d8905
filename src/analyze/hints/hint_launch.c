/* SPDX-License-Identifier: Apache-2.0
 * The host is too slow for the device: launch-bound (many small kernels, each
 * launched by itself), python-overhead (long stretches of Python that record
 * nothing). */
#include "analyze/hints/hint.h"

#include "base/sum.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include "model/trace.h"
#include <stdio.h>

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
