/* SPDX-License-Identifier: Apache-2.0
 * See proc.h. */
#include "ring/proc.h"
#include "ring/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

long proc_reread(int fd, char *buf, size_t cap) {
    size_t n = 0;
    if (fd < 0 || cap == 0) return -1;
    while (n < cap - 1) {
        ssize_t got = sys_pread(fd, buf + n, cap - 1 - n, (off_t)n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && n == 0) return -1;
        if (got <= 0) break;
        n += (size_t)got;
        /* The kernel hands out small files at once: one call, not two. */
        if (n < cap - 1 && n < 1024) break;
    }
    buf[n] = '\0';
    return (long)n;
}

long proc_read_at(int dir, const char *path, char *buf, size_t cap) {
    int fd = sys_openat(dir, path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0) return -1;
    long n = proc_reread(fd, buf, cap);
    sys_close(fd);
    return n;
}

long proc_read(const char *path, char *buf, size_t cap) {
    return proc_read_at(AT_FDCWD, path, buf, cap);
}

const char *proc_line(const char *text, const char *key, size_t *len) {
    size_t n = strlen(key);
    for (const char *p = text; p && *p; p = strchr(p, '\n')) {
        if (*p == '\n') p++;
        if (strncmp(p, key, n) != 0 || !strchr(": \t", p[n]) || !p[n]) continue;
        p += n;
        p += strspn(p, " \t:");
        *len = strcspn(p, "\n");
        return p;
    }
    return NULL;
}

/* Digits at p; false: none, or too many. */
static bool digits(const char **p, int64_t *out) {
    const char *at = *p;
    int64_t n = 0;
    if (*at < '0' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, *at - '0', &n))
            return false;
    *p = at;
    *out = n;
    return true;
}

bool proc_u64(const char *text, const char *key, uint64_t *out) {
    size_t len;
    int64_t n;
    const char *p = proc_line(text, key, &len);
    if (!p || !digits(&p, &n)) return false;
    *out = (uint64_t)n;
    return true;
}

bool proc_whole(const char *text, int64_t *out) {
    return digits(&text, out) && *text == '\0';
}
