/* SPDX-License-Identifier: Apache-2.0
 * Sites that keep growing: blocks that are allocated in step after step and
 * still there after the last one. */
#ifndef ANALYZE_MEMORY_LEAK_FIND_H
#define ANALYZE_MEMORY_LEAK_FIND_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_sites;
struct scope;

struct leak_site {
    size_t event;        /* row of trace->mem: its first block, by which it
                               is named (mem_site_of, mem_site_text) */
    int64_t total_bytes; /* still there after the last step */
    int64_t blocks;
    int64_t bytes_per_step; /* mean over the steps */
    uint32_t steps_seen;    /* steps that left some */
};

/* The level of one allocator, whether it leaks or not. */
struct leak_level {
    uint32_t allocator;
    size_t steps;        /* that were looked at; fewer than LEAK_STEPS: too
                                few to tell, and no level */
    int64_t first, last; /* bytes in use at the end of the first and of the
                                last of them */
    int64_t first_step, last_step; /* their numbers */
    size_t sites;                  /* that leak */
    int64_t bytes_per_step;        /* of all of them */
};

enum { LEAK_STEPS = 3 }; /* one can be a start, two a replacement */

/* Zeroed is empty. */
struct leaks {
    struct leak_site *v;
    size_t n, cap; /* by allocator, largest first */
    struct leak_level *levels;
    size_t nlevels; /* of allocators with events */
};

/* Looks at every allocator and step that scope takes. O(events). */
int leaks_find(struct leaks *out, const struct mem_sites *sites,
               const struct scope *scope, struct ops_err *e);
void leaks_free(struct leaks *l);

#endif
