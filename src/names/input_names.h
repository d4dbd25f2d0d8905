/* SPDX-License-Identifier: Apache-2.0
 * What names say about the input pipeline: stages of tf.data, loaders of torch,
 * and their threads. */
#ifndef NAMES_INPUT_NAMES_H
#define NAMES_INPUT_NAMES_H

#include "base/bytes.h"
#include <stdbool.h>

enum stage_kind {
    STAGE_WAIT,   /* the consumer asks for a batch: __next__, GetNext */
    STAGE_SOURCE, /* reads or makes elements */
    STAGE_MAP,    /* runs the user's function: decode, augment, filter */
    STAGE_BATCH,  /* stacks elements */
    STAGE_SHUFFLE,
    STAGE_CACHE,
    STAGE_PREFETCH, /* a buffer filled by another thread */
    STAGE_FLOW,     /* hands elements on: repeat, zip, take, interleave, ... */
    STAGE_REGION,   /* a hand-written loop's region before the first launch */
    STAGE_OP,       /* an op that a wait or region runs itself */
    STAGE_PIN,      /* the thread that copies batches to pinned memory */
    STAGE_COPY,     /* host-to-device copies, on the device */
    STAGE_KINDS,
};

const char *stage_kind_name(enum stage_kind k);

/* Returns the kind by the last part of the path: Iterator::Root::BatchV2. */
enum stage_kind stage_kind_of(struct bytes iterator);

/* Returns the path of the iterator that asks this one: all before the last
 * "::", without an index: A::Zip for A::Zip[1]::B. It is empty for the root. */
struct bytes stage_name_parent(struct bytes iterator);

/* Is it the path of a tf.data iterator: Iterator::Root::BatchV2? */
static inline bool name_is_iterator(struct bytes name) {
    return BYTES_STARTS(name, "Iterator::");
}

/* Which loader of torch a name belongs to. */
enum loader {
    LOADER_NONE,
    LOADER_INLINE,  /* the waiting thread loads (num_workers=0) */
    LOADER_WORKERS, /* processes of their own load */
    LOADER_SOME,    /* a loader; the name does not say which */
};
enum loader name_loader(struct bytes name);

/* Calls of tf.data that run the user's function: those that return when it is
 * done, the one that returns at once, and its work on another thread. */
enum { SYNC_RUNS = 3 };
extern const char *const input_sync_runs[SYNC_RUNS];
extern const char input_async_run[], input_async_work[];

/* The root of a pipeline of tf.data; what it counts on is among its
 * arguments. */
extern const char input_root[];

/* Does a pipeline with a stage of that name run ahead of the program, and can
 * that stage itself make several elements at once? */
bool input_is_prefetch(struct bytes name);
bool input_is_parallel(struct bytes name);

/* Is it a thread that loads, by the thread's name? */
bool name_is_input_thread(struct bytes name);

/* Is it a call of the thread that copies batches to pinned memory? */
bool name_pins_memory(struct bytes name);

#endif
