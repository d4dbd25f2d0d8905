/* SPDX-License-Identifier: Apache-2.0
 * What a rank did in given times: by phase, and the name that fills most of
 * them. Tells why somebody came late. */
#ifndef ANALYZE_COMM_MEANWHILE_H
#define ANALYZE_COMM_MEANWHILE_H

#include "analyze/shared/intervals.h"

struct phase_view;
struct trace;

struct meanwhile {
    int phase;        /* enum phase: the longest of them ... */
    int64_t phase_ps; /* ... and how long */
    uint32_t name;    /* str_id of what ran longest by itself: a kernel, a
                          Python frame or a span of the step's thread; 0: none
                          did */
    int64_t name_ps;
};

/* Of that view's source within these times (a union). O(spans of the source);
 * false: out of memory. */
bool meanwhile_find(struct meanwhile *m, const struct trace *t,
                    const struct phase_view *v, const struct intervals *times);

#endif
