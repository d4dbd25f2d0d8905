/* SPDX-License-Identifier: Apache-2.0
 * Lateness from matched collectives, and the one rank that everybody waits
 * for, if there is one. */
#include "analyze/comm/lateness.h"

#include "analyze/analyze.h"
#include "analyze/comm/collective.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

/* What makes a straggler, beside being late by more than the clocks' error.
 * Less than a twentieth of a step is within what steps differ by anyhow.
 * Two thirds of all lateness: twice what all others have together, since of
 * two equal ranks chance alone gives one a little over half. More than half
 * of the steps: one hiccup is none; but of fewer than three steps nothing can
 * be said on that. */
enum { STEP_PART = 20, ALL_NUM = 2, ALL_DEN = 3, FEW_STEPS = 3 };

/* One collective to which somebody came late. */
struct late {
    int64_t step; /* as the program counts */
    uint32_t member;
    int64_t start, end; /* on the member's clock */
};

struct lates {
    struct late *v;
    size_t n, cap;
};

static uint32_t source_at(const struct collectives *c, uint32_t member) {
    return c->members[member].source;
}

/* The last one's lateness to a match, on its own clock. */
static struct late late_of(const struct collectives *c,
                           const struct coll_match *m) {
    const struct coll *x = &c->v[m->last];
    const struct trace *t = c->t;
    uint32_t st = t->spans.step[x->row];
    int64_t off = c->clocks[source_at(c, x->member)].offset;
    return (struct late){.member = x->member,
                         .end = x->ts,
                         .step = st == ROW_NONE ? INT64_MIN
                                                : t->steps[st].number,
                         .start = diff_of(m->second, off)};
}

static bool take_late(struct lateness *l, const struct scope *scope,
                      struct lates *out) {
    const struct collectives *c = l->c;
    for (size_t i = 0; i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        if (!scope_has(scope, c->v[m->last].row)) continue;
        struct late x = late_of(c, m);
        if (x.end <= x.start) continue; /* all came at once */
        l->v[x.member].last++;
        if (!intervals_add(&l->v[x.member].late, x.start, x.end) ||
            !VEC_ROOM(out->v, out->n, out->cap))
            return false;
        out->v[out->n++] = x;
    }
    for (size_t i = 0; i < c->nmembers; i++) {
        intervals_union(&l->v[i].late);
        sum_add(&l->all, intervals_length(&l->v[i].late));
    }
    return true;
}

/* Each member's waiting as a union. */
static bool take_waits(struct lateness *l, const struct scope *scope) {
    const struct collectives *c = l->c;
    struct intervals *waits = calloc(c->nmembers + 1, sizeof *waits);
    bool ok = waits != NULL;
    for (size_t i = 0; ok && i < c->n; i++) {
        const struct coll *x = &c->v[i];
        if (x->match == ROW_NONE || !scope_has(scope, x->row)) continue;
        l->v[x->member].matched++;
        ok = intervals_add(&waits[x->member], x->ts, coll_wait_end(c, x));
    }
    for (size_t i = 0; waits && i < c->nmembers; i++) {
        intervals_union(&waits[i]);
        l->v[i].wait = intervals_length(&waits[i]);
        intervals_free(&waits[i]);
    }
    free(waits);
    return ok;
}

static int by_step(const void *a, const void *b) {
    const struct late *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* For each step the member that was late by most gets a point. */
static void judge_steps(struct lateness *l, struct lates *in) {
    if (in->n > 1) qsort(in->v, in->n, sizeof *in->v, by_step);
    for (size_t i = 0; i < in->n;) {
        int64_t step = in->v[i].step, most = 0;
        uint32_t who = ROW_NONE;
        while (i < in->n && in->v[i].step == step) {
            uint32_t m = in->v[i].member;
            int64_t sum = 0, until = INT64_MIN;
            for (; i < in->n && in->v[i].step == step && in->v[i].member == m;
                 i++) {
                int64_t from = in->v[i].start, end = in->v[i].end;
                if (from < until) from = until;
                if (end > from) sum_add(&sum, diff_of(end, from));
                if (end > until) until = end;
            }
            if (sum > most) most = sum, who = m;
        }
        if (who != ROW_NONE && step != INT64_MIN) l->v[who].worst_steps++;
    }
}

/* Steps and their time; members of one source share them. */
static bool count_steps(struct lateness *l, const struct scope *scope) {
    const struct trace *t = l->c->t;
    struct late_member *by_source = calloc(t->nsources + 1, sizeof *by_source);
    if (by_source == NULL) return false;
    for (size_t i = 0; i < t->nsteps; i++) {
        if (!scope->all && !scope->step_in[i]) continue;
        struct late_member *m = &by_source[t->steps[i].source];
        m->steps++;
        sum_add(&m->step_time, t->steps[i].dur);
    }
    for (size_t i = 0; i < l->c->nmembers; i++) {
        const struct late_member *m = &by_source[source_at(l->c, (uint32_t)i)];
        l->v[i].steps = m->steps;
        l->v[i].step_time = m->step_time;
    }
    free(by_source);
    return true;
}

/* By how much the clocks may be wrong where this member is held against the
 * others: the one whose clock is the common one has the others' error. */
static int64_t clock_error(const struct collectives *c, uint32_t member) {
    int64_t error = c->clocks[source_at(c, member)].error;
    for (size_t i = 0; error == 0 && i < c->nmembers; i++)
        error = c->clocks[source_at(c, (uint32_t)i)].error;
    return error;
}

static bool is_straggler(const struct lateness *l, uint32_t member) {
    const struct late_member *m = &l->v[member];
    int64_t late = intervals_length(&m->late);
    if (m->steps == 0 || late == 0) return false;
    if (late < m->step_time / STEP_PART) return false;
    if (late / ALL_NUM < l->all / ALL_DEN) return false;
    if (m->steps >= FEW_STEPS && 2 * m->worst_steps <= m->steps) return false;
    return late / m->steps > clock_error(l->c, member);
}

int lateness_init(struct lateness *l, const struct collectives *c,
                  const struct scope *scope, struct ops_err *e) {
    *l = (struct lateness){.c = c, .straggler = ROW_NONE};
    struct lates lates = {0};
    l->v = calloc(c->nmembers + 1, sizeof *l->v);
    bool ok = l->v && take_late(l, scope, &lates) && take_waits(l, scope) &&
              count_steps(l, scope);
    if (ok) judge_steps(l, &lates);
    for (uint32_t i = 0; ok && i < c->nmembers; i++) {
        l->v[i].straggler = is_straggler(l, i);
        if (l->v[i].straggler) l->straggler = i;
    }
    free(lates.v);
    if (ok) return 0;
    lateness_free(l);
    return fail_oom(e);
}

void lateness_free(struct lateness *l) {
    for (size_t i = 0; l->v && i < l->c->nmembers; i++)
        intervals_free(&l->v[i].late);
    free(l->v);
    *l = (struct lateness){0};
}

bool lateness_where(const struct lateness *l, const struct scope *scope,
                    uint32_t member, struct late_where *out) {
    const struct collectives *c = l->c;
    struct late_where *v = NULL;
    size_t n = 0, cap = 0;
    struct map names = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        const struct coll *x = &c->v[m->last];
        if (x->member != member || !scope_has(scope, x->row)) continue;
        uint32_t *at = map_at(&names, c->t->spans.name[x->row]);
        ok = at != NULL && (*at != MAP_NONE || VEC_ROOM(v, n, cap));
        if (!ok) break;
        if (*at == MAP_NONE) {
            v[n] = (struct late_where){.name = coll_name(c, x)};
            *at = (uint32_t)n++;
        }
        v[*at].calls++;
        sum_add(&v[*at].late, diff_of(m->latest, m->second));
    }
    *out = (struct late_where){0};
    for (size_t i = 0; ok && i < n; i++)
        if (v[i].late > out->late) *out = v[i];
    map_free(&names);
    free(v);
    return ok;
}
