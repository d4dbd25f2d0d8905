/* SPDX-License-Identifier: Apache-2.0
 * Gaps: the device's work is taken by start, over all its streams; a gap is
 * where the next work begins after all before it have ended. Before the first
 * and after the last work lie gaps without end, which the steps cut. */
#include "analyze/steps/gaps.h"

#include "analyze/shared/kernel_args.h"
#include "analyze/shared/phases.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

/* One piece of device work. */
struct device_work {
    row_id row, launch; /* launch: or ROW_NONE */
};

struct device_works {
    const struct trace *t;
    struct device_work *v;
    size_t n, cap;
};

void gaps_free(struct gaps *g) {
    free(g->v);
    *g = (struct gaps){0};
}

/* Takes the work of a device, row by row, with the links. Work that takes no
 * time ends no gap. */
static bool take_work(struct device_works *p, uint32_t device) {
    const struct trace *t = p->t;
    const struct lists *of = &t->of_device;
    for (size_t k = of->first[device]; k < of->first[device + 1]; k++) {
        const struct track *tr = &t->tracks[of->v[k]];
        if (tr->kind != TRACK_STREAM) continue;
        size_t l = trace_link_at(t, tr->first);
        for (row_id r = tr->first; r < tr->end; r++) {
            if (!span_is_device_work(t, r) || t->spans.dur[r] == 0) continue;
            while (l < t->links.n && t->links.device[l] < r) l++;
            bool linked = l < t->links.n && t->links.device[l] == r;
            if (!VEC_ROOM(p->v, p->n, p->cap)) return false;
            p->v[p->n++] = (struct device_work){r, linked ? t->links.host[l]
                                                          : ROW_NONE};
        }
    }
    return true;
}

static bool push_gap(struct gaps *g, struct gap gap) {
    if (!VEC_ROOM(g->v, g->n, g->cap)) return false;
    g->v[g->n++] = gap;
    return true;
}

/* Finds all gaps, whatever the steps are. */
static bool sweep_work(const struct device_works *p, struct gaps *all) {
    const int64_t *ts = p->t->spans.ts;
    struct sort_key *k = malloc((p->n + 1) * sizeof *k);
    if (k == NULL) return false;
    /* by start, then by launch: streams have no order of their own */
    for (size_t i = 0; i < p->n; i++) {
        row_id l = p->v[i].launch;
        k[i] = (struct sort_key){sort_signed(ts[p->v[i].row]),
                                 l == ROW_NONE ? UINT64_MAX
                                               : sort_signed(ts[l]),
                                 (uint32_t)i};
    }
    struct gap open = {INT64_MIN, INT64_MAX, ROW_NONE, ROW_NONE, ROW_NONE, 0};
    bool ok = sort_keys(k, p->n);
    for (size_t i = 0; ok && i < p->n; i++) {
        struct device_work w = p->v[k[i].row];
        int64_t start = ts[w.row], end = span_end(p->t, w.row);
        if (start > open.start) {
            open.end = start;
            open.after = w.row;
            open.launch = w.launch;
            ok = push_gap(all, open);
        }
        if (end > open.start) {
            open.start = end;
            open.before = w.row;
        }
    }
    open.end = INT64_MAX;
    open.after = open.launch = ROW_NONE;
    ok = ok && push_gap(all, open);
    free(k);
    return ok;
}

int gaps_find(struct gaps *g, const struct trace *t, const struct phase_view *v,
              const bool *step_in, struct ops_err *e) {
    assert(v->device != ROW_NONE);
    *g = (struct gaps){0};
    struct device_works p = {.t = t};
    struct gaps all = {0};
    bool ok = take_work(&p, v->device) && sweep_work(&p, &all);
    const struct source *s = &t->sources[v->source];
    for (size_t i = s->step_first; ok && i < s->step_end; i++) {
        if (step_in && !step_in[i]) continue;
        const struct step *st = &t->steps[i];
        int64_t end = st->ts + st->dur;
        size_t k; /* the first gap that ends after the step's start */
        BOUND(k, 0, all.n, all.v[k].end <= st->ts);
        for (; ok && k < all.n && all.v[k].start < end; k++) {
            struct gap part = all.v[k]; /* what of it lies in the step */
            if (part.start < st->ts) part.start = st->ts;
            if (part.end > end) part.end = end;
            part.step = (uint32_t)i;
            if (part.start < part.end) ok = push_gap(g, part);
        }
    }
    free(p.v);
    gaps_free(&all);
    if (ok) return 0;
    gaps_free(g);
    return fail_oom(e);
}

/* ---- causes ----
 *
 * Why a device was idle. Each cause gets the part of the gap that it fills;
 * the largest part takes the whole gap, so that a gap has one cause. The parts:
 *
 *     gap begins              call begins    call ends      work starts
 *     |---- what the host did ----|--- launch ---|--- launch ---|
 *       collective, input, waiting
 *       for the device, other calls,
 *       else ops and Python
 *
 * The surprise: a gap that begins while the host is blocked in a wait is
 * held against the whole wait, not only its part in the gap. Without it the
 * next launch would come earlier by all of the op that waited, and by the way
 * back from there to the next op. */

/* A device passes from one piece of work to the next in 1 to 10 us; work that
 * is ready and waits longer waits for something. HTA draws this line, too. */
#define PASS_US 30

/* The way back from a wait is Python between two ops, 40 to 150 us under a
 * profiler. Python that takes longer than this does something of its own. */
#define WAY_BACK_US 1000

/* What a host thread did, as far as it matters for gaps. */
struct gap_thread {
    struct intervals sync;    /* it waited for the device */
    struct intervals api;     /* any driver call */
    struct intervals ops;     /* an op that is no collective */
    struct intervals present; /* any span but step markers */
    row_id *waits;            /* calls that may wait, by start */
    size_t nwaits, cap_waits;
};

const char *idle_cause_name(enum idle_cause c) {
    static const char *const names[IDLE_CAUSES] = {
        "input",     "host",      "launch", "sync",
        "comm-wait", "copy-wait", "start",  "unknown",
    };
    assert(c < IDLE_CAUSES);
    return names[c];
}

/* Takes a driver call; XLA puts spans of its own around those that wait. */
static bool take_call(const struct trace *t, row_id r, struct gap_thread *th) {
    uint8_t kind = t->spans.kind[r];
    if (kind != SPAN_API && kind != SPAN_RUNTIME) return true;
    int64_t a = t->spans.ts[r], b = span_end(t, r);
    uint16_t class = span_class(t, r);
    if (kind == SPAN_RUNTIME && !(class & CLASS_SYNC)) return true;
    if (!intervals_extend(&th->api, a, b)) return false;
    if ((class & CLASS_SYNC) && !intervals_extend(&th->sync, a, b))
        return false;
    if (!(class & (CLASS_SYNC | CLASS_COPY))) return true;
    if (!VEC_ROOM(th->waits, th->nwaits, th->cap_waits)) return false;
    th->waits[th->nwaits++] = r;
    return true;
}

static bool take_thread(const struct trace *t, const struct track *tr,
                        struct gap_thread *th) {
    const struct spans *s = &t->spans;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (s->dur[r] == 0 || (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) ||
            span_is_step_mark(t, r))
            continue;
        if (!intervals_extend(&th->present, s->ts[r], span_end(t, r)) ||
            !take_call(t, r, th) ||
            (s->kind[r] == SPAN_OP && !span_is_comm(t, r) &&
             !intervals_extend(&th->ops, s->ts[r], span_end(t, r))))
            return false;
    }
    struct intervals *const sets[] = {&th->sync, &th->api, &th->ops,
                                      &th->present};
    for (size_t i = 0; i < COUNT(sets); i++) {
        intervals_union(sets[i]);
        intervals_trim(sets[i]); /* there may be as many threads as events */
    }
    return true;
}

int gap_host_init(struct gap_host *h, const struct trace *t,
                  struct ops_err *e) {
    *h = (struct gap_host){.t = t};
    h->threads = calloc(t->ntracks + 1, sizeof *h->threads);
    bool ok = h->threads != NULL;
    for (size_t i = 0; ok && i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_THREAD)
            ok = take_thread(t, &t->tracks[i], &h->threads[i]);
    if (ok) return 0;
    gap_host_free(h);
    return fail_oom(e);
}

void gap_host_free(struct gap_host *h) {
    for (size_t i = 0; h->threads && i < h->t->ntracks; i++) {
        intervals_free(&h->threads[i].sync);
        intervals_free(&h->threads[i].api);
        intervals_free(&h->threads[i].ops);
        intervals_free(&h->threads[i].present);
        free(h->threads[i].waits);
    }
    free(h->threads);
    *h = (struct gap_host){0};
}

/* A gap that is being shared out among the causes. */
struct gap_parts {
    const struct gap_host *h;
    const struct phase_view *v;
    const struct gap *gap;
    uint32_t step_thread, thread; /* tracks, or ROW_NONE; thread: launched */
    int64_t ps[IDLE_CAUSES];      /* what each cause fills of it */
    int64_t silent; /* ps of the host's part in which nothing was recorded */
};

static const struct gap_thread *thread_of(const struct gap_parts *g,
                                          uint32_t tr) {
    static const struct gap_thread none = {0};
    return tr == ROW_NONE ? &none : &g->h->threads[tr];
}

static int64_t at_most(int64_t v, int64_t most) { return v < most ? v : most; }

/* Returns the time in [a, b) in which a CPU collective kept the thread waiting:
 * one that runs beside the thread's ops does not. */
static int64_t comm_beside(const struct gap_parts *g,
                           const struct gap_thread *th, int64_t a, int64_t b) {
    int64_t comm = phases_host(g->v, a, b).comm;
    return comm == 0 ? 0
                     : at_most(comm, b - a - intervals_overlap(&th->ops, a, b));
}

/* Shares out what the host did in [a, b). Until the launching thread shows up,
 * the device waits for the step's thread (backward runs on a thread of its own,
 * which forward feeds). */
static void weigh_host(struct gap_parts *g, int64_t a, int64_t b) {
    struct phase_host did = phases_host(g->v, a, b);
    const struct gap_thread *first = thread_of(g, g->step_thread);
    const struct gap_thread *then = thread_of(g, g->thread);
    int64_t turn = b;
    if (first != then) {
        const struct intervals *s = &then->present;
        size_t i;
        BOUND(i, 0, s->n, s->v[i].end <= a);
        if (i < s->n) turn = at_most(s->v[i].start > a ? s->v[i].start : a, b);
    }
    int64_t comm = did.comm == 0 ? 0 /* as it is nearly always */
                                 : comm_beside(g, first, a, turn) +
                                       comm_beside(g, then, turn, b);
    int64_t rest = b - a - comm - did.input;
    assert(comm <= did.comm && rest >= 0);
    int64_t sync = at_most(intervals_overlap(&first->sync, a, turn) +
                               intervals_overlap(&then->sync, turn, b),
                           rest);
    int64_t api = at_most(intervals_overlap(&first->api, a, turn) +
                              intervals_overlap(&then->api, turn, b),
                          rest);
    g->ps[IDLE_COMM] += comm;
    g->ps[IDLE_INPUT] += did.input;
    g->ps[IDLE_SYNC] += sync;
    g->ps[IDLE_LAUNCH] += api - sync;
    g->ps[IDLE_HOST] += rest - api;
    g->silent += b - a - did.known;
}

/* Shares out [a, end of the gap), in which the work was launched or is just
 * being launched. A long wait is not for work of another stream, since none
 * runs: the device serves another program, or an event that was not recorded
 * holds it up. */
static void weigh_device(struct gap_parts *g, int64_t a) {
    const struct trace *t = g->h->t;
    int64_t b = g->gap->end, called = span_end(t, g->gap->launch);
    row_id after = g->gap->after;
    if (a >= b) return;
    /* does the driver first copy the data itself, in small pieces? */
    if (after != ROW_NONE && t->spans.kind[after] == SPAN_COPY &&
        copy_args_of(t, after).pageable == 1) {
        g->ps[IDLE_COPY] += b - a;
        return;
    }
    if (called < a) called = a;
    if (called > b || b - called <= PASS_US * PS_PER_US) called = b;
    int64_t comm = phases_host(g->v, called, b).comm;
    g->ps[IDLE_LAUNCH] += called - a;
    g->ps[IDLE_COMM] += comm;
    g->ps[IDLE_UNKNOWN] += b - called - comm;
}

/* Returns the last call of the thread that may wait and began by ts, if it
 * still runs then; else ROW_NONE. */
static row_id wait_at(const struct gap_parts *g, uint32_t track, int64_t ts) {
    const struct trace *t = g->h->t;
    const struct gap_thread *th = thread_of(g, track);
    size_t i;
    BOUND(i, 0, th->nwaits, t->spans.ts[th->waits[i]] <= ts);
    if (i == 0 || span_end(t, th->waits[i - 1]) < ts) return ROW_NONE;
    return th->waits[i - 1];
}

/* Returns what a wait is: one for the copy that has just ended, if that brought
 * data to the device; else one for results. A copy call that runs at that time
 * waits only if it is this copy's. IDLE_UNKNOWN if it does not wait. */
static enum idle_cause wait_kind(const struct gap_parts *g, row_id call) {
    const struct trace *t = g->h->t;
    row_id before = g->gap->before;
    bool copy = before != ROW_NONE && t->spans.kind[before] == SPAN_COPY;
    bool waits = span_class(t, call) & CLASS_SYNC;
    if (!waits && !(copy && trace_launch_of(t, before) == call))
        return IDLE_UNKNOWN;
    if (!copy) return IDLE_SYNC;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[before]);
    enum copy_kind kind = copy_args_from(name, (struct bytes){0}).kind;
    return kind == COPY_D2H ? IDLE_SYNC : IDLE_COPY;
}

/* Returns how much earlier the next launch would come without that wait. */
static int64_t cost_of_wait(const struct trace *t, row_id call) {
    enum { CLIMB = 64 }; /* real ops nest less deep */
    row_id op = call;    /* the outermost op around the call, or the call */
    row_id r = t->spans.parent[call];
    for (int i = 0; i < CLIMB && r != ROW_NONE; i++, r = t->spans.parent[r])
        if (t->spans.kind[r] == SPAN_OP) op = r;
    int64_t end = span_end(t, op);
    const struct track *tr = &t->tracks[t->spans.track[op]];
    row_id next = trace_row_at(t, tr, end);
    int64_t back = next < tr->end ? t->spans.ts[next] - end : INT64_MAX;
    if (back > WAY_BACK_US * PS_PER_US) back = 0;
    return t->spans.dur[op] + back;
}

/* Gives what a wait cost, if the gap began in one, to that wait; it is taken
 * off the host's part first. */
static void weigh_wait(struct gap_parts *g) {
    row_id call = wait_at(g, g->thread, g->gap->start);
    if (call == ROW_NONE) call = wait_at(g, g->step_thread, g->gap->start);
    if (call == ROW_NONE) return;
    enum idle_cause kind = wait_kind(g, call);
    if (kind == IDLE_UNKNOWN) return;
    int64_t cost = cost_of_wait(g->h->t, call) - g->ps[IDLE_SYNC];
    int64_t host = at_most(cost < 0 ? 0 : cost, g->ps[IDLE_HOST]);
    int64_t launch = at_most(cost < host ? 0 : cost - host, g->ps[IDLE_LAUNCH]);
    int64_t waited = g->ps[IDLE_SYNC];
    g->ps[IDLE_HOST] -= host;
    g->ps[IDLE_LAUNCH] -= launch;
    g->ps[IDLE_SYNC] = 0;
    g->ps[kind] += waited + host + launch;
}

/* Shares out a gap without a launch to go by: what the host did meanwhile
 * counts, if the gap is more than the device's own pause, and only as far as it
 * was recorded. */
static void weigh_unlinked(struct gap_parts *g) {
    const struct gap *gap = g->gap;
    const struct step *st = &g->h->t->steps[gap->step];
    int64_t length = gap->end - gap->start;
    if (gap->after != ROW_NONE && length <= PASS_US * PS_PER_US) {
        g->ps[IDLE_UNKNOWN] = length;
        return;
    }
    weigh_host(g, gap->start, gap->end);
    /* After the last work of all, and in the marker of the step, the program
     * runs, perhaps in Python that nobody recorded. */
    if (gap->after == ROW_NONE && g->step_thread != ROW_NONE &&
        st->marker != ROW_NONE && gap->start >= st->marker_ts &&
        gap->end <= sat_add(st->marker_ts, st->marker_dur))
        return;
    int64_t silent = at_most(g->silent, g->ps[IDLE_HOST]);
    g->ps[IDLE_UNKNOWN] += silent;
    g->ps[IDLE_HOST] -= silent;
}

enum idle_cause gap_cause(const struct gap_host *h, const struct phase_view *v,
                          const struct gap *gap) {
    const struct trace *t = h->t;
    const struct step *st = &t->steps[gap->step];
    assert(gap->start < gap->end && v->device != ROW_NONE);
    struct gap_parts g = {.h = h,
                          .v = v,
                          .gap = gap,
                          .step_thread = st->thread,
                          .thread = st->thread};
    if (gap->launch != ROW_NONE) g.thread = t->spans.track[gap->launch];
    if (g.step_thread == ROW_NONE) g.step_thread = g.thread;
    if (gap->launch == ROW_NONE) {
        weigh_unlinked(&g);
    } else if (t->spans.ts[gap->launch] < gap->start) {
        weigh_device(&g, gap->start);
    } else { /* the host came late */
        int64_t until = at_most(t->spans.ts[gap->launch], gap->end);
        weigh_host(&g, gap->start, until);
        weigh_device(&g, until);
        weigh_wait(&g);
    }
    /* the largest part wins; of equals the first in the order of the enum */
    enum idle_cause cause = IDLE_INPUT;
    for (int i = 1; i < IDLE_CAUSES; i++)
        if (g.ps[i] > g.ps[cause]) cause = (enum idle_cause)i;
    bool head = gap->start == st->ts;
    if (head && (cause == IDLE_UNKNOWN ||
                 (cause == IDLE_HOST && g.silent > g.ps[IDLE_HOST] / 2)))
        cause = IDLE_START;
    return cause;
}
