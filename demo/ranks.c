/* SPDX-License-Identifier: Apache-2.0
 * Forking ranks, and their all-reduce: every rank lays down its numbers, sums
 * its own share of all, and takes the whole sum away; a barrier lies between.
 *
 *     shared | barrier | sum: n | of rank 0: n | of rank 1: n | ...
 */
#include "ranks.h"

#include <opscope/record.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANKS = 16 };

struct exchange {
    pthread_barrier_t barrier;
    real numbers[];
};

static size_t shared_bytes(const struct ranks *r) {
    return sizeof(struct exchange) +
           ((size_t)r->world + 1) * r->n * sizeof(real);
}

bool ranks_open(struct ranks *r, int world, size_t n) {
    *r = (struct ranks){.world = world, .n = n};
    if (world == 1) return true;
    if (world < 1 || world > MAX_RANKS) return false;
    void *p = mmap(NULL, shared_bytes(r), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    r->shared = p;
    pthread_barrierattr_t between;
    pthread_barrierattr_init(&between);
    pthread_barrierattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
    int status = pthread_barrier_init(&r->shared->barrier, &between,
                                      (unsigned)world);
    pthread_barrierattr_destroy(&between);
    return status == 0;
}

void ranks_close(struct ranks *r) {
    if (r->shared != NULL) munmap(r->shared, shared_bytes(r));
    r->shared = NULL;
}

/* Waits for all; the first bad status ends those that are left. */
static int wait_for(pid_t *child, int n) {
    int failed = 0, status;
    for (int left = n; left > 0; left--) {
        pid_t pid = wait(&status);
        for (int i = 0; i < n; i++)
            if (child[i] == pid) child[i] = 0;
        if (status == 0 || failed) continue;
        failed = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        for (int i = 0; i < n; i++)
            if (child[i] > 0) kill(child[i], SIGTERM);
    }
    return failed;
}

/* As launchers of training jobs do. opscope reads it there, even when it was
 * started from outside (opscope record -- demo --ranks 2). */
static void tell_environment(const struct ranks *r) {
    char rank[16], world[16];
    snprintf(rank, sizeof rank, "%d", r->rank);
    snprintf(world, sizeof world, "%d", r->world);
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", world, 1);
}

int ranks_run(struct ranks *r, int (*work)(struct ranks *r, void *arg),
              void *arg) {
    if (r->world == 1) return work(r, arg);
    pid_t child[MAX_RANKS];
    int n = 0;
    for (; n < r->world; n++) {
        child[n] = fork();
        if (child[n] < 0) break;
        if (child[n] > 0) continue;
        r->rank = n;
        tell_environment(r);
        exit(work(r, arg));
    }
    for (int i = 0; n < r->world && i < n; i++) kill(child[i], SIGTERM);
    int status = wait_for(child, n);
    return n < r->world ? 1 : status;
}

void all_reduce(struct ranks *r, real *at) {
    if (r->world == 1) return;
    OPS_SCOPE_AS(OPS_KIND_COMM, "all_reduce");
    ops_arg_int("bytes", (int64_t)(r->n * sizeof(real)));
    real *sum = r->shared->numbers, *own = sum + (size_t)(r->rank + 1) * r->n;
    size_t from = r->n * (size_t)r->rank / (size_t)r->world;
    size_t to = r->n * ((size_t)r->rank + 1) / (size_t)r->world;
    memcpy(own, at, r->n * sizeof *at);
    pthread_barrier_wait(&r->shared->barrier);
    for (size_t i = from; i < to; i++) {
        real s = 0;
        for (int k = 1; k <= r->world; k++) s += sum[(size_t)k * r->n + i];
        sum[i] = s / (real)r->world;
    }
    pthread_barrier_wait(&r->shared->barrier);
    memcpy(at, sum, r->n * sizeof *at);
}
