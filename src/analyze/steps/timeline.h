/* SPDX-License-Identifier: Apache-2.0
 * The program's own line through a step: wall-clock time cut into pieces, each
 * with the one host span that the program was in. The step's thread leads;
 * where it only waits inside a region or records nothing, a thread that it
 * feeds (autograd, an executor) takes over. So the pieces of a step are
 * disjoint, in order, and cover the step's host side without a hole. Rows are
 * row_ids of the trace. */
#ifndef ANALYZE_STEPS_TIMELINE_H
#define ANALYZE_STEPS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_err;
struct trace;

struct piece {
    int64_t ts, dur; /* ps, as traced */
    uint32_t row;    /* the innermost span, or ROW_NONE: nothing recorded */
    uint32_t edges;  /* recorded begins and ends inside it: two an event */
    bool input;      /* the step's thread waits for or prepares its input */
};

/* Zeroed is empty. */
struct timeline {
    struct piece *v;
    size_t n, cap;
    int64_t ts, end; /* the host side of the step */
};

/* Which threads a source's program runs on; worked out once per source. */
struct host_side {
    const struct trace *t;
    uint32_t source;
    uint32_t own;      /* the step's thread, or ROW_NONE */
    uint32_t *threads; /* the others that run ops or calls */
    size_t nthreads;
    uint32_t *python; /* tracks of Python frames of all of these */
    size_t npython;
    const int64_t *first; /* by step: its first kernel launch (phases.h) */
    int64_t *made;        /* the same where it is our own */
};

/* first, of phases_first_launches, is borrowed: it is the same for all sources.
 * NULL: made here. */
int host_side_init(struct host_side *h, const struct trace *t, uint32_t source,
                   const int64_t *first, struct ops_err *e);
void host_side_free(struct host_side *h);

/* The line through [ts, end). O(n log n) in the spans inside and the source's
 * threads. */
int timeline_build(struct timeline *l, const struct host_side *h, int64_t ts,
                   int64_t end, struct ops_err *e);
void timeline_free(struct timeline *l);

/* The piece that holds that instant, clamped to the first and last; the line
 * must not be empty. O(log n). */
size_t timeline_at(const struct timeline *l, int64_t ts);

#endif
