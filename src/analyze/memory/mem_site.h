/* SPDX-License-Identifier: Apache-2.0
 * Who allocated a block, and what for: the operation, scope, module, call stack
 * and phase of training around a memory event; and the block's category,
 * worked out from who allocated it and how long it lived. */
#ifndef ANALYZE_MEMORY_MEM_SITE_H
#define ANALYZE_MEMORY_MEM_SITE_H

#include "analyze/memory/mem_forward.h"
#include "analyze/shared/pystack.h"
#include "base/err.h"
#include "model/ids.h"
#include "names/mem_phase.h"
#include <stddef.h>
#include <stdint.h>

struct mem_levels;
struct result;
struct selection;
struct trace;

/* ---- steps as memory sees them ---- */

/* The steps of one source in time order. Allocations are host events, so a step
 * runs from its marker's start to the next marker's start, whatever the device
 * does. A zeroed one is empty. */
struct mem_steps {
    struct mem_step {
        int64_t start, end; /* ps; end is the next step's start, of the last
                               one its marker's end */
        uint32_t step;      /* index in trace->steps */
    } * v;
    size_t n;
    size_t near; /* where mem_steps_at() found the last one */
};

/* Takes the steps that scope has (of which two need not be neighbours); all if
 * scope is NULL. O(steps log steps). */
int mem_steps_init(struct mem_steps *m, const struct trace *t,
                   const struct selection *scope, uint32_t source,
                   struct ops_err *e);
void mem_steps_free(struct mem_steps *m);

/* Returns the last step that starts at or before ts; m->n if ts is before the
 * first. O(log steps), and O(1) where the last answer or its neighbour is
 * right again, as it is for events in time order. */
size_t mem_steps_at(struct mem_steps *m, int64_t ts);

/* ---- sites ---- */

struct mem_site {
    row_id span;   /* innermost span around the event, or ROW_NONE */
    row_id op;     /* innermost op */
    row_id user;   /* op, or what called it where it only makes tensors */
    row_id root;   /* outermost op */
    row_id region; /* outermost span of the phase: an Optimizer.step region, a
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

/* Returns the site of event k, a row of trace->mem. O(log spans + depth). */
struct mem_site mem_site_of(const struct mem_sites *s, size_t k);

/* What blocks can be grouped by. */
enum mem_key {
    MEM_BY_OP,       /* the op that wanted the block; else what the source
                        wrote; else the outermost span of the runtime */
    MEM_BY_SCOPE,    /* the regions around it, "train_step/forward" */
    MEM_BY_MODULE,   /* the innermost nn.Module */
    MEM_BY_STACK,    /* frames, innermost first */
    MEM_BY_CATEGORY, /* see enum mem_category */
};

enum {
    MEM_TEXT_MAX = 4096,
    MEM_FRAMES = 5, /* frames of a stack that are shown */
};

/* Writes the site's name by that key (not the category), terminated and cut at
 * cap. Returns its length; 0 if the name is not known. */
size_t mem_site_text(const struct mem_sites *s, const struct mem_site *at,
                     size_t k, enum mem_key by, char *buf, size_t cap);

/* Put the same, and the frames of a recorded stack, into a cell, which stays
 * null where nothing is known. */
void mem_site_cell(struct result *r, const char *col, const struct mem_sites *s,
                   const struct mem_site *at, size_t k, enum mem_key by);
void mem_stack_cell(struct result *r, const char *col, const struct trace *t,
                    uint32_t stack);

/* Returns a number for the call stack of event k, equal for equal stacks; 0 if
 * there is none. */
uint64_t mem_site_stack(const struct mem_sites *s, size_t k);

/* ---- what a block is for ---- */

/* A profile does not say which tensor is a parameter or a gradient; the rules,
 * each with its reason, are one table in mem_site.c. */
enum mem_category {
    MEM_PARAMETER,
    MEM_GRADIENT,
    MEM_OPTIMIZER_STATE,
    MEM_ACTIVATION,
    MEM_INPUT_DATA,
    MEM_TEMPORARY,
    MEM_BEFORE_WINDOW, /* was there before the first event */
    MEM_UNKNOWN,
    MEM_CATEGORIES,
};

/* Returns the word that users see: "parameter", ... */
const char *mem_category_name(enum mem_category c);

/* What is known of one allocator's blocks. */
struct mem_blocks {
    const struct mem_sites *sites;
    const struct mem_levels *l;
    bool whole;            /* the source has no steps but the whole window */
    int64_t last_backward; /* only then: time of the last event in a backward
                              pass, or INT64_MIN */
    uint32_t *run;         /* by event: number of the stretch of one phase, by
                              the events' stacks; NULL: no stacks */
};

/* Borrows both arguments. O(events), with stacks or without. */
int mem_blocks_init(struct mem_blocks *b, const struct mem_sites *sites,
                    const struct mem_levels *l, struct ops_err *e);
void mem_blocks_free(struct mem_blocks *b);

/* Returns the category, in words, of the block that event i of the allocator
 * allocated; at is its site. A tag that the program gave and that is none of
 * these is shown as it is. Borrowed from the trace. */
struct bytes mem_block_label(const struct mem_blocks *b, size_t i,
                             const struct mem_site *at);

/* Returns the category of a block from before the window: what its stack tells
 * (a parameter, an optimizer's state, a gradient), else MEM_BEFORE_WINDOW.
 * stack may be ROW_NONE. */
enum mem_category mem_before_category(const struct mem_sites *s,
                                      uint32_t stack);

/* Shape and type of the tensor in a block. */
struct mem_shape {
    struct bytes dims; /* "[32, 3, 64, 64]", in the mapped file; n is 0: not
                          recorded */
    const char *dtype; /* "fp32", or NULL: not recorded */
};

/* Returns shape and type of the tensor that this op (a row, or ROW_NONE)
 * allocated in a block of so many bytes; nothing if they do not fit the block.
 * Reads the span's arguments: microseconds. */
struct mem_shape mem_shape_of(const struct trace *t, row_id op, int64_t bytes);

/* Returns the same from the recorded inputs: a JSON list of strings, such as
 * ["[2, 3]", "6", ...] of aten::empty. */
struct mem_shape mem_shape_from(struct bytes op, struct bytes concrete,
                                int64_t bytes);

#endif
