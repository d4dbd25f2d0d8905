/* SPDX-License-Identifier: Apache-2.0
 * Large arrays on huge pages: a column of ten million rows touches 20,000
 * pages of 4 KiB but only 40 of 2 MiB, and the faults are what filling it
 * costs most. The advice is free where the system does not take it. */
#include "base/vec.h"

#include <sys/mman.h>

enum { HUGE_BYTES = 2 << 20, PAGE = 4096 };

/* The advice covers whole pages, also the one with malloc's header: a mapping
 * of which only a part is advised becomes two mappings, and realloc() cannot
 * move two without copying all of it. */
void vec_advise(void *p, size_t bytes) {
    if (bytes < 2 * (size_t)HUGE_BYTES) return;
    uintptr_t from = (uintptr_t)p & ~(uintptr_t)(PAGE - 1);
    uintptr_t to = ((uintptr_t)p + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void *vec_alloc(size_t n, size_t size) {
    if (size != 0 && n > SIZE_MAX / size) return NULL;
    void *p = malloc(n && size ? n * size : 1);
    if (p != NULL) vec_advise(p, n * size);
    return p;
}

void *vec_zeroed(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (p != NULL) vec_advise(p, n * size);
    return p;
}
