/* SPDX-License-Identifier: Apache-2.0
 * How long steps take that the program only hands over. Where it runs ahead of
 * a device, the time from one step's begin to the next one's is that of the
 * handing over, until the queue is full or somebody looks at a result. But the
 * time between two moments at which the device had nothing left to do, by the
 * steps that were begun in between, is the step, whoever waited when.
 *
 * The engine of a Python program makes such stretches, of more and more steps
 * (_capture/laps.py). Did the wait at the end of one take longer than a step of
 * it, the device was behind. */
#include "load/runs_impl.h"

#include "base/facts.h"
#include "base/sort.h"
#include "base/vec.h"
#include <stdlib.h>

enum { LONG_LAP = 24 }; /* steps; in shorter ones the begin weighs too much */

struct lap {
    int64_t ts, end, wait; /* ps; wait: -1 where it did not come to its end */
    int64_t steps;
};

struct laps {
    struct lap *v;
    size_t n, cap;
};

static int by_end(const void *a, const void *b) {
    const struct lap *x = a, *y = b;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Lists the spans of that name, by their ends. */
static bool list_spans(const struct trace *own, const char *name,
                       struct laps *out) {
    str_id id = strs_find(&own->strs, bytes_of(name));
    for (row_id r = 0; id != STR_NONE && r < own->spans.n; r++) {
        if (own->spans.name[r] != id) continue;
        if (!VEC_ROOM(out->v, out->n, out->cap)) return false;
        out->v[out->n++] = (struct lap){.ts = own->spans.ts[r],
                                        .end = span_end(own, r),
                                        .wait = -1};
    }
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_end);
    return true;
}

/* Gives each stretch the wait that ends it: the last one inside. */
static void join_waits(struct laps *laps, const struct laps *waits) {
    size_t k = 0;
    for (size_t i = 0; i < laps->n; i++) {
        struct lap *l = &laps->v[i];
        for (; k < waits->n && waits->v[k].end <= l->end; k++)
            if (waits->v[k].ts >= l->ts)
                l->wait = waits->v[k].end - waits->v[k].ts;
    }
}

/* Counts the steps that begin in each stretch; none of them overlaps another.
 * One with a step that was traced, before `from`, or without its end has
 * none. */
static void count_steps(struct laps *laps, const struct own_step *steps,
                        size_t n, int64_t from) {
    size_t k = 0;
    for (size_t i = 0; i < laps->n; i++) {
        struct lap *l = &laps->v[i];
        bool fits = l->ts >= from && l->wait >= 0;
        while (k < n && steps[k].ts < l->ts) k++;
        for (; k < n && steps[k].ts < l->end; k++) {
            l->steps++;
            fits &= !steps[k].traced;
        }
        if (!fits) l->steps = 0;
    }
}

static int64_t mean_of(const struct lap *l) {
    return (l->end - l->ts) / l->steps;
}

/* Takes the median of the long ones, since an evaluation may fall into one;
 * where there is none, of those with most steps. means has room for a number of
 * each. */
static void take_figures(const struct laps *laps, int64_t *means,
                         struct lap_figures *out) {
    int64_t least = LONG_LAP, most = 0, n = 0;
    for (size_t i = 0; i < laps->n; i++)
        if (laps->v[i].steps > most) most = laps->v[i].steps;
    if (least > most) least = most;
    *out = (struct lap_figures){0};
    for (size_t i = 0; i < laps->n && most > 0; i++) {
        if (laps->v[i].steps < least) continue;
        means[n++] = mean_of(&laps->v[i]);
        out->steps += laps->v[i].steps;
    }
    if (n == 0) return;
    qsort(means, (size_t)n, sizeof *means, sort_by_value);
    out->step = means[(n - 1) / 2] + (means[n / 2] - means[(n - 1) / 2]) / 2;
    out->low = means[0];
    out->high = means[n - 1];
    out->laps = n;
}

bool laps_measure(const struct trace *own, const struct own_step *steps,
                  size_t n, int64_t from, struct lap_figures *out,
                  bool *ahead) {
    struct laps laps = {0}, waits = {0};
    bool ok = list_spans(own, SPAN_LAP, &laps) &&
              list_spans(own, SPAN_LAP_WAIT, &waits);
    int64_t *means = ok ? malloc((laps.n + 1) * sizeof *means) : NULL;
    *ahead = false;
    ok = ok && means != NULL;
    if (ok) {
        join_waits(&laps, &waits);
        count_steps(&laps, steps, n, from);
        for (size_t i = 0; i < laps.n; i++)
            *ahead |= laps.v[i].steps > 0 &&
                      laps.v[i].wait > mean_of(&laps.v[i]);
        take_figures(&laps, means, out);
        *ahead &= out->laps > 0 && out->step > 0;
    }
    free(means);
    free(laps.v);
    free(waits.v);
    return ok;
}
