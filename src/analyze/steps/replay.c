/* SPDX-License-Identifier: Apache-2.0
 * One pass over the line: the host's clock goes on piece by piece, device work
 * starts when it is launched, its stream is free and what it waited for is
 * done, and calls that wait move the host's clock to the device's.
 *
 * Recording costs are taken off where they arose: half an event's cost at each
 * begin and end of a span. A piece that is shorter than its cost passes the
 * rest on to the next, up to the next call that waits, which would only have
 * waited longer. The work of ops inside of which nothing was recorded stays. */
#include "analyze/steps/replay.h"

#include "base/err.h"
#include "base/sum.h"
#include "model/trace.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A driver queues about this many launches; the next call then waits. */
    QUEUE_MAX = 1024,
    /* What stays of a piece however dear its recording was: 1/16. */
    KEEP_SHARE = 16,
    /* Work on one stream does not follow without a gap: 1.2 us between the
     * kernels of device-bound programs (H200; 1.0 to 1.7). */
    GAP_NS = 1200,
    /* Those of a graph follow at once, but for what recording each of them
     * costs the device: two programs on an H200 took 0.8 and 1.1 us a kernel
     * longer under a profiler. */
    GRAPH_GAP_NS = 300,
    GRAPH_COST_NS = 700,
    /* Times the median that a launching call may take by itself. */
    LONG_CALL = 8,
};

static int plan_alloc(struct plan *p, const struct deps *d, struct ops_err *e) {
    size_t n = d->line.n + 1, w = d->nworks + 1;
    *p = (struct plan){.d = d};
    p->host = malloc(n * sizeof *p->host);
    p->go = calloc(n, sizeof *p->go);
    p->work = malloc(w * sizeof *p->work);
    p->ahead = calloc(w, sizeof *p->ahead);
    if (p->host && p->go && p->work && p->ahead) return 0;
    plan_free(p);
    return fail_oom(e);
}

void plan_free(struct plan *p) {
    free(p->host);
    free(p->go);
    free(p->work);
    free(p->ahead);
    *p = (struct plan){0};
}

/* Returns what the piece takes by itself. The profiler's own work is not the
 * program's, and a launch that waited for room in the device's queue ("Command
 * Buffer Full", or far longer than others) waits in the replay, if at all. */
static int64_t own_time(const struct deps *d, const struct trace *t, size_t i) {
    const struct piece *q = &d->line.v[i];
    if (d->stops[i].wait != DEP_NONE) return d->stops[i].tail;
    if (q->row != ROW_NONE && t->spans.kind[q->row] == SPAN_OVERHEAD) return 0;
    if (q->dur / LONG_CALL > d->call && deps_launches(d, t, i)) return d->call;
    return q->dur;
}

/* Is the piece all of an op, which calls nothing that was recorded? */
static bool is_whole_op(const struct trace *t, const struct piece *q) {
    return q->row != ROW_NONE && t->spans.kind[q->row] == SPAN_OP &&
           q->dur >= t->spans.dur[q->row];
}

static bool is_call(const struct trace *t, const struct piece *q) {
    return q->row != ROW_NONE && t->spans.kind[q->row] == SPAN_API;
}

void plan_as_bare(struct plan *p, const struct trace *t, double times) {
    const struct deps *d = p->d;
    int64_t debt = 0; /* recording costs still to be taken off */
    for (size_t i = 0; i < d->line.n; i++) {
        const struct piece *q = &d->line.v[i];
        int64_t dur = own_time(d, t, i);
        int64_t here = (int64_t)((double)q->cost * times);
        /* half of a driver call is its own, however long it takes */
        if (is_call(t, q) && here > dur / 2) here = dur / 2;
        if (d->stops[i].wait != DEP_NONE) debt = 0;
        debt = sat_add(debt, here);
        int64_t most = dur - dur / KEEP_SHARE;
        /* An op's own work stays: its recorder works before it and after. */
        if (is_whole_op(t, q) && most > here) most = here;
        int64_t off = debt < most ? debt : most;
        debt -= off;
        p->host[i] = dur - off;
    }
    for (size_t i = 0; i < d->nworks; i++) p->work[i] = d->works[i].dur;
    double cost = times < 1 ? times * GRAPH_COST_NS : GRAPH_COST_NS;
    p->gap = (GRAPH_GAP_NS + GRAPH_COST_NS - (int64_t)cost) * PS_PER_NS;
}

void plan_as_traced(struct plan *p) {
    const struct deps *d = p->d;
    for (size_t i = 0; i < d->line.n; i++)
        p->host[i] = d->stops[i].wait != DEP_NONE ? d->stops[i].tail
                                                  : d->line.v[i].dur;
    for (size_t i = 0; i < d->nworks; i++) p->work[i] = d->works[i].dur;
    p->gap = (GRAPH_GAP_NS + GRAPH_COST_NS) * PS_PER_NS;
}

int plan_init(struct plan *p, const struct deps *d, const struct trace *t,
              double times, struct ops_err *e) {
    TRY(plan_alloc(p, d, e));
    plan_as_bare(p, t, times);
    return 0;
}

int plan_copy(struct plan *to, const struct plan *from, struct ops_err *e) {
    TRY(plan_alloc(to, from->d, e));
    plan_assign(to, from);
    return 0;
}

void plan_assign(struct plan *to, const struct plan *from) {
    const struct deps *d = from->d;
    assert(to->d == d);
    memcpy(to->host, from->host, d->line.n * sizeof *to->host);
    memcpy(to->go, from->go, d->line.n * sizeof *to->go);
    memcpy(to->work, from->work, d->nworks * sizeof *to->work);
    memcpy(to->ahead, from->ahead, d->nworks * sizeof *to->ahead);
    to->gap = from->gap;
    to->stall = from->stall;
}

/* The state of a run. */
struct replay_run {
    const struct plan *p;
    int64_t *ends;  /* by work */
    int64_t *lanes; /* when each lane's work so far ends; 0: none came */
    int64_t now, last;
    int64_t ahead; /* work that is done beside the step, in sum */
};

static void run_work(struct replay_run *r, uint32_t i) {
    const struct work *w = &r->p->d->works[i];
    int64_t dur = r->p->work[i];
    /* a wait for work that is not run here is one for the work before it */
    r->ends[i] = r->lanes[w->lane];
    if (dur == WORK_GONE) return;
    if (r->p->ahead[i]) {
        sat_inc(&r->ahead, dur);
        return;
    }
    int64_t gap = w->in_graph ? r->p->gap : GAP_NS * PS_PER_NS;
    int64_t start = r->now, before = r->lanes[w->lane];
    if (before > 0 && sat_add(before, gap) > start)
        start = sat_add(before, gap);
    if (w->after != DEP_NONE && r->ends[w->after] > start)
        start = r->ends[w->after];
    r->ends[i] = sat_add(start, dur);
    r->lanes[w->lane] = r->ends[i];
    if (r->ends[i] > r->last) r->last = r->ends[i];
}

/* Returns what kernels need at least: they may not run at the same time more
 * than they did, for nobody knows which of them could. */
static int64_t least_time(const struct plan *p) {
    const struct deps *d = p->d;
    int64_t now = 0;
    if (d->busy >= d->kernels || d->kernels <= 0) return 0;
    for (size_t i = 0; i < d->nworks; i++)
        if (d->works[i].kernel && p->work[i] != WORK_GONE && !p->ahead[i])
            sat_inc(&now, p->work[i]);
    return (int64_t)((double)d->busy / (double)d->kernels * (double)now);
}

int64_t replay(const struct plan *p) {
    const struct deps *d = p->d;
    struct replay_run r = {.p = p};
    r.ends = malloc((d->nworks + 1) * sizeof *r.ends);
    r.lanes = calloc(d->nlanes + 1, sizeof *r.lanes);
    bool ok = r.ends != NULL && r.lanes != NULL;
    for (size_t i = 0; ok && i < d->line.n; i++) {
        const struct stop *s = &d->stops[i];
        if (s->wait == DEP_NONE) sat_inc(&r.now, p->host[i]);
        for (uint32_t w = s->first; w < s->end; w++) {
            /* in a full queue the launch waits until the device has caught
             * up */
            if (w >= QUEUE_MAX && r.ends[w - QUEUE_MAX] > r.now)
                r.now = r.ends[w - QUEUE_MAX];
            run_work(&r, w);
        }
        if (s->wait == DEP_NONE) continue;
        if (!p->go[i] && r.ends[s->wait] > r.now) r.now = r.ends[s->wait];
        sat_inc(&r.now, p->host[i]);
    }
    int64_t dur = r.now > r.last ? r.now : r.last;
    if (r.ahead > dur) dur = r.ahead;
    int64_t least = ok ? least_time(p) : 0;
    if (least > dur) dur = least;
    free(r.ends);
    free(r.lanes);
    return ok ? sat_add(dur, p->stall) : -1;
}
