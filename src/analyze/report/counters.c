/* SPDX-License-Identifier: Apache-2.0
 * counters: one row per sampled counter. The mean is by time: a sample holds
 * until the next one comes, so that a burst of samples counts no more than its
 * time. The last sample holds for no time that is known: it is not in the
 * mean, unless it is the only one. Samples of ranges of work (CUPTI's counters
 * of kernels) count one by one, and can be told by the op that launched
 * them. */
#include "analyze/analyze.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct opt counters_opts[] = {
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "counter|op",
     .dflt = "counter",
     .help = "op: a row for each op that launched what was counted"},
    {0},
};

struct sums {
    int64_t n;   /* samples that are numbers */
    int64_t odd; /* NaN and infinities */
    double min, max, last, weighted, plain, total;
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
    {"total", NULL, NULL,
     "their sum, of a counter whose samples are of ranges of work", COL_FLOAT,
     COL_DETAIL | COL_DIGITS},
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

/* Adds one sample, which holds for that many ps. Returns false if it is no
 * number. */
static bool add_sample(struct sums *v, double x, double held) {
    if (!isfinite(x)) {
        v->odd++;
        return false;
    }
    if (v->n == 0 || x < v->min) v->min = x;
    if (v->n == 0 || x > v->max) v->max = x;
    v->last = x;
    v->total += x;
    v->plain = mean_step(v->plain, x, (double)++v->n);
    if (held <= 0) return true;
    v->time += held;
    double by = x - v->weighted, share = held / v->time;
    v->weighted = isfinite(by) ? v->weighted + by * share
                               : v->weighted * (1 - share) + x * share;
    return true;
}

/* Adds up samples [first, end) of one counter, by time or, of ranges, one by
 * one. */
static struct sums add_up(const struct trace *t, const struct mem_scope *in,
                          size_t first, size_t end) {
    const struct samples *s = &t->samples;
    bool ranges = t->counters[s->counter[first]].ranges;
    struct sums v = {0};
    for (size_t i = first; i < end; i++) {
        if (!mem_scope_has(in, s->ts[i])) continue;
        double held = i + 1 < end ? (double)(s->ts[i + 1] - s->ts[i]) : 0;
        add_sample(&v, s->value[i], ranges ? 0 : held);
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
    cut_fmt(text, sizeof text, "%.*s%s%s",
            CUT(300, strs_text(&t->strs, c->process)),
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
    if (c->ranges && v->n > 0 && isfinite(v->total))
        cell_float(r, "total", v->total);
}

/* ---- by the op that launched what was counted ---- */

struct op_sums {
    uint32_t counter, name; /* name: of the trace, or 0: not known */
    struct sums v;
};

struct by_op {
    const struct trace *t;
    struct op_sums *v;
    size_t n, cap;
    struct map rows;           /* (counter, name) -> row */
    struct sort_key *launches; /* hi: when; lo: source */
    size_t nlaunches, cap_launches;
};

/* Lists the calls that launch, by time. Returns false if out of memory. */
static bool list_launches(struct by_op *b) {
    const struct trace *t = b->t;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (t->spans.kind[r] != SPAN_API ||
                !(span_class(t, r) & CLASS_LAUNCH))
                continue;
            if (!VEC_ROOM(b->launches, b->nlaunches, b->cap_launches))
                return false;
            b->launches[b->nlaunches++] =
                (struct sort_key){sort_signed(t->spans.ts[r]), tr->source, r};
        }
    }
    return sort_keys(b->launches, b->nlaunches);
}

/* Returns the name of the op around the launch that began at that instant; 0
 * if there is none. */
static str_id op_at(const struct by_op *b, uint32_t source, int64_t ts) {
    enum { CLIMB = 64 }; /* spans around a call that are looked at */
    const struct spans *s = &b->t->spans;
    const struct sort_key *v = b->launches;
    uint64_t at = sort_signed(ts);
    size_t i;
    BOUND(i, 0, b->nlaunches,
          v[i].hi < at || (v[i].hi == at && v[i].lo < source));
    if (i == b->nlaunches || v[i].hi != at || v[i].lo != source) return 0;
    row_id op = s->parent[v[i].row];
    for (int n = 0; op != ROW_NONE && n < CLIMB; n++, op = s->parent[op])
        if (s->kind[op] == SPAN_OP) return s->name[op];
    return 0;
}

/* Adds samples [first, end) of one counter to the rows of their ops. */
static bool add_ops(struct by_op *b, const struct mem_scope *in, size_t first,
                    size_t end) {
    const struct samples *s = &b->t->samples;
    uint32_t counter = s->counter[first];
    for (size_t i = first; i < end; i++) {
        if (!mem_scope_has(in, s->ts[i])) continue;
        str_id name = op_at(b, b->t->counters[counter].source, s->ts[i]);
        uint32_t *at = map_at(&b->rows, (uint64_t)counter << 32 | name);
        if (at == NULL) return false;
        if (*at == MAP_NONE) {
            if (!VEC_ROOM(b->v, b->n, b->cap)) return false;
            *at = (uint32_t)b->n;
            b->v[b->n++] = (struct op_sums){.counter = counter, .name = name};
        }
        add_sample(&b->v[*at].v, s->value[i], 0);
    }
    return true;
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
            result_remark_n(r, (uint64_t)v.odd,
                            "%lld sample[|s] of %.*s [is no number; it is|are "
                            "no numbers; they are] "
                            "left out",
                            (long long)v.odd,
                            CUT(100, strs_text(&t->strs, c->name)));
    }
}

static int op_rows(struct result *r, const struct trace *t,
                   const struct source_scope *by_source, struct ops_err *e) {
    const struct samples *s = &t->samples;
    struct by_op b = {.t = t};
    bool ok = list_launches(&b);
    for (size_t i = 0, end; ok && i < s->n; i = end) {
        const struct counter *c = &t->counters[s->counter[i]];
        for (end = i + 1; end < s->n && s->counter[end] == s->counter[i];)
            end++;
        if (by_source[c->source].in && c->launched)
            ok = add_ops(&b, &by_source[c->source].times, i, end);
    }
    for (size_t i = 0; ok && i < b.n; i++) {
        counter_row(r, t, &t->counters[b.v[i].counter], &b.v[i].v);
        if (b.v[i].name != 0)
            cell_text(r, "op", strs_text(&t->strs, b.v[i].name));
    }
    if (ok && b.n == 0)
        result_missing(r, "counters by op",
                       "no counter of this profile was counted for what an op "
                       "launched",
                       "PyTorch counts for each kernel with "
                       "CUPTI's range profiler: profiler metrics in "
                       "_ExperimentalConfig");
    free(b.v);
    free(b.launches);
    map_free(&b.rows);
    return ok ? 0 : fail_oom(e);
}

static int counters_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct selection scope = {0};
    struct source_scope *v = calloc(t->nsources + 1, sizeof *v);
    result_init(r, "counters", "Counters");
    result_from_trace(r, t);
    result_cols(r, counters_cols, COUNT(counters_cols));
    bool by_op = strcmp(opts_text(o, "by"), "op") == 0;
    if (by_op)
        result_col(r, (struct column){"op", NULL, NULL,
                                      "the op that launched what was counted",
                                      COL_TEXT, COL_ASKED});
    int rc = v ? select_init(&scope, t, o, e) : fail_oom(e);
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = mem_scope_init(&v[i].times, &scope, i, &v[i].in, e);
    if (rc == 0 && by_op) rc = op_rows(r, t, v, e);
    if (rc == 0 && !by_op) counter_rows(r, t, v);
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
    .opts = counters_opts,
    .run = counters_run,
};
