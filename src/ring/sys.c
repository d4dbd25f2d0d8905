/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes of all bytes, and a folder's list without the C library's
 * streams. */
#include "ring/sys.h"

#include <errno.h>
#include <string.h>

int sys_write_all(int fd, const void *p, size_t n, uint64_t at, size_t *done) {
    size_t put = 0;
    int error = 0;
    while (put < n && error == 0) {
        ssize_t w = sys_pwrite(fd, (const char *)p + put, n - put,
                               (int64_t)(at + put));
        if (w > 0) put += (size_t)w;
        else if (w == 0 || errno != EINTR) error = w < 0 ? errno : ENOSPC;
    }
    if (done != NULL) *done = put;
    return error;
}

size_t sys_read_all(int fd, void *p, size_t n, uint64_t at) {
    size_t got = 0;
    while (got < n) {
        ssize_t r = sys_pread(fd, (char *)p + got, n - got,
                              (int64_t)(at + got));
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) break;
        got += (size_t)r;
    }
    return got;
}

/* What getdents64 fills in. */
struct entry {
    uint64_t ino;
    int64_t off;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

bool sys_list(int dir, bool (*each)(void *ctx, const char *name), void *ctx) {
    _Alignas(struct entry) char buf[8192];
    int fd = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    bool more = true;
    if (fd < 0) return false;
    while (more) {
        long n = syscall(SYS_getdents64, fd, buf, sizeof buf);
        if (n <= 0) break;
        for (long at = 0; more && at < n;) {
            const struct entry *e = (const void *)(buf + at);
            at += e->bytes;
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                more = each(ctx, e->name);
        }
    }
    sys_close(fd);
    return true;
}
