/* SPDX-License-Identifier: Apache-2.0
 * Reading /proc. Files are opened, read once and closed: a descriptor that is
 * kept would save half of the microseconds, and cost the limit on open files
 * with a program of a thousand threads. */
#include "capture/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The start of a file, terminated; -1: cannot be read. */
static ssize_t slurp(const char *path, char *out, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, out, cap - 1);
    close(fd);
    if (n >= 0) out[n] = '\0';
    return n;
}

/* The next number and the blank behind it; *p is NULL after what is none. */
static int64_t number(const char **p, const char *end) {
    if (*p == NULL) return 0;
    const char *s = *p;
    bool minus = s < end && *s == '-';
    if (minus) s++;
    uint64_t v = 0;
    const char *first = s;
    for (; s < end && *s >= '0' && *s <= '9'; s++)
        if (v < UINT64_C(1) << 59) v = v * 10 + (uint64_t)(*s - '0');
    bool ok = s > first;
    while (s < end && (*s == ' ' || *s == '\n')) s++;
    *p = ok ? s : NULL;
    return minus ? -(int64_t)v : (int64_t)v;
}

/* A field that is there but of no use. */
static void skip(const char **p, const char *end, int n) {
    for (int i = 0; i < n; i++) number(p, end);
}

bool proc_stat_parse(const char *text, size_t n, struct proc_stat *out) {
    const char *end = text + n;
    const char *open = memchr(text, '(', n);
    const char *close = open ? memrchr(open, ')', (size_t)(end - open)) : NULL;
    if (close == NULL || end - close < 5) return false;
    size_t len = (size_t)(close - open - 1);
    if (len >= sizeof out->name) len = sizeof out->name - 1;
    memcpy(out->name, open + 1, len);
    out->name[len] = '\0';
    for (char *c = out->name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    out->state = close[2];
    const char *p = close + 4;
    out->ppid = (int32_t)number(&p, end);
    skip(&p, end, 5); /* group, session, terminal, its group, flags */
    out->minor_faults = number(&p, end);
    out->child_faults = number(&p, end);
    out->major_faults = number(&p, end);
    out->child_faults += number(&p, end);
    out->user_ticks = number(&p, end);
    out->sys_ticks = number(&p, end);
    out->child_user_ticks = number(&p, end);
    out->child_sys_ticks = number(&p, end);
    skip(&p, end, 2); /* priority, nice */
    out->threads = number(&p, end);
    skip(&p, end, 1);
    out->start_ticks = number(&p, end);
    skip(&p, end, 1); /* virtual size */
    out->rss_pages = number(&p, end);
    return p != NULL;
}

bool proc_stat_read(int32_t pid, int32_t tid, struct proc_stat *out) {
    char path[64], text[1024];
    if (tid == 0) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    else snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    ssize_t n = slurp(path, text, sizeof text);
    return n > 0 && proc_stat_parse(text, (size_t)n, out);
}

bool proc_sched_read(int32_t pid, int32_t tid, int64_t *run_ns,
                     int64_t *wait_ns, int64_t *turns) {
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
    ssize_t n = slurp(path, text, sizeof text);
    if (n <= 0) return false;
    const char *p = text, *end = text + n;
    *run_ns = number(&p, end);
    *wait_ns = number(&p, end);
    *turns = number(&p, end);
    return p != NULL;
}

/* The number behind "\nkey" in text; UNKNOWN: not there. */
static int64_t value_of(const char *text, const char *key) {
    const char *p = strstr(text, key);
    if (p == NULL) return UNKNOWN;
    p += strlen(key);
    while (*p == ' ' || *p == '\t') p++;
    const char *end = p + strlen(p);
    int64_t v = number(&p, end);
    return p ? v : UNKNOWN;
}

bool proc_io_read(int32_t pid, int64_t *read_bytes, int64_t *write_bytes) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/io", pid);
    if (slurp(path, text, sizeof text) <= 0) return false;
    *read_bytes = value_of(text, "\nread_bytes:");
    *write_bytes = value_of(text, "\nwrite_bytes:");
    return *read_bytes >= 0 && *write_bytes >= 0;
}

int64_t proc_peak_rss(int32_t pid) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (slurp(path, text, sizeof text) <= 0) return UNKNOWN;
    int64_t kb = value_of(text, "\nVmHWM:");
    return kb < 0 || kb > INT64_MAX / 1024 ? UNKNOWN : kb * 1024;
}

int64_t proc_cpu_ns(int32_t pid) {
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        return UNKNOWN;
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

size_t proc_command(int32_t pid, char *out, size_t cap) {
    char path[64];
    out[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    ssize_t n = slurp(path, out, cap);
    if (n <= 0) return 0;
    while (n > 0 && out[n - 1] == '\0') n--;
    for (ssize_t i = 0; i < n; i++) {
        if (out[i] == '\0') out[i] = ' ';
        else if ((unsigned char)out[i] < ' ' || out[i] == 0x7f) out[i] = '?';
    }
    return (size_t)n;
}

bool proc_list(int32_t pid, void (*each)(void *ctx, int32_t id), void *ctx) {
    char path[64] = "/proc";
    if (pid != 0) snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    if (d == NULL) return false;
    for (struct dirent *x; (x = readdir(d)) != NULL;) {
        const char *s = x->d_name;
        if (*s < '1' || *s > '9' || strlen(s) > 9) continue;
        if (strspn(s, "0123456789") == strlen(s)) each(ctx, atoi(s));
    }
    closedir(d);
    return true;
}

int32_t proc_last_pid(void) {
    char text[128];
    if (slurp("/proc/loadavg", text, sizeof text) <= 0) return 0;
    const char *last = strrchr(text, ' ');
    return last ? atoi(last + 1) : 0;
}
