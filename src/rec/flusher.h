/* SPDX-License-Identifier: Apache-2.0
 * The recorder's own thread: it takes what the rings hold into the files. */
#ifndef REC_FLUSHER_H
#define REC_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>

/* Starts the thread and waits until it has made the session's files and rings:
 * 0, or -1 and ops_problem(). */
int flusher_start(void);
/* In a child of fork(), at once: forgets what it has of its parent. */
void flusher_forked(void);
/* Asks the flusher and waits for its answer; stop also joins it. */
uint64_t flusher_ask(bool dump);
int flusher_wait(uint64_t ticket);
/* Once in a process, and in each child of a fork. */
void flusher_init(void);
/* The rest is written, the files are closed, the ring file is gone unless not
 * all of it is in the files. */
void flusher_stop(void);

#endif
