/* SPDX-License-Identifier: Apache-2.0
 * Listing a folder without the C library's streams. */
#include "ring/sys.h"

#include <string.h>

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
