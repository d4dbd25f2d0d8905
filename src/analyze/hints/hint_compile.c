/* SPDX-License-Identifier: Apache-2.0
 * recompile: the same function is compiled again inside the training loop,
 * because its shapes or guards changed. Repaired, it is compiled once, before.
 * Compilations come in few steps; each step bears its share of them.
 *
 * A new graph costs more than its tracing and its compiler: it is registered,
 * optimised, instantiated and run for the first time, and no span says so. So
 * all goes that the call of the function does besides its ops, but for what
 * calling it costs. */
#include "analyze/hints/hint.h"

#include "analyze/ops/compile_find.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/trace.h"
#include <stdio.h>

/* Was it compiled again, inside a step of the source? tf.function traces twice
 * at its first call, to make variables and then without: what TensorFlow's
 * first step of a window traces may be all that the program ever does. */
static bool is_again(const struct hint_case *c, const struct compile_span *s) {
    const struct compile_group *g = &c->compiles->groups[s->group];
    return g->source == c->source && s->again && s->step != ROW_NONE &&
           (c->framework != FW_TF ||
            s->step > c->t->sources[c->source].step_first) &&
           g->kind != COMPILE_GUARD;
}

int64_t hint_compile_stall(const struct hint_case *c, const uint32_t *steps,
                           size_t n) {
    int64_t all = 0, here = 0, count = 0;
    if (c->compiles == NULL || n == 0) return 0;
    for (size_t i = 0; i < c->t->nsteps; i++)
        count += c->t->steps[i].source == c->source;
    for (size_t i = 0; i < c->compiles->nspans; i++) {
        const struct compile_span *s = &c->compiles->spans[i];
        if (!is_again(c, s)) continue;
        sat_inc(&all, s->own);
        for (size_t k = 0; k < n; k++)
            if (steps[k] == s->step) sat_inc(&here, s->own);
    }
    /* the part that the chosen steps hold is in their own time */
    int64_t mean = count > 0 ? all / count : 0, held = here / (int64_t)n;
    return mean > held ? mean - held : 0;
}

static bool is_op(const struct trace *t, row_id row) {
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (t->spans.kind[row] == SPAN_OP) return true;
        row = t->spans.parent[row];
    }
    return false;
}

/* Takes out of the step what a call that compiled does besides its ops. Returns
 * the host time taken. */
static int64_t remove_call(const struct hint_case *c, struct hint_step *s,
                           row_id call) {
    int64_t cut = 0, costs = HINT_FUNCTION_US * PS_PER_US;
    int64_t ts = c->t->spans.ts[call], end = span_end(c->t, call);
    if (s->d.line.n == 0) return 0;
    for (size_t i = timeline_at(&s->d.line, ts); i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        if (p->ts >= end) break;
        if (p->ts < ts || p->input || s->d.stops[i].wait != DEP_NONE ||
            s->d.stops[i].first < s->d.stops[i].end || is_op(c->t, p->row))
            continue;
        int64_t stays = s->trial.host[i] < costs ? s->trial.host[i] : costs;
        costs -= stays;
        sat_inc(&cut, s->trial.host[i] - stays);
        s->trial.host[i] = stays;
    }
    return cut;
}

static void repair_recompile(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    int64_t again = 0;
    const struct compile_span *last = NULL; /* by time */
    row_id before = ROW_NONE;               /* the call of the one before */
    int64_t cut = s->trial.stall;
    for (size_t i = 0; c->compiles != NULL && i < c->compiles->nspans; i++) {
        const struct compile_span *x = &c->compiles->spans[i];
        if (!is_again(c, x)) continue;
        row_id call = compiles_call(c->compiles, x);
        if (call != ROW_NONE && call != before && x->step == s->d.step)
            sat_inc(&cut, remove_call(c, s, call));
        before = call;
        if (x->more) continue;
        again++;
        if (last == NULL || x->ts > last->ts) last = x;
    }
    if (last == NULL) return;
    s->trial.stall = 0;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        uint32_t at = s->d.line.v[i].row;
        if (at != ROW_NONE && compiles_has(c->compiles, at))
            sat_inc(&cut, hint_remove(s, i, i + 1, true));
    }
    f->other = again;
    hint_saw(f, last->row, cut);
}

static void say_recompile(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48];
    const char *reason = NULL;
    for (size_t i = 0; reason == NULL && i < c->compiles->nspans; i++)
        if (is_again(c, &c->compiles->spans[i]))
            reason = c->compiles->spans[i].reason;
    snprintf(
        w->evidence, sizeof w->evidence,
        "%lld compilations of the same things in the window, with all that "
        "a new graph needs %s a step in the mean, the last %.*s%s%.*s",
        (long long)f->other, hint_time(c, f->time, a),
        CUT(100, hint_name(c, f->row)), reason ? ": " : "",
        CUT(200, reason ? reason : ""));
}

const struct hint_rule hint_recompile = {
    .id = "recompile",
    .title = "what was compiled before is compiled again in the loop",
    .effort = EFFORT_PLACE,
    .clears = true,
    .confidence = "measured",
    .assumes = "each thing is compiled once, before the loop; the mean over "
               "all steps of the window",
    .see = "compile",
    .advice[FW_TORCH] =
        "keep the shapes the same (pad, drop_last=True), or "
        "torch.compile(model, dynamic=True) or "
        "torch._dynamo.mark_dynamic(x, 0); TORCH_LOGS=recompiles "
        "names the guard",
    .advice[FW_TF] =
        "@tf.function(input_signature=[tf.TensorSpec([None, n])]) or "
        "reduce_retracing=True; pass tensors, not Python numbers",
    .advice[FW_JAX] =
        "keep shapes and static arguments the same (pad to a few "
        "sizes); jax.config.update('jax_log_compiles', True) names them",
    .advice[FW_OTHER] =
        "compile before the loop, for every shape that will come",
    .repair = repair_recompile,
    .say = say_recompile,
};
