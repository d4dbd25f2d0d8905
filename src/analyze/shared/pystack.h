/* SPDX-License-Identifier: Apache-2.0
 * Which Python frame or module was open on a thread at an instant. */
#ifndef ANALYZE_SHARED_PYSTACK_H
#define ANALYZE_SHARED_PYSTACK_H

#include "base/err.h"
#include "model/ids.h"
#include <stddef.h>

struct trace;

/* A zeroed one is empty. */
struct pystack {
    const struct trace *t;
    uint32_t *python; /* by track: the Python track beside a thread */
};

int pystack_init(struct pystack *p, const struct trace *t, struct ops_err *e);
void pystack_free(struct pystack *p);

/* Returns the innermost Python frame of that thread at ts, or ROW_NONE. */
row_id pystack_at(const struct pystack *p, uint32_t thread, int64_t ts);

/* Writes the frames at ts, innermost first, at most n of them, joined by " < ",
 * terminated and cut at cap. Returns the length; 0 if there is none. */
size_t pystack_text(const struct pystack *p, uint32_t thread, int64_t ts, int n,
                    char *buf, size_t cap);

/* Returns the innermost frame of a module ("nn.Module: Conv2d_3"), or
 * ROW_NONE. */
row_id pystack_module(const struct pystack *p, uint32_t thread, int64_t ts);

#endif
