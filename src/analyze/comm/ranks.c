/* SPDX-License-Identifier: Apache-2.0
 * ranks: one row per rank of a job: how long its steps take, how long it waits
 * for others and they for it. Whoever all the others wait for, step after
 * step, is the straggler.
 *
 * A rank is late to a collective when it comes last, by the time from the last
 * but one rank's arrival to its own; a rank waits from its own arrival to that
 * of the last. */
#include "analyze/analyze.h"

#include "analyze/comm/collective.h"
#include "analyze/shared/own.h"
#include "analyze/shared/phases.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

/* ---- lateness: who keeps whom waiting ---- */

/* One member, over the steps in scope. */
struct late_member {
    struct intervals late; /* on its own clock; a union */
    int64_t wait;          /* ps, a union */
    int64_t steps;         /* in scope */
    int64_t step_time;     /* ps, their sum */
    int64_t matched;       /* collectives with a counterpart ... */
    int64_t last;          /* ... to which it came last */
    int64_t worst_steps;   /* steps to which nobody was later */
    bool straggler;
};

/* Lateness from matched collectives, clock offsets removed. */
struct lateness {
    const struct collectives *c;
    struct late_member *v; /* by member */
    int64_t all;           /* ps: lateness of all members together */
    uint32_t straggler;    /* member, or ROW_NONE */
};

/* What makes a straggler, beside being late by more than the clocks' error.
 * Less than a twentieth of a step is within what steps differ by anyhow.
 * Two thirds of all lateness: twice what all others have together, since of
 * two equal ranks chance alone gives one a little over half. More than half
 * of the steps: one hiccup is none; but of fewer than three steps nothing can
 * be said on that. */
enum { STEP_PART = 20, ALL_NUM = 2, ALL_DEN = 3, FEW_STEPS = 3 };

/* One collective to which a member came late. */
struct late {
    int64_t step; /* as the program counts */
    uint32_t member;
    int64_t start, end; /* on the member's clock */
};

struct lates {
    struct late *v;
    size_t n, cap;
};

static bool take_late(struct lateness *l, const struct selection *scope,
                      struct lates *out) {
    const struct collectives *c = l->c;
    for (size_t i = 0; i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        const struct coll *last = &c->v[m->last];
        if (!select_has(scope, last->row)) continue;
        uint32_t st = c->t->spans.step[last->row];
        int64_t offset = c->clocks[coll_source(c, last)].offset;
        struct late x = {.member = last->member,
                         .start = sat_sub(m->second, offset),
                         .end = last->ts};
        x.step = st == ROW_NONE ? INT64_MIN : c->t->steps[st].number;
        if (x.end <= x.start) continue; /* all came at once */
        l->v[x.member].last++;
        if (!intervals_add(&l->v[x.member].late, x.start, x.end) ||
            !VEC_ROOM(out->v, out->n, out->cap))
            return false;
        out->v[out->n++] = x;
    }
    for (size_t i = 0; i < c->nmembers; i++) {
        intervals_union(&l->v[i].late);
        sat_inc(&l->all, intervals_length(&l->v[i].late));
    }
    return true;
}

/* Makes each member's waiting a union. */
static bool take_waits(struct lateness *l, const struct selection *scope) {
    const struct collectives *c = l->c;
    struct intervals *waits = calloc(c->nmembers + 1, sizeof *waits);
    bool ok = waits != NULL;
    for (size_t i = 0; ok && i < c->n; i++) {
        const struct coll *x = &c->v[i];
        if (x->match == ROW_NONE || !select_has(scope, x->row)) continue;
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

static int by_late_step(const void *a, const void *b) {
    const struct late *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Gives, for each step, the member that was late by most a point. */
static void judge_steps(struct lateness *l, struct lates *in) {
    if (in->n > 1) qsort(in->v, in->n, sizeof *in->v, by_late_step);
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
                if (end > from) sat_inc(&sum, sat_sub(end, from));
                if (end > until) until = end;
            }
            if (sum > most) most = sum, who = m;
        }
        if (who != ROW_NONE && step != INT64_MIN) l->v[who].worst_steps++;
    }
}

static bool is_straggler(const struct lateness *l, uint32_t member) {
    const struct late_member *m = &l->v[member];
    int64_t late = intervals_length(&m->late);
    if (m->steps == 0 || late == 0) return false;
    if (late < m->step_time / STEP_PART) return false;
    if (late / ALL_NUM < l->all / ALL_DEN) return false;
    if (m->steps >= FEW_STEPS && 2 * m->worst_steps <= m->steps) return false;
    /* the error of the clocks where this member is compared with the others:
     * the member whose clock is the common one has the others' error */
    const struct collectives *c = l->c;
    int64_t error = c->clocks[c->members[member].source].error;
    for (size_t i = 0; error == 0 && i < c->nmembers; i++)
        error = c->clocks[c->members[i].source].error;
    return late / m->steps > error;
}

static void lateness_free(struct lateness *l) {
    for (size_t i = 0; l->v && i < l->c->nmembers; i++)
        intervals_free(&l->v[i].late);
    free(l->v);
    *l = (struct lateness){0};
}

/* Finds which members are late. O(collectives log collectives). */
static int lateness_init(struct lateness *l, const struct collectives *c,
                         const struct selection *scope, struct ops_err *e) {
    *l = (struct lateness){.c = c, .straggler = ROW_NONE};
    struct lates lates = {0};
    l->v = calloc(c->nmembers + 1, sizeof *l->v);
    bool ok = l->v && take_late(l, scope, &lates) && take_waits(l, scope);
    for (size_t k = 0; ok && k < c->nmembers; k++) {
        struct late_member *m = &l->v[k];
        uint32_t source = c->members[k].source;
        if (k > 0 && source == c->members[k - 1].source) {
            /* members of one source share its steps, and stand together */
            m->steps = l->v[k - 1].steps;
            m->step_time = l->v[k - 1].step_time;
            continue;
        }
        const struct source *s = &c->t->sources[source];
        for (size_t i = s->step_first; i < s->step_end; i++) {
            if (!scope->all && !scope->step_in[i]) continue;
            if (!scope->by_step && c->t->steps[i].cut) continue;
            m->steps++;
            sat_inc(&m->step_time, c->t->steps[i].dur);
        }
    }
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

/* The collectives to which a member was late by most: their name, how many,
 * how late to all of them together. */
struct late_where {
    struct bytes name; /* empty: it never was late */
    int64_t calls, late;
};

/* Finds where a member was late. Returns false if out of memory. */
static bool lateness_where(const struct lateness *l,
                           const struct selection *scope, uint32_t member,
                           struct late_where *out) {
    const struct collectives *c = l->c;
    struct late_where *v = NULL;
    size_t n = 0, cap = 0;
    struct map names = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        const struct coll *x = &c->v[m->last];
        if (x->member != member || !select_has(scope, x->row)) continue;
        uint32_t *at = map_at(&names, c->t->spans.name[x->row]);
        ok = at != NULL && (*at != MAP_NONE || VEC_ROOM(v, n, cap));
        if (!ok) break;
        if (*at == MAP_NONE) {
            v[n] = (struct late_where){.name = coll_name(c, x)};
            *at = (uint32_t)n++;
        }
        v[*at].calls++;
        sat_inc(&v[*at].late, sat_sub(m->latest, m->second));
    }
    *out = (struct late_where){0};
    for (size_t i = 0; ok && i < n; i++)
        if (v[i].late > out->late) *out = v[i];
    map_free(&names);
    free(v);
    return ok;
}

/* ---- what a rank did meanwhile: tells why it came late ---- */

/* What a rank did in given times. */
struct rank_activity {
    enum phase phase; /* the longest of them ... */
    int64_t phase_ps; /* ... and how long */
    str_id name;      /* what ran longest by itself: a kernel, a Python frame or
                         a span of the step's thread; 0: nothing did */
    int64_t name_ps;
};

/* The times, and own time (own.h) in them by name. */
struct within {
    const struct trace *t;
    const struct intervals *times;
    int64_t *self;
};

static void spend(void *ctx, row_id r, int64_t from, int64_t to) {
    const struct within *x = ctx;
    sat_inc(&x->self[x->t->spans.name[r]],
            intervals_overlap(x->times, from, to));
}

static bool add_track(const struct within *x, const struct track *tr) {
    const struct trace *t = x->t;
    const struct intervals *times = x->times;
    const struct spans *s = &t->spans;
    int64_t from = times->v[0].start, to = times->v[times->n - 1].end;
    bool device = tr->kind == TRACK_STREAM, nests = track_nests(t, tr);
    bool ok = true;
    struct own w = {0};
    own_begin(&w, t->sources[tr->source].rounding_ps);
    for (row_id r = tr->first; ok && r < tr->end && s->ts[r] < to; r++) {
        int64_t end = span_end(t, r);
        if (end <= from || (s->flags[r] & (SPAN_DERIVED | SPAN_ASYNC)))
            continue;
        if (device ? s->kind[r] != SPAN_KERNEL || span_is_comm(t, r)
                   : span_is_step_mark(t, r))
            continue;
        if (!nests) {
            spend((void *)x, r, s->ts[r], end);
            continue;
        }
        own_until(&w, s->ts[r], spend, (void *)x);
        own_cross(&w, end);
        ok = own_open(&w, r, end);
    }
    if (ok) own_until(&w, INT64_MAX, spend, (void *)x);
    free(w.v);
    return ok;
}

/* Adds the tracks that can tell, by what the time mostly was; frames of Python
 * tell more than the ops that they call, so each kind is asked alone. */
static bool add_tracks(const struct within *x, const struct phase_view *v,
                       enum track_kind kind, uint32_t thread) {
    const struct trace *t = x->t;
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[v->source]; k < l->first[v->source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != kind) continue;
        if (kind == TRACK_STREAM && tr->device != v->device) continue;
        if (kind == TRACK_THREAD && i != thread) continue;
        if (kind == TRACK_PYTHON && tr->thread != thread) continue;
        if (!add_track(x, tr)) return false;
    }
    return true;
}

/* Keeps the name with the most time, if it has more than the one before, and
 * clears the sums. */
static void pick_name(struct rank_activity *m, const struct trace *t,
                      int64_t *self) {
    for (size_t i = 0; i < t->strs.n; i++) {
        if (self[i] > m->name_ps) {
            m->name_ps = self[i];
            m->name = (str_id)i;
        }
        self[i] = 0;
    }
}

/* Finds what the view's source did within these times (a union). O(spans of the
 * source). Returns false if out of memory. */
static bool rank_activity_find(struct rank_activity *m, const struct trace *t,
                               const struct phase_view *v,
                               const struct intervals *times) {
    *m = (struct rank_activity){.phase = PHASE_OTHER};
    if (times->n == 0) return true;
    int64_t sums[PHASES] = {0}, parts[PHASES];
    for (size_t i = 0; i < times->n; i++) {
        phases_split(v, times->v[i].start, times->v[i].end, parts);
        for (int k = 0; k < PHASES; k++) sat_inc(&sums[k], parts[k]);
    }
    for (int k = 0; k < PHASES; k++)
        if (sums[k] > sums[m->phase]) m->phase = (enum phase)k;
    m->phase_ps = sums[m->phase];
    int64_t *self = calloc(t->strs.n + 1, sizeof *self);
    if (self == NULL) return false;
    struct within x = {t, times, self};
    uint32_t thread = phases_step_thread(t, v->source);
    bool ok = true;
    if (m->phase == PHASE_COMPUTE && v->device != ROW_NONE) {
        ok = add_tracks(&x, v, TRACK_STREAM, ROW_NONE);
        pick_name(m, t, self);
    } else if (thread != ROW_NONE) {
        ok = add_tracks(&x, v, TRACK_PYTHON, thread);
        pick_name(m, t, self);
        ok = ok && add_tracks(&x, v, TRACK_THREAD, thread);
        pick_name(m, t, self);
    }
    free(self);
    return ok;
}

/* ---- the table ---- */

struct ranks {
    const struct trace *t;
    struct selection selection;
    struct collectives c;
    struct lateness late;
    struct phases ph;
    /* of the present source (members of one source stand together): */
    uint32_t source;            /* which that is, or ROW_NONE */
    struct phase_window window; /* its steps in scope */
    int64_t p95; /* the step that 95 in a hundred do not exceed */
};

/* One row before it is put. */
struct rank_row {
    int64_t mean, p95, compute, comm, busy; /* ps */
    bool has_device;
};

/* Returns the end of the views that a member is, *first the beginning: its
 * device's view, or all of its source. */
static size_t views_of(const struct ranks *w, const struct coll_member *m,
                       size_t *first) {
    const struct phases *p = &w->ph;
    *first = p->view_first[m->source];
    if (m->device == ROW_NONE) return p->view_first[m->source + 1];
    const struct phase_view *v = phases_of_device(p, m->source, m->device);
    if (v != NULL) *first = (size_t)(v - p->views);
    return *first + (v != NULL);
}

/* Finds what all members of a source share. Returns false if out of memory. */
static bool take_source(struct ranks *w, uint32_t source) {
    const struct source *s = &w->t->sources[source];
    struct intervals times = {0};
    uint64_t *durs = calloc(s->step_end - s->step_first + 1, sizeof *durs);
    bool ok = durs != NULL;
    size_t n = 0;
    for (size_t i = s->step_first; ok && i < s->step_end; i++) {
        const struct step *st = &w->t->steps[i];
        if (!w->selection.all && !w->selection.step_in[i]) continue;
        if (!w->selection.by_step && st->cut) continue;
        durs[n++] = (uint64_t)st->dur;
        ok = intervals_add(&times, st->ts, st->ts + st->dur);
    }
    intervals_union(&times);
    phase_window_free(&w->window);
    w->source = source;
    ok = phase_window_init(&w->window, &w->ph, source, &times) && ok &&
         sort_numbers(durs, n);
    w->p95 = ok && n > 0 ? (int64_t)durs[(n * 95 + 99) / 100 - 1] : 0;
    free(durs);
    return ok;
}

/* Works out means over steps, and over the devices of the rank. */
static bool measure_rank(struct ranks *w, uint32_t member, struct rank_row *l) {
    const struct coll_member *m = &w->c.members[member];
    int64_t n = w->late.v[member].steps, views = 0;
    wide compute = 0, comm = 0, busy = 0;
    *l = (struct rank_row){0};
    if (n == 0) return true;
    if (w->source != m->source && !take_source(w, m->source)) return false;
    size_t k, end = views_of(w, m, &k);
    for (; k < end; k++) {
        const struct phase_view *v = &w->ph.views[k];
        int64_t parts[PHASES], device_busy;
        views++;
        l->has_device |= v->device != ROW_NONE;
        phases_split_window(v, &w->window, parts, &device_busy);
        compute += parts[PHASE_COMPUTE];
        comm += parts[PHASE_COMM];
        busy += device_busy;
    }
    if (views == 0) views = 1;
    l->compute = (int64_t)(compute / (n * views));
    l->comm = (int64_t)(comm / (n * views));
    l->busy = (int64_t)(busy / (n * views));
    l->mean = w->late.v[member].step_time / n;
    l->p95 = w->p95;
    return true;
}

static void ranks_columns(struct result *r, const struct ranks *w) {
    bool devices = false;
    for (size_t i = 0; i < w->c.nmembers; i++)
        devices |= w->c.members[i].device != ROW_NONE;
    const struct column cols[] = {
        {"rank", NULL, NULL, "The rank's number in the job", COL_INT,
         COL_ANSWER},
        {"host", NULL, NULL, "The machine, and the rank on it", COL_TEXT,
         COL_KEY},
        {"step_mean_us", "step mean", "us", "Mean length of its steps",
         COL_TIME, COL_MEAN},
        {"step_p95_us", "step p95", "us",
         "95 in a hundred of its steps take no longer", COL_TIME, COL_LESS},
        {"compute_us", "compute", "us", "Computation per step, as in `steps`",
         COL_TIME, COL_MEAN},
        {"comm_us", "comm", "us",
         "Communication per step that no computation hid, as in `steps`",
         COL_TIME, COL_MEAN},
        {"wait_us", "wait", "us",
         "Per step: in a collective, waiting for the last rank to come",
         COL_TIME, COL_MEAN | COL_ANSWER},
        {"late_us", "late", "us",
         "Per step: all the others had come, this rank had not", COL_TIME,
         COL_MEAN | COL_MAIN},
        {"straggler", NULL, NULL,
         "Do the others wait for this rank, step after step?", COL_BOOL,
         COL_ANSWER},
        {"late_pct", "late", "%", "late_us by the mean step", COL_PERCENT,
         COL_DETAIL},
        {"steps", NULL, NULL, "Steps that were looked at", COL_INT, COL_DETAIL},
        {"worst_steps", "worst in", NULL,
         "Steps to which nobody came later than this rank", COL_INT,
         COL_DETAIL},
        {"collectives", NULL, NULL,
         "Its collectives whose counterparts on other ranks were found",
         COL_INT, COL_DETAIL},
        {"came_last", "last", NULL, "Collectives to which it came last",
         COL_INT, COL_DETAIL},
        {"clock_offset_us", "clock", "us",
         "How far its clock is ahead of the lowest rank's; 0 when that is "
         "less than can be told",
         COL_TIME, COL_DETAIL},
        {"clock_error_us", "clock error", "us",
         "By how much the offset may be wrong", COL_TIME, COL_DETAIL},
        {"device_busy_pct", "busy", "%",
         "Share of the steps in which the device did any work", COL_PERCENT, 0},
        {"device", NULL, NULL, "The device, where one process has several",
         COL_TEXT, devices ? COL_ASKED : COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

static void put_rank(struct result *r, const struct ranks *w, uint32_t member,
                     const struct rank_row *l) {
    const struct trace *t = w->t;
    const struct coll_member *m = &w->c.members[member];
    const struct late_member *late = &w->late.v[member];
    const struct source *s = &t->sources[m->source];
    const struct coll_clock *k = &w->c.clocks[m->source];
    int64_t n = late->steps, by = intervals_length(&late->late);
    bool have = n > 0, matched = have && late->matched > 0;
    result_row(r);
    if (s->rank >= 0) cell_int(r, "rank", s->rank);
    if (s->host) cell_text(r, "host", strs_text(&t->strs, s->host));
    if (have) {
        cell_int(r, "step_mean_us", l->mean);
        cell_int(r, "step_p95_us", l->p95);
        cell_int(r, "compute_us", l->compute);
        cell_int(r, "comm_us", l->comm);
    }
    if (matched) {
        cell_int(r, "wait_us", late->wait / n);
        cell_int(r, "late_us", by / n);
        cell_bool(r, "straggler", late->straggler);
        if (late->step_time > 0)
            cell_float(r, "late_pct",
                       100.0 * (double)by / (double)late->step_time);
        cell_int(r, "worst_steps", late->worst_steps);
        cell_int(r, "came_last", late->last);
    }
    cell_int(r, "steps", n);
    if (w->c.nmembers > 1) cell_int(r, "collectives", late->matched);
    if (k->known) cell_int(r, "clock_offset_us", sat_sub(0, k->offset));
    if (k->known) cell_int(r, "clock_error_us", k->error);
    if (have && l->has_device && l->mean > 0)
        cell_float(r, "device_busy_pct",
                   100.0 * (double)l->busy / (double)l->mean);
    if (m->device != ROW_NONE)
        cell_text(r, "device",
                  strs_text(&t->strs, t->devices[m->device].label));
}

/* Returns "Rank 1", "node3" or, for one of several devices, "node3 GPU 1". */
static const char *rank_words(struct result *r, const struct ranks *w,
                              uint32_t member) {
    const struct coll_member *m = &w->c.members[member];
    const struct source *s = &w->t->sources[m->source];
    const char *device = m->device == ROW_NONE
                             ? NULL
                             : strs_text(&w->t->strs,
                                         w->t->devices[m->device].label);
    const char *name;
    if (s->rank >= 0)
        name = arena_fmt(&r->arena, "Rank %lld", (long long)s->rank);
    else name = s->host ? strs_text(&w->t->strs, s->host) : "One rank";
    if (device) name = arena_fmt(&r->arena, "%s %s", name ? name : "", device);
    return name ? name : "";
}

/* Says what the straggler did while the others waited. */
static int say_meanwhile(struct result *r, const struct ranks *w,
                         struct ops_err *e) {
    /* clang-format off */
    static const char *const words[PHASES] = {
        "it computed", "it was in another collective", "it copied",
        "it waited for input data", "it was in driver calls",
        "it ran host ops or regions",
        ("nothing that was recorded ran there: it slept, waited for something "
         "outside, or ran code between ops")};
    /* clang-format on */
    uint32_t member = w->late.straggler;
    const struct coll_member *m = &w->c.members[member];
    const struct intervals *times = &w->late.v[member].late;
    size_t first, end = views_of(w, m, &first);
    if (first == end) return 0;
    const struct phase_view *v = &w->ph.views[first];
    struct rank_activity d;
    if (!rank_activity_find(&d, w->t, v, times)) return fail_oom(e);
    double all = (double)intervals_length(times);
    const char *which = "";
    if (d.name != 0 && (double)d.name_ps > all / 4)
        which = arena_fmt(&r->arena, "; most of it in %s (%.0f %%)",
                          strs_text(&w->t->strs, d.name),
                          100.0 * (double)d.name_ps / all);
    result_remark(r,
                  "While the others waited for it, %s (%.0f %% of that "
                  "time)%s.",
                  words[d.phase], 100.0 * (double)d.phase_ps / all,
                  which ? which : "");
    return 0;
}

static int say_straggler(struct result *r, const struct ranks *w,
                         struct ops_err *e) {
    uint32_t member = w->late.straggler;
    char by[32], each[32];
    if (member == ROW_NONE) return 0;
    const struct late_member *m = &w->late.v[member];
    int64_t late = intervals_length(&m->late);
    struct late_where at;
    if (!lateness_where(&w->late, &w->selection, member, &at))
        return fail_oom(e);
    assert(m->steps > 0 && at.calls > 0);
    result_remark(r,
                  "%s is the straggler: in each step the others wait %s "
                  "for it, %.0f %% of the step. It came last to %lld of %lld "
                  "collectives; most of it shows in %.*s (%lld, %s late to "
                  "each).",
                  rank_words(r, w, member),
                  human_time(late / m->steps, by, sizeof by),
                  100.0 * (double)late / (double)m->step_time,
                  (long long)m->last, (long long)m->matched, (int)at.name.n,
                  (const char *)at.name.p, (long long)at.calls,
                  human_time(at.late / at.calls, each, sizeof each));
    if (m->steps < 3)
        result_remark(r, "With so few steps chance cannot be told from habit: "
                         "record three or more to be sure.");
    return say_meanwhile(r, w, e);
}

static void say_rest(struct result *r, const struct ranks *w) {
    const struct collectives *c = &w->c;
    int64_t world = coll_world_size(w->t);
    if (c->nmembers < 2) {
        result_missing(r, "lateness and waiting",
                       c->n > 0
                           ? "only one rank's file was given"
                           : "one process alone, as far as this file tells: no "
                             "collective was recorded",
                       "give the files of all ranks at once, recorded at the "
                       "same time");
        return;
    }
    if (c->nmatches == 0)
        result_missing(r, "lateness and waiting",
                       c->n == 0 ? "no collective was recorded"
                                 : "no collective was found on two ranks",
                       "record the same steps on all ranks, with the "
                       "communication in them");
    else if (w->late.straggler == ROW_NONE)
        result_remark(r, "No straggler: no rank makes the others wait for 5 %% "
                         "of a step or more, step after step.");
    if ((int64_t)c->nmembers < world)
        result_remark(r,
                      "Files of %zu of %lld ranks: the last to come may be "
                      "one of the others.",
                      c->nmembers, (long long)world);
    for (size_t i = 0; i < c->nmembers; i++)
        if (c->clocks[c->members[i].source].offset != 0) {
            result_remark(r, "Clocks of the ranks differ: offsets were taken "
                             "from the ends of collectives and removed "
                             "(clock_offset_us, clock_error_us).");
            break;
        }
}

static int ranks_fill(struct ranks *w, struct result *r, struct ops_err *e) {
    ranks_columns(r, w);
    for (uint32_t i = 0; i < w->c.nmembers; i++) {
        uint32_t source = w->c.members[i].source;
        if (!w->selection.all && !w->selection.source_in[source]) continue;
        struct rank_row l;
        if (!measure_rank(w, i, &l)) return fail_oom(e);
        put_rank(r, w, i, &l);
    }
    TRY(say_straggler(r, w, e));
    say_rest(r, w);
    return 0;
}

static int ranks_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    struct ranks w = {.t = t, .source = ROW_NONE};
    result_init(r, "ranks", "Ranks: who waits for whom");
    result_from_trace(r, t);
    r->in_order = true;
    TRY(select_init(&w.selection, t, o, e));
    int rc = collectives_init(&w.c, t, e);
    if (rc == 0) rc = lateness_init(&w.late, &w.c, &w.selection, e);
    if (rc == 0) rc = phases_get(&w.ph, t, e);
    if (rc == 0) rc = ranks_fill(&w, r, e);
    phase_window_free(&w.window);
    if (w.late.v) lateness_free(&w.late);
    collectives_free(&w.c);
    select_free(&w.selection);
    return rc;
}

const struct analysis analysis_ranks = {
    .name = "ranks",
    .help = "the ranks of a job: who waits for whom, and the straggler",
    .row = "one rank",
    .run = ranks_run,
};
