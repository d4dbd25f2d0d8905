/* SPDX-License-Identifier: Apache-2.0
 * fork, exec, and how the child says that exec failed: through a pipe that a
 * successful exec closes. Between the two only calls that are safe in a child:
 * we have one thread, but a library may have started others. */
#include "capture/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: never returns. */
static void become(char *const *argv, char *const *envp,
                   const struct spawn_signals *old, int tell) {
    sigaction(SIGCHLD, &old->child, NULL);
    sigprocmask(SIG_SETMASK, &old->mask, NULL);
    execvpe(argv[0], argv, envp);
    int why = errno;
    while (write(tell, &why, sizeof why) < 0 && errno == EINTR) continue;
    _exit(127);
}

int spawn_program(char *const *argv, char *const *envp,
                  const struct spawn_signals *old, pid_t *pid) {
    int pipes[2], why = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) return errno;
    *pid = fork();
    if (*pid == 0) become(argv, envp, old, pipes[1]);
    int failed = *pid < 0 ? errno : 0;
    close(pipes[1]);
    ssize_t n = 0;
    while (failed == 0 && (n = read(pipes[0], &why, sizeof why)) < 0 &&
           errno == EINTR)
        continue;
    close(pipes[0]);
    if (failed != 0) return failed;
    if (n != (ssize_t)sizeof why) return 0;
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) continue;
    return why;
}

/* Is "NAME=..." of the name that the other has? */
static int same_name(const char *a, const char *b) {
    const char *eq = strchr(b, '=');
    return eq != NULL && strncmp(a, b, (size_t)(eq - b) + 1) == 0;
}

char **spawn_environment(char *const *more) {
    size_t n = 0, m = 0, kept = 0;
    while (environ != NULL && environ[n] != NULL) n++;
    while (more[m] != NULL) m++;
    char **v = calloc(n + m + 1, sizeof *v);
    if (v == NULL) return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < m && !same_name(environ[i], more[k])) k++;
        if (k == m) v[kept++] = environ[i];
    }
    for (size_t k = 0; k < m; k++) v[kept++] = more[k];
    return v;
}
