/* SPDX-License-Identifier: Apache-2.0
 * A thread that makes batches ahead of the training, and the bounded queue in
 * which they wait. */
#ifndef DEMO_LOADER_H
#define DEMO_LOADER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct batch {
    uint8_t *tokens;  /* sequences x context */
    uint8_t *targets; /* what follows each of them */
    uint64_t flow;    /* the arrow in the profile from loader to trainer */
};

struct loader_options {
    int steps;     /* batches to make */
    int sequences; /* in a batch of this rank ... */
    int context;
    int rank, world; /* ... which takes its part of every global batch */
    bool slow;       /* the fault of --slow-input */
};

enum { LOADER_DEPTH = 4 };

struct loader {
    struct loader_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch queue[LOADER_DEPTH]; /* made % DEPTH, taken % DEPTH */
    int made, taken;
};

/* Starts the thread; false when the system gives none. */
bool loader_open(struct loader *l, const struct loader_options *o);
/* All batches have to be taken by then. */
void loader_close(struct loader *l);

/* The next batch; waits for it. It is the caller's, for batch_free. */
struct batch loader_next(struct loader *l);
void batch_free(struct batch *b);

/* A batch of sequences that no rank trains on; as if made by the loader. */
struct batch batch_held_out(const struct loader_options *o);

#endif
