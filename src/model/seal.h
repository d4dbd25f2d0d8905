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

/* Makes the Python frames of opscope's own hooks SPAN_OVERHEAD; rows are sorted
 * and nested. False: out of memory. */
bool seal_own_frames(struct trace *t);

/* Finds the markers of the steps and the steps of host rows; rows are sorted
 * and nested. False: out of memory. */
bool seal_steps(struct trace *t);

/* Finds where the steps begin and end, and the steps of device rows; host rows
 * have theirs, and the links are joined. False: out of memory. */
bool seal_device_steps(struct trace *t);

/* Finds the runs of compiled programs that a host executes beside the thread
 * that called them, as XLA does on a CPU: their ops get the step of the call,
 * and of[step], or before[source] for a call before the first step, becomes the
 * end of its last run where that is later. Host rows have their steps. False:
 * out of memory. */
bool seal_host_runs(struct trace *t, int64_t *of, int64_t *before);

/* Gives device rows that no call launched (all of them, where the device marks
 * the steps) the step whose interval they start in. */
void steps_assign_by_time(struct trace *t, uint32_t source);

/* Returns the host thread of a marker: its track, or the thread of its frames;
 * a device that marks its own steps has the busiest thread of its host. */
uint32_t steps_thread_of(const struct trace *t, row_id marker);

/* Sorts segments, blocks from before the window and failed allocations. */
void seal_mem_tables(struct trace *t);

/* Gives frees of unknown size that of their allocation, and leaves out events
 * with a size that cannot be; events are sorted. Returns false if out of
 * memory. */
bool seal_mem_sizes(struct trace *t);

/* Frees what only filling and sealing need: halves, hints and lookup maps. */
void trace_drop_halves(struct trace *t);

/* Make and free what trace_memo() keeps. NULL: out of memory. */
struct memo *memos_new(void);
void memos_free(struct memo *memos);

/* Frees what only sealing makes: lists of rows, memos and views. */
void seal_free(struct trace *t);

#endif
