/* SPDX-License-Identifier: Apache-2.0
 * ranks: one row per rank of a job: how long its steps take, how long it waits
 * for others and they for it. Whoever all the others wait for, step after
 * step, is the straggler. */
#include "analyze/analyze.h"

#include "analyze/comm/collective.h"
#include "analyze/comm/lateness.h"
#include "analyze/comm/meanwhile.h"
#include "analyze/shared/phases.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/number.h"
#include <assert.h>
#include <stdlib.h>

struct work {
    const struct trace *t;
    struct scope scope;
    struct collectives c;
    struct lateness late;
    struct phases ph;
    size_t *step_first, *step_end; /* by source: its steps, in step_order */
    uint32_t *step_order;
    struct phase_window *windows; /* by source: its steps in scope */
    int64_t *p95;                 /* by source: -1: not known yet */
};

/* One row before it is put. */
struct line {
    int64_t mean, p95, compute, comm, busy; /* ps */
    bool has_device;
};

/* Steps in scope, source by source. */
static bool sort_steps(struct work *w) {
    const struct trace *t = w->t;
    struct sort_key *k = calloc(t->nsteps + 1, sizeof *k);
    if (k == NULL) return false;
    size_t n = 0;
    for (uint32_t i = 0; i < t->nsteps; i++)
        if (w->scope.all || w->scope.step_in[i])
            k[n++] = (struct sort_key){t->steps[i].source, i, i};
    bool ok = sort_keys(k, n);
    for (size_t i = 0; ok && i < n; i++) {
        size_t source = (size_t)k[i].hi;
        w->step_order[i] = k[i].row;
        if (w->step_end[source] == 0) w->step_first[source] = i;
        w->step_end[source] = i + 1;
    }
    free(k);
    return ok;
}

/* The views that a member is, [*first, return) of the phases': its device's, or
 * all of its source. */
static size_t views_of(const struct work *w, const struct coll_member *m,
                       size_t *first) {
    const struct phases *p = &w->ph;
    *first = p->view_first[m->source];
    if (m->device == ROW_NONE) return p->view_first[m->source + 1];
    const struct phase_view *v = phases_of_device(p, m->source, m->device);
    if (v != NULL) *first = (size_t)(v - p->views);
    return *first + (v != NULL);
}

/* The source's steps in scope as a set of times, made when first asked for.
 * NULL: out of memory. */
static const struct phase_window *window_of(const struct work *w,
                                            uint32_t source) {
    struct phase_window *x = &w->windows[source];
    struct intervals times = {0};
    bool ok = x->times.n > 0;
    if (ok) return x;
    ok = true;
    for (size_t i = w->step_first[source]; ok && i < w->step_end[source]; i++) {
        const struct step *st = &w->t->steps[w->step_order[i]];
        ok = intervals_add(&times, st->ts, st->ts + st->dur);
    }
    intervals_union(&times);
    return phase_window_init(x, &w->ph, source, &times) && ok ? x : NULL;
}

/* The step that 95 in a hundred do not exceed; -1: out of memory. */
static int64_t p95(const struct work *w, uint32_t source) {
    size_t from = w->step_first[source], n = w->step_end[source] - from;
    if (w->p95[source] >= 0) return w->p95[source];
    uint64_t *v = calloc(n + 1, sizeof *v);
    if (v == NULL || n == 0) {
        free(v);
        return n == 0 ? 0 : -1;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = (uint64_t)w->t->steps[w->step_order[from + i]].dur;
    bool ok = sort_numbers(v, n);
    int64_t out = ok ? (int64_t)v[(n * 95 + 99) / 100 - 1] : -1;
    free(v);
    return w->p95[source] = out;
}

/* Means over steps, and over the devices of the rank. */
static bool measure(const struct work *w, uint32_t member, struct line *l) {
    const struct coll_member *m = &w->c.members[member];
    size_t from = w->step_first[m->source], to = w->step_end[m->source];
    int64_t n = (int64_t)(to - from), views = 0;
    wide compute = 0, comm = 0, busy = 0;
    *l = (struct line){0};
    if (n == 0) return true;
    const struct phase_window *window = window_of(w, m->source);
    if (window == NULL) return false;
    size_t k, end = views_of(w, m, &k);
    for (; k < end; k++) {
        const struct phase_view *v = &w->ph.views[k];
        int64_t parts[PHASES], device_busy;
        views++;
        l->has_device |= v->device != ROW_NONE;
        phases_split_window(v, window, parts, &device_busy);
        compute += parts[PHASE_COMPUTE];
        comm += parts[PHASE_COMM];
        busy += device_busy;
    }
    if (views == 0) views = 1;
    l->compute = (int64_t)(compute / (n * views));
    l->comm = (int64_t)(comm / (n * views));
    l->busy = (int64_t)(busy / (n * views));
    l->mean = w->late.v[member].step_time / n;
    l->p95 = p95(w, m->source);
    return l->p95 >= 0;
}

static void put_columns(struct result *r, const struct work *w) {
    bool devices = false;
    for (size_t i = 0; i < w->c.nmembers; i++)
        devices |= w->c.members[i].device != ROW_NONE;
    const struct column cols[] = {
        {"rank", NULL, NULL, "The rank's number in the job", COL_INT, 0},
        {"host", NULL, NULL, "The machine, and the rank on it", COL_TEXT,
         COL_KEY},
        {"step_mean_us", "step mean", "us", "Mean length of its steps",
         COL_TIME, COL_MEAN},
        {"step_p95_us", "step p95", "us",
         "95 in a hundred of its steps take no longer", COL_TIME, 0},
        {"compute_us", "compute", "us", "Computation per step, as in `steps`",
         COL_TIME, COL_MEAN},
        {"comm_us", "comm", "us",
         "Communication per step that no computation hid, as in `steps`",
         COL_TIME, COL_MEAN},
        {"wait_us", "wait", "us",
         "Per step: in a collective, waiting for the last rank to come",
         COL_TIME, COL_MEAN},
        {"late_us", "late", "us",
         "Per step: all the others had come, this rank had not", COL_TIME,
         COL_MEAN | COL_MAIN},
        {"straggler", NULL, NULL,
         "Do the others wait for this rank, step after step?", COL_BOOL, 0},
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
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

static void put_line(struct result *r, const struct work *w, uint32_t member,
                     const struct line *l) {
    const struct trace *t = w->t;
    const struct coll_member *m = &w->c.members[member];
    const struct late_member *late = &w->late.v[member];
    const struct source *s = &t->sources[m->source];
    const struct coll_clock *k = &w->c.clocks[m->source];
    int64_t n = late->steps, by = intervals_length(&late->late);
    bool have = n > 0, matched = have && late->matched > 0;
    result_row(r);
    result_int_if(r, s->rank >= 0, s->rank);
    result_text(r, s->host ? strs_text(&t->strs, s->host) : NULL);
    result_int_if(r, have, l->mean);
    result_int_if(r, have, l->p95);
    result_int_if(r, have, l->compute);
    result_int_if(r, have, l->comm);
    result_int_if(r, matched, matched ? late->wait / n : 0);
    result_int_if(r, matched, matched ? by / n : 0);
    if (matched) result_bool(r, late->straggler);
    else result_null(r);
    result_float_if(r, matched && late->step_time > 0,
                    100.0 * (double)by / (double)late->step_time);
    result_int(r, n);
    result_int_if(r, matched, late->worst_steps);
    result_int_if(r, w->c.nmembers > 1, late->matched);
    result_int_if(r, matched, late->last);
    result_int_if(r, k->known, diff_of(0, k->offset));
    result_int_if(r, k->known, k->error);
    result_float_if(r, have && l->has_device && l->mean > 0,
                    100.0 * (double)l->busy / (double)l->mean);
    if (m->device == ROW_NONE) result_null(r);
    else result_text(r, strs_text(&t->strs, t->devices[m->device].label));
}

/* "Rank 1", "node3" or, one of several devices, "node3 GPU 1". */
static const char *who(struct result *r, const struct work *w,
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

/* What the straggler did while the others waited. */
static int say_meanwhile(struct result *r, const struct work *w,
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
    struct meanwhile d;
    if (!meanwhile_find(&d, w->t, v, times)) return fail_oom(e);
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

static int say_straggler(struct result *r, const struct work *w,
                         struct ops_err *e) {
    uint32_t member = w->late.straggler;
    char by[32], each[32];
    if (member == ROW_NONE) return 0;
    const struct late_member *m = &w->late.v[member];
    int64_t late = intervals_length(&m->late);
    struct late_where at;
    if (!lateness_where(&w->late, &w->scope, member, &at)) return fail_oom(e);
    assert(m->steps > 0 && at.calls > 0);
    result_remark(r,
                  "%s is the straggler: in each step the others wait %s "
                  "for it, %.0f %% of the step. It came last to %lld of %lld "
                  "collectives; most of it shows in %.*s (%lld, %s late to "
                  "each).",
                  who(r, w, member), human_time(late / m->steps, by, sizeof by),
                  100.0 * (double)late / (double)m->step_time,
                  (long long)m->last, (long long)m->matched, (int)at.name.n,
                  (const char *)at.name.p, (long long)at.calls,
                  human_time(at.late / at.calls, each, sizeof each));
    if (m->steps < 3)
        result_remark(r, "With so few steps chance cannot be told from habit: "
                         "record three or more to be sure.");
    return say_meanwhile(r, w, e);
}

static void say_rest(struct result *r, const struct work *w) {
    const struct collectives *c = &w->c;
    int64_t world = 0;
    for (size_t i = 0; i < w->t->nsources; i++)
        if (w->t->sources[i].world_size > world)
            world = w->t->sources[i].world_size;
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

static bool prepare(struct work *w) {
    const struct trace *t = w->t;
    w->step_first = calloc(t->nsources + 1, sizeof *w->step_first);
    w->step_end = calloc(t->nsources + 1, sizeof *w->step_end);
    w->windows = calloc(t->nsources + 1, sizeof *w->windows);
    w->p95 = malloc((t->nsources + 1) * sizeof *w->p95);
    w->step_order = calloc(t->nsteps + 1, sizeof *w->step_order);
    if (!w->step_first || !w->step_end || !w->windows || !w->p95 ||
        !w->step_order)
        return false;
    for (size_t i = 0; i < t->nsources; i++) w->p95[i] = -1;
    return sort_steps(w);
}

static int fill(struct work *w, struct result *r, struct ops_err *e) {
    if (!prepare(w)) return fail_oom(e);
    put_columns(r, w);
    for (uint32_t i = 0; i < w->c.nmembers; i++) {
        uint32_t source = w->c.members[i].source;
        if (!w->scope.all && !w->scope.source_in[source]) continue;
        struct line l;
        if (!measure(w, i, &l)) return fail_oom(e);
        put_line(r, w, i, &l);
    }
    TRY(say_straggler(r, w, e));
    say_rest(r, w);
    return 0;
}

static int run(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e) {
    struct work w = {.t = t};
    result_init(r, "ranks", "Ranks: who waits for whom");
    result_from_trace(r, t);
    r->in_order = true;
    TRY(scope_init(&w.scope, t, o, e));
    int rc = collectives_init(&w.c, t, e);
    if (rc == 0) rc = lateness_init(&w.late, &w.c, &w.scope, e);
    if (rc == 0) rc = phases_init(&w.ph, t, e);
    if (rc == 0) rc = fill(&w, r, e);
    free(w.step_first);
    free(w.step_end);
    for (size_t i = 0; w.windows && i < t->nsources; i++)
        phase_window_free(&w.windows[i]);
    free(w.windows);
    free(w.p95);
    free(w.step_order);
    phases_free(&w.ph);
    if (w.late.v) lateness_free(&w.late);
    collectives_free(&w.c);
    scope_free(&w.scope);
    return rc;
}

const struct analysis analysis_ranks = {
    .name = "ranks",
    .help = "the ranks of a job: who waits for whom, and the straggler",
    .row = "one rank",
    .all_rows = false,
    .run = run,
};
