/* SPDX-License-Identifier: Apache-2.0
 * Who allocated: the operation, scope, module, call stack and phase of training
 * around a memory event. */
#ifndef ANALYZE_MEMORY_MEM_SITE_H
#define ANALYZE_MEMORY_MEM_SITE_H

#include "analyze/memory/mem_forward.h"
#include "analyze/memory/mem_steps.h"
#include "analyze/shared/pystack.h"
#include "base/err.h"
#include "names/mem_phase.h"
#include <stddef.h>
#include <stdint.h>

struct trace;

/* Rows are row_ids of the trace. */
struct mem_site {
    uint32_t span;   /* innermost span around the event, or ROW_NONE */
    uint32_t op;     /* innermost op */
    uint32_t user;   /* op, or what called it where it only makes tensors */
    uint32_t root;   /* outermost op */
    uint32_t region; /* outermost span of the phase: an Optimizer.step region, a
                      backward node, a program's run; or ROW_NONE */
    enum mem_phase phase;
};

struct mem_sites {
    const struct trace *t;
    struct pystack py;
    uint8_t *stack_phase; /* by stack: enum mem_phase; NULL: no stacks */
    uint8_t *name_phase;  /* by name, four ways to read it: enum mem_phase + 1,
                             0: not looked at yet. Every event climbs, and
                             the same few names come again and again */
    uint32_t *near;       /* by track: see span_at_near */
    struct mem_steps *steps;    /* by source: all its steps */
    struct mem_forward forward; /* only after mem_sites_modules */
    int64_t *first_launch;      /* by step: start of the first call in it that
                                puts a kernel on a device, or INT64_MAX */
};

int mem_sites_init(struct mem_sites *s, const struct trace *t,
                   struct ops_err *e);
void mem_sites_free(struct mem_sites *s);

/* Gives blocks of the backward pass the module of their forward op, too. */
int mem_sites_modules(struct mem_sites *s, struct ops_err *e);

/* Of event k, a row of trace->mem. O(log spans + depth). */
struct mem_site mem_site_of(const struct mem_sites *s, size_t k);

/* What the Python frames around event k say, or MEM_NOWHERE. Costs a look at
 * each frame's name, so only those ask who cannot tell otherwise. */
enum mem_phase mem_site_python(const struct mem_sites *s, size_t k);

/* The phase of the last op that a thread began at or before ts: where it still
 * is between two ops. */
enum mem_phase mem_phase_before(const struct mem_sites *s, uint32_t track,
                                int64_t ts);

/* What blocks can be grouped by. */
enum mem_key {
    MEM_BY_OP,       /* the op that wanted the block; else what the source
                        wrote; else the outermost span of the runtime */
    MEM_BY_SCOPE,    /* the regions around it, "train_step/forward" */
    MEM_BY_MODULE,   /* the innermost nn.Module */
    MEM_BY_STACK,    /* frames, innermost first */
    MEM_BY_CATEGORY, /* see mem_category.h */
};

enum { MEM_TEXT_MAX = 4096 };

/* The site's name by that key (not the category). Returns its length, 0: not
 * known; always terminated, cut at cap. */
size_t mem_site_text(const struct mem_sites *s, const struct mem_site *at,
                     size_t k, enum mem_key by, char *buf, size_t cap);

/* A number for the call stack of event k, equal for equal stacks; 0: none. */
uint64_t mem_site_stack(const struct mem_sites *s, size_t k);

#endif
