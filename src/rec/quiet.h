/* SPDX-License-Identifier: Apache-2.0
 * Around everything of ours that takes a lock or asks the system for something
 * in a thread of the program: no handler runs there (it might call us again),
 * the thread is not cancelled, and errno is what it was. */
#ifndef REC_QUIET_H
#define REC_QUIET_H

#include <signal.h>

struct quiet {
    sigset_t mask;
    int cancel, type, error; /* state and type of cancellation, errno */
};

void quiet_begin(struct quiet *q);
void quiet_end(const struct quiet *q);

#endif
