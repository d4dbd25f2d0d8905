/* SPDX-License-Identifier: Apache-2.0
 * See procfile.h. */
#include "ring/procfile.h"

#include "ring/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

long procfile_reread(int fd, char *buf, size_t cap) {
    size_t n = 0;
    if (fd < 0 || cap == 0) return -1;
    while (n < cap - 1) {
        ssize_t got = sys_pread(fd, buf + n, cap - 1 - n, (off_t)n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && n == 0) return -1;
        if (got <= 0) break;
        n += (size_t)got;
        /* The kernel hands out small files at once: one call is enough, not
         * two. */
        if (n < cap - 1 && n < 1024) break;
    }
    buf[n] = '\0';
    return (long)n;
}

long procfile_read_at(int dir, const char *path, char *buf, size_t cap) {
    int fd = sys_openat(dir, path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0) return -1;
    long n = procfile_reread(fd, buf, cap);
    sys_close(fd);
    return n;
}

long procfile_read(const char *path, char *buf, size_t cap) {
    return procfile_read_at(AT_FDCWD, path, buf, cap);
}

long procfile_read_line(int dir, const char *path, char *buf, size_t cap) {
    long n = procfile_read_at(dir, path, buf, cap);
    if (n >= 0) buf[strcspn(buf, "\n")] = '\0';
    return n >= 0 ? (long)strlen(buf) : n;
}

const char *procfile_line(const char *text, const char *key, size_t *len) {
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

/* Reads digits at *p. Returns false if there are none, or too many. */
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

bool procfile_u64(const char *text, const char *key, uint64_t *out) {
    size_t len;
    int64_t n;
    const char *p = procfile_line(text, key, &len);
    if (!p || !digits(&p, &n)) return false;
    *out = (uint64_t)n;
    return true;
}

bool procfile_whole(const char *text, int64_t *out) {
    return digits(&text, out) && *text == '\0';
}

/* Reads the next number and the blanks behind it, and skips `skip` numbers
 * before. *p becomes NULL where there is no number. */
static int64_t next_number(const char **p, const char *end, int skip) {
    uint64_t v = 0;
    bool minus = false;
    for (; *p != NULL && skip >= 0; skip--) {
        const char *s = *p;
        minus = s < end && *s == '-';
        if (minus) s++;
        const char *first = s;
        for (v = 0; s < end && *s >= '0' && *s <= '9'; s++)
            if (v < UINT64_C(1) << 59) v = v * 10 + (uint64_t)(*s - '0');
        bool ok = s > first;
        while (s < end && (*s == ' ' || *s == '\n')) s++;
        *p = ok ? s : NULL;
    }
    if (*p == NULL) return 0;
    return minus ? -(int64_t)v : (int64_t)v;
}

enum { PF_EXITING = 4 }; /* among the flags, which no header of libc has */

bool proc_stat_parse(const char *text, size_t n, struct proc_stat *out) {
    const char *p = text, *end = text + n;
    const char *open = memchr(text, '(', n);
    const char *close = open ? memrchr(open, ')', (size_t)(end - open)) : NULL;
    if (close == NULL || end - close < 5) return false;
    out->pid = (int32_t)next_number(&p, open, 0);
    size_t len = (size_t)(close - open - 1);
    if (len >= sizeof out->name) len = sizeof out->name - 1;
    memcpy(out->name, open + 1, len);
    out->name[len] = '\0';
    for (char *c = out->name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    out->state = close[2];
    p = close + 4;
    out->ppid = (int32_t)next_number(&p, end, 0);
    /* behind group, session, terminal and the terminal's group */
    out->leaves = (next_number(&p, end, 4) & PF_EXITING) != 0;
    out->minor_faults = next_number(&p, end, 0);
    out->child_faults = next_number(&p, end, 0);
    out->major_faults = next_number(&p, end, 0);
    out->child_faults += next_number(&p, end, 0);
    out->user_ticks = next_number(&p, end, 0);
    out->sys_ticks = next_number(&p, end, 0);
    out->child_user_ticks = next_number(&p, end, 0);
    out->child_sys_ticks = next_number(&p, end, 0);
    out->threads = next_number(&p, end, 2); /* behind priority and nice */
    out->start_ticks = next_number(&p, end, 1);
    out->rss_pages = next_number(&p, end, 1); /* behind the virtual size */
    bool whole = p != NULL;
    out->exit_status = (int)next_number(&p, end, 27); /* field 52 */
    return whole;
}
