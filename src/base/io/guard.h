/* SPDX-License-Identifier: Apache-2.0
 * Mapped files that shrink while they are read: without help the reader gets
 * SIGBUS and dies. Ranges listed here read as zeros instead, any number of
 * them. */
#ifndef BASE_IO_GUARD_H
#define BASE_IO_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Lists [p, p + n), whole pages. *slot is its place, -1 when n is 0. False: out
 * of memory, and the range is not guarded. Thread-safe. */
bool guard_add(const void *p, size_t n, int *slot);

/* Takes it off; call before unmapping. A slot of -1 does nothing. */
void guard_remove(int slot);

/* Did a read in this range hit a page that was no longer there? */
bool guard_tripped(int slot);

/* Installs the handler, before or after ranges are listed; once is enough.
 * Faults outside of the ranges go to the handler that was there before, or
 * crash as they would have. */
void guard_install(void);

/* Is it there, and was not replaced since? */
bool guard_installed(void);

#endif
