/* SPDX-License-Identifier: Apache-2.0
 * Eight threads that write everything there is to write, while another starts,
 * stops, dumps and flushes in a loop. Nothing is asserted but that it ends:
 * the sanitizer it is built with does the looking.
 *
 *     storm LOGDIR SECONDS [flight] [small] */
#include <opscope/record.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8 };

static int over;

static int is_over(void) { return __atomic_load_n(&over, __ATOMIC_RELAXED); }

static void inner(int i) {
    OPS_SCOPE_INT("inner", "i", i);
    ops_arg_text("file", "name of a file");
    if (i % 7 == 0) ops_instant("seven");
    if (i % 11 == 0) ops_counter("eleven", i);
}

static void work(int i, char *block) {
    char name[32];
    ops_step(i);
    OPS_SCOPE_AS(OPS_KIND_PHASE, "outer");
    inner(i);
    struct ops_async a = ops_async_begin(OPS_KIND_COMM, "reduce");
    ops_alloc(block, 64, "activations");
    snprintf(name, sizeof name, "made %d", i % 100);
    ops_begin(name);
    ops_flow_out((uint64_t)i);
    ops_scalar("loss", i, 1.0 / (i + 1));
    ops_end();
    ops_free(block);
    ops_async_end(&a);
    uint32_t track = i % 64 == 0 ? ops_device_track("npu", "queue") : 0;
    uint64_t now = ops_now();
    ops_device_span(track, "kernel", now, now + 1, ops_correlation());
}

static void *writer(void *arg) {
    char block[64];
    for (int i = 0; !is_over(); i++) {
        work(i, block);
        if (i % 1000 == 0) ops_thread_name(arg);
    }
    return NULL;
}

static void *short_writer(void *arg) {
    work(1, arg);
    return NULL;
}

/* Threads that come and go all the while. */
static void *spawner(void *arg) {
    char block[64];
    while (!is_over()) {
        pthread_t t;
        if (pthread_create(&t, NULL, short_writer, block) == 0)
            pthread_join(t, NULL);
    }
    return arg;
}

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void one_session(const char *logdir, const struct ops_options *o,
                        int i) {
    struct timespec pause = {0, 3000000};
    if (ops_start(logdir, o) != 0) {
        char why[OPS_PROBLEM_MAX];
        ops_problem(why, sizeof why);
        printf("start: %s\n", why);
        exit(1);
    }
    nanosleep(&pause, NULL);
    if (i % 2 == 0) ops_flush();
    if (i % 3 == 0) ops_dump();
    nanosleep(&pause, NULL);
    ops_stop();
}

int main(int argc, char **argv) {
    pthread_t t[THREADS + 1];
    struct ops_options o = {.run = "storm", .ring_bytes = 1 << 18};
    double seconds = argc > 2 ? atof(argv[2]) : 2, start = now_s();
    int n = 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "flight") == 0) o.flight = true;
        /* some threads get no ring */
        if (strcmp(argv[i], "small") == 0) o.memory_bytes = 700 << 10;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, writer, "a writer");
    pthread_create(&t[THREADS], NULL, spawner, NULL);
    while (now_s() - start < seconds) one_session(argv[1], &o, n++);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i <= THREADS; i++) pthread_join(t[i], NULL);
    printf("%d sessions\n", n);
    return 0;
}
