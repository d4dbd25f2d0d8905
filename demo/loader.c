/* SPDX-License-Identifier: Apache-2.0
 * Which sequences are in a batch depends on its number alone: two ranks with
 * half a batch each see together what one rank sees with a whole one. */
#include "loader.h"

#include "text.h"
#include <opscope/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a sequence takes to arrive from the slow disk of --slow-input. */
enum { SLOW_MS = 10 };

static struct batch batch_new(const struct loader_options *o) {
    size_t n = (size_t)o->sequences * (size_t)o->context;
    struct batch b = {.tokens = malloc(2 * n), .flow = ops_flow_new()};
    if (b.tokens == NULL) {
        fprintf(stderr, "demo: no memory for a batch\n");
        exit(1);
    }
    b.targets = b.tokens + n;
    ops_alloc(b.tokens, 2 * n, "input");
    return b;
}

void batch_free(struct batch *b) {
    ops_free(b->tokens);
    free(b->tokens);
    b->tokens = b->targets = NULL;
}

/* Fills row i of a batch with sequence number of the data. */
static void read_sequence(const struct loader_options *o, struct batch *b,
                          int i, uint64_t number) {
    uint8_t text[1025]; /* main lets no context be longer */
    size_t n = (size_t)o->context;
    if (o->slow)
        nanosleep(&(struct timespec){.tv_nsec = SLOW_MS * 1000000L}, NULL);
    text_tokens(number, text, o->context + 1);
    memcpy(b->tokens + (size_t)i * n, text, n);
    memcpy(b->targets + (size_t)i * n, text + 1, n);
}

static struct batch make(const struct loader_options *o, int step) {
    OPS_SCOPE_AS(OPS_KIND_INPUT, "make_batch");
    ops_arg_int("bytes", 2 * o->sequences * o->context);
    struct batch b = batch_new(o);
    uint64_t first = ((uint64_t)step * (uint64_t)o->world + (uint64_t)o->rank) *
                     (uint64_t)o->sequences;
    for (int i = 0; i < o->sequences; i++)
        read_sequence(o, &b, i, first + (uint64_t)i);
    ops_flow_out(b.flow);
    return b;
}

struct batch batch_held_out(const struct loader_options *o) {
    struct batch b = batch_new(o);
    for (int i = 0; i < o->sequences; i++)
        read_sequence(o, &b, i, UINT64_MAX - (uint64_t)i);
    return b;
}

static void put(struct loader *l, struct batch b) {
    pthread_mutex_lock(&l->lock);
    while (l->made - l->taken == LOADER_DEPTH)
        pthread_cond_wait(&l->changed, &l->lock);
    l->queue[l->made++ % LOADER_DEPTH] = b;
    ops_counter("queue depth", l->made - l->taken);
    pthread_mutex_unlock(&l->lock);
    pthread_cond_signal(&l->changed);
}

static void *run(void *arg) {
    struct loader *l = arg;
    ops_thread_name("loader");
    for (int i = 0; i < l->o.steps; i++) put(l, make(&l->o, i));
    return NULL;
}

bool loader_open(struct loader *l, const struct loader_options *o) {
    *l = (struct loader){.o = *o};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    return pthread_create(&l->thread, NULL, run, l) == 0;
}

void loader_close(struct loader *l) {
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

/* The next one in the queue, once there is one. */
static struct batch take(struct loader *l) {
    OPS_SCOPE_AS(OPS_KIND_INPUT, "next_batch");
    pthread_mutex_lock(&l->lock);
    while (l->made == l->taken) pthread_cond_wait(&l->changed, &l->lock);
    struct batch b = l->queue[l->taken++ % LOADER_DEPTH];
    ops_counter("queue depth", l->made - l->taken);
    pthread_mutex_unlock(&l->lock);
    ops_flow_in(b.flow);
    return b;
}

struct batch loader_next(struct loader *l) {
    struct batch b = take(l);
    /* after the scope: on a busy machine who wakes another may have to give
     * way to it, and that is not waiting for a batch */
    pthread_cond_signal(&l->changed);
    return b;
}
