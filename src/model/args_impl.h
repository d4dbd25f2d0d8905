/* SPDX-License-Identifier: Apache-2.0
 * Behind args.h: one reader per family of formats. args.c picks by the name of
 * the source's format. */
#ifndef MODEL_ARGS_IMPL_H
#define MODEL_ARGS_IMPL_H

#include "model/trace.h"

struct arg; /* args.h */

/* Receives one argument; false stops. */
typedef bool args_each_fn(void *ctx, struct bytes key, const struct arg *a);

/* The event's stats, then those of its name; "long_name" where the span shows
 * a shorter one, "num_occurrences" where it stands for several. The value of
 * args is where the length of the XEvent stands. */
void args_xspace_each(const struct trace *t, row_id row, args_each_fn *each,
                      void *ctx);

/* The fields of the NodeExecStats, its memory per allocator; args likewise. */
void args_stepstats_each(const struct trace *t, row_id row, args_each_fn *each,
                         void *ctx);

/* Where the names of an XSpace stand, so that an event's arguments cost a few
 * binary searches. One block of memory, freed with free(). NULL: out of
 * memory. O(names). */
struct xspace_index *xspace_index_new(struct bytes all);

#endif
