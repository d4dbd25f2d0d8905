/* SPDX-License-Identifier: Apache-2.0
 * An accelerator made of threads: queues that run kernels in order, each on a
 * thread of its own, a clock that counts at a rate and from a moment that are
 * not the host's, and a small buffer of completion records that loses what
 * comes while it is full. It is what an accelerator's runtime is to a program,
 * and its tracer is written as a vendor would write one. */
#ifndef TESTS_REC_SOFT_DEVICE_H
#define TESTS_REC_SOFT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/record.h"

enum { SOFT_QUEUES = 2, SOFT_DEPTH = 64, SOFT_RECORDS = 48 };

struct soft_work {
    const char *name; /* lives as long as the device */
    enum ops_device_class what;
    void (*run)(void *arg);
    void *arg;
    uint64_t corr;
    int64_t bytes; /* copies and sets; -1: a kernel */
};

struct soft_device;

/* name is the one that is shown. Returns NULL if there is no memory or
 * thread. */
struct soft_device *soft_open(const char *name);
/* Waits for all queues first. The tracer must have been removed. */
void soft_close(struct soft_device *d);

/* Queues the work; waits only while the queue is full. */
void soft_launch(struct soft_device *d, unsigned queue, struct soft_work w);
/* Waits until the queue is empty. */
void soft_wait(struct soft_device *d, unsigned queue);

/* Returns the tracer for ops_device_tracer_add(), valid until soft_close(). */
const struct ops_device_tracer *soft_tracer(struct soft_device *d);

/* Tells what the device itself knows, to compare with: the work that ran, in
 * order of its end, and whether its record was lost. Returns how many there
 * were; ask when the queues are empty. */
struct soft_fate {
    struct soft_work work;
    unsigned queue;
    bool traced; /* tracing was on */
    bool lost;   /* its record found no room */
};
unsigned soft_fates(struct soft_device *d, struct soft_fate *out,
                    unsigned room);
const char *soft_queue_name(unsigned queue);

#endif
