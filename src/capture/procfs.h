/* SPDX-License-Identifier: Apache-2.0
 * Files of /proc, read into numbers. A process may be gone between any two
 * calls: that is "false", never an error. What the kernel does not tell is
 * UNKNOWN, never 0. */
#ifndef CAPTURE_PROCFS_H
#define CAPTURE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNKNOWN = -1, PROC_NAME = 16 };

/* Of /proc/PID/stat, or of a thread's /proc/PID/task/TID/stat. */
struct proc_stat {
    char name[PROC_NAME]; /* as the kernel has it: 15 bytes at most */
    char state;           /* 'Z': dead, not reaped yet */
    int32_t ppid;
    int64_t minor_faults, major_faults;
    int64_t user_ticks, sys_ticks;             /* sysconf(_SC_CLK_TCK) */
    int64_t child_user_ticks, child_sys_ticks; /* of children waited for */
    int64_t child_faults;                      /* minor and major */
    int64_t threads;
    int64_t start_ticks; /* since boot */
    int64_t rss_pages;
};

/* Parses the text of such a file, text[n] is not read. The name may hold
 * anything, blanks and ')' too. False: not of that form. */
bool proc_stat_parse(const char *text, size_t n, struct proc_stat *out);

/* tid 0: the process. */
bool proc_stat_read(int32_t pid, int32_t tid, struct proc_stat *out);

/* /proc/PID/task/TID/schedstat: time on a CPU, time waiting for one, times
 * scheduled in. False: no such thread, or a kernel without it. */
bool proc_sched_read(int32_t pid, int32_t tid, int64_t *run_ns,
                     int64_t *wait_ns, int64_t *turns);

/* Bytes that went to and came from block devices. False: not allowed, gone. */
bool proc_io_read(int32_t pid, int64_t *read_bytes, int64_t *write_bytes);

/* The value of "key:\t 123 kB" of /proc/PID/status, in bytes; UNKNOWN. */
int64_t proc_peak_rss(int32_t pid);

/* CPU time of the process, dead threads included, to the nanosecond; also of
 * one that is dead and not reaped. UNKNOWN: gone. */
int64_t proc_cpu_ns(int32_t pid);

/* The words of the command line, blanks between them, into out (terminated,
 * cut at cap); returns the length, 0: none or gone. Control characters become
 * '?'. */
size_t proc_command(int32_t pid, char *out, size_t cap);

/* The numbers that are names in a folder of /proc (pid 0: /proc itself, else
 * that process's task folder): calls each with every one. False: gone. */
bool proc_list(int32_t pid, void (*each)(void *ctx, int32_t id), void *ctx);

/* The pid that was given out last: no new process since it is the same. 0 where
 * the kernel does not tell. */
int32_t proc_last_pid(void);

#endif
