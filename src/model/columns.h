/* SPDX-License-Identifier: Apache-2.0
 * What people call a column: its name, or what stands above it on a screen. */
#ifndef MODEL_COLUMNS_H
#define MODEL_COLUMNS_H

#include "model/result.h"

/* Writes the heading without its unit: "host self" of host_self_us. */
void column_heading(const struct column *c, char *buf, size_t n);

/* Returns the column that a text of n bytes means: by its name, its name
 * without the unit ("host" for host_us), or its heading as printed ("total ms",
 * "total"); -1 if none. */
int result_match_col(const struct result *r, const char *text, size_t n);

/* Fails with a sentence that lists the columns. */
int result_no_col(const struct result *r, const char *text, size_t n,
                  struct ops_err *e);

/* Keeps the columns of a list "name,calls,total ms", in its order, and marks
 * them as asked for. The column "profile", which says whose rows these are,
 * stays in front if the list does not have it. */
int result_choose(struct result *r, const char *list, struct ops_err *e);

#endif
