/* SPDX-License-Identifier: Apache-2.0
 * Where a step's time goes. Every instant of a step belongs to exactly one
 * phase: the first in this order that is going on at that instant. So the
 * phases of a step sum to its length, to the picosecond. */
#ifndef ANALYZE_SHARED_PHASES_H
#define ANALYZE_SHARED_PHASES_H

#include "analyze/shared/intervals.h"
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

/* What the host of a source did: sets that all its devices share, however many
 * there are. Each holds the one before it. */
struct phase_side {
    /* with a device: CPU collectives, input, driver calls, ops and regions */
    struct intervals host[4];
    /* without one: what is claimed after each phase, in the order of
     * claiming */
    struct intervals alone[PHASES - 1];
};

/* One device's view of a source (or the one view of a source without any). */
struct phase_view {
    uint32_t source;
    uint32_t device; /* index in devices, or ROW_NONE */
    const struct phase_side *side;
    struct intervals own[2]; /* kernels; and collectives of the device */
    struct intervals busy;   /* any work on the device */
    /* what own[1] has in common with host[0], and busy with each of host: see
     * intervals_common */
    int64_t *own_common, *common[4];
};

struct phases {
    const struct trace *t;
    struct phase_side *sides; /* by source */
    size_t nsides;
    struct phase_view *views; /* by source, then device */
    size_t nviews, cap_views;
    size_t *view_first; /* by source: its views are [view_first[i],
                           view_first[i + 1]) */
};

/* Gets the views of all sources. They are worked out once for a trace, which
 * keeps them for all analyses; p borrows them. O(spans log spans) at worst, the
 * first time. */
int phases_get(struct phases *p, const struct trace *t, struct ops_err *e);

/* Splits [start, end) by that view: the parts sum to end - start. */
void phases_split(const struct phase_view *v, int64_t start, int64_t end,
                  int64_t parts[PHASES]);

/* A set of times, such as all steps of a source, with the part of it that each
 * set of the source's host has: many devices can then be asked about it. */
struct phase_window {
    struct intervals times;
    struct intervals host[4]; /* of sources that have devices */
};

/* Sets w up with times, a union, which it takes. Returns false if out of
 * memory; w must be freed all the same. */
bool phase_window_init(struct phase_window *w, const struct phases *p,
                       uint32_t source, struct intervals *times);
void phase_window_free(struct phase_window *w);

/* Splits the window by a view of the source; also gives the view's busy time.
 * O(work of the device), not of the host. */
void phases_split_window(const struct phase_view *v,
                         const struct phase_window *w, int64_t parts[PHASES],
                         int64_t *busy);

/* How many of several sets of times hold an instant, as steps over time: sums
 * over many devices are made from these. The answer for a window costs two
 * searches, however many sets there are. From ts on n sets hold, up to the
 * next. */
struct level {
    __int128 before; /* lengths of all sets before ts, added up */
    int64_t ts;
    uint32_t n;
};

/* A zeroed one is empty. */
struct levels {
    struct level *v;
    size_t n, cap;
};

/* All views of a source together. With a few devices each view is asked; with
 * many (a file may say any number) their levels are. */
struct phase_sums {
    const struct phase_view *views;
    size_t n;
    bool by_levels;
    struct levels own[2], own_host, busy, busy_host[4];
};

/* O(device spans log devices). */
int phase_sums_init(struct phase_sums *s, const struct phases *p,
                    uint32_t source, struct ops_err *e);
void phase_sums_free(struct phase_sums *s);

/* Splits [start, end), added up over the views; also gives their busy time. */
void phase_sums_split(const struct phase_sums *s, int64_t start, int64_t end,
                      wide parts[PHASES], wide *busy);

/* Gives the mean of the views' parts of [start, end), by largest remainder:
 * they still sum to the whole, to the picosecond; and the mean of their busy
 * time. There must be a view. A result that shows them prints picoseconds
 * (MEAN_DECIMALS). */
enum { MEAN_DECIMALS = 6 };
void phase_sums_mean(const struct phase_sums *s, int64_t start, int64_t end,
                     int64_t parts[PHASES], int64_t *busy);

/* The input phase of all views of a source, inside a set of times. */
struct phase_input {
    struct intervals host; /* when the host waits for input; of it ... */
    struct levels busy;    /* ... each device claims what it is not busy in */
    size_t n;              /* views */
};
bool phase_input_init(struct phase_input *x, const struct phases *p,
                      uint32_t source, const struct intervals *within);
void phase_input_free(struct phase_input *x);

/* Returns the input phase within [start, end), added up over the views. */
wide phase_input_sum(const struct phase_input *x, int64_t start, int64_t end);

/* Finds the part of a set of times in which no kernel, collective or copy ran
 * and the step's thread did not wait for input (without a device: nor ran an
 * op), as the mean of the views. Returns false if out of memory. */
bool phases_unoccupied(const struct phases *p, uint32_t source,
                       const struct intervals *times, int64_t *mean);

/* Returns the thread whose markers are the source's steps, or ROW_NONE. */
uint32_t phases_step_thread(const struct trace *t, uint32_t source);

/* Returns, by step, the start of its first kernel launch (without a device: of
 * the first op of its framework that computes), or INT64_MAX. Of a view it is
 * that of the base: a region begins with anything, a step with its input. The
 * caller frees it; NULL if out of memory. */
int64_t *phases_first_launches(const struct trace *t);

/* Does a program without a device compute in that span of a framework, or call
 * a function that does? */
bool phases_computes(const struct trace *t, row_id r);

/* Is this span of the step's thread a region of a hand-written loop that
 * prepares the step's input? first is from phases_first_launches. */
bool phases_is_loop(const struct trace *t, row_id r, const int64_t *first);

/* Returns the view of a device, or NULL. O(log devices). */
const struct phase_view *phases_of_device(const struct phases *p,
                                          uint32_t source, uint32_t device);

/* What the host did in a time in which the device of the view was idle. */
struct phase_host {
    int64_t comm;  /* a CPU collective ran: PHASE_COMM of that time */
    int64_t input; /* PHASE_INPUT */
    int64_t known; /* anything at all: all but PHASE_OTHER */
};

/* Does the same as phases_split with fewer parts, for the many gaps of a
 * device. The view has a device, and nothing runs on it in [start, end). */
struct phase_host phases_host(const struct phase_view *v, int64_t start,
                              int64_t end);

/* Is this host thread part of the input pipeline (loader workers, tf.data)? */
bool phases_input_thread(const struct trace *t, uint32_t track);

#endif
