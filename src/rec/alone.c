/* SPDX-License-Identifier: Apache-2.0
 * The main thread is in state Z after it has left, and all others are ours. A
 * process may hold two recorders (a plugin that was linked with its own), each
 * with its threads: so that they are told by their names. */
#include "rec/alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rec/proc.h"
#include "rec/sys.h"

int alone_open(void) { return sys_open("/proc/self/stat", O_RDONLY); }

/* "pid (name) state ...": names may hold anything. */
static bool main_has_left(int fd) {
    char text[512];
    if (proc_reread(fd, text, sizeof text) <= 0) return false;
    const char *p = strrchr(text, ')');
    return p != NULL && (p[2] == 'Z' || p[2] == 'X');
}

enum whose { PROGRAMS, OURS, KEEPER };

static enum whose whose_thread(int tid) {
    static const char *const ours[] = {"opscope\n", "opscope-nvml\n",
                                       "opscope-rescue\n"};
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    if (proc_read(path, name, sizeof name) <= 0) return OURS; /* it has ended */
    if (strcmp(name, "opscope-keep\n") == 0) return KEEPER;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0) return OURS;
    return PROGRAMS;
}

struct looking {
    int keeper;
    bool alone;
};

static bool look_at_thread(void *ctx, const char *name) {
    struct looking *l = ctx;
    int tid = atoi(name);
    if (tid == getpid()) return true;
    enum whose w = whose_thread(tid);
    l->alone = w == OURS || (w == KEEPER && tid >= l->keeper);
    return l->alone;
}

bool alone_now(int fd, int keeper) {
    struct looking l = {keeper, true};
    if (!main_has_left(fd)) return false;
    int tasks = sys_open("/proc/self/task", O_PATH | O_DIRECTORY);
    if (tasks < 0) return false;
    bool listed = sys_list(tasks, look_at_thread, &l);
    sys_close(tasks);
    return listed && l.alone;
}

/* Do both have one table? Where the system does not tell: yes. */
static bool same_table(int a, int b) {
    enum { FILES = 2 }; /* KCMP_FILES */
    return syscall(SYS_kcmp, a, b, FILES, 0, 0) <= 0;
}

static bool look_at_table(void *ctx, const char *name) {
    struct looking *l = ctx;
    int tid = atoi(name);
    if (whose_thread(tid) == PROGRAMS) l->alone = !same_table(tid, l->keeper);
    return l->alone;
}

/* A main thread that has left has no table, and the keeper is there to have the
 * one that it had. */
bool alone_in_table(int fd, int keeper) {
    struct looking l = {keeper, true};
    if (keeper == 0 || same_table(getpid(), keeper) || main_has_left(fd))
        return false;
    int tasks = sys_open("/proc/self/task", O_PATH | O_DIRECTORY);
    if (tasks < 0) return false;
    bool listed = sys_list(tasks, look_at_table, &l);
    sys_close(tasks);
    return listed && l.alone;
}
