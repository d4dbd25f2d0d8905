/* SPDX-License-Identifier: Apache-2.0
 * The host is too slow for the device: launch-bound (many small kernels, each
 * launched by itself), slow-op for an optimizer that goes one tensor at a
 * time, python-overhead (long stretches of Python that record nothing). */
#include "analyze/hints/hint.h"

#include "analyze/ops/compile_find.h"
#include "base/sum.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/kernel_names.h"
#include <stdio.h>

static void repair_optimizer(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    int64_t kernels = 0, joined = 0; /* launched; of these over many tensors */
    int64_t host = 0, device = 0;    /* ps */
    uint32_t dearest = ROW_NONE;     /* its op that takes the host longest */
    int64_t most = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (!p->optimizer) continue;
        int64_t takes = hint_host(s, p->first, p->end);
        host += takes;
        if (p->row != ROW_NONE && takes > most) {
            dearest = p->row;
            most = takes;
        }
        for (uint32_t w = p->work; w < p->work_end; w++) {
            row_id row = s->d.works[w].row;
            if (c->t->spans.kind[row] != SPAN_KERNEL) continue;
            kernels++;
            joined += kernel_is_joined(
                strs_bytes(&c->t->strs, c->t->spans.name[row]));
            if (s->trial.work[w] != WORK_GONE)
                sat_inc(&device, s->trial.work[w]);
        }
    }
    /* most of it is joined already: what is left are odd tensors */
    if (kernels - joined < HINT_TENSOR_OPS || joined * 2 > kernels) return;
    /* one joined kernel does the work of all; the host launches it once */
    bool first = true;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        for (uint32_t k = p->first; p->optimizer && k < p->end; k++) {
            s->trial.host[k] = 0;
            for (uint32_t w = s->d.stops[k].first; w < s->d.stops[k].end; w++) {
                s->trial.work[w] = first ? device / HINT_FUSED_SHARE
                                         : WORK_GONE;
                if (first) s->trial.host[k] = HINT_JOINED_US * PS_PER_US;
                first = false;
            }
        }
    }
    f->other += kernels;
    hint_saw(f, dearest, host);
}

static void say_optimizer(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48];
    int64_t kernels = f->other / (int64_t)c->nsteps;
    snprintf(w->evidence, sizeof w->evidence,
             "%lld kernels and %s of host time a step inside the optimizer, "
             "most in %.80s; few or none work on many tensors at once",
             (long long)kernels, hint_time(c, f->time, a),
             hint_name(c, f->row));
}

const struct hint_rule hint_slow_optimizer = {
    .id = "slow-op",
    .title = "the optimizer updates one tensor at a time",
    .in_place = true,
    .confidence = "simulated",
    .assumes = "joined, the update costs the host 0.2 ms and the device a "
               "quarter of its kernels now",
    .see = "ops",
    .advice[FW_OTHER] =
        "torch.optim.AdamW(params, lr, fused=True) (or foreach=True): "
        "all tensors in a few kernels",
    .repair = repair_optimizer,
    .say = say_optimizer,
};

/* Could this op be part of a graph that is launched at once, and is it not
 * yet? */
static bool graphable(const struct hint_case *c, const struct hint_step *s,
                      const struct step_op *p) {
    if (p->lead || p->input || p->optimizer || p->waits || p->copies)
        return false;
    uint32_t call = p->work < p->work_end ? s->d.works[p->work].call : ROW_NONE;
    return call == ROW_NONE || !(span_class(c->t, call) & CLASS_GRAPH);
}

static void repair_launch(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    int64_t host = 0, device = 0, kernels = 0, small = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (!graphable(c, s, p)) continue;
        host += hint_host(s, p->first, p->end);
        for (uint32_t w = p->work; w < p->work_end; w++) {
            int64_t dur = s->trial.work[w];
            if (dur == WORK_GONE) continue;
            sat_inc(&device, dur);
            kernels++;
            small += dur < HINT_LAUNCH_US * PS_PER_US;
        }
    }
    /* Of the ops that could be captured: is the host slower than the device,
     * and are most kernels shorter than a launch? */
    if (kernels < HINT_GRAPH_KERNELS || host <= device || small * 2 <= kernels)
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
    char a[48];
    int64_t n = f->other > 0 ? f->other : 1;
    snprintf(w->title, sizeof w->title,
             "launching %lld kernels a step takes longer than running them",
             (long long)(f->other / (int64_t)c->nsteps));
    snprintf(w->evidence, sizeof w->evidence,
             "%s of host time a step for %lld kernels: %.1f us each, without "
             "the profiler's own cost",
             hint_time(c, f->time, a),
             (long long)(f->other / (int64_t)c->nsteps),
             (double)f->time / (double)n / PS_PER_US);
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

/* Is that piece without an op something else than Python: does the program wait
 * for an exchange that another thread carries out, or is something compiled? */
static bool is_no_python(const struct hint_case *c, const struct hint_step *s,
                         uint32_t piece) {
    row_id row = s->d.line.v[piece].row;
    return row != ROW_NONE &&
           (span_is_comm(c->t, row) ||
            (c->compiles != NULL && compiles_has(c->compiles, row)));
}

static void repair_python(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    bool device = s->d.nworks > 0, any = false;
    for (size_t i = 0; !any && i < s->nops; i++)
        any = s->ops[i].row != ROW_NONE &&
              c->t->spans.kind[s->ops[i].row] == SPAN_OP;
    /* where no op was recorded at all a pause tells nothing; a C program's code
     * outside its scopes is just not recorded */
    if (!any || c->t->sources[c->source].by_opscope) return;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->row != ROW_NONE || p->input || (p->lead && device)) continue;
        int64_t host = hint_host(s, p->first, p->end);
        for (uint32_t k = p->first; k < p->end; k++)
            if (is_no_python(c, s, k)) host -= hint_host(s, k, k + 1);
        if (host < HINT_PAUSE_US * PS_PER_US) continue;
        uint32_t most = hint_longest(s, p->first, p->end);
        for (uint32_t k = p->first; k < p->end; k++)
            if (!is_no_python(c, s, k)) hint_remove(s, k, k + 1, false);
        hint_saw_piece(f, s, most, s->d.line.v[most].row, host);
    }
}

static void say_python(const struct hint_case *c, const struct hint_found *f,
                       struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    const char *name = hint_name(c, f->row);
    /* not every program that records itself is written in Python */
    bool python = c->framework != FW_OTHER;
    snprintf(w->title, sizeof w->title, "%s a step go by %sbetween the ops",
             hint_time(c, f->time, a), python ? "in Python " : "");
    snprintf(w->evidence, sizeof w->evidence,
             "%s of more than %d us each in which no op and no call was "
             "recorded%s%.80s%s",
             hint_count(c, f->count, "pause", "pauses", n), (int)HINT_PAUSE_US,
             *name ? ", the longest in " : "", name, hint_where(c, f, where));
    snprintf(w->repair, sizeof w->repair,
             "move that code out of the loop or into another thread; %s to "
             "see which it is",
             python ? "record with Python stacks (with_stack=True)"
                    : "record scopes around its parts");
}

const struct hint_rule hint_python_overhead = {
    .id = "python-overhead",
    .confidence = "assumed",
    .assumes = "the code in the pauses can be moved out of the step",
    .see = "python",
    .repair = repair_python,
    .say = say_python,
};

enum { CLIMB = 64 }; /* levels around a span of an op that are looked at */

/* Returns the op at work: the row or the op around it; else ROW_NONE. */
static row_id op_of(const struct hint_case *c, row_id row) {
    for (int i = 0; row != ROW_NONE && i < CLIMB; i++) {
        if (c->t->spans.kind[row] == SPAN_OP) return row;
        row = c->t->spans.parent[row];
    }
    return ROW_NONE;
}

/* Is that piece between the ops: neither one, nor input, nor device work? */
static bool is_between(const struct hint_case *c, const struct hint_step *s,
                       uint32_t i) {
    const struct piece *p = &s->d.line.v[i];
    return !p->input && s->d.stops[i].first >= s->d.stops[i].end &&
           op_of(c, p->row) == ROW_NONE && !is_no_python(c, s, i);
}

/* In a function the ops follow each other: all that is not an op goes. */
static void repair_eager(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    /* ops that TensorFlow ran by themselves, outside any function */
    int64_t ops = 0, alone = 0, all = 0, between = 0;
    if (c->framework == FW_TORCH) return; /* has no such mark */
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        uint32_t op = op_of(c, p->row);
        if (op == ROW_NONE) continue;
        all += p->dur;
        if (!(c->t->spans.flags[op] & SPAN_EAGER)) continue;
        alone += p->dur;
        ops += p->row == op && p->ts == c->t->spans.ts[op];
    }
    /* are these most of what the ops of the step do? */
    if (alone <= all / 2 || ops < HINT_GRAPH_KERNELS) return;
    for (uint32_t i = 0; i < s->d.line.n; i++)
        if (is_between(c, s, i)) between += s->trial.host[i];
    if (between / ops > HINT_EAGER_US * PS_PER_US) return;
    for (uint32_t i = 0; i < s->d.line.n; i++)
        if (is_between(c, s, i)) s->trial.host[i] = 0;
    f->other += ops;
    hint_saw(f, ROW_NONE, between);
}

static void say_eager(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char a[48];
    snprintf(w->evidence, sizeof w->evidence,
             "%lld eager ops a step, %s a step between them in Python and in "
             "calling them",
             (long long)(f->other / (int64_t)c->nsteps),
             hint_time(c, f->time, a));
}

const struct hint_rule hint_eager_ops = {
    .id = "launch-bound",
    .title = "ops run one by one, each called from Python",
    .confidence = "assumed",
    .assumes = "in a function the same ops follow each other without a gap",
    .see = "ops",
    .advice[FW_OTHER] =
        "put the step under @tf.function (or model.compile without "
        "run_eagerly=True)",
    .repair = repair_eager,
    .say = say_eager,
};
