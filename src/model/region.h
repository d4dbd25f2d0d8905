/* SPDX-License-Identifier: Apache-2.0
 * A window by name: the instances of a region become the steps, and only what
 * lies in them counts. docs/rules.md, "A region as the window", has the rules.
 *
 * That is a view of a trace: a trace of its own that borrows every row of the
 * one that it shows (its base) and differs in the steps, in who belongs to
 * them, and in which spans are their markers. Analyses need not know. */
#ifndef MODEL_REGION_H
#define MODEL_REGION_H

#include "model/trace.h"

/* Gets the view of a sealed trace whose steps are the instances of a region,
 * numbered from 0 in each source. glob is a name, or names inside each other:
 * "outer/inner". The trace keeps a few views: who asks for the same one later,
 * or at the same time, gets the same. The caller gives it back with
 * trace_region_done(). Returns OPS_EUSAGE, with the names that there are, if no
 * region matches. O(spans + links log links), the first time. */
int trace_region(const struct trace *t, const char *glob,
                 const struct trace **view, struct ops_err *e);
void trace_region_done(const struct trace *view);

/* Returns how many instances of a view begin while another one runs. */
size_t trace_region_overlaps(const struct trace *view);

/* Make and free the place where a trace keeps its views, for seal alone. Those
 * that nobody gave back are freed, too. */
struct views *views_new(void);
void views_free(struct views *v);

#endif
