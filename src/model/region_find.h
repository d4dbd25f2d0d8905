/* SPDX-License-Identifier: Apache-2.0
 * Which spans are the instances of a region, by its name. */
#ifndef MODEL_REGION_FIND_H
#define MODEL_REGION_FIND_H

#include "base/sort.h"
#include "model/trace.h"

/* The instances, by source and then by start; of two that start together the
 * longer first. */
struct instances {
    struct sort_key *v; /* of each the row counts */
    size_t n, cap;
    size_t *first; /* by source: [first[i], first[i + 1]) of v */
};

/* Finds the outermost spans that match. Fails with OPS_EUSAGE, and the names
 * that there are, where none does. On success the caller frees. O(spans). */
int instances_find(const struct trace *t, const char *glob,
                   struct instances *out, struct ops_err *e);
void instances_free(struct instances *v);

#endif
