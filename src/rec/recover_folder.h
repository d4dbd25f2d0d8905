/* SPDX-License-Identifier: Apache-2.0
 * Recordings whose programs are gone: somebody who lives closes their profiles,
 * so that no ring stays in memory for ever.
 *
 * A program that has started looks at all runs of its log folder. From then on
 * one program of each run, whoever gets the lock on its folder, looks after the
 * others: children of fork() that leave by _exit(), exec() or a signal are
 * recovered while their parent lives. All of it is done in the flusher's table
 * of descriptors, most of it in a thread of its own. */
#ifndef REC_RECOVER_FOLDER_H
#define REC_RECOVER_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct session_paths;

/* Looks at the runs in a log folder, at most 256 of them, and finishes each
 * recording whose writer is dead; until that moment (ns of CLOCK_MONOTONIC) or
 * until *stop. A recording that cannot be finished is left as it is. */
void recover_folder(int logdir, uint64_t until_ns, const bool *stop);

/* Are called at the start of a session; every now and then; and at its end,
 * which waits, but not long, for a recording that is being finished just
 * then. */
void recover_folder_begin(const struct session_paths *p, uint64_t now_ns);
void recover_folder_look(const struct session_paths *p, uint64_t now_ns);
void recover_folder_end(const struct session_paths *p);
/* Is called in a child of fork(). */
void recover_folder_forked(void);

#endif
