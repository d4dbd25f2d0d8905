/* SPDX-License-Identifier: Apache-2.0
 * idle: one row per device and cause of its idleness. Every gap inside a step
 * goes to one cause, so that the rows of a device sum to its idle time: the
 * length of the steps less the time in which it did any work. */
#include "analyze/analyze.h"

#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/phases.h"
#include "analyze/steps/gaps.h"
#include "base/array.h"
#include "base/sum.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

/* All gaps of one cause on one device. */
struct cause_sum {
    int64_t gaps, total;
    int64_t input;    /* of total: the step's thread waited for its input */
    struct gap worst; /* the first of the longest */
};

struct idle {
    const struct trace *t;
    struct selection selection;
    struct phases ph;
    struct gap_host host;
    struct host_tree tree;
    int64_t shown;    /* devices ... */
    wide idle, whole; /* ... and their time idle and in steps */
    /* the time in which the steps' thread waited for input, and that of the
     * gaps that this explains best */
    wide input, input_gaps;
    /* causes not known: there is no launch record, or the work was ready */
    int64_t no_launch, ready;
    size_t left;   /* pairs of a device and a step that are still looked at */
    size_t passed; /* devices that were not, for there were too many */
};

/* So many pairs of a device and a step are looked at: a file may have any
 * number of both. */
enum { ANY_PAIRS = 1 << 18, PAIRS_PER_SPAN = 8 };

static int64_t gap_length(const struct gap *g) { return g->end - g->start; }

/* Says who launched that device work; where that is not known, what ran. */
static void put_op(struct result *r, const char *col, const struct idle *d,
                   row_id work) {
    const struct trace *t = d->t;
    if (work == ROW_NONE) return;
    row_id call = trace_launch_of(t, work), op = ROW_NONE;
    struct bytes name = {0};
    if (call != ROW_NONE) op = host_tree_launcher_name(&d->tree, call);
    if (op == ROW_NONE || t->spans.kind[op] == SPAN_ANNOTATION)
        name = kernel_hlo_op(t, work);
    if (op == ROW_NONE || span_is_step_mark(t, op)) op = work;
    if (name.n == 0) name = strs_bytes(&t->strs, t->spans.name[op]);
    if (name.n > 0) cell_str(r, col, name);
}

static void idle_columns(struct result *r, const struct trace *t) {
    const struct column cols[] = {
        {"device", NULL, NULL, "The device that was idle.", COL_TEXT,
         t->ndevices > 1 ? 0 : COL_DETAIL},
        {"cause", NULL, NULL,
         "Why: input (the program waited for data), host (it ran ops or "
         "Python and came late), launch (a driver call, or its way to the "
         "device), sync (it had waited for the device), comm-wait, copy-wait, "
         "start (a step began and nothing was recorded), unknown.",
         COL_TEXT, COL_KEY},
        {"gaps", NULL, NULL, "How many stretches without any work.", COL_INT,
         0},
        {"total_us", "total", "us", "Their length together.", COL_TIME,
         COL_MAIN},
        {"share_pct", "share", "%", "Part of the device's idle time.",
         COL_PERCENT, COL_BAR},
        {"worst_us", "worst", "us", "The longest of them.", COL_TIME, 0},
        {"worst_at_us", "worst at", "us", "When the longest began.", COL_TIME,
         COL_STAMP | COL_LESS},
        {"op_before", "op before", NULL,
         "Who had launched the work that ran before the longest.", COL_TEXT,
         COL_SYMBOL},
        {"op_after", "op after", NULL,
         "Who launched the work that ended the longest.", COL_TEXT, COL_SYMBOL},
        {"input_us", "of it input", "us",
         "Of total_us: the step's thread waited for its input, whatever else "
         "made the gap. All rows of a device: the input phase of `steps`.",
         COL_TIME, COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

/* Adds the rows of a device, the largest cause first. */
static void put_device(struct result *r, const struct idle *d,
                       const struct phase_view *v,
                       const struct cause_sum by[IDLE_CAUSES], int64_t idle) {
    bool done[IDLE_CAUSES] = {false};
    for (int n = 0; n < IDLE_CAUSES; n++) {
        int best = -1;
        for (int c = 0; c < IDLE_CAUSES; c++)
            if (!done[c] && by[c].gaps > 0 &&
                (best < 0 || by[c].total > by[best].total))
                best = c;
        if (best < 0) return;
        done[best] = true;
        const struct cause_sum *s = &by[best];
        result_row(r);
        cell_text(r, "device", label_device(r, d->t, v->source, v->device));
        cell_text(r, "cause", idle_cause_name((enum idle_cause)best));
        cell_int(r, "gaps", s->gaps);
        cell_int(r, "total_us", s->total);
        if (idle > 0)
            cell_float(r, "share_pct", 100.0 * (double)s->total / (double)idle);
        cell_int(r, "worst_us", gap_length(&s->worst));
        cell_int(r, "worst_at_us", s->worst.start);
        put_op(r, "op_before", d, s->worst.before);
        put_op(r, "op_after", d, s->worst.after);
        cell_int(r, "input_us", s->input);
    }
}

static int add_device(struct idle *d, const struct phase_view *v,
                      struct result *r, struct ops_err *e) {
    struct gaps g;
    struct cause_sum by[IDLE_CAUSES] = {{0}};
    int64_t whole = 0, busy = 0, idle = 0; /* in the steps that count */
    TRY(gaps_find(&g, d->t, v, d->selection.all ? NULL : d->selection.step_in,
                  e));
    for (size_t i = 0; i < g.n; i++) {
        int64_t length = gap_length(&g.v[i]);
        enum idle_cause c = gap_cause(&d->host, v, &g.v[i]);
        if (by[c].gaps == 0 || length > gap_length(&by[c].worst))
            by[c].worst = g.v[i];
        by[c].gaps++;
        sat_inc(&by[c].total, length);
        int64_t input = phases_host(v, g.v[i].start, g.v[i].end).input;
        sat_inc(&by[c].input, input);
        d->input += input;
        if (c == IDLE_INPUT) d->input_gaps += length;
        sat_inc(&idle, length);
        if (c != IDLE_UNKNOWN || g.v[i].after == ROW_NONE) continue;
        sat_inc(g.v[i].launch == ROW_NONE ? &d->no_launch : &d->ready, length);
    }
    gaps_free(&g);
    const struct source *s = &d->t->sources[v->source];
    for (size_t i = s->step_first; i < s->step_end; i++) {
        const struct step *st = &d->t->steps[i];
        if (!d->selection.all && !d->selection.step_in[i]) continue;
        sat_inc(&whole, st->dur);
        sat_inc(&busy, intervals_overlap(&v->busy, st->ts, st->ts + st->dur));
    }
    /* the promise of this analysis; sums of hostile times stop at the limit */
    assert(idle == sat_sub(whole, busy) || whole == INT64_MAX);
    put_device(r, d, v, by, idle);
    d->shown++;
    d->idle += idle;
    d->whole += whole;
    return 0;
}

static void add_remarks(struct result *r, const struct idle *d) {
    if (d->shown > 0 && d->whole > 0)
        result_remark(r,
                      "%s busy for %.1f %% of %.3f ms in steps and idle "
                      "for %.3f ms.",
                      d->shown == 1 ? "The device was"
                                    : "The devices together were",
                      100.0 - 100.0 * (double)d->idle / (double)d->whole,
                      (double)d->whole / PS_PER_MS,
                      (double)d->idle / PS_PER_MS);
    /* a gap goes to its largest part: say the phase's figure where it is
     * another one */
    wide off = d->input - d->input_gaps;
    if (d->idle > 0 && (off < 0 ? -off : off) > d->idle / 100)
        result_remark(r,
                      "The program waited for its input in %.3f ms of that, as "
                      "in `steps`; the row `input` has whole gaps of which "
                      "input is the largest part.",
                      (double)d->input / PS_PER_MS);
    if (d->passed > 0)
        result_remark_n(
            r, d->passed,
            "%zu more device[ was|s were] not looked at: there are more "
            "devices and steps than a machine has.",
            d->passed);
    if (d->no_launch > 0)
        result_remark(r,
                      "%.3f ms are unknown because the launch of the work "
                      "that ended the gap was not recorded.",
                      (double)d->no_launch / PS_PER_MS);
    /* below 5 % it is not worth a sentence */
    if (d->ready > d->idle / 20)
        result_remark(r,
                      "%.3f ms are unknown although work was launched and "
                      "ready: does another process use the device?",
                      (double)d->ready / PS_PER_MS);
}

static int idle_fill(struct idle *d, struct result *r, struct ops_err *e) {
    TRY(phases_get(&d->ph, d->t, e));
    TRY(gap_host_init(&d->host, d->t, e));
    TRY(host_tree_get(&d->tree, d->t, e));
    for (size_t i = 0; i < d->ph.nviews; i++) {
        const struct phase_view *v = &d->ph.views[i];
        if (v->device == ROW_NONE) continue;
        if (!d->selection.all && !d->selection.source_in[v->source]) continue;
        const struct source *s = &d->t->sources[v->source];
        size_t steps = s->step_end - s->step_first;
        if (steps > d->left) {
            d->passed++;
            continue;
        }
        d->left -= steps;
        TRY(add_device(d, v, r, e));
    }
    add_remarks(r, d);
    return result_done(r, e);
}

static int idle_run(const struct trace *t, const struct opts *o,
                    struct result *r, struct ops_err *e) {
    struct idle d = {.t = t, .left = ANY_PAIRS + PAIRS_PER_SPAN * t->spans.n};
    result_init(r, "idle", "Idle devices: why they had nothing to do");
    result_from_trace(r, t);
    missing_say(r, t, MISSING_DEVICE);
    idle_columns(r, t);
    r->in_order = true; /* by device, then by time */
    int rc = select_init(&d.selection, t, o, e);
    if (rc == 0) rc = idle_fill(&d, r, e);
    gap_host_free(&d.host);
    select_free(&d.selection);
    return rc;
}

const struct analysis analysis_idle = {
    .name = "idle",
    .help = "why each device had nothing to do, from what the host did then",
    .row = "one cause of a device's idleness",
    .run = idle_run,
};
