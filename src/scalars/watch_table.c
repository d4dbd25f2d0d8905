/* SPDX-License-Identifier: Apache-2.0
 * The table of `opscope watch`. */
#include "scalars/watch_table.h"

#include "base/array.h"
#include "base/text/cut.h"
#include "model/result.h"
#include "model/trace.h"
#include "scalars/scalar_table.h"
#include "scalars/scalars.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RECENT = 20, TREND = 16 };

void watch_line_add(struct watch_line *l, double v) {
    if (l->n == WATCH_LINE) memmove(l->v, l->v + 1, --l->n * sizeof *l->v);
    l->v[l->n++] = v;
}

static int double_by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the last RECENT numbers: a pause (a checkpoint, a
 * restart) is not what a step takes. */
static double recent_median(const struct watch_line *l) {
    size_t n = l->n < RECENT ? l->n : RECENT;
    double v[RECENT];
    if (n == 0) return NAN;
    memcpy(v, l->v + l->n - n, n * sizeof *v);
    qsort(v, n, sizeof *v, double_by_size);
    return v[(n - 1) / 2] / 2 + v[n / 2] / 2;
}

struct watch_steps watch_profile_steps(const struct trace *t) {
    struct watch_steps w = {.from = "profile"};
    size_t best = 0;
    uint32_t source = ROW_NONE;
    for (uint32_t i = 0; i < t->nsources; i++) {
        size_t n = t->sources[i].step_end - t->sources[i].step_first;
        enum step_rule rule = t->sources[i].step_rule;
        if (rule != STEPS_BY_MARKER && rule != STEPS_BY_GROUP) continue;
        if (n <= best) continue;
        best = n;
        source = i;
    }
    for (size_t k = 0; source != ROW_NONE && k < t->nsteps; k++) {
        if (t->steps[k].source != source) continue;
        w.have = true;
        w.step = t->steps[k].number;
        watch_line_add(&w.line, (double)t->steps[k].dur / (double)PS_PER_S);
    }
    w.step_s = recent_median(&w.line);
    return w;
}

struct watch_steps watch_scalar_steps(const struct curves *c) {
    struct watch_steps w = {.from = "scalars"};
    const struct curve *best = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].kind == SERIES_SCALAR && c->v[i].n > 1 &&
            (best == NULL || c->v[i].n > best->n))
            best = &c->v[i];
    if (best == NULL) return w;
    size_t from = best->n > WATCH_LINE ? best->n - WATCH_LINE : 1;
    for (size_t i = from; i < best->n; i++) {
        double steps = (double)best->step[i] - (double)best->step[i - 1];
        double took = best->wall[i] - best->wall[i - 1];
        if (steps <= 0 || took < 0) continue; /* a restart, or clocks */
        w.have = true;
        watch_line_add(&w.line, took / steps);
    }
    w.step = best->step[best->n - 1];
    w.step_s = recent_median(&w.line);
    return w;
}

/* Puts one row. A value that is no number is null; unit and l may be NULL. */
static void put_metric(struct result *r, const char *metric, double value,
                       const char *unit, const struct watch_line *l,
                       bool ascii) {
    char line[SPARK_BYTES];
    result_row(r);
    cell_text(r, "metric", metric);
    cell_float(r, "value", value);
    if (unit != NULL) cell_text(r, "unit", unit);
    if (l != NULL && l->n > 0)
        cell_text(r, "trend", spark_line(l->v, l->n, TREND, ascii, line));
}

static void put_scalar(struct result *r, const struct curve *c, bool ascii) {
    char line[SPARK_BYTES];
    size_t n = c->n < 4096 ? c->n : 4096; /* the course of late */
    result_row(r);
    cell_text(r, "metric", c->tag);
    cell_text(r, "run", c->run);
    cell_int(r, "step", c->step[c->n - 1]);
    cell_float(r, "value", c->value[c->n - 1]);
    cell_text(r, "trend",
              spark_line(c->value + c->n - n, n, TREND, ascii, line));
    if (!isfinite(c->value[c->n - 1]))
        result_remark(r, "%.*s in %.*s is no number at step %lld",
                      CUT(100, c->tag), CUT(100, c->run),
                      (long long)c->step[c->n - 1]);
}

int watch_table(const struct watch_facts *f, const struct scalars *s,
                const struct scalar_view *v, struct result *r,
                struct ops_err *e) {
    struct curves c;
    bool ascii = v->ascii;
    TRY(scalars_curves(s, &c, e));
    struct watch_steps steps = watch_scalar_steps(&c);
    /* a profile may be of some steps only: the one that is further knows
     * better */
    if (f->profile.have && (!steps.have || f->profile.step >= steps.step))
        steps = f->profile;
    result_init(r, "watch", "Now");
    static const struct column cols[] = {
        {"metric", NULL, NULL, "what, or the scalar's tag", COL_TEXT, COL_KEY},
        {"run", NULL, NULL, "the scalar's run", COL_TEXT, 0},
        {"step", NULL, NULL, "the scalar's last step", COL_INT, 0},
        {"value", NULL, NULL, "how much now", COL_FLOAT, COL_DIGITS},
        {"unit", NULL, NULL, "of value", COL_TEXT, 0},
        {"trend", NULL, NULL, "its course so far", COL_TEXT, COL_WRAP},
    };
    result_cols(r, cols, COUNT(cols));
    r->in_order = true;
    bool known = steps.have, rate = known && steps.step_s > 0;
    put_metric(r, "step", known ? (double)steps.step : NAN, NULL, NULL, ascii);
    put_metric(r, "step time", known ? steps.step_s * 1e3 : NAN, "ms",
               &steps.line, ascii);
    put_metric(r, "throughput", rate ? 1 / steps.step_s : NAN, "steps/s", NULL,
               ascii);
    if (f->processes > 0) {
        put_metric(r, "memory", (double)f->rss_bytes / (1 << 20), "MiB", f->rss,
                   ascii);
        put_metric(r, "processor", f->cpu_pct, "%", NULL, ascii);
        put_metric(r, "threads", (double)f->threads, NULL, NULL, ascii);
    }
    /* a restart may have replaced all points of a curve */
    for (size_t i = 0; i < c.n && !r->oom; i++)
        if (c.v[i].kind == SERIES_SCALAR && c.v[i].n > 0 &&
            scalar_view_has(v, &c.v[i]))
            put_scalar(r, &c.v[i], ascii);
    if (steps.have) result_remark(r, "step time is from the %s", steps.from);
    else
        result_missing(r, "step time",
                       "neither a profile nor a scalar shows "
                       "two steps yet",
                       "call ops_step, or log a scalar for "
                       "each step");
    curves_free(&c);
    return scalar_done(r, e);
}
