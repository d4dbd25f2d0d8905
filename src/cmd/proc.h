/* SPDX-License-Identifier: Apache-2.0
 * What the system tells about a running process (/proc): memory, processor
 * time, environment, files that it writes. */
#ifndef CMD_PROC_H
#define CMD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_stat {
    int64_t pid;
    char name[64]; /* of the program, as the kernel has it */
    int64_t rss_bytes;
    double cpu_s; /* user and system time so far, all threads */
    int64_t threads;
    uint64_t start_ticks; /* since boot: tells a pid that was given again */
};

/* False: there is no such process, or it has ended and waits to be buried. */
bool proc_stat(int64_t pid, struct proc_stat *out);

/* The value of an environment variable as the process was started with. Yours
 * to free; NULL: none, or not ours to see. */
char *proc_environ(int64_t pid, const char *name);

/* The folder that the process works in. Yours to free; NULL: not to be seen. */
char *proc_cwd(int64_t pid);

/* Calls fn with the path of every file that the process has open for writing,
 * until it says false. */
void proc_each_written(int64_t pid, bool (*fn)(void *ctx, const char *path),
                       void *ctx);

/* Calls fn with every process of the system, until it says false. */
void proc_each(bool (*fn)(void *ctx, int64_t pid), void *ctx);

#endif
