/* SPDX-License-Identifier: Apache-2.0
 * Which span, Python frame or module was open on a thread at an instant. Rows
 * are row_ids of the trace. */
#ifndef ANALYZE_SHARED_PYSTACK_H
#define ANALYZE_SHARED_PYSTACK_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct trace;

/* Zeroed is empty. */
struct pystack {
    const struct trace *t;
    uint32_t *python; /* by track: the Python track beside a thread */
};

int pystack_init(struct pystack *p, const struct trace *t, struct ops_err *e);
void pystack_free(struct pystack *p);

/* How far up a stack is looked: real ones are tens deep, deep recursion in
 * Python a thousand; a made-up file must not cost n times n. */
enum { CLIMB_MAX = 10000 };

/* The innermost span of the track that runs at ts (start <= ts < end), or
 * ROW_NONE. O(log n + depth). */
uint32_t span_at(const struct trace *t, uint32_t track, int64_t ts);

/* The same for many instants in about the order of time: *near is the row from
 * which to look on (0 at first), and becomes one close to ts. O(log of the
 * distance + depth); what lies before *near costs a search of all. */
uint32_t span_at_near(const struct trace *t, uint32_t track, int64_t ts,
                      uint32_t *near);

/* The innermost Python frame of that thread at ts, or ROW_NONE. */
uint32_t pystack_at(const struct pystack *p, uint32_t thread, int64_t ts);

/* The frames at ts, innermost first, at most n of them, joined by " < ".
 * Returns the length, 0 when there is none; always terminated, cut at cap. */
size_t pystack_text(const struct pystack *p, uint32_t thread, int64_t ts, int n,
                    char *buf, size_t cap);

/* The innermost frame that is a module's ("nn.Module: Conv2d_3"), or
 * ROW_NONE. */
uint32_t pystack_module(const struct pystack *p, uint32_t thread, int64_t ts);

#endif
