/* SPDX-License-Identifier: Apache-2.0
 * Memory for the rings: the ring file, mapped once for as long as it may ever
 * get, of which pages get memory before they are used. No descriptor is needed
 * for that, so that a thread of the program can ask for it.
 *
 * All processes that came from one by fork() have one limit: what each takes
 * is counted in a page that they share. */
#ifndef REC_MEMORY_H
#define REC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring.h"

/* Is called once in a process, before its first session; children of fork()
 * have the page from their parent. Without memory for the page every process
 * counts for itself. */
void memory_init(void);

/* Says how much the processes of this family may have together. The first
 * process that starts sets it, and later any that allows more. */
void memory_allow(uint64_t bytes);

/* Maps `bytes` of the ring file, without access and without memory. Returns
 * NULL if that cannot be. Children of fork() do not have the mapping. */
void *memory_map(int fd, size_t bytes);
void memory_unmap(void *p, size_t bytes);

/* Gives [p, p + n) of the mapping memory and access, in whole pages. Returns
 * false if there is no memory, or not for us. Safe in any thread. */
bool memory_back(void *p, size_t n);
/* Did the system refuse memory in this session? */
bool memory_failed(void);

/* Change what is counted for all: this process gives back what it took; a look
 * at every ring file says what they really hold. */
void memory_give_back(void);
void memory_count(uint64_t bytes);
/* Takes off what recordings of the dead held that were finished. */
void memory_freed(uint64_t bytes);
/* Counts what the parent took as the parent's, in the child of a fork. */
void memory_forked(void);

/* Says where losses that belong to no ring are counted: in the head of the ring
 * file fd, where a kill leaves them, or nowhere (-1). Returns false if that
 * cannot be. The page has one address for good, so that any thread may add to
 * it at any time, also one that sleeps while the session ends. In a child that
 * no handler has run for (clone) the page is not there, but ops_state_ is 0. */
bool memory_count_losses(int fd);
struct rec_losses *memory_losses(void);

/* Do all processes together hold an eighth of what they may? */
bool memory_is_much(void);
/* Returns how often any process was refused memory. */
uint64_t memory_refused(void);

/* A process of the family could not be recorded at all, which it can tell
 * nobody but whoever reads this count. */
void memory_add_unrecorded(void);
uint64_t memory_unrecorded(void);

/* Is the window of the process that began recording open? Its children that
 * mark no steps of their own do as it does. */
void memory_set_window(bool on);
bool memory_window(void);

/* Says whether others of this user hold too much: then nobody gets more. The
 * flusher looks now and then. */
void memory_crowded(bool yes);

#endif
