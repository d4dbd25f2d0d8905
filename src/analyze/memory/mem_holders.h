/* SPDX-License-Identifier: Apache-2.0
 * Who holds the memory that is in use at one instant, such as the peak: every
 * byte of the level is in exactly one row. */
#ifndef ANALYZE_MEMORY_MEM_HOLDERS_H
#define ANALYZE_MEMORY_MEM_HOLDERS_H

#include "analyze/memory/mem_site.h"
#include "base/err.h"
#include "model/strs.h"

struct mem_blocks;

struct mem_holder {
    str_id key; /* in mem_holders.texts; 0: not known */
    int64_t bytes;
    int64_t blocks; /* 0: nobody knows how many */
};

/* Zeroed is empty. */
struct mem_holders {
    struct strs texts;
    struct mem_holder *v; /* largest first */
    size_t n, cap;
    uint32_t *of; /* by key: its row + 1; 0: none */
    size_t cap_of;
    int64_t total; /* = the level, to the byte */
    bool gone;     /* blocks were taken as freed: see live_rest */
};

/* What is in use after that event of the allocator (LIVE_NONE: before the
 * first), by that key. Blocks from before the window are the row
 * "before-window" unless the source knows their stacks; what the level holds
 * beyond all blocks is "unrecorded" (category: "unknown"). O(events). */
int mem_holders_init(struct mem_holders *h, const struct mem_blocks *b,
                     uint32_t after, enum mem_key by, struct ops_err *e);
void mem_holders_free(struct mem_holders *h);

/* The key of a row, or NULL: not known. */
const char *mem_holder_key(const struct mem_holders *h, size_t i);

#endif
