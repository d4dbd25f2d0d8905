/* SPDX-License-Identifier: Apache-2.0
 * Temporary files without a name; see scratch.h. */
#include "base/io/scratch.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *folder(void) {
    const char *dir = getenv("TMPDIR");
    return dir != NULL && *dir != '\0' ? dir : "/tmp";
}

static int refuse(const char *what, int err, struct ops_err *e) {
    if (err == EFBIG)
        return fail(e, OPS_EIO,
                    "%s the temporary file in %s: %s; raise the limit "
                    "(ulimit -f), or set TMPDIR to another folder",
                    what, folder(), strerror(err));
    return fail(e, OPS_EIO,
                "%s the temporary file in %s: %s; set TMPDIR to a folder "
                "that has room",
                what, folder(), strerror(err));
}

/* Opens a file by a name, where the file system knows no O_TMPFILE. */
static int open_named(void) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/opscope-XXXXXX", folder());
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

int scratch_open(struct scratch *s, struct ops_err *e) {
    *s = (struct scratch){.fd = -1};
    s->fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->fd < 0) s->fd = open_named();
    return s->fd < 0 ? refuse("cannot create", errno, e) : 0;
}

/* Reserves bytes [s->cap, to) on disk. Returns 0 or an errno. Where files may
 * not become so large (ulimit -f) the system would send SIGXFSZ, which ends a
 * program, so the system is not asked. */
static int reserve(struct scratch *s, size_t to) {
    struct rlimit most;
    int rc;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        to > most.rlim_cur)
        return EFBIG;
    do rc = posix_fallocate(s->fd, (off_t)s->cap, (off_t)(to - s->cap));
    while (rc == EINTR);
    return rc;
}

static size_t round_up(size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) / page * page;
}

int scratch_room(struct scratch *s, size_t need, size_t want,
                 struct ops_err *e) {
    assert(s->fd >= 0);
    if (need <= s->cap) return 0;
    size_t to = round_up(want > need ? want : need);
    int rc = reserve(s, to);
    if (rc == ENOSPC || rc == EFBIG || rc == EDQUOT)
        rc = reserve(s, to = round_up(need));
    if (rc != 0) return refuse("cannot grow", rc, e);
    void *p = s->p == NULL
                  ? mmap(NULL, to, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0)
                  : mremap(s->p, s->cap, to, MREMAP_MAYMOVE);
    if (p == MAP_FAILED) return refuse("cannot map", errno, e);
    s->p = p;
    s->cap = to;
    return 0;
}

size_t scratch_left(const struct scratch *s) {
    struct statvfs v;
    if (fstatvfs(s->fd, &v) != 0 || v.f_blocks == 0) return SIZE_MAX;
    return (size_t)v.f_bavail * v.f_frsize;
}

int scratch_seal(struct scratch *s, size_t n, struct ops_err *e) {
    TRY(scratch_room(s, n + BYTES_BEHIND, 0, e));
    size_t keep = round_up(n + BYTES_BEHIND);
    memset(s->p + n, 0, keep - n);
    if (keep < s->cap) munmap(s->p + keep, s->cap - keep);
    s->cap = keep;
    int rc = ftruncate(s->fd, (off_t)keep);
    if (rc == 0) rc = mprotect(s->p, keep, PROT_READ);
    if (rc != 0) return refuse("cannot cut", errno, e);
    close(s->fd);
    s->fd = -1;
    return 0;
}

void scratch_close(struct scratch *s) {
    if (s->p != NULL) munmap(s->p, s->cap);
    if (s->fd >= 0) close(s->fd);
    *s = (struct scratch){.fd = -1};
}
