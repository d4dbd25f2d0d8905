/* SPDX-License-Identifier: Apache-2.0
 * Where a step's time goes. Every instant of a step belongs to exactly one
 * phase: the first in this order that is going on at that instant. So the
 * phases of a step sum to its length, to the picosecond. */
#ifndef ANALYZE_PHASES_H
#define ANALYZE_PHASES_H

#include "analyze/intervals.h"
#include "base/err.h"
#include "base/sum.h"
#include "model/trace.h"

enum phase {
    PHASE_COMPUTE, /* a kernel runs; with no device: an op */
    PHASE_COMM,    /* a collective runs, on the device or (gloo, MPI) on CPUs */
    PHASE_COPY,    /* a copy or fill runs on the device */
    PHASE_INPUT,   /* the step's thread waits for the input pipeline */
    PHASE_LAUNCH,  /* a driver call runs */
    PHASE_HOST,    /* an op or region runs on the host */
    PHASE_OTHER,   /* nothing known: Python between ops, or nothing */
    PHASES,
};

/* One device's view of a source (or the one view of a source without). */
struct phase_view {
    uint32_t source;
    uint32_t device; /* index in devices, or ROW_NONE */
    /* What is claimed after each phase in the order of claiming; cum[i] holds
     * cum[i - 1]. */
    struct intervals cum[PHASES - 1];
    struct intervals busy; /* any work on the device */
};

struct phases {
    const struct trace *t;
    struct phase_view *views;
    size_t nviews, cap_views;
};

/* Works out the views of all sources. O(spans log spans) at worst. */
int phases_init(struct phases *p, const struct trace *t, struct ops_err *e);
void phases_free(struct phases *p);

/* How [start, end) splits by that view: parts sum to end - start. */
void phases_split(const struct phase_view *v, int64_t start, int64_t end,
                  int64_t parts[PHASES]);

/* The time that the phase claims by that view, as a set: out must be empty.
 * False: out of memory, or PHASE_OTHER, which is no set. */
bool phases_claim(const struct phase_view *v, enum phase phase,
                  struct intervals *out);

/* When a kernel, collective or copy ran or the step's thread waited for input
 * (with no device: or an op ran): a union. */
const struct intervals *phases_occupied(const struct phase_view *v);

/* The mean of n devices' parts, of which sum holds the sums, by largest
 * remainder: the parts still sum to the whole, to the picosecond. A result that
 * shows them prints picoseconds (MEAN_DECIMALS). */
void phases_mean(const wide sum[PHASES], int64_t n, int64_t parts[PHASES]);
enum { MEAN_DECIMALS = 6 };

/* The thread whose markers are the source's steps, or ROW_NONE. */
uint32_t phases_step_thread(const struct trace *t, uint32_t source);

/* By step: start of its first kernel launch, or INT64_MAX. The caller frees
 * it; NULL: out of memory. */
int64_t *phases_first_launches(const struct trace *t);

/* Hand-written loops: is this span of the step's thread a region that prepares
 * the step's input? first is of phases_first_launches. */
bool phases_is_loop(const struct trace *t, row_id r, const int64_t *first);

/* What the host did in a time in which the device of the view is idle. */
struct phase_host {
    int64_t comm;  /* a CPU collective ran: PHASE_COMM of that time */
    int64_t input; /* PHASE_INPUT */
    int64_t known; /* anything at all: all but PHASE_OTHER */
};

/* The same as phases_split says, of fewer parts: for the many gaps of a
 * device. The view has a device, and nothing runs on it in [start, end). */
struct phase_host phases_host(const struct phase_view *v, int64_t start,
                              int64_t end);

/* Is this host thread part of the input pipeline (loader workers, tf.data)? */
bool phases_input_thread(const struct trace *t, uint32_t track);

#endif
