/* SPDX-License-Identifier: Apache-2.0
 * Has the program any thread left besides the recorder's? A program whose main
 * thread leaves by pthread_exit() ends when its last thread does: then nothing
 * of ours may keep it. */
#ifndef REC_ALONE_H
#define REC_ALONE_H

#include <stdbool.h>

/* Opens what alone_now() asks: a descriptor, or -1 (there is no /proc, and the
 * answer will be no). */
int alone_open(void);

/* Costs some 2 us while the main thread lives. True only for one of several
 * recorders in a process: the one whose keeper has the lowest number. */
bool alone_now(int fd, int keeper);

/* Have all threads of the program left the table of descriptors that the keeper
 * shares (unshare)? Then it would keep open what nobody can close. */
bool alone_in_table(int fd, int keeper);

#endif
