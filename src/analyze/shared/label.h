/* SPDX-License-Identifier: Apache-2.0
 * Where something ran, in words: the host or rank, and the device. With one
 * source "GPU 0" says it all; with the ranks of a job it is "rank 1 GPU 0". */
#ifndef ANALYZE_SHARED_LABEL_H
#define ANALYZE_SHARED_LABEL_H

#include "model/result.h"
#include "model/trace.h"

/* Return texts that live as long as the trace and the result. */

/* Returns "node3 rank 1", "rank 1" or "node3"; NULL if neither is recorded. */
const char *label_source(struct result *r, const struct trace *t,
                         uint32_t source);

/* Returns the label of a device of that source; ROW_NONE is the host. */
const char *label_device(struct result *r, const struct trace *t,
                         uint32_t source, uint32_t device);

#endif
