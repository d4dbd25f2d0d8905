/* SPDX-License-Identifier: Apache-2.0
 * When was a capture taken that does not say so? TensorFlow 2.15, JAX 0.4.20
 * and those before them count a trace's times from a zero of its own. But each
 * step is marked in the framework's trace and a moment later in opscope's
 * recording, by the same number: where steps follow each other by the same
 * numbers in both, the least distance of two marks is that of the zeros, and
 * half a dozen microseconds more at most. */
#include "load/runs_impl.h"

#include "base/facts.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <stdlib.h>
#include <string.h>

struct mark {
    int64_t ts, number;
};

struct marks {
    struct mark *v;
    size_t n, cap;
};

/* A place in the recording at which the capture may have begun. */
struct fit {
    size_t steps;   /* that both have there, one after the other */
    int64_t zero;   /* ps of the recording: the capture's zero */
    int64_t spread; /* of what the steps say of it */
};

static int by_time(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

/* Lists the marks of steps by their time. Returns false if out of memory. */
static bool list_marks(const struct trace *t, struct marks *out) {
    for (size_t i = 0; i < t->step_hints.n; i++) {
        const struct step_hint *h = &t->step_hints.v[i];
        if ((t->spans.flags[h->row] & SPAN_STEPMARK) == 0) continue;
        if (!VEC_ROOM(out->v, out->n, out->cap)) return false;
        out->v[out->n++] = (struct mark){t->spans.ts[h->row], h->number};
    }
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_time);
    return true;
}

/* Was a tracer on at that time of the recording? */
static bool was_tracing(const struct trace *own, int64_t ts) {
    for (row_id r = 0; r < own->spans.n; r++)
        if (own->spans.ts[r] <= ts && ts <= span_end(own, r) &&
            strncmp(strs_text(&own->strs, own->spans.name[r]), SPAN_TRACED_BY,
                    sizeof SPAN_TRACED_BY - 1) == 0)
            return true;
    return false;
}

static struct fit fit_at(const struct marks *own, size_t at,
                         const struct marks *steps) {
    struct fit f = {0, INT64_MAX, 0};
    int64_t most = INT64_MIN;
    while (f.steps < steps->n && at + f.steps < own->n &&
           own->v[at + f.steps].number == steps->v[f.steps].number) {
        int64_t zero = own->v[at + f.steps].ts - steps->v[f.steps].ts;
        if (zero < f.zero) f.zero = zero;
        if (zero > most) most = zero;
        f.steps++;
    }
    if (f.steps > 0) f.spread = most - f.zero;
    return f;
}

/* Finds the place that more steps, or the same more evenly, speak for. Where
 * two are alike there is none, and best->steps is 0. */
static void find_fit(const struct trace *t, const struct marks *own,
                     const struct marks *steps, struct fit *best) {
    bool alike = false;
    *best = (struct fit){0};
    for (size_t i = 0; i < own->n && steps->n > 0; i++) {
        if (own->v[i].number != steps->v[0].number ||
            !was_tracing(t, own->v[i].ts))
            continue;
        struct fit f = fit_at(own, i, steps);
        if (f.steps < best->steps) continue;
        if (f.steps == best->steps && f.spread >= best->spread) {
            alike |= f.spread == best->spread;
            continue;
        }
        *best = f;
        alike = false;
    }
    if (alike) best->steps = 0;
}

bool clock_by_steps(struct loaded_file *capture, const struct loaded_file *own,
                    bool *oom) {
    struct trace *t = capture->t;
    struct marks marks = {0}, steps = {0};
    struct fit best = {0};
    bool ok = list_marks(own->t, &marks) && list_marks(t, &steps);
    if (ok) find_fit(own->t, &marks, &steps, &best);
    free(marks.v);
    free(steps.v);
    *oom |= !ok;
    if (best.steps == 0) return false;
    t->epoch_ns = own->t->epoch_ns + best.zero / PS_PER_NS;
    t->sources[0].has_clock = true;
    t->notes[NOTE_CLOCK_UNKNOWN] = 0;
    trace_note(t, NOTE_CLOCK_BY_STEPS, 1);
    return true;
}
