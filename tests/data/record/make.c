/* SPDX-License-Identifier: Apache-2.0
 * The program whose recording lies here: two ranks, a loader thread, an
 * accelerator that is a thread, too. Rank 1 is late at every exchange.
 *
 *     cc make.c -lopscope-record && OPSCOPE_HOST=box ./a.out LOGDIR */
#include <opscope/record.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 8, EPOCH = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t *ranks; /* shared by both processes */
static int made, taken;
static uint64_t arrow;

static void *loader(void *arg) {
    (void)arg;
    ops_thread_name("loader");
    for (int i = 0; i < STEPS; i++) {
        OPS_SCOPE_AS(OPS_KIND_INPUT, "make batch");
        usleep(300);
        pthread_mutex_lock(&lock);
        while (made > taken) pthread_cond_wait(&turn, &lock);
        made++;
        ops_flow_out(arrow = ops_flow_new());
        ops_counter("batches made", made);
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void next_batch(void) {
    OPS_SCOPE_AS(OPS_KIND_INPUT, "next batch");
    pthread_mutex_lock(&lock);
    while (made == taken) pthread_cond_wait(&turn, &lock);
    taken++;
    ops_flow_in(arrow);
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
}

/* Does what would be a kernel's launch. */
static void layer(uint32_t queue, int i) {
    OPS_SCOPE_INT("layer", "i", i);
    ops_arg_int("flops", 1000000 * (i + 1));
    ops_arg_int("bytes", 4096);
    ops_arg_text("shape", i == 0 ? "64x64" : "64x128");
    uint64_t corr = ops_correlation(), t = ops_now();
    usleep(100);
    ops_device_span(queue, i == 0 ? "gemm" : "gemm_wide", t + 5000, t + 90000,
                    corr);
}

static void train(int rank, uint32_t queue, int step) {
    void *acts = malloc(65536);
    next_batch();
    ops_alloc(acts, 65536, "activations");
    {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "forward");
        layer(queue, 0);
        layer(queue, 1);
    }
    struct ops_async write = ops_async_begin(OPS_KIND_OP, "checkpoint");
    {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "backward");
        OPS_SCOPE("backprop");
        usleep(200);
    }
    if (rank == 1) {
        OPS_SCOPE("slow part");
        usleep(400);
    }
    {
        OPS_SCOPE_AS(OPS_KIND_COMM, "all_reduce");
        pthread_barrier_wait(ranks);
        usleep(100);
    }
    ops_async_end(&write);
    if (step == 3) ops_alloc((void *)0x1000, 4096, "cache");
    if (step == 5) ops_free((void *)0x2000);
    ops_instant("loss read");
    ops_free(acts);
    free(acts);
}

static int run(const char *logdir, int rank) {
    struct ops_options o = {.rank = rank, .world = 2, .run = "train"};
    if (ops_start(logdir, &o) != 0) {
        char why[OPS_PROBLEM_MAX];
        ops_problem(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    uint32_t queue = ops_device_track("npu 0", "queue 0");
    pthread_t t;
    pthread_create(&t, NULL, loader, NULL);
    ops_alloc((void *)0x3000, 1 << 20, "weights");
    pthread_barrier_wait(ranks);
    for (int i = 0; i < STEPS; i++) {
        if (i % EPOCH == 0) ops_epoch(i / EPOCH);
        ops_step(i);
        train(rank, queue, i);
    }
    ops_step_end();
    ops_epoch_end();
    pthread_join(t, NULL);
    ops_stop();
    return 0;
}

int main(int argc, char **argv) {
    const char *logdir = argc > 1 ? argv[1] : "logs";
    pthread_barrierattr_t shared;
    ranks = mmap(NULL, sizeof *ranks, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(ranks, &shared, 2);
    if (fork() == 0) _exit(run(logdir, 1));
    int rc = run(logdir, 0), status = 1;
    wait(&status);
    return rc != 0 || status != 0;
}
