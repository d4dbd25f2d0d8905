/* SPDX-License-Identifier: Apache-2.0
 * Bytes allocated minus bytes freed in any stretch of time, per source: what
 * torch calls an op's memory. Every thread's events count, both ends count. */
#ifndef ANALYZE_OPS_MEM_SUMS_H
#define ANALYZE_OPS_MEM_SUMS_H

#include "base/err.h"
#include "model/trace.h"

/* One source's memory events in time order, as running sums. */
struct mem_sums {
    size_t n;
    int64_t *ts;            /* n times */
    int64_t *host, *device; /* n + 1 sums: of the events before the i-th */
};

/* Zeroed m; nothing is held when the source has no event. O(n log k) for k
 * allocators. */
int mem_sums_init(struct mem_sums *m, const struct trace *t, uint32_t source,
                  struct ops_err *e);
void mem_sums_free(struct mem_sums *m);

/* Number of events before ts, given that from of them are; cheap when the
 * answer is near. */
size_t mem_sums_before(const struct mem_sums *m, size_t from, int64_t ts);

#endif
