/* SPDX-License-Identifier: Apache-2.0
 * LD_PRELOAD: the N-th allocation of the process fails, once. N is in
 * FAILMALLOC_AT; the file named by FAILMALLOC_HIT is made when it happened, so
 * that a test knows when it has tried them all. For glibc. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t k, size_t n);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static atomic_long count;

/* Is it this one's turn to fail? getenv allocates nothing. */
static bool fails(void) {
    static atomic_long at = -1;
    long want = atomic_load(&at);
    if (want < 0) {
        const char *s = getenv("FAILMALLOC_AT");
        want = s != NULL ? atol(s) : 0;
        atomic_store(&at, want);
    }
    if (want == 0 || atomic_fetch_add(&count, 1) + 1 != want) return false;
    const char *hit = getenv("FAILMALLOC_HIT");
    int fd = hit != NULL ? open(hit, O_WRONLY | O_CREAT, 0600) : -1;
    if (fd >= 0) close(fd);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }

void *calloc(size_t k, size_t n) {
    return fails() ? NULL : __libc_calloc(k, n);
}

void *realloc(void *p, size_t n) {
    return fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n) {
    return fails() ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n) {
    void *p = fails() ? NULL : __libc_memalign(align, n);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}
