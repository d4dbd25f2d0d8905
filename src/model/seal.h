/* SPDX-License-Identifier: Apache-2.0
 * The larger parts of trace_seal(), each in its own file, for no other file. */
#ifndef MODEL_SEAL_H
#define MODEL_SEAL_H

#include "model/trace.h"

/* Joins the halves of links; rows are sorted, names classified. Returns false
 * if out of memory. */
bool seal_links(struct trace *t);

/* Binds the ends of arrows to spans; rows are sorted and nested. Returns false
 * if out of memory. */
bool seal_flows(struct trace *t);

/* Finds the markers of the steps and the steps of host rows; rows are sorted
 * and nested. False: out of memory. */
bool seal_steps(struct trace *t);

/* Finds where the steps begin and end, and the steps of device rows; host rows
 * have theirs, and the links are joined. False: out of memory. */
bool seal_device_steps(struct trace *t);

/* Sorts segments, blocks from before the window and failed allocations. */
void seal_mem_tables(struct trace *t);

/* Gives frees of unknown size that of their allocation, and leaves out events
 * with a size that cannot be; events are sorted. Returns false if out of
 * memory. */
bool seal_mem_sizes(struct trace *t);

/* Frees what only filling and sealing need: halves, hints and lookup maps. */
void trace_drop_halves(struct trace *t);

/* Frees what only sealing makes: lists of rows, and what trace_memo() keeps. */
void seal_free(struct trace *t);

#endif
