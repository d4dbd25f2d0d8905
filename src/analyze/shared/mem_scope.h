/* SPDX-License-Identifier: Apache-2.0
 * Which memory events count, by --steps, --host and --rank: events belong to
 * no span, so a step's are those inside its time. */
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

/* For one source; false in *in when the whole source is out. */
int mem_scope_init(struct mem_scope *m, const struct selection *s,
                   uint32_t source, bool *in, struct ops_err *e);
void mem_scope_free(struct mem_scope *m);

/* Does an event at ts count? Fits live_peak's callback. */
bool mem_scope_has(const void *mem_scope, int64_t ts);

#endif
