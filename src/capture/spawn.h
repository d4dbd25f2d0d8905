/* SPDX-License-Identifier: Apache-2.0
 * Starting a program as if the shell had started it. */
#ifndef CAPTURE_SPAWN_H
#define CAPTURE_SPAWN_H

#include <signal.h>
#include <sys/types.h>

/* What the program is to find as we found it. */
struct spawn_signals {
    sigset_t mask;
    struct sigaction child; /* SIGCHLD's */
};

/* Runs argv, found by PATH, with that environment. 0 and *pid, or an errno:
 * the program was not started. */
int spawn_program(char *const *argv, char *const *envp,
                  const struct spawn_signals *old, pid_t *pid);

/* A copy of the environment with the NULL-terminated "NAME=value" of more in
 * the place of others of those names. The vector is the caller's to free, its
 * texts are borrowed. NULL: out of memory. */
char **spawn_environment(char *const *more);

#endif
