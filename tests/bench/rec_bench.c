/* SPDX-License-Identifier: Apache-2.0
 * rec_bench WORK LOGDIR [TIMES]: what the recorder costs the program that it
 * records, through the shared library as a program uses it. One line of JSON:
 * ns of one call, the least and the median of TIMES batches.
 *
 *     clock2            yardstick: two reads of the CPU's counter
 *     call              yardstick: a call of an empty function
 *     off               a scope, compiled in, not started
 *     scope scope2      a scope, recorded; on two threads at once
 *     arg counter instant alloc step
 *     start             ops_start
 *     flood             10 M scopes as fast as they go, then ops_stop
 *     scalars           1 M scalars, until they are in the file
 *
 * Batches fit into a ring and are flushed between: none is dropped, so that
 * no number is that of dropping. */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "opscope/record.h"

enum {
    BATCH = 20000,
    TIMES_MAX = 2001,
    FLOOD = 10000000,
    SCALARS = 1000000,
    THREADS = 2
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- one call ----------------------------------------------------------- */

static uint64_t counter_read(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return now_ns();
#endif
}

static volatile uint64_t sink;

/* Functions of their own, so that each has a body that is entered and left. */
#define WORK(name) static __attribute__((noinline)) void name##_once(void)
WORK(clock2) {
    uint64_t a = counter_read();
    __asm__ volatile("" ::: "memory");
    sink = counter_read() - a;
}
WORK(call) { __asm__ volatile("" ::: "memory"); }
WORK(scope) {
    OPS_SCOPE("scope");
    __asm__ volatile("" ::: "memory");
}
WORK(arg) {
    OPS_SCOPE_INT("scope", "layer", 3);
    __asm__ volatile("" ::: "memory");
}
WORK(counter) { ops_counter("counter", 1.5); }
WORK(instant) { ops_instant("instant"); }
WORK(alloc) { ops_alloc(&sink, 64, "weights"); }
WORK(step) { ops_step(7); }

/* --- batches ------------------------------------------------------------ */

struct batches {
    void (*once)(void);
    int times;
    double ns[TIMES_MAX]; /* of one call, by batch */
    pthread_barrier_t *together;
};

static double batch(void (*once)(void)) {
    uint64_t t = now_ns();
    for (int i = 0; i < BATCH; i++) once();
    return (double)(now_ns() - t) / BATCH;
}

static void *run_batches(void *arg) {
    struct batches *b = arg;
    batch(b->once);
    for (int i = 0; i < b->times; i++) {
        ops_flush();
        if (b->together != NULL) pthread_barrier_wait(b->together);
        b->ns[i] = batch(b->once);
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(double *ns, int n) {
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    printf("{\"best\": %.3f, \"median\": %.3f}\n", ns[0], ns[n / 2]);
}

static void one_thread(void (*once)(void), int times) {
    static struct batches b;
    b.once = once;
    b.times = times;
    run_batches(&b);
    print(b.ns, times);
}

/* Runs both at once; the number is the slower thread's. */
static void two_threads(void (*once)(void), int times) {
    static struct batches b[THREADS];
    pthread_barrier_t together;
    pthread_t t[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        b[i].once = once;
        b[i].times = times;
        b[i].together = &together;
        if (pthread_create(&t[i], NULL, run_batches, &b[i]) != 0) exit(4);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < times; i++)
        if (b[1].ns[i] > b[0].ns[i]) b[0].ns[i] = b[1].ns[i];
    print(b[0].ns, times);
}

/* --- more than a call --------------------------------------------------- */

static void begin(const char *logdir) {
    if (ops_start(logdir, NULL) == 0) return;
    char why[OPS_PROBLEM_MAX];
    ops_problem(why, sizeof why);
    fprintf(stderr, "rec_bench: %s\n", why);
    exit(2);
}

static void starts(const char *logdir, int times) {
    static double ns[TIMES_MAX];
    if (times > 25) times = 25;
    for (int i = 0; i < times; i++) {
        uint64_t t = now_ns();
        begin(logdir);
        ns[i] = (double)(now_ns() - t);
        ops_stop();
    }
    print(ns, times);
}

static void flood(const char *logdir) {
    begin(logdir);
    scope_once();
    uint64_t t = now_ns();
    for (int i = 0; i < FLOOD; i++) scope_once();
    uint64_t loop = now_ns() - t;
    t = now_ns();
    ops_stop();
    printf("{\"best\": %.3f, \"scopes\": %d, \"stop_ms\": %.3f}\n",
           (double)loop / FLOOD, FLOOD + 1, (double)(now_ns() - t) / 1e6);
}

/* The scalars go through the ring of this thread, which holds 174 thousand. */
static void scalars(const char *logdir) {
    begin(logdir);
    uint64_t t = now_ns(), calls = 0;
    for (int i = 0; i < SCALARS; i += 100000) {
        uint64_t c = now_ns();
        for (int k = i; k < i + 100000; k++)
            ops_scalar("loss", k, 1.0 / (k + 1));
        calls += now_ns() - c;
        ops_flush();
    }
    t = now_ns() - t;
    ops_stop();
    printf("{\"best\": %.3f, \"call\": %.3f}\n", (double)t / SCALARS,
           (double)calls / SCALARS);
}

static const struct {
    const char *name;
    void (*once)(void);
    bool on, both;
} works[] = {
    {"clock2", clock2_once, false, false},
    {"call", call_once, false, false},
    {"off", scope_once, false, false},
    {"scope", scope_once, true, false},
    {"scope2", scope_once, true, true},
    {"arg", arg_once, true, false},
    {"counter", counter_once, true, false},
    {"instant", instant_once, true, false},
    {"alloc", alloc_once, true, false},
    {"step", step_once, true, false},
};

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: rec_bench WORK LOGDIR [TIMES]\n");
        return 1;
    }
    const char *work = argv[1], *logdir = argv[2];
    int times = argc > 3 ? atoi(argv[3]) : 101;
    if (times < 1) times = 1;
    if (times > TIMES_MAX) times = TIMES_MAX;
    if (strcmp(work, "start") == 0) starts(logdir, times);
    else if (strcmp(work, "flood") == 0) flood(logdir);
    else if (strcmp(work, "scalars") == 0) scalars(logdir);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].name, work) != 0) continue;
        if (works[i].on) begin(logdir);
        if (works[i].both) two_threads(works[i].once, times);
        else one_thread(works[i].once, times);
        ops_stop();
    }
    return 0;
}
