/* SPDX-License-Identifier: Apache-2.0
 * What `opscope watch` looks at: from a folder to the processes that write into
 * it, from a process to the folder that it writes into. */
#ifndef CMD_WATCH_TARGET_H
#define CMD_WATCH_TARGET_H

#include "base/err.h"
#include "capture/proc.h"

enum { WATCH_PROCESSES = 64 };

struct watch_target {
    char *logdir; /* NULL: not known (yet) */
    bool by_pid;  /* the user named the process, not the folder */
    int32_t pid;  /* and then: which */
    struct proc_stat procs[WATCH_PROCESSES]; /* as last looked at */
    size_t nprocs;
    bool seen;  /* there was a process once */
    bool ended; /* and now there is none */
};

/* Finds what the word means: a number is a process where no such file exists.
 * Returns OPS_EIO if there is neither, OPS_EUSAGE if it is no folder. On
 * success the caller frees with watch_target_free. */
int watch_target_open(struct watch_target *w, const char *arg,
                      struct ops_err *e);

/* Looks again at the processes: which have ended, which are new, where a
 * process writes to. */
void watch_target_look(struct watch_target *w);

void watch_target_free(struct watch_target *w);

#endif
