/* SPDX-License-Identifier: Apache-2.0
 * Reading /proc. Everything may be gone a moment later, or not ours to see:
 * that is an answer, never an error. */
#include "cmd/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRON_MAX = 4 << 20 };

/* A file of /proc, whole, NUL behind it; NULL when it cannot be read. */
static char *read_all(const char *path, size_t *n) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    size_t cap = 4096, used = 0;
    char *buf = malloc(cap + 1);
    for (ssize_t k; buf != NULL; used += (size_t)k) {
        if (used == cap) {
            char *more = cap < ENVIRON_MAX ? realloc(buf, 2 * cap + 1) : NULL;
            if (more == NULL) break;
            buf = more;
            cap *= 2;
        }
        k = read(fd, buf + used, cap - used);
        if (k <= 0) break;
    }
    close(fd);
    if (buf != NULL) buf[used] = '\0';
    *n = used;
    return buf;
}

static void path_of(char *buf, size_t cap, int64_t pid, const char *what) {
    snprintf(buf, cap, "/proc/%lld/%s", (long long)pid, what);
}

/* The name stands in parentheses and may hold any: the last one ends it. */
bool proc_stat(int64_t pid, struct proc_stat *out) {
    char path[64];
    size_t n;
    *out = (struct proc_stat){.pid = pid};
    path_of(path, sizeof path, pid, "stat");
    char *text = read_all(path, &n);
    if (text == NULL) return false;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    char state = 0;
    unsigned long long user, system, start;
    long long threads, rss;
    bool ok = open && close && close > open &&
              sscanf(close + 1,
                     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                     "%llu %llu %*s %*s %*s %*s %lld %*s %llu %*s %lld",
                     &state, &user, &system, &threads, &start, &rss) == 6;
    ok = ok && state != 'Z' && state != 'X';
    if (ok) {
        snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1),
                 open + 1);
        out->cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
        out->threads = threads;
        out->start_ticks = start;
        out->rss_bytes = rss * sysconf(_SC_PAGESIZE);
    }
    free(text);
    return ok;
}

char *proc_environ(int64_t pid, const char *name) {
    char path[64], *found = NULL;
    size_t n, len = strlen(name);
    path_of(path, sizeof path, pid, "environ");
    char *text = read_all(path, &n);
    if (text == NULL) return NULL;
    for (char *p = text; p < text + n && found == NULL; p += strlen(p) + 1)
        if (strncmp(p, name, len) == 0 && p[len] == '=')
            found = strdup(p + len + 1);
    free(text);
    return found;
}

/* Where a link of /proc leads. */
static char *link_of(const char *path) {
    char buf[PATH_MAX];
    ssize_t n = readlink(path, buf, sizeof buf - 1);
    if (n <= 0) return NULL;
    buf[n] = '\0';
    return strdup(buf);
}

char *proc_cwd(int64_t pid) {
    char path[64];
    path_of(path, sizeof path, pid, "cwd");
    return link_of(path);
}

/* fdinfo has a line "flags:<tab>0100001", octal, as open() took them. */
static bool is_written(const char *task, const char *fd) {
    char path[128];
    size_t n;
    snprintf(path, sizeof path, "%.80s/fdinfo/%.20s", task, fd);
    char *text = read_all(path, &n);
    char *flags = text ? strstr(text, "flags:") : NULL;
    bool written = flags != NULL &&
                   (strtol(flags + 6, NULL, 8) & O_ACCMODE) != O_RDONLY;
    free(text);
    return written;
}

/* The files of one thread's table; task: its folder. True: go on. */
static bool each_written(const char *task, bool (*fn)(void *, const char *),
                         void *ctx) {
    char path[128];
    snprintf(path, sizeof path, "%.80s/fd", task);
    DIR *d = opendir(path);
    bool more = true;
    for (struct dirent *e; more && d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.80s/fd/%.20s", task, e->d_name);
        char *to = link_of(path);
        if (to != NULL && to[0] == '/' && is_written(task, e->d_name))
            more = fn(ctx, to);
        free(to);
    }
    if (d != NULL) closedir(d);
    return more;
}

/* Has the thread a table of its own? That of a recorder has, and threads of
 * this name are recorders'. */
static bool is_recorder(const char *task) {
    char path[128];
    size_t n;
    snprintf(path, sizeof path, "%.80s/comm", task);
    char *name = read_all(path, &n);
    bool yes = name != NULL && strcmp(name, "opscope\n") == 0;
    free(name);
    return yes;
}

void proc_each_written(int64_t pid, bool (*fn)(void *ctx, const char *path),
                       void *ctx) {
    char path[64], task[96];
    path_of(task, sizeof task, pid, "");
    if (!each_written(task, fn, ctx)) return;
    path_of(path, sizeof path, pid, "task");
    DIR *d = opendir(path);
    bool more = true;
    for (struct dirent *e; more && d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(task, sizeof task, "%.60s/%.20s", path, e->d_name);
        if (is_recorder(task)) more = each_written(task, fn, ctx);
    }
    if (d != NULL) closedir(d);
}

void proc_each(bool (*fn)(void *ctx, int64_t pid), void *ctx) {
    DIR *d = opendir("/proc");
    if (d == NULL) return;
    bool more = true;
    for (struct dirent *e; more && (e = readdir(d)) != NULL;) {
        char *end;
        long long pid = strtoll(e->d_name, &end, 10);
        if (pid > 0 && *end == '\0') more = fn(ctx, pid);
    }
    closedir(d);
}
