/* SPDX-License-Identifier: Apache-2.0
 * A bump allocator for many small things that die together. It never moves what
 * it gave out, and returns NULL when memory runs out; the caller says so. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block; NULL when empty */
    size_t used;              /* bytes handed out, for accounting */
};

/* Returns n bytes, aligned to 16, not cleared. O(1) but for a malloc a
 * block. */
void *arena_alloc(struct arena *a, size_t n);

/* Returns a NUL-terminated copy of n bytes (of which none need be NUL). */
char *arena_copy(struct arena *a, const void *p, size_t n);

/* Returns a NUL-terminated copy of a string; NULL if s is NULL. */
char *arena_str(struct arena *a, const char *s);

/* Returns the text that printf would write. */
char *arena_fmt(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Frees everything; the arena can be used again. */
void arena_free(struct arena *a);

#endif
