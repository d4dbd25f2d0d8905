/* SPDX-License-Identifier: Apache-2.0
 * Has the program any thread left besides the recorder's? A program whose main
 * thread leaves by pthread_exit() ends when its last thread does: then nothing
 * of ours may keep it. */
#ifndef REC_ALONE_H
#define REC_ALONE_H

#include <stdbool.h>

/* Descriptors, or -1. */
struct alone {
    int stat, tasks;
    char blocked[32]; /* the signals that threads of ours block */
};

/* From the flusher. False: there is no /proc, and nobody could tell when the
 * program has ended. */
bool alone_open(struct alone *a);
void alone_close(struct alone *a);

/* The number of the calling thread, as /proc has it. */
int alone_self(void);

/* Costs some 2 us while the main thread lives. True only for one of several
 * recorders in a process: the one whose keeper has the lowest number (as /proc
 * has it). status: how the main thread left, as wait() gives it. */
bool alone_now(const struct alone *a, int keeper, int *status);

/* Have all threads of the program left the table of descriptors that the keeper
 * shares (unshare)? Then it would keep open what nobody can close. */
bool alone_in_table(const struct alone *a, int keeper);

#endif
