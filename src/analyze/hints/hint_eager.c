/* SPDX-License-Identifier: Apache-2.0
 * not-jitted: TensorFlow or JAX run a step op by op, each called from Python,
 * where tf.function or jax.jit would make one function of them. Repaired, what
 * stays of the host's side is what the ops themselves compute: the way to each
 * goes, and of each op what calling an op costs. Ops that only look at a shape
 * show how much that is. What a step does in Python besides stays: pauses that
 * are too long for the way to an op, as far as every step has them. */
#include "analyze/hints/hint.h"

#include "analyze/ops/compile_find.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/phases.h"
#include "analyze/shared/pystack.h"
#include "base/err.h"
#include "base/sort.h"
#include "base/sum.h"
#include "model/trace.h"
#include "names/compiler_names.h"
#include "names/frame_name.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

/* Returns the op at work: the row or the op around it; else ROW_NONE. */
static row_id op_of(const struct hint_case *c, row_id row) {
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (c->t->spans.kind[row] == SPAN_OP) return row;
        row = c->t->spans.parent[row];
    }
    return ROW_NONE;
}

/* Returns the call from Python that a span is part of: JAX's outermost call of
 * a compiled function, TensorFlow's eager op; or ROW_NONE. */
static row_id call_of(const struct hint_case *c, row_id row) {
    const struct spans *s = &c->t->spans;
    row_id call = ROW_NONE;
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB;
         i++, row = s->parent[row])
        if (c->framework == FW_JAX
                ? c->compiles->class[s->name[row]] == CC_JIT
                : s->kind[row] == SPAN_OP && (s->flags[row] & SPAN_EAGER))
            call = row;
    return call;
}

/* Does another call begin with that piece than *last, in which the program was?
 * Between two pieces of a call may lie one of another thread. */
static bool begins_call(const struct hint_case *c, const struct piece *p,
                        row_id *last) {
    row_id call = call_of(c, p->row);
    if (call == ROW_NONE || call == *last) return false;
    *last = call;
    return true;
}

/* Returns how many ops of the step were called one by one from Python; 0 if
 * most of its ops ran inside functions. */
static size_t count_calls(const struct hint_case *c,
                          const struct hint_step *s) {
    int64_t alone = 0, all = 0;
    size_t calls = 0;
    row_id last = ROW_NONE;
    for (size_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        calls += begins_call(c, p, &last);
        row_id op = op_of(c, p->row);
        if (op == ROW_NONE) continue;
        sat_inc(&all, p->dur);
        if (c->t->spans.flags[op] & SPAN_EAGER) sat_inc(&alone, p->dur);
    }
    /* a function that JAX compiled is one op, if it is called so often */
    return c->framework == FW_JAX || alone > all / 2 ? calls : 0;
}

/* Is the piece on the way from op to op: no op, no input, no exchange, no
 * compiler, no call that waits or copies? */
static bool is_between(const struct hint_case *c, const struct hint_step *s,
                       uint32_t i) {
    const struct piece *p = &s->d.line.v[i];
    const struct stop *stop = &s->d.stops[i];
    if (p->input || stop->wait != DEP_NONE || hint_is_no_python(c, s, i))
        return false;
    if (stop->first < stop->end)
        return s->copies[stop->first].kind == COPY_KINDS;
    return op_of(c, p->row) == ROW_NONE;
}

/* The calls of a step: [0] is what comes before the first. */
struct calls {
    int64_t *way; /* ps on the way: from the begin of a call to that of the
                     next, but for the ops */
    int64_t *own; /* ps of that which may be code of its own */
    int64_t *op;  /* ps in the op itself, where it runs in the calling thread */
    size_t n;
};

static void calls_free(struct calls *v) {
    free(v->way);
    free(v->own);
    free(v->op);
}

static bool runs_eagerly(const struct hint_case *c, row_id row) {
    row_id op = op_of(c, row);
    return op != ROW_NONE && (c->t->spans.flags[op] & SPAN_EAGER);
}

/* Is the program inside of JAX at that piece, as its Python frames tell? */
static bool is_jaxs(const struct hint_case *c, const struct piece *p) {
    uint32_t thread = phases_step_thread(c->t, c->source);
    if (c->framework != FW_JAX || thread == ROW_NONE) return false;
    row_id r = pystack_at(c->frames, thread, p->ts + p->dur / 2);
    for (int i = 0; r != ROW_NONE && i < HINT_CLIMB;
         i++, r = c->t->spans.parent[r])
        if (frame_name_is_jaxs(strs_bytes(&c->t->strs, c->t->spans.name[r])))
            return true;
    return false;
}

static bool find_calls(const struct hint_case *c, const struct hint_step *s,
                       struct calls *v) {
    size_t n = count_calls(c, s) + 1, k = 0;
    row_id last = ROW_NONE;
    *v = (struct calls){.way = calloc(n, sizeof *v->way),
                        .own = calloc(n, sizeof *v->own),
                        .op = calloc(n, sizeof *v->op),
                        .n = n};
    if (v->way == NULL || v->own == NULL || v->op == NULL) return false;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        k += begins_call(c, &s->d.line.v[i], &last) && k + 1 < n;
        int64_t host = s->now.host[i];
        if (is_between(c, s, i)) {
            sat_inc(&v->way[k], host);
            if (!is_jaxs(c, &s->d.line.v[i])) sat_inc(&v->own[k], host);
        } else if (runs_eagerly(c, s->d.line.v[i].row)) {
            sat_inc(&v->op[k], host);
        }
    }
    return true;
}

/* Returns the longest such code of a step at that place, or a call or two from
 * it: steps are seldom the same to the call. */
static int64_t own_near(const struct calls *v, size_t k) {
    enum { NEAR = 2 };
    int64_t most = 0;
    for (size_t i = k > NEAR ? k - NEAR : 0; i <= k + NEAR && i < v->n; i++)
        if (v->own[i] > most) most = v->own[i];
    return most;
}

/* Makes v[0] what all steps have at the same place: what another step does not
 * have is another program's turn, not this one's code. Of the ways only what is
 * too long for the way to an op stays. */
static void keep_common(struct calls *v, size_t nsteps) {
    for (size_t k = 0; k < v[0].n; k++) {
        for (size_t i = 1; i <= nsteps; i++) {
            int64_t own = own_near(&v[i], k);
            if (own < v[0].own[k]) v[0].own[k] = own;
            if (v[i].n == v[0].n && v[i].op[k] < v[0].op[k])
                v[0].op[k] = v[i].op[k];
        }
        if (v[0].own[k] <= HINT_EAGER_US * PS_PER_US) v[0].own[k] = 0;
    }
}

/* Returns the end of the pieces from i on that are in the same op. */
static uint32_t op_end(const struct hint_case *c, const struct hint_step *s,
                       uint32_t i) {
    row_id op = op_of(c, s->d.line.v[i].row);
    uint32_t end = i + 1;
    while (end < s->d.line.n && op_of(c, s->d.line.v[end].row) == op) end++;
    return end;
}

/* Sets *cost to what calling an op costs: the median of ops that do nothing; 0
 * if there are too few. */
static bool call_cost(const struct hint_case *c, const struct hint_step *s,
                      int64_t *cost) {
    int64_t *v = malloc((s->d.line.n + 1) * sizeof *v);
    size_t n = 0;
    if (v == NULL) return false;
    for (uint32_t i = 0, end; i < s->d.line.n; i = end) {
        end = op_end(c, s, i);
        row_id op = op_of(c, s->d.line.v[i].row);
        if (op == ROW_NONE ||
            !op_is_thin(strs_bytes(&c->t->strs, c->t->spans.name[op])))
            continue;
        v[n] = 0;
        for (uint32_t k = i; k < end; k++) sat_inc(&v[n], s->now.host[k]);
        n++;
    }
    qsort(v, n, sizeof *v, sort_by_value);
    *cost = n >= HINT_THIN_OPS ? v[n / 2] : 0;
    free(v);
    return true;
}

/* Returns which share of a step's time is its ops', as they run undisturbed. */
static double ops_share(const struct calls *calls, const struct calls *common) {
    double ops = 0, all = 0;
    for (size_t k = 0; k < calls->n; k++) {
        all += (double)calls->way[k];
        ops += (double)(k < common->n ? common->op[k] : calls->op[k]);
    }
    return ops > 0 ? ops / (all + ops) : 0;
}

/* Returns what an op takes. If another step has the same in less than half of
 * the time, something disturbed it: that comes as often as there is time for
 * it, so that a shorter step has its share of it. */
static int64_t op_time(int64_t here, int64_t least, double share) {
    if (here / 2 <= least) return here;
    return least + (int64_t)((double)(here - least) * share);
}

/* Fills jitted of a step with these calls; common has what all steps have. */
static bool compile_step(const struct hint_case *c, struct hint_step *s,
                         const struct calls *calls,
                         const struct calls *common) {
    int64_t cost;
    s->jitted = malloc((s->d.line.n + 1) * sizeof *s->jitted);
    if (s->jitted == NULL || !call_cost(c, s, &cost)) return false;
    int64_t way = common->own[0], op = 0;
    double share = ops_share(calls, common);
    size_t k = 0;
    row_id last = ROW_NONE;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        int64_t *left = NULL; /* of what stays of this call */
        if (begins_call(c, p, &last) && ++k < common->n) {
            way = common->own[k];
            op = k < calls->n ? calls->op[k] : 0;
            op = op_time(op, common->op[k], share) - cost;
            if (op < 0) op = 0;
        }
        if (is_between(c, s, i)) left = &way;
        else if (runs_eagerly(c, p->row)) left = &op;
        s->jitted[i] = s->now.host[i];
        if (left == NULL) continue;
        if (s->jitted[i] > *left) s->jitted[i] = *left;
        *left -= s->jitted[i];
    }
    return true;
}

int hint_eager_read(struct hint_case *c, struct ops_err *e) {
    bool has = c->framework == FW_TF || c->framework == FW_JAX;
    if (!has || c->compiles == NULL || c->nsteps == 0) return 0;
    for (size_t i = 0; i < c->nsteps; i++)
        if (count_calls(c, &c->steps[i]) < HINT_EAGER_CALLS) return 0;
    /* [0] is what all have, as the first step has it at first */
    struct calls *v = calloc(c->nsteps + 1, sizeof *v);
    bool ok = v != NULL && find_calls(c, &c->steps[0], &v[0]);
    for (size_t i = 0; ok && i < c->nsteps; i++)
        ok = find_calls(c, &c->steps[i], &v[i + 1]);
    if (ok) keep_common(v, c->nsteps);
    for (size_t i = 0; ok && i < c->nsteps; i++)
        ok = compile_step(c, &c->steps[i], &v[i + 1], &v[0]);
    for (size_t i = 0; v != NULL && i <= c->nsteps; i++) calls_free(&v[i]);
    free(v);
    return ok ? 0 : fail_oom(e);
}

/* XLA joins what does not multiply matrices: chains of such kernels take as
 * long as their longest. */
static void join_kernels(const struct hint_case *c, struct hint_step *s) {
    const struct trace *t = c->t;
    uint32_t head = DEP_NONE; /* the work that the chain so far became */
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id row = s->d.works[w].row;
        if (s->trial.work[w] == WORK_GONE) continue;
        bool joins = t->spans.kind[row] == SPAN_KERNEL &&
                     !s->moved[w].kind.matrix;
        if (!joins || head == DEP_NONE ||
            s->d.works[head].lane != s->d.works[w].lane) {
            head = joins ? w : DEP_NONE;
            continue;
        }
        if (s->trial.work[w] > s->trial.work[head])
            s->trial.work[head] = s->trial.work[w];
        s->trial.work[w] = WORK_GONE;
    }
}

static void repair_eager(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    int64_t off = 0;
    bool called = false; /* the function was paid for */
    if (s->jitted == NULL) return;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        int64_t host = s->trial.host[i], then = s->jitted[i];
        if (then >= host) continue;
        /* TensorFlow's executor still launches kernel by kernel */
        int64_t call = HINT_CALL_US * PS_PER_US;
        if (c->framework == FW_TF && s->d.stops[i].first < s->d.stops[i].end)
            then = host < call ? host : call;
        if (!called) sat_inc(&then, HINT_FUNCTION_US * PS_PER_US);
        called = true;
        s->trial.host[i] = then;
        sat_inc(&off, host - then);
    }
    if (off <= 0) return;
    if (c->framework == FW_JAX) join_kernels(c, s);
    f->other += (int64_t)count_calls(c, s);
    hint_saw(f, ROW_NONE, off);
}

static void say_eager(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char a[48];
    long long calls = (long long)(f->other / (int64_t)c->nsteps);
    snprintf(w->title, sizeof w->title,
             "%lld ops a step run one by one, each called from Python", calls);
    snprintf(w->evidence, sizeof w->evidence,
             "%lld %s a step, %s a step on the way to them and in calling them",
             calls,
             c->framework == FW_JAX ? "calls of compiled functions"
                                    : "eager ops",
             hint_time(c, hint_of_step(c, f->time), a));
}

const struct hint_rule hint_not_jitted = {
    .id = "not-jitted",
    .confidence = "simulated",
    .assumes = "in one function the same ops follow each other without a gap; "
               "calling it costs 0.1 ms",
    .see = "ops",
    .advice[FW_TF] =
        "put the step under @tf.function (Keras: model.compile without "
        "run_eagerly=True); jit_compile=True joins small ops, too",
    .advice[FW_JAX] = "put the whole step, gradient and update, under one "
                      "@jax.jit; jax.lax.scan or fori_loop for loops in it",
    .advice[FW_OTHER] = "compile the step into one function",
    .repair = repair_eager,
    .say = say_eager,
};
