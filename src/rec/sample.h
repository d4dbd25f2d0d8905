/* SPDX-License-Identifier: Apache-2.0
 * The machine's side of the program: memory, page faults, context switches,
 * CPU, I/O, limits of the container; what the flusher asks every 100 ms.
 *
 * All of it is about this process (the cgroup's figures: about all of its
 * processes). Files are opened once and read with pread; rates are over the
 * time since the run before. A child of fork() has to open its own. */
#ifndef REC_SAMPLE_H
#define REC_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SAMPLE_COUNTERS = 16,
    SAMPLE_THREADS = 64,   /* given in one second: the busiest */
    SAMPLE_TASKS = 2048,   /* watched: a power of two */
};

/* A counter's value now. The name is only valid during the call. */
typedef void sample_give(void *to, const char *counter, double value);

struct sample_task {
    int32_t tid;    /* 0: free */
    uint32_t round; /* when it was seen last */
    uint64_t cpu_ns;
    double percent; /* of one core, in the last second */
    bool shown;     /* its last value was given and not 0 */
};

struct sample {
    int statm, io, task, cg_memory, cg_cpu; /* -1: not there */
    double cg_cpu_scale; /* throttled time to ns: 1 (v1), 1000 (v2) */
    uint64_t page;
    uint64_t now, tasks_at;    /* ns; 0: not yet */
    uint64_t last[SAMPLE_COUNTERS]; /* raw totals of the run before */
    struct {
        double value;
        uint64_t at; /* given last; 0: never */
    } told[SAMPLE_COUNTERS];
    uint32_t round;
    uint32_t ntasks;
    uint64_t tasks_left_out; /* threads beyond SAMPLE_TASKS, last round */
    struct sample_task tasks[SAMPLE_TASKS];
};

/* Opens what there is; nothing is an error. */
void sample_open(struct sample *s);

/* Reads everything, and each second also the threads. now_ns: of
 * CLOCK_MONOTONIC. The first run gives levels only: rates need two. A value
 * that did not change is given once a second. give NULL: only notes where rates
 * begin; for the time outside of a window. */
void sample_run(struct sample *s, uint64_t now_ns, sample_give *give, void *to);

void sample_close(struct sample *s);

#endif
