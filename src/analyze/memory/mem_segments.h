/* SPDX-License-Identifier: Apache-2.0
 * How well a caching allocator uses what it holds: its segments and the free
 * pieces in them, at the moment when a memory snapshot was taken. */
#ifndef ANALYZE_MEMORY_MEM_SEGMENTS_H
#define ANALYZE_MEMORY_MEM_SEGMENTS_H

#include "model/trace.h"

struct mem_use {
    size_t segments;      /* 0: the source tells nothing of them */
    int64_t bytes;        /* in all segments */
    int64_t free;         /* of these in no block */
    int64_t stuck;        /* of these in segments that hold blocks as well: the
                             allocator cannot give them back */
    int64_t largest_free; /* the largest request that fits without asking the
                             driver */
};

/* Of one allocator. O(blocks). */
struct mem_use mem_use_of(const struct trace *t, uint32_t allocator);

#endif
