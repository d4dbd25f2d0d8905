/* SPDX-License-Identifier: Apache-2.0
 * counters: one row per sampled counter. The mean is by time: a sample holds
 * until the next one comes, so that a burst of samples counts no more than its
 * time. The last sample holds for no time that is known: it is not in the
 * mean, unless it is the only one. */
#include "analyze/analyze.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sum.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct sums {
    int64_t n;   /* samples that are numbers */
    int64_t odd; /* NaN and infinities */
    double min, max, last, weighted, plain;
    double time; /* ps that the samples before the last one hold */
};

static const struct column counters_cols[] = {
    {"name", NULL, NULL, "the counter's name, with its series", COL_TEXT,
     COL_KEY},
    {"device", NULL, NULL, "the device that it belongs to", COL_TEXT, 0},
    {"process", NULL, NULL, "the process that recorded it", COL_TEXT, 0},
    {"min", NULL, NULL, "smallest sample", COL_FLOAT, COL_DIGITS},
    {"mean", NULL, NULL,
     "mean over time: each sample counts until the next one", COL_FLOAT,
     COL_DIGITS},
    {"max", NULL, NULL, "largest sample", COL_FLOAT, COL_DIGITS},
    {"last", NULL, NULL, "the last sample", COL_FLOAT, COL_DIGITS},
    {"unit", NULL, NULL, "as recorded, or as the name says it", COL_TEXT, 0},
    {"samples", NULL, NULL, "how many", COL_INT, COL_MAIN},
};

static bool has(const char *name, const char *word) {
    return strstr(name, word) != NULL;
}

/* Returns the unit. Few writers record one; many write it into the name. */
static const char *unit_of(const struct trace *t, const struct counter *c) {
    const char *name = strs_text(&t->strs, c->name);
    if (c->unit != 0) return strs_text(&t->strs, c->unit);
    if (has(name, "percent") || has(name, "pct") || has(name, "%")) return "%";
    if (has(name, "bytes/s")) return "bytes/s";
    if (has(name, "(per s)")) return "/s";
    if (has(name, "bytes") || has(name, "Bytes")) return "bytes";
    return NULL;
}

/* Adds up samples [first, end) of one counter, by time. */
static struct sums add_up(const struct trace *t, const struct mem_scope *in,
                          size_t first, size_t end) {
    const struct samples *s = &t->samples;
    struct sums v = {0};
    for (size_t i = first; i < end; i++) {
        double x = s->value[i];
        if (!mem_scope_has(in, s->ts[i])) continue;
        if (!isfinite(x)) {
            v.odd++;
            continue;
        }
        if (v.n == 0 || x < v.min) v.min = x;
        if (v.n == 0 || x > v.max) v.max = x;
        v.last = x;
        v.plain = mean_step(v.plain, x, (double)++v.n);
        double held = i + 1 < end ? (double)(s->ts[i + 1] - s->ts[i]) : 0;
        if (held <= 0) continue;
        v.time += held;
        double by = x - v.weighted, share = held / v.time;
        v.weighted = isfinite(by) ? v.weighted + by * share
                                  : v.weighted * (1 - share) + x * share;
    }
    return v;
}

static void put_process(struct result *r, const struct trace *t,
                        const struct counter *c) {
    char text[400], pid[40] = "";
    if (c->pid == NO_PID) {
        cell_text(r, "process", label_source(r, t, c->source));
        return;
    }
    if (c->pid > -(1 << 30)) /* texts have numbers below that */
        snprintf(pid, sizeof pid, "%lld", (long long)c->pid);
    snprintf(text, sizeof text, "%.300s%s%s", strs_text(&t->strs, c->process),
             c->process && pid[0] ? " " : "", pid);
    cell_text(r, "process", text);
}

static void counter_row(struct result *r, const struct trace *t,
                        const struct counter *c, const struct sums *v) {
    result_row(r);
    cell_text(r, "name", strs_text(&t->strs, c->name));
    if (c->device != ROW_NONE)
        cell_text(r, "device", label_device(r, t, c->source, c->device));
    put_process(r, t, c);
    if (v->n > 0) {
        cell_float(r, "min", v->min);
        cell_float(r, "mean", v->time > 0 ? v->weighted : v->plain);
        cell_float(r, "max", v->max);
        cell_float(r, "last", v->last);
    }
    cell_text(r, "unit", unit_of(t, c));
    cell_int(r, "samples", v->n);
}

/* Which samples of a source count. */
struct source_scope {
    struct mem_scope times;
    bool in;
};

/* Puts one row per counter; samples stand by counter, then time. */
static void counter_rows(struct result *r, const struct trace *t,
                         const struct source_scope *by_source) {
    const struct samples *s = &t->samples;
    for (size_t i = 0, end; i < s->n; i = end) {
        const struct counter *c = &t->counters[s->counter[i]];
        for (end = i + 1; end < s->n && s->counter[end] == s->counter[i];)
            end++;
        if (!by_source[c->source].in) continue;
        struct sums v = add_up(t, &by_source[c->source].times, i, end);
        if (v.n + v.odd > 0) counter_row(r, t, c, &v);
        if (v.odd > 0)
            result_remark(r,
                          "%lld samples of %.100s are no numbers; they are "
                          "left out",
                          (long long)v.odd, strs_text(&t->strs, c->name));
    }
}

static int counters_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct selection scope = {0};
    struct source_scope *v = calloc(t->nsources + 1, sizeof *v);
    result_init(r, "counters", "Counters");
    result_from_trace(r, t);
    result_cols(r, counters_cols, COUNT(counters_cols));
    int rc = v ? select_init(&scope, t, o, e) : fail_oom(e);
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = mem_scope_init(&v[i].times, &scope, i, &v[i].in, e);
    if (rc == 0) counter_rows(r, t, v);
    if (rc == 0 && t->samples.n == 0)
        result_missing(r, "counters", "the profile has no sampled counter",
                       missing_own(t)
                           ? "call ops_counter(\"name\", value) where it "
                             "changes"
                           : "counters come from programs that write them: "
                             "Chrome 'C' events, CUPTI's hardware counters, "
                             "XSpace's _counters_ lines");
    else if (rc == 0 && r->nrows == 0)
        result_remark(r, "no sample lies in what was asked for");
    if (rc == 0) rc = result_done(r, e);
    for (size_t i = 0; v && i < t->nsources; i++) mem_scope_free(&v[i].times);
    free(v);
    select_free(&scope);
    return rc;
}

const struct analysis analysis_counters = {
    .name = "counters",
    .help = "sampled counters: utilisation, queue lengths, temperatures",
    .row = "one sampled counter",
    .run = counters_run,
};
