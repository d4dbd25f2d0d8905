/* SPDX-License-Identifier: Apache-2.0
 * The machine's side of the program: memory, page faults, context switches,
 * CPU, I/O, limits of the container; what the flusher asks every 100 ms.
 *
 * All of it is about this process (the cgroup's figures: about all of its
 * processes). Files are opened once and read with pread; rates are over the
 * time since the run before. A child of fork() has to open its own.
 *
 * Cost: some 5 us a run; once a second 12 us more, and 1 us for each thread
 * (tests/process/test_rec_sample.c prints the first two). Counters and where
 * they come from: docs/recorder/counters.md. */
#ifndef REC_MACHINE_SAMPLE_H
#define REC_MACHINE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SAMPLE_COUNTERS = 16,
    SAMPLE_THREADS = 64, /* given in one second: the busiest */
    SAMPLE_TASKS = 2048, /* places for threads that are watched: 2^n */
    SAMPLE_WATCHED = SAMPLE_TASKS / 4 * 3,
};

/* Takes a counter's value. The name is valid only during the call. */
typedef void sample_give(void *to, const char *counter, double value);

struct sample_task {
    int32_t tid;   /* 0: free */
    bool shown;    /* it was busy when last given */
    float percent; /* of one core, in the last second */
    uint64_t cpu_ns;
};

struct sample {
    int statm, status, io, task, cg_memory, cg_cpu; /* -1: not there */
    uint64_t page;                                  /* bytes */
    uint64_t now, second_at; /* ns, of the last run and of the last second's;
                                0: not yet */
    uint64_t rates_at;       /* ns, of the last run with rates */
    struct {
        uint64_t total; /* raw, at the run before */
        bool known;     /* there is a total */
        double value;   /* given last */
        uint64_t at;    /* when; 0: never */
    } counters[SAMPLE_COUNTERS];
    uint64_t threads_left_out; /* beyond SAMPLE_WATCHED, in the last second */
    uint32_t turn;             /* which table of tasks is the current one */
    struct sample_task tasks[2][SAMPLE_TASKS];
};

/* Opens the files that there are; a missing one is no error. */
void sample_open(struct sample *s);

/* Reads everything, and each second also peak and threads. now_ns is of
 * CLOCK_MONOTONIC. The first run gives only levels: rates need two, and
 * some time in between. A value
 * that did not change is given once a second. With give NULL it only notes
 * where rates begin, for the time outside a window. */
void sample_run(struct sample *s, uint64_t now_ns, sample_give *give, void *to);

/* A struct of zeros, never opened, is fine. */
void sample_close(struct sample *s);

#endif
