/* SPDX-License-Identifier: Apache-2.0
 * The tables of `opscope scalars`. A value that is no number is never part of a
 * figure: such values are counted, and a remark says where they began. */
#include "scalars/scalar_table.h"

#include "base/array.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/glob.h"
#include "base/vec.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ODD_SAID = 10 }; /* tags with a sentence of their own */

/* The figures of one curve. */
struct figures {
    size_t n, odd;       /* points; of them NaN or infinite */
    int64_t first, last; /* steps, in order of time */
    double min, max, mean, rate;
    double value;     /* the last one */
    int64_t odd_from; /* step at which the last stretch of odd ones began */
    bool odd_now;     /* that stretch reaches the end */
};

static bool step_in(const struct scalar_view *v, int64_t step) {
    return !v->by_step || (step >= v->from && step <= v->to);
}

bool scalar_view_has(const struct scalar_view *v, const struct curve *c) {
    return (v->run == NULL || glob_match(v->run, c->run)) &&
           (v->tag == NULL || glob_match(v->tag, c->tag));
}

static struct figures figures_of(const struct scalar_view *v,
                                 const struct curve *c) {
    struct figures f = {.min = NAN, .max = NAN, .rate = NAN, .value = NAN};
    double from = 0, to = 0;
    for (size_t i = 0; i < c->n; i++) {
        double x = c->value[i];
        if (!step_in(v, c->step[i])) continue;
        if (f.n == 0) {
            f.first = c->step[i];
            from = c->wall[i];
        }
        f.n++;
        f.last = c->step[i];
        to = c->wall[i];
        f.value = x;
        if (c->kind != SERIES_SCALAR) continue;
        if (isfinite(x)) {
            f.odd_now = false;
            f.min = fmin(f.min, x);
            f.max = fmax(f.max, x);
            continue;
        }
        if (!f.odd_now) f.odd_from = c->step[i];
        f.odd_now = true;
        f.odd++;
    }
    if (c->kind == SERIES_HISTOGRAM) {
        f.min = c->min;
        f.max = c->max;
    }
    double mean = 0;
    size_t have = 0;
    for (size_t i = c->n; i-- > 0 && (v->window == 0 || have < v->window);)
        if (step_in(v, c->step[i]) && isfinite(c->value[i]))
            mean = mean_step(mean, c->value[i], (double)++have);
    f.mean = have > 0 ? mean : NAN;
    if (f.n > 1 && to > from) f.rate = (double)(f.n - 1) / (to - from);
    return f;
}

enum { HEIGHTS = 8, FLAT = 3 };

/* Returns the mean of the finite ones; NAN if there are none. */
static double finite_mean(const double *v, size_t n) {
    double mean = 0;
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) mean = mean_step(mean, v[i], (double)++have);
    return have > 0 ? mean : NAN;
}

/* Returns which of the heights v has between lo and hi. */
static int spark_height(double v, double lo, double hi) {
    if (!(hi > lo)) return FLAT;
    /* it is halved, so that the distance of two large numbers stays finite */
    double share = (v / 2 - lo / 2) / (hi / 2 - lo / 2);
    int h = (int)(share * HEIGHTS);
    return h < 0 ? 0 : h >= HEIGHTS ? HEIGHTS - 1 : h;
}

char *spark_line(const double *v, size_t n, size_t width, bool ascii,
                 char buf[SPARK_BYTES]) {
    static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄",
                                                "▅", "▆", "▇", "█"};
    static const char *const plain[HEIGHTS] = {"_", ".", ",", "-",
                                               "~", "=", "+", "#"};
    double mean[SPARK_CHARS], lo = NAN, hi = NAN;
    if (width > SPARK_CHARS) width = SPARK_CHARS;
    size_t places = n < width ? n : width;
    for (size_t i = 0; i < places; i++) {
        size_t from = (size_t)((double)n * (double)i / (double)places);
        size_t to = (size_t)((double)n * (double)(i + 1) / (double)places);
        if (i + 1 == places) to = n;
        assert(from <= to && to <= n);
        mean[i] = finite_mean(v + from, to - from);
        lo = fmin(lo, mean[i]);
        hi = fmax(hi, mean[i]);
    }
    char *p = buf;
    for (size_t i = 0; i < places; i++) {
        const char *c = "x";
        if (!isnan(mean[i]))
            c = (ascii ? plain : blocks)[spark_height(mean[i], lo, hi)];
        size_t len = strlen(c);
        memcpy(p, c, len);
        p += len;
    }
    *p = '\0';
    return buf;
}

static void scalar_columns(struct result *r, const struct scalar_view *v) {
    static const struct column cols[] = {
        {"run", NULL, NULL, "the folder that the event files lie in", COL_TEXT,
         0},
        {"tag", NULL, NULL, "what the program called it", COL_TEXT, COL_KEY},
        {"kind", NULL, NULL,
         "scalar, histogram, text, image, audio, hparams or other", COL_TEXT,
         0},
        {"points", NULL, NULL, "how many, without those done again", COL_INT,
         0},
        {"first_step", NULL, NULL, "the step of the first one", COL_INT,
         COL_DETAIL},
        {"last_step", "step", NULL, "the step of the last one", COL_INT, 0},
        {"last", NULL, NULL, "the last value; of a histogram its mean",
         COL_FLOAT, COL_MAIN | COL_DIGITS},
        {"min", NULL, NULL, "the smallest value", COL_FLOAT, COL_DIGITS},
        {"max", NULL, NULL, "the largest value", COL_FLOAT, COL_DIGITS},
        {"mean", NULL, NULL, "the mean of the last values (--window)",
         COL_FLOAT, COL_DIGITS},
        {"per_s", "per s", NULL, "points per second of wall time", COL_FLOAT,
         COL_DIGITS},
        {"odd", NULL, NULL, "points that are NaN or infinite", COL_INT,
         COL_DETAIL},
        {"text", NULL, NULL, "the last text, or the last histogram in words",
         COL_TEXT, COL_BELOW},
    };
    result_cols(r, cols, COUNT(cols));
    if (v->spark > 0)
        result_col(r, (struct column){"trend", NULL, NULL,
                                      "all of it, from the first to the last",
                                      COL_TEXT, COL_ASKED | COL_WRAP});
    r->in_order = true;
}

static void put_curve(struct result *r, const struct scalar_view *v,
                      const struct curve *c, const struct figures *f) {
    const struct histogram *h = &c->last->last;
    const char *text = c->last->text;
    size_t from = 0, to = c->n;
    char buf[200], line[SPARK_BYTES];
    result_row(r);
    cell_text(r, "run", c->run);
    cell_text(r, "tag", c->tag);
    cell_text(r, "kind", series_kind_name(c->kind));
    cell_int(r, "points", (int64_t)f->n);
    cell_int(r, "first_step", f->first);
    cell_int(r, "last_step", f->last);
    cell_float(r, "last", f->value);
    cell_float(r, "min", f->min);
    cell_float(r, "max", f->max);
    cell_float(r, "mean", f->mean);
    cell_float(r, "per_s", f->rate);
    if (c->kind == SERIES_SCALAR) cell_int(r, "odd", (int64_t)f->odd);
    if (c->kind == SERIES_TEXT && text != NULL) /* its first line */
        cell_str(r, "text",
                 (struct bytes){(const uint8_t *)text, strcspn(text, "\r\n")});
    if (c->kind == SERIES_HISTOGRAM) {
        snprintf(buf, sizeof buf,
                 "%.0f values, %.4g to %.4g, %" PRIu64 " buckets", h->num,
                 h->min, h->max, h->buckets);
        cell_text(r, "text", buf);
    }
    if (v->spark == 0 ||
        (c->kind != SERIES_SCALAR && c->kind != SERIES_HISTOGRAM))
        return;
    while (from < to && !step_in(v, c->step[from])) from++;
    while (to > from && !step_in(v, c->step[to - 1])) to--;
    cell_text(r, "trend",
              spark_line(c->value + from, to - from, v->spark, v->ascii, line));
}

/* Says for each run, whose curves stand together, that it was restarted. */
static void remark_restarts(struct result *r, const struct curve *v, size_t n) {
    for (size_t i = 0, end; i < n; i = end) {
        size_t replaced = 0, tags = 0, merged = 0;
        int64_t step = 0;
        for (end = i; end < n && strcmp(v[i].run, v[end].run) == 0; end++) {
            merged += v[end].interleaved;
            if (v[end].replaced == 0) continue;
            replaced += v[end].replaced;
            step = v[end].restarted;
            tags++;
        }
        if (tags > 0)
            result_remark_n(
                r, replaced,
                "%.*s was started again from step %" PRId64
                ": %zu point[|s] of %zu tag%s from before [is|are] left out",
                CUT(100, v[i].run), step, replaced, tags, tags == 1 ? "" : "s");
        if (merged > 0)
            result_remark_n(
                r, merged,
                "%.*s: %zu tag[ stands|s stand] in several files written "
                "at the same time; [its|their] points are merged by time",
                CUT(100, v[i].run), merged);
    }
}

int scalar_done(struct result *r, struct ops_err *e) {
    int rc = result_done(r, e);
    if (rc != 0) result_free(r);
    return rc;
}

int scalar_table(const struct scalars *s, const struct scalar_view *v,
                 struct result *r, struct ops_err *e) {
    struct curves c;
    TRY(scalars_curves(s, &c, e));
    result_init(r, "scalars", "Scalars");
    scalar_columns(r, v);
    size_t odd = 0;
    for (size_t i = 0; i < c.n && !r->oom; i++) {
        if (!scalar_view_has(v, &c.v[i])) continue;
        struct figures f = figures_of(v, &c.v[i]);
        if (f.n == 0) continue;
        put_curve(r, v, &c.v[i], &f);
        if (f.odd > 0 && odd++ < ODD_SAID) {
            if (f.odd_now)
                result_remark_n(
                    r, f.odd,
                    "%.*s in %.*s is %s since step %" PRId64
                    " (%zu of %zu points [is no number|are no numbers])",
                    CUT(100, c.v[i].tag), CUT(100, c.v[i].run),
                    isnan(f.value) ? "NaN"
                    : f.value > 0  ? "infinite"
                                   : "minus infinite",
                    f.odd_from, f.odd, f.n);
            else
                result_remark(r,
                              "%.*s in %.*s was NaN or infinite at %zu of %zu "
                              "points, the last time from step %" PRId64
                              " on; numbers "
                              "came again",
                              CUT(100, c.v[i].tag), CUT(100, c.v[i].run), f.odd,
                              f.n, f.odd_from);
        }
    }
    if (odd > ODD_SAID)
        result_remark_n(
            r, odd - ODD_SAID,
            "%zu more tag[ has|s have] NaN or infinite values: see the "
            "column odd",
            odd - ODD_SAID);
    remark_restarts(r, c.v, c.n);
    if (c.n > 0 && r->nrows == 0)
        result_remark_n(
            r, c.n,
            "no run, tag or step is as asked for; there [is|are] %zu "
            "tag[|s]",
            c.n);
    curves_free(&c);
    return scalar_done(r, e);
}

static void put_point(struct result *r, const struct curve *c, size_t i) {
    double x = c->value[i];
    result_row(r);
    cell_text(r, "run", c->run);
    cell_text(r, "tag", c->tag);
    cell_int(r, "step", c->step[i]);
    cell_float(r, "wall_time", c->wall[i]);
    cell_float(r, "elapsed_s", c->wall[i] - c->wall[0]);
    cell_float(r, "value", x);
    if (!isfinite(x))
        cell_text(r, "odd", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static void points_columns(struct result *r) {
    static const struct column cols[] = {
        {"run", NULL, NULL, "the folder that the event files lie in", COL_TEXT,
         0},
        {"tag", NULL, NULL, "what the program called it", COL_TEXT, COL_KEY},
        {"step", NULL, NULL, "the step", COL_INT, 0},
        {"wall_time", NULL, "s", "when, in Unix seconds", COL_FLOAT,
         COL_DETAIL},
        {"elapsed_s", "elapsed", "s", "seconds since the tag's first point",
         COL_FLOAT, 0},
        {"value", NULL, NULL, "the value; null: see odd", COL_FLOAT,
         COL_MAIN | COL_DIGITS},
        {"odd", NULL, NULL, "nan, inf or -inf, where it is no number", COL_TEXT,
         0},
    };
    result_init(r, "scalars", "Points");
    result_cols(r, cols, COUNT(cols));
    r->in_order = true;
}

int scalar_points(const struct scalars *s, const struct scalar_view *v,
                  struct result *r, struct ops_err *e) {
    struct curves c;
    TRY(scalars_curves(s, &c, e));
    points_columns(r);
    for (size_t k = 0; k < c.n && !r->oom; k++) {
        if (c.v[k].kind != SERIES_SCALAR || !scalar_view_has(v, &c.v[k]))
            continue;
        for (size_t i = 0; i < c.v[k].n && !r->oom; i++)
            if (step_in(v, c.v[k].step[i])) put_point(r, &c.v[k], i);
    }
    remark_restarts(r, c.v, c.n);
    curves_free(&c);
    return scalar_done(r, e);
}

void scalar_cursor_free(struct scalar_cursor *c) {
    free(c->seen);
    *c = (struct scalar_cursor){0};
}

int scalar_new_points(const struct scalars *s, const struct scalar_view *v,
                      struct scalar_cursor *seen, struct result *r,
                      struct ops_err *e) {
    for (; seen->n < s->nseries; seen->n++) {
        if (!VEC_ROOM(seen->seen, seen->n, seen->cap)) return fail_oom(e);
        seen->seen[seen->n] = 0;
    }
    points_columns(r);
    for (size_t k = 0; k < s->nseries && !r->oom; k++) {
        const struct series *x = &s->series[k];
        struct curve c = {
            .run = strs_text(&s->strs, s->files[x->file].run),
            .tag = strs_text(&s->strs, x->tag),
            .kind = x->kind,
            .n = x->n,
            .step = x->step,
            .wall = x->wall,
            .value = x->value,
        };
        size_t i = seen->seen[k] <= x->n ? seen->seen[k] : 0;
        seen->seen[k] = x->n;
        if (x->kind != SERIES_SCALAR || !scalar_view_has(v, &c)) continue;
        for (; i < x->n && !r->oom; i++)
            if (step_in(v, x->step[i])) put_point(r, &c, i);
    }
    return scalar_done(r, e);
}
