/* SPDX-License-Identifier: Apache-2.0
 * Files of /proc, read into numbers. A process may be gone between any two
 * calls: that is "false", never an error. What the kernel does not tell is
 * UNKNOWN, never 0. */
#ifndef CAPTURE_PROC_H
#define CAPTURE_PROC_H

#include "ring/procfile.h"

enum { UNKNOWN = -1 };

/* Reads /proc/PID/stat, or the stat of one thread if tid is not 0. */
bool proc_stat_read(int32_t pid, int32_t tid, struct proc_stat *out);

/* Reads /proc/PID/task/TID/schedstat: time on a CPU, time waiting for one,
 * times scheduled in. Returns false if there is no such thread, or a kernel
 * without it. */
bool proc_sched_read(int32_t pid, int32_t tid, int64_t *run_ns,
                     int64_t *wait_ns, int64_t *turns);

/* Reads the bytes that went to and came from block devices. Returns false if
 * the process is gone or the kernel does not allow it. */
bool proc_io_read(int32_t pid, int64_t *read_bytes, int64_t *write_bytes);

/* Returns the largest resident size so far, in bytes, or UNKNOWN. */
int64_t proc_peak_rss(int32_t pid);

/* Returns the CPU time of the process, dead threads included, to the
 * nanosecond; also of one that is dead and not reaped. UNKNOWN if it is
 * gone. */
int64_t proc_cpu_ns(int32_t pid);

/* Copies the words of the command line, blanks between them, into out
 * (terminated, cut at cap). Returns the length; 0 if there is none. Control
 * characters become '?'. */
size_t proc_command(int32_t pid, char *out, size_t cap);

/* Returns the value of an environment variable as the process was started
 * with; NULL if it has none, or is not ours to see. The caller frees it. */
char *proc_environ(int32_t pid, const char *name);

/* Returns the folder that the process works in, or NULL. The caller frees
 * it. */
char *proc_cwd(int32_t pid);

/* Calls fn with the path of every file that the process has open for writing,
 * until fn says false. */
void proc_each_written(int32_t pid, bool (*fn)(void *ctx, const char *path),
                       void *ctx);

/* Calls each with every number that is a name in a folder: /proc itself
 * for pid 0, else that process's task folder. Returns false if it is gone. */
bool proc_list(int32_t pid, void (*each)(void *ctx, int32_t id), void *ctx);

/* Returns the pid that was given out last: while it stays the same there was no
 * new process. 0 if the kernel does not tell. */
int32_t proc_last_pid(void);

#endif
