/* SPDX-License-Identifier: Apache-2.0
 * Where something ran, in words: the host or rank, and the device. With one
 * source "GPU 0" says it all; with the ranks of a job it is "rank 1 GPU 0". */
#ifndef ANALYZE_SHARED_WHERE_H
#define ANALYZE_SHARED_WHERE_H

#include "model/result.h"
#include "model/trace.h"

/* Puts the source's cell: "node3 rank 1", "rank 1", "node3" or null. */
void where_source(struct result *r, const struct trace *t, uint32_t source);

/* Puts the cell of a device of that source; ROW_NONE is the host's memory. */
void where_device(struct result *r, const struct trace *t, uint32_t source,
                  uint32_t device);

#endif
