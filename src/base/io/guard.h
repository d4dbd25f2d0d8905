/* SPDX-License-Identifier: Apache-2.0
 * Mapped files may shrink while they are read: without help the reader gets
 * SIGBUS and dies. Ranges listed here, any number of them, read as zeros
 * instead. */
#ifndef BASE_IO_GUARD_H
#define BASE_IO_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Lists the range [p, p + n), whole pages; *slot becomes its place, -1 when n
 * is 0. Returns false if out of memory: it is then not guarded. Thread-safe. */
bool guard_add(const void *p, size_t n, int *slot);

/* Takes a range off, before it is unmapped. A slot of -1 does nothing. */
void guard_remove(int slot);

/* Did a read in this range hit a page that was no longer there? */
bool guard_tripped(int slot);

/* Installs the handler, before or after ranges are listed; once is enough.
 * Faults outside the ranges go to the handler that was there before, or crash
 * as they would have. */
void guard_install(void);

/* Is the handler installed, and has nobody replaced it since? */
bool guard_installed(void);

#endif
