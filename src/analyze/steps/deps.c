/* SPDX-License-Identifier: Apache-2.0
 * A trace mostly does not say what waited for what; it shows it. Work that
 * starts later than its launch and its stream allow, just when work of another
 * stream ends, waited for that other work. A call that waits for the device
 * waited for the work that ended last before the call did. Where the profiler
 * recorded waits (sync_waits.h), these are taken instead. */
#include "analyze/steps/deps.h"

#include "analyze/shared/intervals.h"
#include "analyze/steps/sync_waits.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

enum {
    /* Work that follows another within this time was waiting for it: back to
     * back kernels are 1 to 2 us apart. */
    FOLLOW_NS = 3000,
    /* A launch takes this long to reach an idle device: none of 3,500
     * kernels measured came sooner than 4 us after its call began. */
    LATENCY_NS = 4000,
    /* Clocks of host and device are fitted: a call may seem to end before the
     * work that it waited for. */
    CLOCK_NS = 2000,
    /* Quarters of the steps whose lengths differ by this factor are of two
     * kinds, not one kind disturbed. */
    MIXED = 2,
    MIXED_STEPS = 8, /* fewer do not tell the two apart */
    /* Works looked at for the one that was waited for: in the few us that
     * matter a handful ends; a made-up file must not cost n times n. */
    LOOK_MAX = 256,
};

void deps_free(struct deps *d) {
    timeline_free(&d->line);
    free(d->stops);
    free(d->works);
    *d = (struct deps){0};
}

/* Returns when the instances before that of a view have ended: time in which
 * several run is of the one that began first (region.c). O(steps). */
static int64_t ended_before(const struct trace *t, uint32_t step) {
    uint32_t source = t->steps[step].source;
    int64_t until = INT64_MIN;
    for (size_t i = t->sources[source].step_first; i < step; i++) {
        const struct step *s = &t->steps[i];
        if (s->marker_ts + s->marker_dur > until)
            until = s->marker_ts + s->marker_dur;
    }
    return until;
}

/* Finds the host side of a step: from its marker to the next one's start. */
static void host_side_of(const struct trace *t, uint32_t step, int64_t *ts,
                         int64_t *end) {
    const struct step *s = &t->steps[step];
    *ts = s->marker_ts;
    *end = s->marker_ts + s->marker_dur;
    if (s->marker == ROW_NONE && s->marker_dur == 0) {
        *ts = s->ts;
        *end = s->ts + s->dur;
    }
    const struct step *next = step + 1 < t->nsteps ? s + 1 : NULL;
    enum step_rule rule = t->sources[s->source].step_rule;
    /* what comes after a region is not of it */
    if (next && next->source == s->source && next->marker_ts >= *end &&
        rule != STEPS_BY_REGION)
        *end = next->marker_ts;
    else if (rule == STEPS_INFERRED || rule == STEPS_BY_GROUP)
        *end = s->ts + s->dur; /* its region is a part of the loop's body */
    /* past the step's own end lies another step, or time that nobody counts */
    if (*end > s->ts + s->dur) *end = s->ts + s->dur;
    int64_t other = t->base != NULL ? ended_before(t, step) : INT64_MIN;
    if (*ts < other) *ts = other;
    if (*end < *ts) *end = *ts;
}

/* Adds device work to the graph, if the row is any. A loop of a TPU is not:
 * the ops in it are. */
static bool add_device_work(struct deps *d, const struct trace *t, row_id row,
                            row_id call) {
    if (!span_is_device_work(t, row)) return true;
    if (row + 1 < t->spans.n && t->spans.parent[row + 1] == row) return true;
    if (!VEC_ROOM(d->works, d->nworks, d->cap_works)) return false;
    d->works[d->nworks++] = (struct work){.row = row,
                                          .ts = t->spans.ts[row],
                                          .dur = t->spans.dur[row],
                                          .call = call,
                                          .kernel = t->spans.kind[row] ==
                                                    SPAN_KERNEL,
                                          .prev = DEP_NONE,
                                          .after = DEP_NONE};
    return true;
}

/* Takes the device work that the host side launched. */
static bool take_works(struct deps *d, const struct host_side *h, int64_t ts,
                       int64_t end) {
    const struct trace *t = h->t;
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[h->source]; k < l->first[h->source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        row_id r = trace_row_at(t, tr, ts), end_row = trace_row_at(t, tr, end);
        bool ok = true;
        bool device = trace_device_steps(t, h->source);
        if (tr->kind == TRACK_THREAD && r < end_row && !device) {
            const struct links *of = &t->links;
            size_t i;
            trace_links_from(t, r, &i);
            for (; ok && i < of->n && of->host[of->by_host[i]] < end_row; i++)
                ok = add_device_work(d, t, of->device[of->by_host[i]],
                                     of->host[of->by_host[i]]);
        } else if (tr->kind == TRACK_STREAM && h->own == ROW_NONE) {
            /* in a profile of the device alone, work is launched as it
             * starts */
            for (; ok && r < end_row; r++)
                ok = add_device_work(d, t, r, ROW_NONE);
        }
        if (!ok) return false;
    }
    return true;
}

int64_t work_launched(const struct trace *t, const struct work *w) {
    return w->call == ROW_NONE ? w->ts : t->spans.ts[w->call];
}

/* Compares by launch; the kernels of one graph launch by their start. */
static int by_launch(const void *a, const void *b, void *ctx) {
    const struct work *x = a, *y = b;
    int64_t p = work_launched(ctx, x), q = work_launched(ctx, y);
    if (p != q) return p < q ? -1 : 1;
    if (x->ts != y->ts) return x->ts < y->ts ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Finds the lanes, and the work before each work on its lane. */
static bool join_lanes(struct deps *d, const struct trace *t) {
    struct map lane = {0}; /* track -> lane */
    uint32_t *last = malloc((d->nworks + 1) * sizeof *last);
    bool ok = last != NULL;
    for (size_t i = 0; ok && i < d->nworks; i++) {
        struct work *w = &d->works[i];
        uint32_t *l = map_at(&lane, t->spans.track[w->row]);
        ok = l != NULL;
        if (!ok) break;
        if (*l == MAP_NONE) {
            *l = d->nlanes++;
            last[*l] = DEP_NONE;
        }
        w->lane = *l;
        w->prev = last[*l];
        w->in_graph = w->prev != DEP_NONE && w->call != ROW_NONE &&
                      d->works[w->prev].call == w->call &&
                      (span_class(t, w->call) & CLASS_GRAPH);
        last[*l] = (uint32_t)i;
    }
    map_free(&lane);
    free(last);
    return ok;
}

/* Works in the order of their ends, for "what ended last before ...". */
struct ends {
    uint32_t *v;
    const struct deps *d;
};

static int by_end(const void *a, const void *b, void *ctx) {
    const struct deps *d = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int64_t x = work_end(&d->works[i]), y = work_end(&d->works[j]);
    if (x != y) return x < y ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Returns how many works end at or before ts. */
static size_t ended_by(const struct ends *s, int64_t ts) {
    size_t i;
    BOUND(i, 0, s->d->nworks, work_end(&s->d->works[s->v[i]]) <= ts);
    return i;
}

/* Returns the work of another lane that ended just before w began, if w could
 * have begun sooner; else DEP_NONE. */
static uint32_t waited_for(const struct trace *t, const struct ends *s,
                           size_t i) {
    const struct work *w = &s->d->works[i];
    int64_t ready = work_launched(t, w) + LATENCY_NS * PS_PER_NS;
    if (w->prev != DEP_NONE) {
        int64_t end = work_end(&s->d->works[w->prev]);
        if (end > ready) ready = end;
    }
    const int64_t follow = FOLLOW_NS * PS_PER_NS;
    if (w->ts - ready <= follow) return DEP_NONE;
    size_t k = ended_by(s, w->ts);
    for (int looked = 0; k-- > 0 && looked < LOOK_MAX; looked++) {
        const struct work *o = &s->d->works[s->v[k]];
        if (w->ts - work_end(o) > follow) break;
        if (o->lane != w->lane && s->v[k] < i) return s->v[k];
    }
    return DEP_NONE;
}

/* Does the call return only when the device is done? A plain copy tells by its
 * length: most of the copy ran inside the call (pageable memory is passed on
 * piece by piece; the last piece may still be under way at the end). */
static bool call_waits(const struct trace *t, row_id call) {
    uint16_t class = span_class(t, call);
    if (class & CLASS_SYNC) return true;
    if (!(class & CLASS_COPY)) return false;
    size_t i, end = trace_links_from(t, call, &i);
    for (; i < end; i++) {
        row_id row = t->links.device[t->links.by_host[i]];
        int64_t within = span_end(t, call) - t->spans.ts[row];
        if (t->spans.kind[row] == SPAN_COPY && within > t->spans.dur[row] / 2)
            return true;
    }
    return false;
}

/* Sets what a call waits for, and what it did after that. */
static void wait_for(struct stop *stop, const struct deps *d, uint32_t work,
                     const struct piece *p) {
    stop->wait = work;
    stop->tail = 0;
    if (work == DEP_NONE) return;
    int64_t from = work_end(&d->works[work]), end = p->ts + p->dur;
    if (from < p->ts) from = p->ts;
    stop->tail = from < end ? end - from : 0;
}

/* Fills the stop of a piece whose call waits. */
static void set_wait(struct stop *stop, const struct trace *t,
                     const struct ends *s, const struct piece *p) {
    stop->wait = DEP_NONE;
    stop->tail = 0;
    if (p->row == ROW_NONE) return;
    uint8_t kind = t->spans.kind[p->row];
    bool around = kind == SPAN_RUNTIME && (span_class(t, p->row) & CLASS_SYNC);
    if (kind != SPAN_API && !around) return;
    int64_t end = span_end(t, p->row);
    /* only the call's last piece waits */
    if (p->ts + p->dur < end || !call_waits(t, p->row)) return;
    /* a copy waits for itself, any other call for what ended last */
    if (stop->first < stop->end) stop->wait = stop->end - 1;
    size_t k = ended_by(s, end + CLOCK_NS * PS_PER_NS);
    for (int n = 0; stop->wait == DEP_NONE && k-- > 0 && n < LOOK_MAX; n++)
        /* work that was launched later cannot have been waited for */
        if (s->v[k] < stop->end) stop->wait = s->v[k];
    wait_for(stop, s->d, stop->wait, p);
}

/* Works by lane, each lane's in the order of launching. */
struct lanes {
    uint32_t *v;     /* indices of works */
    uint32_t *first; /* by lane, one more behind the last */
    struct map of;   /* hash of a stream -> lane */
};

static uint64_t stream_hash(int64_t device, int64_t stream) {
    return hash_pair((uint64_t)device, (uint64_t)stream);
}

static void lanes_free(struct lanes *l) {
    free(l->v);
    free(l->first);
    map_free(&l->of);
}

static bool lanes_init(struct lanes *l, const struct deps *d,
                       const struct trace *t) {
    *l = (struct lanes){.v = malloc((d->nworks + 1) * sizeof *l->v),
                        .first = calloc(d->nlanes + 2u, sizeof *l->first)};
    bool ok = l->v && l->first;
    for (size_t i = 0; ok && i < d->nworks; i++)
        l->first[d->works[i].lane + 2]++;
    for (size_t i = 1; ok && i < d->nlanes + 2u; i++)
        l->first[i] += l->first[i - 1];
    for (size_t i = 0; ok && i < d->nworks; i++) {
        const struct work *w = &d->works[i];
        const struct track *tr = &t->tracks[t->spans.track[w->row]];
        l->v[l->first[w->lane + 1]++] = (uint32_t)i;
        if (w->prev == DEP_NONE)
            ok = map_set(&l->of, stream_hash(tr->pid, tr->tid), w->lane);
    }
    return ok;
}

/* Returns the place, in its lane, of the first work launched at ts or later. */
static uint32_t launched_from(const struct lanes *l, const struct deps *d,
                              const struct trace *t, uint32_t lane,
                              int64_t ts) {
    uint32_t i;
    BOUND(i, l->first[lane], l->first[lane + 1],
          work_launched(t, &d->works[l->v[i]]) < ts);
    return i;
}

/* Puts one recorded wait into the graph. */
static void take_wait(struct deps *d, const struct trace *t,
                      const struct lanes *l, const struct sync_wait *x) {
    uint32_t on = map_get(&l->of, stream_hash(x->device, x->on));
    uint32_t dep = DEP_NONE;
    if (on != MAP_NONE) {
        uint32_t i = launched_from(l, d, t, on, x->before);
        if (i > l->first[on]) dep = l->v[i - 1];
    }
    if (x->waiting >= 0) {
        uint32_t lane = map_get(&l->of, stream_hash(x->device, x->waiting));
        if (lane == MAP_NONE || dep == DEP_NONE || lane == on) return;
        uint32_t i = launched_from(l, d, t, lane, x->ts);
        /* a damaged file may let work wait for what is launched later */
        if (i < l->first[lane + 1] && dep < l->v[i])
            d->works[l->v[i]].after = dep;
        return;
    }
    row_id row = d->line.v[timeline_at(&d->line, x->ts)].row;
    if (row == ROW_NONE) return;
    size_t i = timeline_at(&d->line, span_end(t, row) - 1); /* its last piece */
    const struct piece *p = &d->line.v[i];
    bool call = p->row == row && t->spans.kind[row] == SPAN_API &&
                (span_class(t, row) & CLASS_SYNC);
    if (call && (dep == DEP_NONE || dep < d->stops[i].end))
        wait_for(&d->stops[i], d, dep, p);
}

/* Takes the waits that the profiler recorded in the place of those that only
 * seem to be. */
static int take_waits(struct deps *d, const struct host_side *h,
                      struct ops_err *e) {
    struct sync_waits w;
    struct lanes l;
    TRY(sync_waits_find(&w, h->t, h->source, d->line.ts, d->line.end, e));
    if (w.n == 0) return 0;
    bool ok = lanes_init(&l, d, h->t);
    for (size_t i = 0; ok && i < w.n; i++) take_wait(d, h->t, &l, &w.v[i]);
    lanes_free(&l);
    sync_waits_free(&w);
    return ok ? 0 : fail_oom(e);
}

static bool join_waits(struct deps *d, const struct trace *t) {
    struct ends s = {malloc((d->nworks + 1) * sizeof *s.v), d};
    if (s.v == NULL) return false;
    for (size_t i = 0; i < d->nworks; i++) s.v[i] = (uint32_t)i;
    qsort_r(s.v, d->nworks, sizeof *s.v, by_end, d);
    for (size_t i = 0; i < d->nworks; i++)
        d->works[i].after = waited_for(t, &s, i);
    for (size_t i = 0; i < d->line.n; i++)
        set_wait(&d->stops[i], t, &s, &d->line.v[i]);
    free(s.v);
    return true;
}

/* Finds how long kernels ran, in sum and with those that ran at the same time
 * counted once. */
static bool set_kernels(struct deps *d) {
    struct intervals busy = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < d->nworks; i++) {
        const struct work *w = &d->works[i];
        if (!w->kernel) continue;
        sat_inc(&d->kernels, w->dur);
        ok = intervals_add(&busy, w->ts, work_end(w));
    }
    intervals_union(&busy);
    d->busy = intervals_length(&busy);
    intervals_free(&busy);
    return ok;
}

/* Finds what a launching call takes when nothing holds it up: the median. */
static bool set_call(struct deps *d, const struct trace *t) {
    int64_t *v = malloc((d->line.n + 1) * sizeof *v);
    size_t n = 0;
    if (v == NULL) return false;
    for (size_t i = 0; i < d->line.n; i++)
        if (deps_launches(d, t, i)) v[n++] = d->line.v[i].dur;
    qsort(v, n, sizeof *v, sort_by_value);
    d->call = n > 0 ? v[n / 2] : 0;
    free(v);
    return true;
}

bool deps_launches(const struct deps *d, const struct trace *t, size_t i) {
    const struct stop *s = &d->stops[i];
    return s->first < s->end && s->wait == DEP_NONE &&
           t->spans.kind[d->works[s->first].row] == SPAN_KERNEL;
}

static int build_graph(struct deps *d, const struct host_side *h,
                       struct ops_err *e) {
    int64_t ts, end;
    host_side_of(h->t, d->step, &ts, &end);
    if (!take_works(d, h, ts, end)) return fail_oom(e);
    if (d->nworks > 0)
        qsort_r(d->works, d->nworks, sizeof *d->works, by_launch, (void *)h->t);
    TRY(timeline_build(&d->line, h, ts, end, e));
    if (d->line.n == 0) return 0;
    d->stops = calloc(d->line.n, sizeof *d->stops);
    if (d->stops == NULL) return fail_oom(e);
    for (size_t i = 0; i < d->nworks; i++)
        d->works[i].piece =
            (uint32_t)timeline_at(&d->line, work_launched(h->t, &d->works[i]));
    size_t w = 0;
    for (size_t p = 0; p < d->line.n; p++) {
        d->stops[p].first = (uint32_t)w;
        while (w < d->nworks && d->works[w].piece == p) w++;
        d->stops[p].end = (uint32_t)w;
    }
    assert(w == d->nworks);
    if (!join_lanes(d, h->t) || !join_waits(d, h->t)) return fail_oom(e);
    TRY(take_waits(d, h, e));
    return set_call(d, h->t) && set_kernels(d) ? 0 : fail_oom(e);
}

int deps_build(struct deps *d, const struct host_side *h, uint32_t step,
               struct ops_err *e) {
    *d = (struct deps){.step = step};
    int rc = build_graph(d, h, e);
    if (rc != 0) deps_free(d);
    return rc;
}

struct step_length {
    uint32_t step;
    int64_t dur;
};

static int by_dur(const void *a, const void *b) {
    const struct step_length *x = a, *y = b;
    if (x->dur != y->dur) return x->dur < y->dur ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static int by_step(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Lists the steps that may be chosen, by length; the caller frees *v. One that
 * the window cuts stands for no other, if there is a whole one. */
static int by_length(const struct trace *t, const struct step_choice *c,
                     struct step_length **v, size_t *n, struct ops_err *e) {
    const struct source *s = &t->sources[c->source];
    *v = malloc((s->step_end - s->step_first + 1) * sizeof **v);
    *n = 0;
    if (*v == NULL) return fail_oom(e);
    bool whole = false;
    for (size_t i = s->step_first; i < s->step_end && !c->all; i++)
        whole |= !t->steps[i].cut && (c->in == NULL || c->in[i]);
    for (size_t i = s->step_first; i < s->step_end; i++)
        if ((c->in == NULL || c->in[i]) && !(whole && t->steps[i].cut))
            (*v)[(*n)++] = (struct step_length){.step = (uint32_t)i,
                                                .dur = t->steps[i].dur};
    qsort(*v, *n, sizeof **v, by_dur);
    return 0;
}

int deps_typical(const struct trace *t, uint32_t source, uint32_t *out,
                 struct ops_err *e) {
    struct step_length *v;
    size_t n;
    struct step_choice any = {.source = source};
    TRY(by_length(t, &any, &v, &n, e));
    *out = n > 0 ? v[(n - 1) / 2].step : ROW_NONE;
    free(v);
    return 0;
}

int deps_choose(const struct trace *t, const struct step_choice *c,
                uint32_t *out, size_t *n, struct ops_err *e) {
    struct step_length *v;
    size_t have;
    *n = 0;
    TRY(by_length(t, c, &v, &have, e));
    bool mixed = have >= MIXED_STEPS &&
                 v[have * 3 / 4].dur / MIXED > v[have / 4].dur;
    size_t from = c->all || mixed ? 0 : have / 4;
    size_t end = c->all || mixed ? have : (have + 1) / 2;
    size_t some = end - from < c->max ? end - from : c->max;
    for (; *n < some; ++*n) out[*n] = v[from + *n * (end - from) / some].step;
    qsort(out, *n, sizeof *out, by_step);
    free(v);
    return 0;
}
