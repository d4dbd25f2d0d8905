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

/* Once in a process, before its first session; children of fork() have it from
 * their parent. Without memory for the page every process counts for itself. */
void memory_init(void);

/* How much the processes of this family may have together. The first one that
 * starts says it, and whoever allows more. */
void memory_allow(uint64_t bytes);

/* Maps `bytes` of the ring file, without access and without memory: NULL when
 * that cannot be. Children of fork() do not have it. */
void *memory_map(int fd, size_t bytes);
void memory_unmap(void *p, size_t bytes);

/* Memory and access for [p, p + n) of what is mapped, in whole pages; false:
 * there is none, or not for us. Safe in any thread. */
bool memory_back(void *p, size_t n);

/* What is counted for all: this process gives back what it took; somebody who
 * looked at every ring file says what it really is. */
void memory_give_back(void);
void memory_count(uint64_t bytes);
/* Somebody finished recordings of the dead, which held so much. */
void memory_freed(uint64_t bytes);
/* In the child of a fork: what the parent took is the parent's. */
void memory_forked(void);

/* Where losses are counted that belong to no ring: in the head of the ring file
 * (fd; false: that cannot be), where a kill leaves them, or nowhere (-1). The
 * page has one address for good, so that any thread may add to it at any time,
 * also one that sleeps while the session ends. In a child that no handler has
 * run for (clone) it is not there, but ops_state_ is 0. */
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

/* When others of this user hold too much, nobody gets more: told by the
 * flusher, which looks now and then. */
void memory_crowded(bool yes);

#endif
