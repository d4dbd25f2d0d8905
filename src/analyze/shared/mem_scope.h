/* SPDX-License-Identifier: Apache-2.0
 * Which memory events count, by --steps, --host and --rank: events belong to no
 * span, so those of a step are the ones inside its time. */
#ifndef ANALYZE_SHARED_MEM_SCOPE_H
#define ANALYZE_SHARED_MEM_SCOPE_H

#include "analyze/shared/intervals.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct selection;

struct mem_scope {
    bool all;
    struct intervals times; /* of the steps that count */
};

/* Sets m up for one source; *in is false when none of the source counts. */
int mem_scope_init(struct mem_scope *m, const struct selection *s,
                   uint32_t source, bool *in, struct ops_err *e);
void mem_scope_free(struct mem_scope *m);

/* Does an event at ts count? */
bool mem_scope_has(const void *mem_scope, int64_t ts);

#endif
