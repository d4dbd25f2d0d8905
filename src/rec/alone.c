/* SPDX-License-Identifier: Apache-2.0
 * The main thread is in state Z after it has left, and all others are ours. A
 * process may hold two recorders (a plugin that was linked with its own), each
 * with its threads: these are told by their names, which threads of a program
 * may have as well, and by the signals that they block: all.
 *
 * What is asked while the program runs is held open from the start: later it
 * may have no descriptor left, or another root. */
#include "rec/alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring/procfile.h"
#include "ring/sys.h"

/* The least number of threads: the main thread, the flusher and the keeper. */
enum { FEWEST = 3 };

/* Copies the mask of blocked signals of a thread. Returns false if it cannot be
 * read. */
static bool blocked_signals(int tasks, const char *tid, char out[32]) {
    char path[64], text[4096];
    size_t len;
    snprintf(path, sizeof path, "%s/status", tid);
    if (procfile_read_at(tasks, path, text, sizeof text) <= 0) return false;
    const char *mask = procfile_line(text, "SigBlk", &len);
    if (mask == NULL || len >= 32) return false;
    memcpy(out, mask, len);
    out[len] = '\0';
    return true;
}

/* This is not gettid(): /proc may be of another namespace than ours. */
int alone_self(void) {
    char link[64];
    ssize_t n = readlink("/proc/thread-self", link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    const char *p = strrchr(link, '/');
    return p != NULL ? atoi(p + 1) : (int)syscall(SYS_gettid);
}

bool alone_open(struct alone *a) {
    char tid[16];
    snprintf(tid, sizeof tid, "%d", alone_self());
    a->stat = sys_open("/proc/self/stat", O_RDONLY);
    a->tasks = sys_open("/proc/self/task", O_PATH | O_DIRECTORY);
    if (a->stat >= 0 && a->tasks >= 0 &&
        blocked_signals(a->tasks, tid, a->blocked))
        return true;
    alone_close(a);
    return false;
}

void alone_close(struct alone *a) {
    if (a->stat >= 0) sys_close(a->stat);
    if (a->tasks >= 0) sys_close(a->tasks);
    a->stat = a->tasks = -1;
}

static bool main_stat(const struct alone *a, struct proc_stat *st) {
    char text[1024];
    long n = procfile_reread(a->stat, text, sizeof text);
    return n > 0 && proc_stat_parse(text, (size_t)n, st);
}

static bool main_has_left(const struct alone *a, int *tid, int *status) {
    struct proc_stat st;
    if (!main_stat(a, &st)) return false;
    *tid = st.pid;
    *status = st.exit_status;
    return st.state == 'Z' || st.state == 'X';
}

/* Returns the number of threads; 0 if it cannot be told. */
static size_t threads(const struct alone *a) {
    struct stat st;
    return sys_fstat(a->tasks, &st) == 0 && st.st_nlink > 2
               ? (size_t)st.st_nlink - 2
               : 0;
}

enum whose { PROGRAMS, OURS, KEEPER };

static enum whose whose_thread(const struct alone *a, const char *tid) {
    static const char *const ours[] = {"opscope", "opscope-nvml",
                                       "opscope-rescue", "opscope-keep"};
    char path[64], name[32], blocked[32];
    snprintf(path, sizeof path, "%s/comm", tid);
    if (procfile_read_line(a->tasks, path, name, sizeof name) < 0)
        return PROGRAMS; /* one that has just ended may have others */
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return !blocked_signals(a->tasks, tid, blocked) ||
                           strcmp(blocked, a->blocked) != 0
                       ? PROGRAMS
                   : i == 3 ? KEEPER
                            : OURS;
    return PROGRAMS;
}

struct looking {
    const struct alone *a;
    int keeper, leader;
    size_t n;
    bool alone;
};

static bool look_at_thread(void *ctx, const char *name) {
    struct looking *l = ctx;
    int tid = atoi(name);
    l->n++;
    if (tid == l->leader) return true;
    enum whose w = whose_thread(l->a, name);
    l->alone = w == OURS || (w == KEEPER && tid >= l->keeper);
    return l->alone;
}

/* While threads come and go a list may miss one: it counts only when it has as
 * many as there are. */
bool alone_now(const struct alone *a, int keeper, int *status) {
    struct looking l = {a, keeper, 0, 0, true};
    if (!main_has_left(a, &l.leader, status)) return false;
    size_t n = threads(a);
    if (n <= FEWEST) return n == FEWEST;
    return sys_list(a->tasks, look_at_thread, &l) && l.alone && l.n == n &&
           threads(a) == n;
}

/* Do both have one table? Where the system does not tell, the answer is yes. */
static bool same_table(int a, int b) {
    enum { FILES = 2 }; /* KCMP_FILES */
    return syscall(SYS_kcmp, a, b, FILES, 0, 0) <= 0;
}

static bool look_at_table(void *ctx, const char *name) {
    struct looking *l = ctx;
    if (whose_thread(l->a, name) == PROGRAMS)
        l->alone = !same_table(atoi(name), l->keeper);
    return l->alone;
}

/* A main thread that leaves has no table any more, and the keeper has the one
 * that it had. The system takes the table first and shows a dead thread a
 * moment later; before both it says that the thread leaves. */
bool alone_in_table(const struct alone *a, int keeper) {
    struct looking l = {a, keeper, 0, 0, true};
    struct proc_stat st;
    if (keeper == 0 || same_table(getpid(), keeper) || !main_stat(a, &st) ||
        st.leaves)
        return false;
    return sys_list(a->tasks, look_at_table, &l) && l.alone;
}
