/* SPDX-License-Identifier: Apache-2.0
 * Which op of the forward pass a backward node belongs to: autograd numbers its
 * nodes as the forward pass makes them, and torch writes that onto both. */
#ifndef ANALYZE_MEMORY_MEM_FORWARD_H
#define ANALYZE_MEMORY_MEM_FORWARD_H

#include "base/err.h"
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>

struct trace;

/* A zeroed one is empty. */
struct mem_forward {
    const struct trace *t;
    struct forward_ops {
        row_id *v; /* outermost ops of the step's thread that are in no
                        backward node, by time; their numbers never fall */
        struct forward_number *number; /* beside v, read when asked for */
        size_t n;
        bool taken; /* the thread was looked at, be it without an op */
    } * of;         /* by source */
};

/* O(spans of the steps' threads). */
int mem_forward_init(struct mem_forward *f, const struct trace *t,
                     struct ops_err *e);
void mem_forward_free(struct mem_forward *f);

/* Returns the outermost forward op whose node this backward row is; ROW_NONE
 * where it has no number (a gradient is added up). Reads the arguments of
 * O(log ops) spans, of each op once however often it is called. */
row_id mem_forward_op(const struct mem_forward *f, row_id backward);

#endif
