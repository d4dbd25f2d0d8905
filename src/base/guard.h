/* SPDX-License-Identifier: Apache-2.0
 * Mapped files that shrink while they are read: without help the reader gets
 * SIGBUS and dies. Ranges listed here read as zeros instead. */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Lists [p, p + n). Returns its slot, or -1 when the table is full (the range
 * is then not guarded) or n is 0. Thread-safe. */
int guard_add(const void *p, size_t n);

/* Takes it off; call before unmapping. A slot of -1 does nothing. */
void guard_remove(int slot);

/* Did a read in this range hit a page that was no longer there? */
bool guard_tripped(int slot);

/* Installs the handler. Ranges may be listed before or after. */
void guard_install(void);

#endif
