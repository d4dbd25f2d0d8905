/* SPDX-License-Identifier: Apache-2.0
 * What a block is for: worked out from who allocated it and how long it lived.
 * A profile does not say which tensor is a parameter or a gradient; the rules,
 * each with its reason, are one table in mem_category.c. */
#ifndef ANALYZE_MEMORY_MEM_CATEGORY_H
#define ANALYZE_MEMORY_MEM_CATEGORY_H

#include "base/bytes.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live;
struct mem_site;
struct mem_sites;

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

/* Returns the word of docs/rules.md: "parameter", ... */
const char *mem_category_name(enum mem_category c);

/* What is known of one allocator's blocks. */
struct mem_blocks {
    const struct mem_sites *sites;
    const struct live *l;
    bool whole;            /* the source has no steps but the whole window */
    int64_t last_backward; /* only then: time of the last event in a backward
                              pass, or INT64_MIN */
    uint32_t *run;         /* by event: number of the stretch of one phase, by
                              the events' stacks; NULL: no stacks */
};

/* Borrows both. O(events), with stacks or without. */
int mem_blocks_init(struct mem_blocks *b, const struct mem_sites *sites,
                    const struct live *l, struct ops_err *e);
void mem_blocks_free(struct mem_blocks *b);

/* Of the block that event i of the allocator allocated; at is its site. */
enum mem_category mem_block_category(const struct mem_blocks *b, size_t i,
                                     const struct mem_site *at);

/* The same in words; a tag that the program gave and that is none of these is
 * shown as it is. Borrowed from the trace. */
struct bytes mem_block_label(const struct mem_blocks *b, size_t i,
                             const struct mem_site *at);

/* Of a block from before the window: what its stack tells (a parameter, an
 * optimizer's state, input), else MEM_BEFORE_WINDOW. stack may be ROW_NONE. */
enum mem_category mem_before_category(const struct mem_sites *s,
                                      uint32_t stack);

#endif
