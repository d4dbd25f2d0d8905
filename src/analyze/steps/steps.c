/* SPDX-License-Identifier: Apache-2.0
 * steps: one row per step of each host: how long it took and where the time
 * went. The phases sum to the step, to the picosecond. */
#include "analyze/analyze.h"

#include "analyze/shared/missing.h"
#include "analyze/shared/phases.h"
#include "analyze/steps/bare.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct opt steps_opts[] = {
    {"by", 0, OPT_CHOICE, "step|device|epoch", "step",
     .help = "one row per step, per step and device, or per epoch"},
    {0},
};

enum by { BY_STEP, BY_DEVICE, BY_EPOCH };

/* Everything a row shows. */
struct step_row {
    uint32_t source, device; /* device: ROW_NONE unless by device */
    const char *epoch;       /* by epoch: its name, or NULL */
    int64_t number, steps;
    int64_t start, dur, marker, busy;
    struct bare_step bare; /* by epoch: of all its steps, added up */
    bool has_device;
    bool cut; /* by the window */
    int64_t parts[PHASES];
};

struct steps {
    const struct trace *t;
    struct selection selection;
    struct phases ph;
    struct phase_sums sums; /* of the source at hand */
    uint32_t source;        /* which that is, or ROW_NONE */
    const struct bare *bare;
    struct step_row *rows;
    size_t n, cap;
    /* by device: rows and pairs of a step and a device that are still made and
     * looked at; whether there are too many to show those that did nothing;
     * and what was left out */
    size_t rows_left, pairs_left;
    bool sparse;
    size_t idle_out, other_out;
};

/* A file may have any number of steps and of devices; real ones have more
 * spans than pairs of a step and a device. */
enum { ANY_ROWS = 1 << 18, ROWS_PER_SPAN = 8, ANY_PAIRS = 1 << 23 };

/* Makes the row with what all rows of a step share. */
static struct step_row row_of_step(const struct steps *w, size_t i) {
    const struct step *st = &w->t->steps[i];
    return (struct step_row){
        .source = st->source,
        .device = ROW_NONE,
        .number = st->number,
        .steps = 1,
        .start = st->ts,
        .dur = st->dur,
        .marker = st->marker_dur,
        .bare = w->bare->steps[i],
        .cut = st->cut,
    };
}

/* Adds a row. The bare step of one of several devices is no shorter than what
 * that device did. */
static bool push_row(struct steps *w, struct step_row *l) {
    struct bare_step *b = &l->bare;
    if (b->bare < l->busy) b->bare = l->busy;
    if (b->low < l->busy) b->low = l->busy;
    if (b->high < l->busy) b->high = l->busy;
    if (!VEC_ROOM(w->rows, w->n, w->cap)) return false;
    w->rows[w->n++] = *l;
    return true;
}

/* Sets how many rows by device there may be. */
static void limit_devices(struct steps *w) {
    const struct trace *t = w->t;
    size_t pairs = 0;
    w->rows_left = ANY_ROWS + ROWS_PER_SPAN * t->spans.n;
    w->pairs_left = ANY_PAIRS + w->rows_left;
    for (size_t i = 0; i < t->nsteps && pairs <= w->rows_left; i++) {
        uint32_t source = t->steps[i].source;
        if (w->selection.all || w->selection.step_in[i])
            pairs += w->ph.view_first[source + 1] - w->ph.view_first[source];
    }
    w->sparse = pairs > w->rows_left;
}

/* Adds a row per device; if that is too many, per device that did anything. */
static bool add_devices(struct steps *w, size_t i) {
    const struct step *st = &w->t->steps[i];
    size_t k = w->ph.view_first[st->source];
    size_t last = w->ph.view_first[st->source + 1];
    for (; k < last; k++) {
        const struct phase_view *v = &w->ph.views[k];
        struct step_row l = row_of_step(w, i);
        int64_t end = st->ts + st->dur;
        if (w->rows_left == 0 || w->pairs_left == 0) {
            w->other_out += last - k;
            return true;
        }
        w->pairs_left--;
        l.busy = intervals_overlap(&v->busy, st->ts, end);
        if (w->sparse && v->device != ROW_NONE && l.busy == 0) {
            w->idle_out++;
            continue;
        }
        phases_split(v, st->ts, end, l.parts);
        l.device = v->device;
        l.has_device = v->device != ROW_NONE;
        if (!push_row(w, &l)) return false;
        w->rows_left--;
    }
    return true;
}

/* Adds the rows of a step: one, or one per device. Steps come by source. */
static bool add_step(struct steps *w, size_t i, enum by by) {
    const struct step *st = &w->t->steps[i];
    struct step_row l = row_of_step(w, i);
    struct ops_err e;
    if (by == BY_DEVICE) return add_devices(w, i);
    if (st->source != w->source) {
        phase_sums_free(&w->sums);
        w->source = st->source;
        if (phase_sums_init(&w->sums, &w->ph, st->source, &e) != 0)
            return false;
    }
    phase_sums_mean(&w->sums, st->ts, st->ts + st->dur, l.parts, &l.busy);
    l.has_device = w->sums.views[0].device != ROW_NONE;
    return push_row(w, &l);
}

/* Adds up the bare steps of an epoch. It is as well known as the worst of
 * them. */
static void add_bare(struct bare_step *to, const struct bare_step *b) {
    sat_inc(&to->dur, b->dur);
    sat_inc(&to->bare, b->bare);
    sat_inc(&to->low, b->low);
    sat_inc(&to->high, b->high);
    sat_inc(&to->events, b->events);
    if (b->how > to->how) to->how = b->how;
}

/* Adds up the rows of steps by epoch. */
static bool add_epochs(struct steps *w) {
    row_id open = ROW_NONE;
    uint32_t source = ROW_NONE;
    for (size_t i = 0; i < w->t->nsteps; i++) {
        if (!w->selection.all && !w->selection.step_in[i]) continue;
        const struct step *st = &w->t->steps[i];
        size_t before = w->n;
        if (!add_step(w, i, BY_STEP)) return false;
        if (w->n == before) continue;
        row_id epoch = st->marker; /* the region "epoch ..." around it */
        if (epoch != ROW_NONE) epoch = w->t->spans.parent[epoch];
        while (epoch != ROW_NONE &&
               strncasecmp(span_name(w->t, epoch), "epoch", 5) != 0)
            epoch = w->t->spans.parent[epoch];
        struct step_row *l = &w->rows[w->n - 1];
        if (epoch != ROW_NONE) l->epoch = span_name(w->t, epoch);
        if (before == 0 || epoch != open || st->source != source) {
            open = epoch;
            source = st->source;
            continue;
        }
        struct step_row *to = l - 1;
        to->steps++;
        sat_inc(&to->dur, l->dur);
        sat_inc(&to->marker, l->marker);
        sat_inc(&to->busy, l->busy);
        add_bare(&to->bare, &l->bare);
        for (int p = 0; p < PHASES; p++) sat_inc(&to->parts[p], l->parts[p]);
        w->n--;
    }
    return true;
}

static const struct column phase_cols[PHASES] = {
    {"compute_us", "compute", "us",
     "A kernel ran on the device; with no device: an op ran.", COL_TIME,
     COL_PART},
    {"comm_us", "comm", "us", "A collective ran and no kernel did.", COL_TIME,
     COL_PART},
    {"copy_us", "copy", "us", "A copy or fill ran, nothing else did.", COL_TIME,
     COL_PART},
    {"input_us", "input", "us", "The step's thread waited for input data.",
     COL_TIME, COL_PART},
    {"launch_us", "launch", "us",
     "The device was idle while a driver call ran.", COL_TIME, COL_PART},
    {"host_us", "host", "us",
     "The device was idle while host ops or regions ran.", COL_TIME, COL_PART},
    {"other_us", "other", "us",
     "Nothing that was recorded ran: Python between ops, or nothing.", COL_TIME,
     COL_PART},
};

static void steps_columns(struct result *r, const struct trace *t, enum by by) {
    const struct column first[] = {
        {"host", NULL, NULL,
         "The machine or, for several ranks, machine and rank.", COL_TEXT,
         t->nprocesses > 1 ? COL_KEY : COL_KEY | COL_DETAIL},
        {"step", NULL, NULL, "The step's number as the program counts.",
         COL_INT, by == BY_EPOCH ? COL_DETAIL : 0},
        {"start_us", "start", "us", "When it began.", COL_TIME,
         COL_STAMP | COL_LESS},
        {"dur_us", "step time", "us",
         "How long it took, device work that it launched included.", COL_TIME,
         COL_MAIN},
        {"marker_us", "marker", "us",
         "How long its marker on the host took: less than the step when the "
         "program runs ahead of the device.",
         COL_TIME, COL_DETAIL},
    };
    static const struct column last[] = {
        {"device_busy_pct", "busy", "%",
         "Share of the step in which the device did any work.", COL_PERCENT,
         COL_BAR},
        {"bare_us", "bare", "us", "The step without the profiler's own cost.",
         COL_TIME, COL_MEAN},
        {"bare_low_us", "bare, low", "us",
         "Where that is an estimate: it is hardly less than this.", COL_TIME,
         COL_DETAIL | COL_MEAN},
        {"bare_high_us", "bare, high", "us", "And hardly more than this.",
         COL_TIME, COL_DETAIL | COL_MEAN},
        {"bare_is", "bare is", NULL,
         "How it is known: measured (the program ran without the profiler), "
         "estimated, or recorded (the profiler costs nothing that shows).",
         COL_TEXT, COL_DETAIL},
        {"bare_measured_us", "measured", "us",
         "What whoever took the profile measured without it, in the mean.",
         COL_TIME, COL_DETAIL},
        {"bare_measured_steps", "measured steps", NULL,
         "Of how many steps that nobody traced it is the median.", COL_INT,
         COL_DETAIL},
        {"bare_measured_low_us", "measured, low", "us",
         "One in ten of them took less than this.", COL_TIME, COL_DETAIL},
        {"bare_measured_high_us", "measured, high", "us",
         "One in ten of them took more than this.", COL_TIME, COL_DETAIL},
        {"bare_measured_laps", "measured in", NULL,
         "Stretches of them from an idle device to an idle device, where the "
         "program runs ahead of it: it is the mean of the middle one then, and "
         "low and high are the least and the most.",
         COL_INT, COL_DETAIL},
        {"host_events", "events", NULL,
         "Host events that the profiler recorded in it: each costs time.",
         COL_INT, COL_DETAIL},
        {"cut", NULL, NULL,
         "Did the recording begin or end in it? Such a step is no measure.",
         COL_BOOL, COL_DETAIL},
    };
    static const struct column device[] = {
        {"device", NULL, NULL, "The device.", COL_TEXT, COL_ASKED},
    };
    static const struct column epoch[] = {
        {"epoch", NULL, NULL, "The epoch's name.", COL_TEXT, COL_ASKED},
        {"steps", NULL, NULL, "Steps that were recorded of it.", COL_INT,
         COL_ASKED},
    };
    result_cols(r, first, COUNT(first));
    result_cols(r, phase_cols, PHASES);
    result_cols(r, last, COUNT(last));
    if (by == BY_DEVICE) result_cols(r, device, COUNT(device));
    if (by == BY_EPOCH) result_cols(r, epoch, COUNT(epoch));
}

static void put_bare(struct result *r, const struct bare_step *b,
                     const struct bare_measured *m) {
    if (b->how != BARE_UNKNOWN) {
        cell_int(r, "bare_us", b->bare);
        cell_text(r, "bare_is", bare_word(b->how));
    }
    if (b->how == BARE_ESTIMATED) {
        cell_int(r, "bare_low_us", b->low);
        cell_int(r, "bare_high_us", b->high);
    }
    if (m != NULL && m->step > 0) cell_int(r, "bare_measured_us", m->step);
    if (m != NULL && m->steps > 0) {
        cell_int(r, "bare_measured_steps", m->steps);
        cell_int(r, "bare_measured_low_us", m->low);
        cell_int(r, "bare_measured_high_us", m->high);
        if (m->laps > 0) cell_int(r, "bare_measured_laps", m->laps);
    }
    cell_int(r, "host_events", b->events);
}

static void put_step_row(struct result *r, const struct steps *w,
                         const struct step_row *l, enum by by) {
    const struct trace *t = w->t;
    result_row(r);
    cell_text(r, "host", label_source(r, t, l->source));
    if (by != BY_EPOCH) cell_int(r, "step", l->number);
    cell_int(r, "start_us", l->start);
    cell_int(r, "dur_us", l->dur);
    cell_int(r, "marker_us", l->marker);
    for (int i = 0; i < PHASES; i++)
        cell_int(r, phase_cols[i].name, l->parts[i]);
    if (l->has_device && l->dur > 0)
        cell_float(r, "device_busy_pct",
                   100.0 * (double)l->busy / (double)l->dur);
    put_bare(r, &l->bare,
             by == BY_EPOCH ? NULL : &w->bare->measured[l->source]);
    if (by != BY_EPOCH) cell_bool(r, "cut", l->cut);
    if (by == BY_DEVICE && l->device != ROW_NONE)
        cell_text(r, "device", label_device(r, t, l->source, l->device));
    if (by == BY_EPOCH) {
        cell_text(r, "epoch", l->epoch);
        cell_int(r, "steps", l->steps);
    }
}

/* Says which steps the window cuts, beside whole ones. */
static void remark_cut(struct result *r, const struct steps *w) {
    bool whole = false, cut = false;
    for (size_t i = 0; i < w->n; i++) {
        whole |= !w->rows[i].cut;
        cut |= w->rows[i].cut;
    }
    for (size_t i = 0; whole && cut && i < w->n; i++) {
        const struct step_row *l = &w->rows[i];
        if (!l->cut || (i > 0 && l[-1].cut && l[-1].number == l->number))
            continue;
        result_remark(r,
                      "Step %lld is cut: the recording began or ended in it. "
                      "It does not count in the median.",
                      (long long)l->number);
        if (w->t->nprocesses > 1) break; /* each rank's, mostly */
    }
}

/* Returns the median of a figure of the whole steps' rows, found by its offset
 * (of all, if none is whole); of an even number the lower one, which is a step
 * that exists; 0 if there are none. */
static int64_t median(const struct steps *w, size_t offset, struct result *r) {
    int64_t *v = w->n ? arena_alloc(&r->arena, w->n * sizeof *v) : NULL;
    size_t n = 0;
    bool whole = false;
    if (v == NULL) return 0;
    for (size_t i = 0; i < w->n; i++) whole |= !w->rows[i].cut;
    for (size_t i = 0; i < w->n; i++)
        if (!whole || !w->rows[i].cut)
            memcpy(&v[n++], (const char *)&w->rows[i] + offset, sizeof *v);
    qsort(v, n, sizeof *v, sort_by_value);
    return n > 0 ? v[(n - 1) / 2] : 0;
}

#define MEDIAN(member) median(w, offsetof(struct step_row, member), r)

/* Says what the step takes without its profiler, where that differs. */
static void remark_bare(struct result *r, const struct steps *w, int64_t mid) {
    enum { FELT_PERCENT = 5 }; /* below it is not worth a sentence */
    int64_t bare = MEDIAN(bare.bare);
    const struct bare_step *b = &w->rows[0].bare;
    const struct bare_measured *m = &w->bare->measured[w->rows[0].source];
    char text[96], recorded[48], how[240];
    human_time(mid, recorded, sizeof recorded);
    if (m->step > 0) {
        human_time(m->step, text, sizeof text);
        bare_measured_text(m, how, sizeof how);
        result_remark(r,
                      "Measured without the profiler: %s%s; recorded: "
                      "%s%s.",
                      text, how, recorded,
                      bare_is_handing_over(m, mid) ? ", to hand a step over"
                      : m->step >= mid ? ": profiled steps were not slower"
                                       : "");
        return;
    }
    if (b->how != BARE_ESTIMATED || mid - bare <= mid / 100 * FELT_PERCENT)
        return;
    char best[48];
    human_time(bare, best, sizeof best);
    human_times(MEDIAN(bare.low), MEDIAN(bare.high), text, sizeof text);
    result_remark(r,
                  "The profiler itself slowed this program. Without it the "
                  "median step would take some %s (%s): an estimate, time the "
                  "bare program to be sure.",
                  best, text);
}

/* Returns the most devices that one of the shown sources has; views and lines
 * are both ordered by source. */
static size_t most_devices(const struct steps *w) {
    size_t most = 0;
    for (size_t i = 0, k = 0; i < w->n; i++) {
        if (i > 0 && w->rows[i].source == w->rows[i - 1].source) continue;
        size_t n = 0;
        while (k < w->ph.nviews && w->ph.views[k].source < w->rows[i].source)
            k++;
        for (; k < w->ph.nviews && w->ph.views[k].source == w->rows[i].source;
             k++)
            n += w->ph.views[k].device != ROW_NONE;
        if (n > most) most = n;
    }
    return most;
}

/* Says what to know before reading the numbers. */
static void add_remarks(struct result *r, const struct steps *w, enum by by) {
    if (w->n == 0 || by == BY_EPOCH) return;
    remark_cut(r, w);
    int64_t mid = MEDIAN(dur);
    char median[48];
    human_time(mid, median, sizeof median);
    result_remark(r, "Median step %s.", median);
    remark_bare(r, w, mid);
    int64_t launches = w->rows[0].has_device ? 0 : missing_launches(w->t);
    if (launches > 0)
        result_remark_n(
            r, (uint64_t)launches,
            "%lld call[|s] launched device work, of which nothing is in "
            "the profile: compute is the ops of the host, not what "
            "the device did.",
            (long long)launches);
    else if (!w->rows[0].has_device)
        result_remark(r, "No device was recorded: compute is the ops of the "
                         "host.");
    size_t devices = most_devices(w);
    if (devices > 1 && by == BY_STEP)
        result_remark(r,
                      "%zu devices: the phases are their mean; --by device "
                      "shows each.",
                      devices);
}

static int steps_fill(struct steps *w, enum by by, struct result *r,
                      struct ops_err *e) {
    const struct trace *t = w->t;
    bool ok = true;
    if (by == BY_EPOCH) ok = add_epochs(w);
    if (by == BY_DEVICE) limit_devices(w);
    for (size_t i = 0; ok && by != BY_EPOCH && i < t->nsteps; i++) {
        if (w->selection.all || w->selection.step_in[i])
            ok = add_step(w, i, by);
    }
    if (!ok) return fail_oom(e);
    steps_columns(r, t, by);
    if (by != BY_DEVICE && most_devices(w) > 1) r->decimals = MEAN_DECIMALS;
    for (size_t i = 0; i < w->n; i++) put_step_row(r, w, &w->rows[i], by);
    add_remarks(r, w, by);
    if (w->idle_out > 0)
        result_remark_n(
            r, w->idle_out,
            "%zu row[|s] of devices that did nothing in a step [is|are] "
            "left out: there are more devices and steps than a "
            "machine has.",
            w->idle_out);
    if (w->other_out > 0)
        result_remark_n(
            r, w->other_out,
            "The last %zu row[ was|s were] not looked at: there are more "
            "devices and steps than a machine has.",
            w->other_out);
    if (t->nsteps == 0)
        result_missing(r, "steps", "nothing in it can be cut into steps",
                       missing_advice(t, ADVICE_STEPS));
    else missing_too(r, t, MISSING_DEVICE);
    bool epochs = false;
    for (size_t i = 0; i < w->n; i++) epochs |= w->rows[i].epoch != NULL;
    if (by == BY_EPOCH && !epochs)
        result_missing(r, "epochs",
                       "no region named \"epoch ...\" lies around "
                       "the steps",
                       missing_own(t)
                           ? "call ops_epoch(n) before the first step of each"
                           : "put a region of that name around each epoch");
    return 0;
}

static int steps_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    static const char *const names[] = {"step", "device", "epoch"};
    enum by by = BY_STEP;
    for (int i = 0; i < 3; i++)
        if (strcmp(opts_text(o, "by"), names[i]) == 0) by = (enum by)i;
    result_init(r, "steps", "Steps: how long each took, and where it went");
    result_from_trace(r, t);
    r->in_order = true;
    r->one_unit = true;
    struct steps w = {.t = t, .source = ROW_NONE};
    int rc = select_init(&w.selection, t, o, e);
    if (rc == 0) {
        rc = phases_get(&w.ph, t, e);
        if (rc == 0) rc = bare_get(&w.bare, t, e);
        if (rc == 0) rc = steps_fill(&w, by, r, e);
        phase_sums_free(&w.sums);
        select_free(&w.selection);
    }
    free(w.rows);
    return rc;
}

const struct analysis analysis_steps = {
    .name = "steps",
    .help = "how long each training step took, and where the time went",
    .row = "one step of one host",
    .opts = steps_opts,
    .run = steps_run,
};
