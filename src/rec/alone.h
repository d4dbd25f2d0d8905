/* SPDX-License-Identifier: Apache-2.0
 * Does the program have any thread left besides the recorder's? A program whose
 * main thread leaves by pthread_exit() ends when its last thread does: then no
 * thread of ours may keep it. */
#ifndef REC_ALONE_H
#define REC_ALONE_H

#include <stdbool.h>

/* Descriptors, or -1. */
struct alone {
    int stat, tasks;
    char blocked[32]; /* the signals that threads of ours block */
};

/* Is called by the flusher. Returns false if there is no /proc: then nobody
 * could tell when the program has ended. */
bool alone_open(struct alone *a);
void alone_close(struct alone *a);

/* Returns the number of the calling thread, as /proc has it. */
int alone_self(void);

/* Are only the recorder's threads left? Costs some 2 us while the main thread
 * lives. Of several recorders in a process only one gets true: the one whose
 * keeper has the lowest number (as /proc has it). *status becomes how the main
 * thread left, as wait() gives it. */
bool alone_now(const struct alone *a, int keeper, int *status);

/* Have all threads of the program left the table of descriptors that the keeper
 * shares (unshare)? Then the table would keep open what nobody can close. */
bool alone_in_table(const struct alone *a, int keeper);

#endif
