/* SPDX-License-Identifier: Apache-2.0
 * budget WORK N LOGDIR: N times one call of the recorder, inside collected(),
 * for a tool that counts instructions there. A flight recorder: nothing else
 * runs meanwhile, and the rings never fill.
 *
 * budget time N LOGDIR: ns of a scope, the least of N batches, on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opscope/record.h"

void collected(void (*once)(void), long n);

__attribute__((noinline)) void collected(void (*once)(void), long n) {
    for (long i = 0; i < n; i++) once();
}

#define WORK(name) static __attribute__((noinline)) void name(void)
WORK(nothing) { __asm__ volatile("" ::: "memory"); }
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
WORK(alloc) { ops_alloc(&stdout, 64, "weights"); }

static const struct {
    const char *name;
    void (*once)(void);
} works[] = {{"nothing", nothing}, {"scope", scope},     {"off", scope},
             {"arg", arg},         {"counter", counter}, {"instant", instant},
             {"alloc", alloc}};

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int time_scopes(const char *logdir, long batches) {
    enum { SCOPES = 2000 };
    double best = 1e18;
    if (ops_start(logdir, NULL) != 0) return 2;
    for (long i = 0; i <= batches; i++) {
        double t = now_ns();
        collected(scope, SCOPES);
        t = (now_ns() - t) / SCOPES;
        if (t < best) best = t;
        ops_flush(); /* no batch meets a full ring */
    }
    ops_stop();
    printf("%.3f\n", best);
    return 0;
}

int main(int argc, char **argv) {
    struct ops_options o = {.flight = true,
                            .no_machine = true,
                            .ring_bytes = 1 << 20};
    if (argc < 4) return 64;
    if (strcmp(argv[1], "time") == 0)
        return time_scopes(argv[3], atol(argv[2]));
    if (strcmp(argv[1], "off") != 0 && ops_start(argv[3], &o) != 0) {
        char why[OPS_PROBLEM_MAX];
        ops_problem(why, sizeof why);
        fprintf(stderr, "budget: %s\n", why);
        return 2;
    }
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].name, argv[1]) != 0) continue;
        works[i].once(); /* names are interned, the thread has its ring */
        collected(works[i].once, atol(argv[2]));
    }
    return 0;
}
