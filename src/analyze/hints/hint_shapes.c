/* SPDX-License-Identifier: Apache-2.0
 * host-sync in a loop over shapes that depend on the data: nonzero(), x[mask]
 * and their like must ask the device how large their result is, and wait for
 * it. A mixture of experts does so once for each expert, and then launches a
 * few small kernels for the rows that it got. Repaired, one round does the work
 * of all: the rows are sorted, and a batched product takes them.
 *
 * Such a loop is found by the names of its ops: from one asking op to the next
 * the same ones, three rounds and more. Its gradient is a loop of as many
 * rounds. What the rounds behind the first cost the host goes; of their kernels
 * those go that take no longer than a launch, for a few rows more make the
 * first no longer. */
#include "analyze/hints/hint.h"

#include "base/array.h"
#include "base/err.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/trace.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS_MIN = 3, /* of a loop */
    ASKS_MAX = 4,   /* asking ops in a round */
    OPS_MAX = 1000, /* ops in a round: what is longer is no loop of experts */
};

/* The ops of a step without the pauses between them. */
struct op_list {
    const struct trace *t;
    const struct hint_step *s;
    const uint32_t *at; /* in s->ops */
    size_t n;
    size_t done; /* ops before this one are part of another loop */
};

/* Ops [from, to) of such a list, the same again after every `period`. */
struct op_loop {
    size_t from, to, period;
};

static str_id name_at(const struct op_list *l, size_t i) {
    return l->t->spans.name[l->s->ops[l->at[i]].row];
}

static struct bytes text_at(const struct op_list *l, size_t i) {
    return strs_bytes(&l->t->strs, name_at(l, i));
}

static bool asks_at(const struct op_list *l, size_t i) {
    return l->s->ops[l->at[i]].waits > 0 && op_asks_for_shape(text_at(l, i));
}

static bool grad_at(const struct op_list *l, size_t i) {
    return op_is_rows_gradient(text_at(l, i));
}

/* Returns how far ops repeat with that period around op i. */
static struct op_loop extend(const struct op_list *l, size_t i, size_t period) {
    struct op_loop k = {i, i + period, period};
    while (k.to < l->n && name_at(l, k.to) == name_at(l, k.to - period)) k.to++;
    while (k.from > l->done &&
           name_at(l, k.from - 1) == name_at(l, k.from - 1 + period))
        k.from--;
    return k;
}

static size_t rounds_of(const struct op_loop *k) {
    return k->period == 0 ? 0 : (k->to - k->from) / k->period;
}

/* Finds the loop that op i, which is one of `is`, is part of; it has no round
 * if there is none. */
static struct op_loop loop_at(const struct op_list *l, size_t i,
                              bool (*is)(const struct op_list *, size_t)) {
    int seen = 0;
    size_t end = l->n - i > OPS_MAX ? i + OPS_MAX + 1 : l->n;
    for (size_t j = i + 1; j < end && seen < ASKS_MAX; j++) {
        if (name_at(l, j) != name_at(l, i) || !is(l, j)) continue;
        struct op_loop k = extend(l, i, j - i);
        if (rounds_of(&k) >= ROUNDS_MIN) return k;
        seen++;
    }
    return (struct op_loop){0};
}

/* Takes the rounds behind the first out of the trial. Returns their host
 * time. */
static int64_t join_rounds(struct hint_step *s, const struct op_list *l,
                           const struct op_loop *k) {
    uint32_t first = s->ops[l->at[k->from + k->period]].first;
    uint32_t end = s->ops[l->at[k->to - 1]].end;
    int64_t host = 0;
    for (uint32_t i = first; i < end; i++) {
        sat_inc(&host, s->trial.host[i]);
        s->trial.host[i] = 0;
        s->trial.go[i] = true;
        for (uint32_t w = s->d.stops[i].first; w < s->d.stops[i].end; w++)
            if (s->trial.work[w] <= HINT_CALL_US * PS_PER_US)
                s->trial.work[w] = WORK_GONE;
    }
    return host;
}

/* Counts the asking ops of a loop. */
static void count_asks(const struct op_list *l, const struct op_loop *k,
                       struct hint_found *f) {
    for (size_t i = k->from; i < k->to; i++) {
        if (!asks_at(l, i)) continue;
        const struct step_op *p = &l->s->ops[l->at[i]];
        int64_t waited = 0;
        for (uint32_t n = p->first; n < p->end; n++)
            if (l->s->d.stops[n].wait != DEP_NONE)
                sat_inc(&waited, l->s->d.line.v[n].dur);
        hint_saw(f, p->row, waited);
    }
}

static void repair_shapes(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    struct op_list l = {.t = c->t, .s = s, .at = s->named, .n = s->nnamed};
    size_t most = 0, least = SIZE_MAX; /* rounds of the loops that ask */
    for (size_t i = 0; i < l.n; i++) {
        if (!asks_at(&l, i)) continue;
        struct op_loop k = loop_at(&l, i, asks_at);
        size_t rounds = rounds_of(&k);
        if (rounds < ROUNDS_MIN) continue;
        if (rounds > most) most = rounds;
        if (rounds < least) least = rounds;
        count_asks(&l, &k, f);
        sat_inc(&f->other, join_rounds(s, &l, &k));
        l.done = k.to;
        i = k.to - 1;
    }
    l.done = 0;
    for (size_t i = 0; most > 0 && i < l.n; i++) {
        if (!grad_at(&l, i)) continue;
        struct op_loop k = loop_at(&l, i, grad_at);
        size_t rounds = rounds_of(&k);
        /* the first or last expert's gradient may differ by a node */
        if (rounds < ROUNDS_MIN || rounds + 1 < least || rounds > most + 1)
            continue;
        sat_inc(&f->other, join_rounds(s, &l, &k));
        l.done = k.to;
        i = k.to - 1;
    }
}

int hint_shapes_read(struct hint_case *c, struct ops_err *e) {
    for (size_t n = 0; n < c->nsteps; n++) {
        struct hint_step *s = &c->steps[n];
        s->named = malloc((s->nops + 1) * sizeof *s->named);
        if (s->named == NULL) return fail_oom(e);
        for (uint32_t i = 0; i < s->nops; i++)
            if (s->ops[i].row != ROW_NONE) s->named[s->nnamed++] = i;
    }
    return 0;
}

static void say_shapes(const struct hint_case *c, const struct hint_found *f,
                       struct hint_words *w) {
    char a[48], b[48], n[48], where[HINT_TEXT];
    snprintf(w->evidence, sizeof w->evidence,
             "%s for the size of a result, %s a step, in a loop whose rounds "
             "are alike; all but the first, with their gradients, cost the "
             "host %s a step; the dearest in %.*s%s",
             hint_count(c, f->count, "wait", "waits", n),
             hint_time(c, f->time, a), hint_time(c, f->other, b),
             CUT(120, hint_name(c, f->row)), hint_where(c, f, where));
}

const struct hint_rule hint_data_shapes = {
    .id = "host-sync",
    .title = "a loop asks the device for the sizes of its results",
    .effort = EFFORT_PLACE,
    .confidence = "assumed",
    .assumes = "one round does the work of all, kernels of more than 10 us "
               "take as long as now; off by a quarter either way",
    .see = "idle",
    .advice[FW_TORCH] =
        "all rounds at once, in shapes that do not depend on the data: sort "
        "the rows (torch.argsort) and use one batched product (torch.bmm) in "
        "place of x[mask] or nonzero() for each expert; torch.where or a "
        "product with the mask where rows are only switched off",
    .advice[FW_OTHER] = "all rounds at once, in shapes that do not depend on "
                        "the data",
    .repair = repair_shapes,
    .say = say_shapes,
};
