/* SPDX-License-Identifier: Apache-2.0
 * Results of other analyses over the same trace and scope, for those that read
 * them (overview, hints). */
#ifndef ANALYZE_SHARED_SUBRESULT_H
#define ANALYZE_SHARED_SUBRESULT_H

#include "model/result.h"

struct opts;
struct trace;

/* A zeroed one is empty. */
struct subresult {
    struct result r;
    bool have; /* r is there, to be freed */
};

/* Runs the analysis with its own defaults, the scope (--steps, --host, --rank)
 * of o, and one more option: opt (NULL: none) gets value. */
int subresult_run(struct subresult *p, const char *analysis, const char *opt,
                  const char *value, const struct trace *t,
                  const struct opts *o, struct ops_err *e);
void subresult_free(struct subresult *p);

/* Returns the cell of a column, which must exist (asserted); a null cell if
 * there is no such row, or r is NULL or was never filled. */
struct cell subresult_cell(const struct result *r, size_t row, const char *col);

#endif
