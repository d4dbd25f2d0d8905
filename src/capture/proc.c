/* SPDX-License-Identifier: Apache-2.0
 * Reading /proc. Files are opened, read once and closed: a descriptor that is
 * kept would save half of the microseconds, and cost the limit on open files
 * with a program of a thousand threads. */
#include "capture/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRON_MAX = 4 << 20 };

/* Reads /proc/PID/NAME; see procfile_read. */
static long read_of(int32_t pid, const char *name, char *out, size_t cap) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return procfile_read(path, out, cap);
}

bool proc_stat_read(int32_t pid, int32_t tid, struct proc_stat *out) {
    char name[32] = "stat", text[1024];
    if (tid != 0) snprintf(name, sizeof name, "task/%d/stat", tid);
    long n = read_of(pid, name, text, sizeof text);
    return n > 0 && proc_stat_parse(text, (size_t)n, out);
}

bool proc_sched_read(int32_t pid, int32_t tid, int64_t *run_ns,
                     int64_t *wait_ns, int64_t *turns) {
    char name[40], text[128], *wait, *on, *end;
    snprintf(name, sizeof name, "task/%d/schedstat", tid);
    if (read_of(pid, name, text, sizeof text) <= 0) return false;
    *run_ns = strtoll(text, &wait, 10);
    *wait_ns = strtoll(wait, &on, 10);
    *turns = strtoll(on, &end, 10);
    return end != on;
}

bool proc_io_read(int32_t pid, int64_t *read_bytes, int64_t *write_bytes) {
    char text[512];
    uint64_t in, out;
    if (read_of(pid, "io", text, sizeof text) <= 0 ||
        !procfile_u64(text, "read_bytes", &in) ||
        !procfile_u64(text, "write_bytes", &out))
        return false;
    *read_bytes = (int64_t)in;
    *write_bytes = (int64_t)out;
    return true;
}

int64_t proc_peak_rss(int32_t pid) {
    char text[4096];
    uint64_t kib;
    if (read_of(pid, "status", text, sizeof text) <= 0 ||
        !procfile_u64(text, "VmHWM", &kib) || kib > INT64_MAX / 1024)
        return UNKNOWN;
    return (int64_t)kib * 1024;
}

int64_t proc_cpu_ns(int32_t pid) {
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        return UNKNOWN;
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

size_t proc_command(int32_t pid, char *out, size_t cap) {
    out[0] = '\0';
    long n = read_of(pid, "cmdline", out, cap);
    if (n <= 0) return 0;
    while (n > 0 && out[n - 1] == '\0') n--;
    for (long i = 0; i < n; i++) {
        if (out[i] == '\0') out[i] = ' ';
        else if ((unsigned char)out[i] < ' ' || out[i] == 0x7f) out[i] = '?';
    }
    return (size_t)n;
}

char *proc_environ(int32_t pid, const char *name) {
    size_t len = strlen(name);
    for (size_t cap = 16 << 10; cap <= ENVIRON_MAX; cap *= 4) {
        char *text = malloc(cap), *found = NULL;
        long n = text ? read_of(pid, "environ", text, cap) : -1;
        for (char *p = text; n > 0 && p < text + n && !found;
             p += strlen(p) + 1)
            if (strncmp(p, name, len) == 0 && p[len] == '=')
                found = strdup(p + len + 1);
        free(text);
        if (n < (long)cap - 1) return found; /* all of it was read */
        free(found);
    }
    return NULL;
}

/* Returns where a link of /proc leads, or NULL. The caller frees it. */
static char *link_of(const char *path) {
    char buf[PATH_MAX];
    ssize_t n = readlink(path, buf, sizeof buf - 1);
    if (n <= 0) return NULL;
    buf[n] = '\0';
    return strdup(buf);
}

char *proc_cwd(int32_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cwd", pid);
    return link_of(path);
}

/* A walk over the files that a process has open for writing. */
struct written {
    int32_t pid;
    bool (*fn)(void *ctx, const char *path);
    void *ctx;
    bool more; /* fn has not said false yet */
};

/* Lists the files of one table of descriptors. fdinfo has a line
 * "flags:<tab>0100001", octal, as open() took them. */
static void written_in(struct written *w, const char *table) {
    char path[128], text[1024];
    size_t len;
    snprintf(path, sizeof path, "%.80s/fd", table);
    DIR *d = opendir(path);
    for (struct dirent *e; w->more && d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.80s/fd/%.20s", table, e->d_name);
        char *to = link_of(path);
        snprintf(path, sizeof path, "%.80s/fdinfo/%.20s", table, e->d_name);
        if (to != NULL && to[0] == '/' &&
            procfile_read(path, text, sizeof text) > 0) {
            const char *flags = procfile_line(text, "flags", &len);
            if (flags && (strtol(flags, NULL, 8) & O_ACCMODE) != O_RDONLY)
                w->more = w->fn(w->ctx, to);
        }
        free(to);
    }
    if (d != NULL) closedir(d);
}

/* Lists the files of a recorder's thread, which has a table of its own; threads
 * of that name are recorders'. */
static void written_by_thread(void *ctx, int32_t tid) {
    struct written *w = ctx;
    char table[64], name[40], comm[32];
    snprintf(name, sizeof name, "task/%d/comm", tid);
    if (!w->more || read_of(w->pid, name, comm, sizeof comm) <= 0 ||
        strcmp(comm, "opscope\n") != 0)
        return;
    snprintf(table, sizeof table, "/proc/%d/task/%d", w->pid, tid);
    written_in(w, table);
}

void proc_each_written(int32_t pid, bool (*fn)(void *ctx, const char *path),
                       void *ctx) {
    struct written w = {pid, fn, ctx, true};
    char table[32];
    snprintf(table, sizeof table, "/proc/%d", pid);
    written_in(&w, table);
    if (w.more) proc_list(pid, written_by_thread, &w);
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
    if (procfile_read("/proc/loadavg", text, sizeof text) <= 0) return 0;
    const char *last = strrchr(text, ' ');
    return last ? atoi(last + 1) : 0;
}
