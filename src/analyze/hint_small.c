/* SPDX-License-Identifier: Apache-2.0
 * launch-bound on the CPU: the work is cut into so many calls that calling
 * takes longer than the work (a call for every sample or token in place of one
 * for all). A trace does not tell what a call costs by itself; but where the
 * program tells the FLOPs of its ops, larger calls of the same op in the same
 * step show what it could do. Repaired, small calls run at that rate, one
 * right after the other. Without larger ones to compare with nothing is
 * said. */
#include "analyze/hint.h"

#include "base/err.h"
#include "base/number.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/trace.h"
#include <stdio.h>
#include <stdlib.h>

/* A larger call; then, for each name, the pace that stands for all of them. */
struct pace {
    str_id name;
    double each;  /* ps for a FLOP */
    double flops;
};

struct paces {
    struct pace *v;
    size_t n, cap;
};

/* FLOPs of the op that piece i of the line is all of, or -1: it is none, has
 * others in it, or does not tell. */
static int64_t told(const struct trace *t, const struct hint_step *s,
                    size_t i) {
    const struct piece *p = &s->d.line.v[i];
    if (p->row == ROW_NONE || p->input ||
        t->spans.kind[p->row] != SPAN_OP ||
        !(t->spans.flags[p->row] & SPAN_COSTED) ||
        p->dur < t->spans.dur[p->row])
        return -1;
    return args_int(t, p->row, "flops", -1);
}

static int by_name(const void *a, const void *b) {
    const struct pace *x = a, *y = b;
    return (x->name > y->name) - (x->name < y->name);
}

static int by_pace(const void *a, const void *b) {
    const struct pace *x = a, *y = b;
    int names = by_name(a, b);
    return names ? names : (x->each > y->each) - (x->each < y->each);
}

/* One pace for each name: half of its FLOPs are done at that or a better one.
 * On a machine with more to do than processors a mean would tell of the
 * waiting for one, which long calls meet and short ones do not. */
static void take_medians(struct paces *p) {
    size_t n = 0;
    if (p->n > 0) qsort(p->v, p->n, sizeof *p->v, by_pace);
    for (size_t i = 0, end; i < p->n; i = end) {
        double all = 0, sum = 0;
        for (end = i; end < p->n && p->v[end].name == p->v[i].name; end++)
            all += p->v[end].flops;
        size_t k = i;
        while (k + 1 < end && (sum += p->v[k].flops) * 2 < all) k++;
        p->v[n++] = p->v[k];
    }
    p->n = n;
}

/* Fills s->joined with FLOPs and p with the larger calls. */
static bool read_calls(const struct trace *t, struct hint_step *s,
                       struct paces *p) {
    for (size_t i = 0; i < s->d.line.n; i++) {
        int64_t flops = s->joined[i] = told(t, s, i);
        if (flops <= 0 || s->now.host[i] < HINT_LARGE_OP_US * PS_PER_US)
            continue;
        if (!VEC_ROOM(p->v, p->n, p->cap)) return false;
        p->v[p->n++] = (struct pace){
            .name = t->spans.name[s->d.line.v[i].row],
            .each = (double)s->now.host[i] / (double)flops,
            .flops = (double)flops};
    }
    return true;
}

/* ps that a small op of so many FLOPs would take as part of a larger one, or
 * -1: it is not small, or has no larger ones. */
static int64_t time_in_larger(const struct paces *p, str_id name,
                              int64_t flops, int64_t takes) {
    if (flops <= 0 || takes >= HINT_SMALL_OP_US * PS_PER_US || p->n == 0)
        return -1;
    const struct pace *at = bsearch(&(struct pace){.name = name}, p->v, p->n,
                                    sizeof *p->v, by_name);
    if (at == NULL) return -1;
    double time = (double)flops * at->each;
    return time < (double)takes ? (int64_t)time : takes;
}

int hint_small_read(const struct trace *t, struct hint_step *s,
                    struct ops_err *e) {
    struct paces p = {0};
    if (s->d.nworks > 0) return 0;
    s->joined = malloc((s->d.line.n + 1) * sizeof *s->joined);
    bool ok = s->joined != NULL && read_calls(t, s, &p);
    if (ok) take_medians(&p);
    for (size_t i = 0; ok && i < s->d.line.n; i++)
        if (s->joined[i] >= 0)
            s->joined[i] = time_in_larger(
                &p, t->spans.name[s->d.line.v[i].row], s->joined[i],
                s->now.host[i]);
    free(p.v);
    return ok ? 0 : fail_oom(e);
}

/* Is piece i + 1 nothing but the way from one small call to the next? */
static bool leads_on(const struct hint_case *c, const struct hint_step *s,
                     size_t i) {
    const struct piece *p = s->d.line.v;
    if (i + 2 >= s->d.line.n || s->joined[i + 2] < 0 || p[i + 1].input)
        return false;
    const struct spans *sp = &c->t->spans;
    bool op = p[i + 1].row != ROW_NONE && sp->kind[p[i + 1].row] == SPAN_OP &&
              sp->parent[p[i].row] != p[i + 1].row;
    return !op && sp->name[p[i].row] == sp->name[p[i + 2].row] &&
           s->trial.host[i + 1] < HINT_SMALL_OP_US * PS_PER_US;
}

static void repair(const struct hint_case *c, struct hint_step *s,
                   struct hint_found *f) {
    int64_t calls = 0;
    for (size_t i = 0; s->joined != NULL && i < s->d.line.n; i++)
        calls += s->joined[i] >= 0;
    if (calls < HINT_GRAPH_KERNELS) return;
    for (size_t i = 0; i < s->d.line.n; i++) {
        if (s->joined[i] < 0 || s->trial.host[i] <= s->joined[i]) continue;
        hint_saw(f, s->d.line.v[i].row, s->trial.host[i]);
        f->other += s->joined[i];
        s->trial.host[i] = s->joined[i];
        if (leads_on(c, s, i)) s->trial.host[i + 1] = 0;
    }
}

static void say(const struct hint_case *c, const struct hint_found *f,
                struct hint_words *w) {
    char all[48], each[48], rest[48];
    int64_t steps = (int64_t)c->nsteps;
    human_time(f->time / f->count, each, sizeof each);
    snprintf(w->title, sizeof w->title,
             "the work is cut into %lld small calls a step",
             (long long)(f->count / steps));
    snprintf(w->evidence, sizeof w->evidence,
             "%s a step in calls of %s each, as %.80s; at the rate of larger "
             "calls of the same name in these steps the same work takes %s",
             hint_time(c, f->time, all), each, hint_name(c, f->row),
             hint_time(c, f->other, rest));
    snprintf(w->repair, sizeof w->repair,
             "do more in each call: the whole batch at once in place of a "
             "sample, a row or a token at a time");
}

const struct hint_rule hint_small_ops = {
    .id = "launch-bound",
    .confidence = "simulated",
    .assumes = "joined, small calls do as much in a second as the larger ones "
               "of the same name",
    .see = "ops",
    .repair = repair,
    .say = say,
};
