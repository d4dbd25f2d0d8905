/* SPDX-License-Identifier: Apache-2.0
 * LD_PRELOAD: the N-th allocation of the process fails, once. N is in
 * FAILMALLOC_AT; the file named by FAILMALLOC_HIT is made when it happened, so
 * that a test knows when it has tried them all. With FAILMALLOC_LIST alone
 * nothing fails, and the file of that name gets a line with the size of each.
 * For glibc. */
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

/* Adds a line to the list, if there is one. */
static void list(size_t n) {
    static atomic_int fd = -2; /* -1: none */
    char line[24];
    if (fd == -2) {
        const char *path = getenv("FAILMALLOC_LIST");
        fd = path == NULL
                 ? -1
                 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    }
    size_t i = sizeof line;
    line[--i] = '\n';
    do line[--i] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    if (fd >= 0 && write(fd, line + i, sizeof line - i) < 0) abort();
}

/* Is it this one's turn to fail? getenv allocates nothing. */
static bool fails(size_t n) {
    list(n);
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

void *malloc(size_t n) { return fails(n) ? NULL : __libc_malloc(n); }

void *calloc(size_t k, size_t n) {
    return fails(k * n) ? NULL : __libc_calloc(k, n);
}

void *realloc(void *p, size_t n) {
    return fails(n) ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n) {
    return fails(n) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n) {
    void *p = fails(n) ? NULL : __libc_memalign(align, n);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}
