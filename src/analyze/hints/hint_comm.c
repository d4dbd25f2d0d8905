/* SPDX-License-Identifier: Apache-2.0
 * Ranks: straggler (the others wait for one of them in every collective) and
 * comm-exposed (the device waits while ranks exchange data). Without its
 * straggler a rank's collectives are shorter by the wait. An exchange that is
 * repaired runs beside the computation; it still takes its time, and a step
 * cannot get shorter than that. */
#include "analyze/hints/hint.h"

#include "analyze/analyze.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include <stdio.h>

/* Returns the row of `ranks` that all wait for, or SIZE_MAX. */
static size_t straggler(const struct hint_case *c) {
    for (size_t i = 0; c->ranks != NULL && i < c->ranks->nrows; i++) {
        struct cell is = subresult_cell(c->ranks, i, "straggler");
        if (!is.null && is.i) return i;
    }
    return SIZE_MAX;
}

/* Takes up to *left off one duration. Returns how much it took. */
static int64_t shorten(int64_t *dur, int64_t *left) {
    int64_t off = *dur < *left ? *dur : *left;
    *dur -= off;
    *left -= off;
    return off;
}

static void repair_exchange(const struct hint_case *c, struct hint_step *s,
                            struct hint_found *f) {
    const struct trace *t = c->t;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id row = s->d.works[w].row;
        if (s->trial.work[w] == WORK_GONE || s->trial.ahead[w] ||
            !span_is_comm(t, row))
            continue;
        hint_saw(f, row, s->trial.work[w]);
        f->other++;
        s->trial.ahead[w] = true;
    }
    /* With gloo and MPI the program itself sits in the exchange. Its wait for a
     * straggler, less what the trial has taken off already, stays wherever the
     * exchange stands. */
    struct cell cell = subresult_cell(c->ranks, straggler(c), "late_us");
    int64_t late = cell.null ? 0 : cell.i;
    for (uint32_t i = 0; i < s->d.line.n && late > 0; i++) {
        row_id row = s->d.line.v[i].row;
        if (row != ROW_NONE && span_is_comm(t, row))
            late -= s->d.line.v[i].dur - s->trial.host[i];
    }
    if (late < 0) late = 0;
    int64_t moved = 0, rest = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        row_id row = s->d.line.v[i].row;
        if (row == ROW_NONE || !span_is_comm(t, row) ||
            s->d.stops[i].first < s->d.stops[i].end || !s->trial.host[i])
            continue;
        int64_t moves = s->trial.host[i];
        int64_t waits = shorten(&moves, &late);
        if (moves == 0) continue;
        hint_saw(f, row, moves);
        s->trial.host[i] = waits;
        sat_inc(&moved, moves);
        last = i;
    }
    /* it runs beside the rest of the step, and still takes its time */
    for (uint32_t i = 0; i < s->d.line.n; i++) sat_inc(&rest, s->trial.host[i]);
    /* a step that is mostly exchange wants less of it, or a rank that is not
     * late: what that gives no single file tells */
    f->told |= c->nranks == 1 && moved > rest;
    if (moved > rest) sat_inc(&s->trial.host[last], moved - rest);
}

static void say_exchange(const struct hint_case *c, const struct hint_found *f,
                         struct hint_words *w) {
    char a[48], n[48], what[80];
    bool alone = c->nranks == 1; /* no other rank's file was given */
    /* the host's part is seen in pieces: they do not tell how many exchanges
     * there were, which `comm` counts */
    if (f->other == f->count)
        snprintf(what, sizeof what, "%s,",
                 hint_count(c, f->count, "collective", "collectives", n));
    else snprintf(what, sizeof what, "collectives take");
    if (alone)
        snprintf(w->title, sizeof w->title,
                 "the step waits while ranks exchange data, or for a rank that "
                 "is late");
    snprintf(w->evidence, sizeof w->evidence,
             "%s %s a step (%.0f %% of it), the longest %.*s%s", what,
             hint_time(c, f->time, a), hint_percent(c, f->time),
             CUT(120, hint_name(c, f->row)),
             alone ? "; with the files of all ranks it can be told whether "
                     "another rank is late"
                   : "");
}

const struct hint_rule hint_comm_exposed = {
    .id = "comm-exposed",
    .title = "the step waits while ranks exchange data",
    .confidence = "simulated",
    .assumes = "collectives run beside the computation and take as long as "
               "now",
    .see = "comm",
    .advice[FW_TORCH] =
        "DistributedDataParallel(model, bucket_cap_mb=100, "
        "gradient_as_bucket_view=True, static_graph=True); with "
        "gradient accumulation model.no_sync(); bf16 gradients: "
        "model.register_comm_hook(None, bf16_compress_hook)",
    .advice[FW_TF] = "fewer, larger reductions: "
                     "tf.distribute.experimental.CommunicationOptions("
                     "bytes_per_pack=50 * 1024 * 1024)",
    .advice[FW_JAX] =
        "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true "
        "lets XLA run collectives beside computation",
    .advice[FW_OTHER] =
        "start each exchange as soon as its data is ready, on a "
        "stream or thread of its own",
    .repair = repair_exchange,
    .say = say_exchange,
};

/* Shortens what the program does while a collective is under way beside its
 * line: it waits for it in some call (TensorFlow's executor). */
static void shorten_beside(const struct hint_case *c, struct hint_step *s,
                           int64_t *left) {
    const struct trace *t = c->t;
    const struct timeline *line = &s->d.line;
    const struct lists *l = &t->of_source;
    if (line->n == 0) return;
    for (size_t k = l->first[c->source]; k < l->first[c->source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind == TRACK_STREAM || tr->kind == TRACK_PYTHON) continue;
        row_id end = trace_row_at(t, tr, line->end);
        size_t i = 0; /* pieces before it were looked at; starts rise */
        for (row_id r = trace_row_at(t, tr, line->ts); r < end; r++) {
            if (*left <= 0) return;
            if (!span_is_comm(t, r)) continue;
            size_t at = timeline_at(line, t->spans.ts[r]);
            if (at > i) i = at;
            for (; *left > 0 && i < line->n; i++) {
                const struct piece *p = &line->v[i];
                if (p->ts >= span_end(t, r)) break;
                if (s->d.stops[i].first == s->d.stops[i].end)
                    shorten(&s->trial.host[i], left);
            }
        }
    }
}

static void repair_straggler(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    struct cell late = subresult_cell(c->ranks, straggler(c), "late_us");
    if (late.null) return;
    int64_t left = late.i;
    for (uint32_t w = 0; w < s->d.nworks; w++)
        if (s->trial.work[w] != WORK_GONE &&
            span_is_comm(c->t, s->d.works[w].row))
            shorten(&s->trial.work[w], &left);
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        uint32_t at = s->d.line.v[i].row;
        if (at != ROW_NONE && span_is_comm(c->t, at))
            shorten(&s->trial.host[i], &left);
    }
    if (left > 0) shorten_beside(c, s, &left);
    hint_saw(f, ROW_NONE, late.i - left);
}

static void say_straggler(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48], time[48] = "?";
    size_t row = straggler(c);
    struct cell rank = subresult_cell(c->ranks, row, "rank");
    struct cell late = subresult_cell(c->ranks, row, "late_us");
    if (!late.null) human_time(late.i, time, sizeof time);
    struct cell host = subresult_cell(c->ranks, row, "host");
    char who[80];
    if (!rank.null) snprintf(who, sizeof who, "rank %lld", (long long)rank.i);
    else snprintf(who, sizeof who, "%.*s", CUT(60, host.null ? "one" : host.s));
    snprintf(w->title, sizeof w->title,
             "all ranks wait for %s, %s in every step", who, time);
    snprintf(w->evidence, sizeof w->evidence,
             "it comes last to the collectives; %s a step of the studied "
             "rank's collectives is waiting for it. %.*s",
             hint_time(c, f->time, a),
             CUT(400, c->ranks->nremarks > 1 ? c->ranks->remarks[1] : ""));
}

const struct hint_rule hint_straggler = {
    .id = "straggler",
    .effort =
        EFFORT_PLACE, /* what others wait for is looked at before the waiting */
    .confidence = "measured",
    .assumes = "the late rank becomes as fast as the others",
    .see = "ranks",
    .advice[FW_OTHER] =
        "look at what that rank does before its collectives (opscope "
        "steps --rank N): more data, a slower loader or disk, logging or "
        "checkpoints on one rank only, a throttled device",
    .repair = repair_straggler,
    .say = say_straggler,
};
