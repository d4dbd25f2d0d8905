/* SPDX-License-Identifier: Apache-2.0
 * The main thread is in state Z after it has left, and all others are ours. A
 * process may hold two recorders (a plugin that was linked with its own), each
 * with its threads: so that they are told by their names. */
#include "rec/alone.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rec/proc.h"

int alone_open(void) { return open("/proc/self/stat", O_RDONLY | O_CLOEXEC); }

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

bool alone_now(int fd, int keeper) {
    if (!main_has_left(fd)) return false;
    DIR *d = opendir("/proc/self/task");
    if (d == NULL) return false;
    bool alone = true;
    for (struct dirent *e; alone && (e = readdir(d)) != NULL;) {
        int tid = atoi(e->d_name);
        if (e->d_name[0] == '.' || tid == getpid()) continue;
        enum whose w = whose_thread(tid);
        alone = w == OURS || (w == KEEPER && tid >= keeper);
    }
    closedir(d);
    return alone;
}
