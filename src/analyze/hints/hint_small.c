/* SPDX-License-Identifier: Apache-2.0
 * launch-bound on the CPU: the work is cut into so many calls that calling
 * takes longer than the work (a call for every sample or token in place of one
 * for all). A trace does not tell what a call costs by itself; but where the
 * program tells the FLOPs of its ops, larger calls of the same op in the same
 * steps show what it could do. Repaired, small calls run at that rate, one
 * right after the other. Without larger ones to compare with nothing is said.
 *
 * Which calls are small and which large is told by the median of all calls of
 * the same name and FLOPs. Their times are then taken as they are: where other
 * programs want the processors, too, both kinds are held up alike. */
#include "analyze/hints/hint.h"

#include "base/err.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/trace.h"
#include <stdio.h>
#include <stdlib.h>

/* An op that tells its FLOPs. */
struct call {
    str_id name;
    uint32_t step, piece; /* of the case, of the step's line */
    int64_t flops, takes; /* ps */
    int64_t median;       /* ps: what half of the calls of the same name and
                             FLOPs do not exceed */
};

struct calls {
    struct call *v;
    size_t n, cap;
};

static int by_kind(const void *a, const void *b) {
    const struct call *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    if (x->flops != y->flops) return x->flops < y->flops ? -1 : 1;
    return (x->takes > y->takes) - (x->takes < y->takes);
}

int hint_small_read(struct hint_case *k, struct ops_err *e) {
    const struct spans *sp = &k->t->spans;
    struct calls c = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < k->nsteps; i++) {
        struct hint_step *s = &k->steps[i];
        if (s->d.nworks > 0) continue;
        s->joined = malloc((s->d.line.n + 1) * sizeof *s->joined);
        ok = s->joined != NULL;
        for (uint32_t j = 0; ok && j < s->d.line.n; j++) {
            const struct piece *p = &s->d.line.v[j];
            s->joined[j] = -1;
            /* is the piece all of an op that tells its FLOPs? */
            if (p->row == ROW_NONE || p->input || sp->kind[p->row] != SPAN_OP ||
                !(sp->flags[p->row] & SPAN_COSTED) || p->dur < sp->dur[p->row])
                continue;
            int64_t flops = args_int(k->t, p->row, "flops", -1);
            if (flops <= 0) continue;
            ok = VEC_ROOM(c.v, c.n, c.cap);
            if (ok)
                c.v[c.n++] = (struct call){sp->name[p->row], i, j, flops,
                                           s->now.host[j],   0};
        }
    }
    if (ok && c.n > 0) qsort(c.v, c.n, sizeof *c.v, by_kind);
    for (size_t i = 0, end; ok && i < c.n; i = end) {
        for (end = i; end < c.n && c.v[end].name == c.v[i].name &&
                      c.v[end].flops == c.v[i].flops;)
            end++;
        for (size_t j = i; j < end; j++)
            c.v[j].median = c.v[i + (end - i - 1) / 2].takes;
    }
    for (size_t i = 0, end; ok && i < c.n; i = end) {
        double flops = 0, time = 0; /* in the large calls of one name */
        for (end = i; end < c.n && c.v[end].name == c.v[i].name; end++) {
            if (c.v[end].median < HINT_LARGE_OP_US * PS_PER_US) continue;
            flops += (double)c.v[end].flops;
            time += (double)c.v[end].takes;
        }
        for (size_t j = i; flops > 0 && time > 0 && j < end; j++) {
            const struct call *x = &c.v[j];
            if (x->median >= HINT_SMALL_OP_US * PS_PER_US) continue;
            double takes = (double)x->flops * (time / flops);
            bool faster = takes < (double)x->takes;
            k->steps[x->step].joined[x->piece] = faster ? (int64_t)takes
                                                        : x->takes;
        }
    }
    free(c.v);
    return ok ? 0 : fail_oom(e);
}

/* Is piece i + 1 only the way from one small call to the next? */
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

static void repair_small(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    int64_t calls = 0;
    for (size_t i = 0; s->joined != NULL && i < s->d.line.n; i++)
        calls += s->joined[i] >= 0;
    if (calls < HINT_GRAPH_KERNELS) return;
    for (size_t i = 0; i < s->d.line.n; i++) {
        if (s->joined[i] < 0 || s->trial.host[i] <= s->joined[i]) continue;
        hint_saw(f, s->d.line.v[i].row, s->trial.host[i]);
        sat_inc(&f->other, s->joined[i]);
        s->trial.host[i] = s->joined[i];
        if (leads_on(c, s, i)) s->trial.host[i + 1] = 0;
    }
}

static void say_small(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char all[48], each[48], rest[48];
    int64_t steps = (int64_t)c->nsteps;
    human_time(f->time / f->count, each, sizeof each);
    snprintf(w->title, sizeof w->title,
             "the work is cut into %lld small calls a step",
             (long long)(f->count / steps));
    snprintf(w->evidence, sizeof w->evidence,
             "%s a step in calls of %s each, as %.*s; at the rate of larger "
             "calls of the same name in these steps the same work takes %s",
             hint_time(c, f->time, all), each, CUT(80, hint_name(c, f->row)),
             hint_time(c, f->other, rest));
}

const struct hint_rule hint_small_ops = {
    .id = "launch-bound",
    .confidence = "simulated",
    .assumes = "joined, small calls do as much in a second as the larger ones "
               "of the same name",
    .see = "ops",
    .advice[FW_OTHER] =
        "do more in each call: the whole batch at once in place of a "
        "sample, a row or a token at a time",
    .repair = repair_small,
    .say = say_small,
};
