/* SPDX-License-Identifier: Apache-2.0
 * Threads that play an accelerator, and its tracer. */
#include "soft_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FATES = 1 << 14 };

/* Ticks are 17 for each 24 ns (708.3 MHz), from a moment of their own: a
 * tracer that takes ticks for nanoseconds is wrong by hours. */
enum { TICKS = 17, PER_NS = 24 };
static const uint64_t first_tick = 0x123456789abc;

struct queue {
    struct soft_device *device;
    unsigned number;
    pthread_t thread;
    bool running;
    struct soft_work work[SOFT_DEPTH];
    uint64_t in, out, done; /* ever queued, taken, finished */
};

struct soft_device {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct queue queue[SOFT_QUEUES];
    bool closing, tracing;
    uint64_t since_ns;
    /* completion records: a ring that the tracer empties */
    struct ops_device_record record[SOFT_RECORDS];
    uint64_t written, taken, lost, lost_told;
    struct soft_fate fate[FATES];
    unsigned nfates;
    struct ops_device_tracer tracer;
};

static uint64_t host_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t device_ticks(const struct soft_device *d) {
    return first_tick + (host_ns() - d->since_ns) * TICKS / PER_NS;
}

const char *soft_queue_name(unsigned queue) {
    static const char *const names[SOFT_QUEUES] = {"compute", "copy engine"};
    return names[queue % SOFT_QUEUES];
}

/* --- running ------------------------------------------------------------ */

/* Keeps the record of the work that has just ended. The lock is held. */
static void complete(struct queue *q, const struct soft_work *w, uint64_t t0,
                     uint64_t t1) {
    struct soft_device *d = q->device;
    bool room = d->written - d->taken < SOFT_RECORDS;
    if (d->tracing && room) {
        d->record[d->written++ % SOFT_RECORDS] =
            (struct ops_device_record){.queue = soft_queue_name(q->number),
                                       .name = w->name,
                                       .what = w->what,
                                       .t0 = t0,
                                       .t1 = t1,
                                       .corr = w->corr,
                                       .bytes = w->bytes};
    } else if (d->tracing) {
        d->lost++;
    }
    if (d->nfates < FATES)
        d->fate[d->nfates++] = (struct soft_fate){.work = *w,
                                                  .queue = q->number,
                                                  .traced = d->tracing,
                                                  .lost = d->tracing && !room};
    q->done++;
    pthread_cond_broadcast(&d->changed);
}

static void *run_queue(void *arg) {
    struct queue *q = arg;
    struct soft_device *d = q->device;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (q->out == q->in && !d->closing)
            pthread_cond_wait(&d->changed, &d->lock);
        if (q->out == q->in) break;
        struct soft_work w = q->work[q->out++ % SOFT_DEPTH];
        pthread_mutex_unlock(&d->lock);
        uint64_t t0 = device_ticks(d);
        w.run(w.arg);
        uint64_t t1 = device_ticks(d);
        pthread_mutex_lock(&d->lock);
        complete(q, &w, t0, t1);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

void soft_launch(struct soft_device *d, unsigned queue, struct soft_work w) {
    struct queue *q = &d->queue[queue % SOFT_QUEUES];
    pthread_mutex_lock(&d->lock);
    while (q->in - q->done == SOFT_DEPTH)
        pthread_cond_wait(&d->changed, &d->lock);
    q->work[q->in++ % SOFT_DEPTH] = w;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void soft_wait(struct soft_device *d, unsigned queue) {
    struct queue *q = &d->queue[queue % SOFT_QUEUES];
    pthread_mutex_lock(&d->lock);
    uint64_t until = q->in;
    while (q->done < until) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

/* --- its tracer --------------------------------------------------------- */

static int trace_start(void *self) {
    struct soft_device *d = self;
    pthread_mutex_lock(&d->lock);
    d->tracing = true;
    d->taken = d->written;
    d->lost_told = d->lost;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static void trace_stop(void *self) {
    struct soft_device *d = self;
    pthread_mutex_lock(&d->lock);
    d->tracing = false;
    pthread_mutex_unlock(&d->lock);
}

/* Records are copied out first: give() may take its time, and the device goes
 * on meanwhile. */
static uint64_t trace_collect(void *self,
                              void (*give)(void *to,
                                           const struct ops_device_record *r,
                                           size_t size),
                              void *to) {
    struct soft_device *d = self;
    struct ops_device_record copy[SOFT_RECORDS];
    unsigned n = 0;
    pthread_mutex_lock(&d->lock);
    while (d->taken < d->written)
        copy[n++] = d->record[d->taken++ % SOFT_RECORDS];
    uint64_t lost = d->lost - d->lost_told;
    d->lost_told = d->lost;
    pthread_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < n; i++) give(to, &copy[i], sizeof copy[i]);
    return lost;
}

static uint64_t trace_clock(void *self) { return device_ticks(self); }

const struct ops_device_tracer *soft_tracer(struct soft_device *d) {
    return &d->tracer;
}

unsigned soft_fates(struct soft_device *d, struct soft_fate *out,
                    unsigned room) {
    pthread_mutex_lock(&d->lock);
    unsigned n = d->nfates < room ? d->nfates : room;
    memcpy(out, d->fate, n * sizeof *out);
    pthread_mutex_unlock(&d->lock);
    return n;
}

/* --- open and close ----------------------------------------------------- */

struct soft_device *soft_open(const char *name) {
    static const char *const facts[] = {"model",    "threads of the host",
                                        "queues",   "2",
                                        "clock_hz", "708333333",
                                        NULL};
    struct soft_device *d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    d->since_ns = host_ns();
    d->tracer = (struct ops_device_tracer){.device = name,
                                           .self = d,
                                           .start = trace_start,
                                           .stop = trace_stop,
                                           .collect = trace_collect,
                                           .clock = trace_clock,
                                           .facts = facts};
    for (unsigned i = 0; i < SOFT_QUEUES; i++) {
        struct queue *q = &d->queue[i];
        q->device = d;
        q->number = i;
        q->running = pthread_create(&q->thread, NULL, run_queue, q) == 0;
        if (q->running) continue;
        soft_close(d);
        return NULL;
    }
    return d;
}

void soft_close(struct soft_device *d) {
    pthread_mutex_lock(&d->lock);
    d->closing = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < SOFT_QUEUES; i++)
        if (d->queue[i].running) pthread_join(d->queue[i].thread, NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
