/* SPDX-License-Identifier: Apache-2.0
 * A bump allocator over malloc'd blocks that double up to 1 MiB. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 16 };

void *arena_alloc(struct arena *a, size_t n) {
    if (n > SIZE_MAX - ALIGN) return NULL;
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct arena_block *b = a->head;
    if (b == NULL || b->cap - b->used < n) {
        size_t cap = b ? b->cap * 2 : FIRST_BLOCK;
        if (cap > LARGEST_BLOCK) cap = LARGEST_BLOCK;
        if (cap < n) cap = n;
        if (cap > SIZE_MAX - sizeof *b) return NULL;
        b = malloc(sizeof *b + cap);
        if (b == NULL) return NULL;
        b->used = 0;
        b->cap = cap;
        b->next = a->head;
        a->head = b;
    }
    void *p = b->data + b->used;
    b->used += n;
    a->used += n;
    return p;
}

char *arena_copy(struct arena *a, const void *p, size_t n) {
    if (n == SIZE_MAX) return NULL;
    char *s = arena_alloc(a, n + 1);
    if (s == NULL) return NULL;
    if (n > 0) memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

char *arena_str(struct arena *a, const char *s) {
    return s ? arena_copy(a, s, strlen(s)) : NULL;
}

char *arena_fmt(struct arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return NULL;
    char *s = arena_alloc(a, (size_t)n + 1);
    if (s == NULL) return NULL;
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

void arena_free(struct arena *a) {
    for (struct arena_block *b = a->head, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct arena){0};
}
