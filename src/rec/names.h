/* SPDX-License-Identifier: Apache-2.0
 * Names have numbers, for the life of the process: call sites keep them. The
 * table is private memory; each session has a copy of it in its ring file, so
 * that a reader understands the slots. Lookups take no lock. */
#ifndef REC_NAMES_H
#define REC_NAMES_H

#include "ring/ring_map.h"

/* Returns the number of a name, from 2 on; 1 if there are too many (counted), 0
 * if there is no memory. The text is copied, and cut at 1 KiB. */
uint32_t names_intern(const char *name, uint32_t kind);

/* Puts names into this session's tables as well from now on; all present ones
 * are copied first. NULL: no session. Returns false if there is no memory for
 * them. */
bool names_session(struct ring_map *v);

/* Keep all threads from interning around fork(). */
void names_fork_lock(void);
void names_fork_unlock(void);

#endif
