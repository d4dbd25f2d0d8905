/* SPDX-License-Identifier: Apache-2.0
 * The bare step: what a step takes without its profiler. There is one figure
 * for each step of a trace, worked out once, and every command shows that.
 *
 * Somebody may have measured it (FACT_BARE_STEP_US). Else what recording cost
 * (overhead.h) is taken off where it arose, and the step is run again
 * (replay.h), as it was and as it would have been: what the second run is
 * shorter by is what the profiler cost the step. A host that waits for its
 * device does not get quicker by having less to record. */
#ifndef ANALYZE_STEPS_BARE_H
#define ANALYZE_STEPS_BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_err;
struct trace;

/* How the bare step is known, the strongest first. */
enum bare_how {
    BARE_MEASURED,  /* somebody ran the program without the profiler */
    BARE_RECORDED,  /* the recorder costs next to nothing, or tells its cost */
    BARE_ESTIMATED, /* and low, high say how well */
    BARE_UNKNOWN,   /* nobody knows what the recorder costs: as recorded */
};

/* Never less than the device was busy, never more than the step as recorded. */
struct bare_step {
    int64_t dur, busy; /* ps: as recorded; the device's work, mean of several */
    int64_t bare, low, high; /* ps; low <= bare <= high */
    int64_t events;          /* host events that were recorded in it */
    enum bare_how how;
};

/* What somebody measured of a source's steps, ps; -1: nobody did. */
struct bare_measured {
    int64_t step;      /* the median; with laps the mean of the middle one */
    int64_t steps;     /* of how many; -1: not told, nor the others */
    int64_t low, high; /* one in ten is below, one in ten above; with laps
                          the least and the most mean of one */
    int64_t laps;      /* stretches from an idle device to an idle device, where
                          the program runs ahead of it; else -1 */
};

/* Of a whole trace. */
struct bare {
    struct bare_step *steps;        /* by step */
    struct bare_measured *measured; /* by source */
};

/* Is the step as recorded only what the program takes to hand it over? */
bool bare_is_handing_over(const struct bare_measured *m, int64_t recorded);

/* Says, in parentheses, how it was measured: "" if that is not told. */
void bare_measured_text(const struct bare_measured *m, char *buf, size_t n);

/* Gets it for a trace, which keeps it for all analyses. O(spans log spans) the
 * first time. */
int bare_get(const struct bare **b, const struct trace *t, struct ops_err *e);

/* Finds the medians of a source's steps, of each figure its own (of an even
 * number the lower one). `in` tells which steps count, NULL: all; those that
 * the window cuts do not, beside whole ones. how is that of most of them.
 * Returns false if none counts, or no memory, which e tells. */
bool bare_typical(const struct bare *b, const struct trace *t, uint32_t source,
                  const bool *in, struct bare_step *out, struct ops_err *e);

/* Returns the word for it in tables; NULL for BARE_UNKNOWN. */
const char *bare_word(enum bare_how how);

#endif
