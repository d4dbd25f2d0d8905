/* SPDX-License-Identifier: Apache-2.0
 * Structs that a caller hands over with their size: one that was built against
 * another version has fewer members, or more. */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <stddef.h>
#include <string.h>

/* Copies what the caller's struct has of ours; the rest of ours stays as it is.
 * All such structs hold pointers, so that a true size ends with a whole
 * member: of any other size the part of a member is left out. from may be
 * NULL. */
static inline void copy_sized(void *to, size_t room, const void *from,
                              size_t size) {
    size -= size % sizeof(void *);
    if (from != NULL) memcpy(to, from, size < room ? size : room);
}

#endif
