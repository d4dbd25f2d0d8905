/* SPDX-License-Identifier: Apache-2.0
 * Sums over segments and their blocks. */
#include "analyze/memory/mem_segments.h"

#include "base/sum.h"

static void add_segment(struct mem_use *u, const struct trace *t,
                        const struct mem_segment *s) {
    int64_t free = 0, used = 0;
    for (size_t k = s->first; k < s->end; k++) {
        const struct mem_block *b = &t->blocks[k];
        /* a block that waits for its stream is not free yet */
        if (b->state != BLOCK_FREE) {
            sum_add(&used, b->bytes);
            continue;
        }
        sum_add(&free, b->bytes);
        if (b->bytes > u->largest_free) u->largest_free = b->bytes;
    }
    u->segments++;
    sum_add(&u->bytes, s->bytes);
    sum_add(&u->free, free);
    if (used > 0) sum_add(&u->stuck, free);
}

struct mem_use mem_use_of(const struct trace *t, uint32_t allocator) {
    struct mem_use u = {0};
    size_t lo = 0, hi = t->nsegments; /* they stand by allocator */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->segments[mid].allocator < allocator) lo = mid + 1;
        else hi = mid;
    }
    for (; lo < t->nsegments && t->segments[lo].allocator == allocator; lo++)
        add_segment(&u, t, &t->segments[lo]);
    return u;
}
