/* SPDX-License-Identifier: Apache-2.0
 * unfused-pointwise: ops that pass over memory one after the other, where a
 * compiler makes one kernel of them: pointwise ops, dropout, casts and changes
 * of layout, and the sums, norms and losses between them.
 *
 * Joined, a chain takes as long as its longest kernel; but what the shapes tell
 * that an op must move bounds it, because some of these kernels are slow by
 * themselves; and statistics (of a batch or group norm, of the gradient of a
 * scale) need a pass of their own. Without a device the chain is one of large
 * ops of the CPU, of which the longest stays. What the optimizer does is not
 * counted: it is not compiled with the model. */
#include "analyze/hints/hint.h"

#include "analyze/cost/op_cost.h"
#include "base/err.h"
#include "base/map.h"
#include "base/sum.h"
#include "model/trace.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- ops of the CPU ---- */

/* Returns what kind of op has that name; LEAF_NONE also for ops that only call
 * others. */
static enum leaf_kind kind_of(struct bytes name) {
    const struct cost_rule *rule = op_cost_rule(name);
    if (rule == NULL) return LEAF_NONE;
    if (op_cost_is_pointwise(rule)) return LEAF_POINTWISE;
    return op_cost_reduces(rule) ? LEAF_REDUCE : LEAF_OTHER;
}

/* Finds the innermost op around a piece that does something; kinds: by name
 * what kind it is. Returns false if out of memory. */
static bool leaf_of(const struct trace *t, row_id row, struct map *kinds,
                    struct leaf *out) {
    *out = (struct leaf){ROW_NONE, LEAF_NONE};
    row_id inner = row;
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (t->spans.kind[row] == SPAN_OP) {
            uint32_t *at = map_at(kinds, t->spans.name[row]);
            if (at == NULL) return false;
            if (*at == MAP_NONE) *at = kind_of(hint_bytes(t, row));
            if (*at != LEAF_NONE) {
                *out = (struct leaf){row, (enum leaf_kind) * at};
                return true;
            }
        }
        row = t->spans.parent[row];
    }
    if (inner == ROW_NONE || t->spans.kind[inner] != SPAN_OP) return true;
    struct bytes name = hint_bytes(t, inner);
    bool nothing = op_is_view(name) || op_only_allocates(name) ||
                   op_is_bookkeeping(name) || name_is_backward(name);
    if (!nothing) *out = (struct leaf){inner, LEAF_OTHER};
    return true;
}

int hint_leaves_read(struct hint_case *c, struct ops_err *e) {
    struct map kinds = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < c->nsteps; i++) {
        struct hint_step *s = &c->steps[i];
        if (s->d.nworks > 0) continue;
        s->leaves = malloc((s->d.line.n + 1) * sizeof *s->leaves);
        ok = s->leaves != NULL;
        for (size_t k = 0; ok && k < s->d.line.n; k++)
            ok = leaf_of(c->t, s->d.line.v[k].row, &kinds, &s->leaves[k]);
    }
    map_free(&kinds);
    return ok ? 0 : fail_oom(e);
}

/* Does that piece end a chain: something else, or a long pause? */
static bool breaks(const struct hint_case *c, const struct hint_step *s,
                   uint32_t i) {
    int64_t takes = s->trial.host[i];
    row_id row = s->d.line.v[i].row;
    const struct step_op *p = hint_op_at(s, i);
    if (s->d.line.v[i].input || (p != NULL && p->optimizer)) return true;
    if (s->leaves[i].kind == LEAF_OTHER)
        return takes > HINT_SMALL_OP_US * PS_PER_US;
    bool pause = row == ROW_NONE || c->t->spans.kind[row] != SPAN_OP;
    return pause && takes > HINT_PAUSE_US * PS_PER_US;
}

/* Takes the time of pieces [i, *end) that are of one op, in the chain that ends
 * before last. */
static int64_t op_time(const struct hint_step *s, uint32_t i, uint32_t last,
                       uint32_t *end) {
    row_id op = s->leaves[i].op;
    int64_t sum = 0;
    for (*end = i; *end < last && s->leaves[*end].op == op; ++*end)
        sat_inc(&sum, s->trial.host[*end]);
    return sum;
}

/* Is it an op that passes over memory for so long that its call is lost? */
static bool passes(const struct leaf *l, int64_t takes) {
    return (l->kind == LEAF_POINTWISE || l->kind == LEAF_REDUCE) &&
           takes >= HINT_LARGE_OP_US * PS_PER_US;
}

/* Joins the large ops of pieces [first, last): the longest stays. */
static void join_ops(struct hint_step *s, uint32_t first, uint32_t last,
                     struct hint_found *f) {
    uint32_t longest = first;
    int64_t ops = 0, points = 0, most = -1, sum = 0;
    for (uint32_t i = first, end; i < last; i = end) {
        int64_t takes = op_time(s, i, last, &end);
        if (!passes(&s->leaves[i], takes)) continue;
        ops++;
        points += s->leaves[i].kind == LEAF_POINTWISE;
        sat_inc(&sum, takes);
        if (takes <= most) continue;
        most = takes;
        longest = i;
    }
    if (points < HINT_CHAIN) return;
    for (uint32_t i = first, end; i < last; i = end) {
        bool goes = passes(&s->leaves[i], op_time(s, i, last, &end));
        for (uint32_t k = i; goes && i != longest && k < end; k++)
            s->trial.host[k] = 0;
    }
    f->other += ops;
    hint_saw(f, s->leaves[longest].op, sum - most);
}

static void repair_ops(const struct hint_case *c, struct hint_step *s,
                       struct hint_found *f) {
    uint32_t first = 0;
    for (uint32_t i = 0; i <= s->d.line.n; i++) {
        if (i < s->d.line.n && !breaks(c, s, i)) continue;
        if (i > first) join_ops(s, first, i, f);
        first = i + 1;
    }
}

/* ---- kernels of a device ---- */

static enum kernel_fusable fusable(const struct hint_case *c,
                                   const struct hint_step *s, uint32_t w) {
    row_id row = s->d.works[w].row;
    if (c->t->spans.kind[row] != SPAN_KERNEL) return FUSE_NOT;
    const struct step_op *p = hint_op_at(s, s->d.works[w].piece);
    if (p != NULL && p->optimizer) return FUSE_NOT;
    return kernel_fusable(hint_bytes(c->t, row));
}

/* Returns what the kernel would take that does its work in a joined one. */
static int64_t joined_time(const struct hint_step *s, uint32_t w, bool stats) {
    int64_t takes = s->trial.work[w], least = s->moved[w].least;
    int64_t percent = stats ? HINT_NORM_PERCENT : HINT_STREAM_PERCENT;
    if (least < 0 || takes <= 0) return takes;
    double then = (double)least * 100 / (double)percent;
    if (then < HINT_KERNEL_FLOOR_NS * PS_PER_NS)
        then = HINT_KERNEL_FLOOR_NS * PS_PER_NS;
    return then < (double)takes ? (int64_t)then : takes;
}

/* Takes the op that launched only work w off the host. */
static void drop_call(struct hint_step *s, uint32_t w) {
    uint32_t piece = s->d.works[w].piece;
    const struct step_op *p = hint_op_at(s, piece);
    if (p == NULL || p->row == ROW_NONE || p->kernels > 1 || p->waits ||
        p->copies)
        return;
    hint_remove(s, p->first, p->end, false);
    s->trial.host[piece] = 0;
}

/* Joins works [first, end) into one. */
static void join_chain(const struct hint_case *c, struct hint_step *s,
                       uint32_t first, uint32_t end, struct hint_found *f) {
    int64_t sum = 0, most = 0, stats = 0, n = 0, points = 0;
    for (uint32_t w = first; w < end; w++) {
        if (s->trial.work[w] == WORK_GONE) continue;
        enum kernel_fusable k = fusable(c, s, w);
        int64_t then = joined_time(s, w, k == FUSE_STATS);
        sat_inc(&sum, s->trial.work[w]);
        n++;
        points += k == FUSE_POINTWISE;
        if (k == FUSE_STATS) sat_inc(&stats, then);
        else if (then > most) most = then;
    }
    sat_inc(&most, stats);
    if (n < HINT_CHAIN || points == 0 || most >= sum) return;
    for (uint32_t w = first; w < end; w++) s->trial.work[w] = WORK_GONE;
    for (uint32_t w = first + 1; w < end; w++) drop_call(s, w);
    s->trial.work[first] = most;
    f->other += n;
    hint_saw(f, s->d.works[first].row, sum - most);
}

static void repair_pointwise(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    if (s->leaves != NULL) {
        repair_ops(c, s, f);
        return;
    }
    uint32_t first = 0;
    for (uint32_t w = 0; w <= s->d.nworks; w++) {
        bool can = w < s->d.nworks && fusable(c, s, w) != FUSE_NOT;
        bool in = can && s->d.works[w].lane == s->d.works[first].lane;
        if (in && w > first) continue;
        if (w > first) join_chain(c, s, first, w, f);
        first = can ? w : w + 1;
    }
}

static void say_pointwise(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48];
    bool host = c->nsteps > 0 && c->steps[0].leaves != NULL;
    snprintf(w->evidence, sizeof w->evidence,
             "%lld %s a step stand in chains of pointwise ones and norms; "
             "joined they would take %s a step less%s",
             (long long)(f->other / (int64_t)c->nsteps),
             host ? "ops" : "kernels", hint_time(c, f->time, a),
             host ? "" : " on the device");
    if (host)
        snprintf(w->title, sizeof w->title,
                 "chains of pointwise ops pass over memory again and again");
}

const struct hint_rule hint_unfused_pointwise = {
    .id = "unfused-pointwise",
    .title = "chains of pointwise kernels pass over memory again and again",
    .confidence = "simulated",
    .assumes = "a joined chain takes as long as its longest kernel, or as its "
               "data takes at 80 % of the memory's bandwidth; statistics "
               "stay; a compiler may do better or worse by a quarter",
    .see = "kernels",
    .advice[FW_TORCH] =
        "model = torch.compile(model): the chain becomes one kernel",
    .advice[FW_TF] = "@tf.function(jit_compile=True) around the chain",
    .advice[FW_JAX] = "put the chain under one jax.jit",
    .advice[FW_OTHER] = "write the chain as one kernel",
    .repair = repair_pointwise,
    .say = say_pointwise,
};
