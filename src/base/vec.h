/* SPDX-License-Identifier: Apache-2.0
 * Growing arrays: a pointer, a count and a capacity, kept where the caller
 * likes. Growth is by half, so that a large array wastes at most a third. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Asks for huge pages behind a large block; never fails. */
void vec_advise(void *p, size_t bytes);

/* Returns a block for n elements, not cleared, on huge pages when large; NULL
 * if out of memory. The caller frees it with free(). */
void *vec_alloc(size_t n, size_t size);

/* Returns the same, cleared: pages that nobody touches cost nothing. */
void *vec_zeroed(size_t n, size_t size);

/* Returns the capacity that follows cap when at least need are wanted. */
static inline size_t vec_next_cap(size_t cap, size_t need) {
    size_t c = cap < 16 ? 16 : cap + cap / 2;
    return c < need ? need : c;
}

/* Makes *pp hold cap elements of size bytes. Returns false, and leaves *pp as
 * it is, if out of memory. */
static inline bool vec_resize(void *pp, size_t cap, size_t size) {
    void **slot = pp;
    if (size != 0 && cap > SIZE_MAX / size) return false;
    void *p = realloc(*slot, cap && size ? cap * size : 1);
    if (p == NULL) return false;
    vec_advise(p, cap * size);
    *slot = p;
    return true;
}

/* Makes room for one more in array (ptr, n, cap); false if out of memory. Use:
 * if (!VEC_ROOM(v->rows, v->n, v->cap)) return fail_oom(e); */
#define VEC_ROOM(ptr, n, cap)                                                  \
    ((n) < (cap) || vec_grow_(&(ptr), &(cap), (n) + 1, sizeof *(ptr)))

static inline bool vec_grow_(void *pp, size_t *cap, size_t need, size_t size) {
    size_t next = vec_next_cap(*cap, need);
    if (!vec_resize(pp, next, size)) return false;
    *cap = next;
    return true;
}

#endif
