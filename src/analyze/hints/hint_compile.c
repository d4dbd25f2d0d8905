/* SPDX-License-Identifier: Apache-2.0
 * recompile: the same function is compiled again inside the training loop,
 * because its shapes or guards changed. Repaired, it is compiled once, before.
 * Compilations come in few steps; each step bears its share of them. */
#include "analyze/hints/hint.h"

#include "analyze/ops/compile_find.h"
#include "base/sum.h"
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

static void repair_recompile(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    int64_t again = 0;
    const struct compile_span *last = NULL; /* by time */
    for (size_t i = 0; c->compiles != NULL && i < c->compiles->nspans; i++) {
        const struct compile_span *x = &c->compiles->spans[i];
        if (!is_again(c, x) || x->more) continue;
        again++;
        if (last == NULL || x->ts > last->ts) last = x;
    }
    if (last == NULL) return;
    int64_t cut = s->trial.stall;
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
    snprintf(w->evidence, sizeof w->evidence,
             "%lld compilations of the same things in the window, %s a step "
             "in the mean, the last %.100s%s%.200s",
             (long long)f->other, hint_time(c, f->time, a),
             hint_name(c, f->row), reason ? ": " : "", reason ? reason : "");
}

const struct hint_rule hint_recompile = {
    .id = "recompile",
    .title = "what was compiled before is compiled again in the loop",
    .in_place = true,
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
