/* SPDX-License-Identifier: Apache-2.0
 * children LOGDIR N [ALIVE]: a program that forks N workers, one after the
 * other, each of which records a scope and leaves by _exit(), as the workers of
 * Python's multiprocessing do. ALIVE of them live until the end. */
#include <opscope/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0, alive = argc > 3 ? atoi(argv[3]) : 0;
    int held[2];
    char c;
    if (pipe(held) != 0) return 1;
    ops_start(argv[1], NULL);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            close(held[1]);
            { OPS_SCOPE("child"); }
            if (i < alive && read(held[0], &c, 1) < 0) _exit(1);
            _exit(0);
        }
        if (i >= alive) waitpid(pid, NULL, 0);
    }
    close(held[1]);
    while (wait(NULL) > 0) {
    }
    ops_stop();
    printf("done\n");
    return 7;
}
