/* SPDX-License-Identifier: Apache-2.0
 * Small files of /proc and /sys: read whole, looked up by the word that begins
 * a line, and the parser of /proc/PID/stat. Nothing here allocates: the
 * recorder uses it inside other people's programs, capture/proc.c from
 * outside. */
#ifndef RING_PROCFILE_H
#define RING_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the first cap - 1 bytes of a file and puts a 0 behind them. Returns how
 * many; -1 if it cannot be read. The last one reads an open descriptor from
 * its beginning. */
long procfile_read(const char *path, char *buf, size_t cap);
long procfile_read_at(int dir, const char *path, char *buf, size_t cap);
long procfile_reread(int fd, char *buf, size_t cap);
/* Does the same for the first line of a file, without its line end. */
long procfile_read_line(int dir, const char *path, char *buf, size_t cap);

/* Returns the rest of the line that begins with the key, behind ':' and blanks,
 * and its length; NULL if there is no such line. */
const char *procfile_line(const char *text, const char *key, size_t *len);
/* Does the same for a number. Its unit is not looked at. */
bool procfile_u64(const char *text, const char *key, uint64_t *out);

/* Reads a number: digits only, all of the text, at most INT64_MAX. */
bool procfile_whole(const char *text, int64_t *out);

enum { PROC_NAME = 16 };

/* What /proc/PID/stat, or a thread's /proc/PID/task/TID/stat, tells. */
struct proc_stat {
    int32_t pid, ppid;
    char name[PROC_NAME]; /* as the kernel has it: 15 bytes at most */
    char state;           /* 'Z': dead, not reaped yet */
    bool leaves;          /* it is on its way to that */
    int64_t minor_faults, major_faults;
    int64_t user_ticks, sys_ticks;             /* sysconf(_SC_CLK_TCK) */
    int64_t child_user_ticks, child_sys_ticks; /* of children waited for */
    int64_t child_faults;                      /* minor and major */
    int64_t threads;
    int64_t start_ticks; /* since boot */
    int64_t rss_pages;
    int exit_status; /* as wait() gives it; 0 where the kernel does not tell */
};

/* Parses the text of such a file; text[n] is not read. The name may hold
 * anything, blanks and ')' too. Returns false if the text is not of that
 * form. */
bool proc_stat_parse(const char *text, size_t n, struct proc_stat *out);

#endif
