/* SPDX-License-Identifier: Apache-2.0
 * The times in which a device does nothing inside a step, and why: each gap
 * has one cause, found from what the host did in it.
 *
 * The launch of the work that ends a gap tells who was late. A call that came
 * after the gap had begun: the host was late, and the cause is what filled
 * most of the time until the call. A call that came before: the work was
 * there, and the device itself took its time. */
#ifndef ANALYZE_STEPS_GAPS_H
#define ANALYZE_STEPS_GAPS_H

#include "base/err.h"
#include "model/trace.h"

struct phase_view;

enum idle_cause {
    IDLE_INPUT,  /* the step's thread waited for the input pipeline */
    IDLE_HOST,   /* the host ran ops or Python and was late */
    IDLE_LAUNCH, /* in a driver call, or between the call and its work */
    IDLE_SYNC,   /* the host had waited for the device, and began anew */
    IDLE_COMM,   /* a collective ran on CPUs */
    IDLE_COPY,   /* a copy made the host wait, or is being prepared */
    IDLE_START,  /* head of a step, and nothing was recorded there */
    IDLE_UNKNOWN,
    IDLE_CAUSES,
};

/* Returns the word that options and tables use: "comm-wait". */
const char *idle_cause_name(enum idle_cause c);

struct gap {
    int64_t start, end;
    row_id before, after; /* device work that ended last before it, and that
                             starts next after it; or ROW_NONE */
    row_id launch;        /* the call that launched after, or ROW_NONE */
    uint32_t step;        /* a gap over a step's border is one in each */
};

struct gaps {
    struct gap *v;
    size_t n, cap;
};

/* Finds the gaps of the view's device in its source's steps, by step, then
 * time; step_in, when not NULL, tells by step which count. Their lengths in a
 * step sum to the step less its busy time. O(device spans log streams). */
int gaps_find(struct gaps *g, const struct trace *t, const struct phase_view *v,
              const bool *step_in, struct ops_err *e);
void gaps_free(struct gaps *g);

/* What causes are found from: for each thread its driver calls. */
struct gap_host {
    const struct trace *t;
    struct gap_thread *threads; /* by track */
};

/* O(host spans). */
int gap_host_init(struct gap_host *h, const struct trace *t, struct ops_err *e);
void gap_host_free(struct gap_host *h);

/* Returns the cause of a gap of that view. O(log spans). */
enum idle_cause gap_cause(const struct gap_host *h, const struct phase_view *v,
                          const struct gap *g);

#endif
