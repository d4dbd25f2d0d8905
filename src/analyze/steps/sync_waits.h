/* SPDX-License-Identifier: Apache-2.0
 * Waits that the profiler recorded itself: CUPTI's records of synchronising say
 * which stream was waited for and, of an event, where it was recorded. */
#ifndef ANALYZE_STEPS_SYNC_WAITS_H
#define ANALYZE_STEPS_SYNC_WAITS_H

#include "base/err.h"
#include "model/trace.h"

/* A stream is known by its device and its number; the host has none. */
struct sync_wait {
    int64_t ts;      /* when the call that waits, or lets wait, was made */
    int64_t device;  /* as recorded */
    int64_t waiting; /* the stream that waits; -1: the host does */
    int64_t on;      /* the stream that is waited for */
    int64_t before;  /* for its work launched before this time; INT64_MIN: it
                        was launched before the window */
};

struct sync_waits {
    struct sync_wait *v; /* by time */
    size_t n, cap;
};

/* Finds the waits of a source that were recorded in [ts, end). O(n log n) in
 * the rows of that time; next to nothing where none were recorded. */
int sync_waits_find(struct sync_waits *w, const struct trace *t,
                    uint32_t source, int64_t ts, int64_t end,
                    struct ops_err *e);
void sync_waits_free(struct sync_waits *w);

#endif
