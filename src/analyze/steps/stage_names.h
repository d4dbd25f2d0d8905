/* SPDX-License-Identifier: Apache-2.0
 * What the names of input stages say: the kind of an iterator, its parent, and
 * which names are one stage that is made anew for each element. */
#ifndef ANALYZE_STEPS_STAGE_NAMES_H
#define ANALYZE_STEPS_STAGE_NAMES_H

#include "base/bytes.h"
#include <stdbool.h>

struct map;
struct strs;
struct trace;

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

/* By the last part of an iterator's path: Iterator::Root::BatchV2. */
enum stage_kind stage_kind_of(struct bytes iterator);

/* The path of the iterator that asks this one, by name: all before the last
 * "::", without an index: A::Zip[1]::B -> A::Zip. n is 0: it is the root. */
struct bytes stage_name_parent(struct bytes iterator);

/* Names of spans of the input pipeline -> ids in `names`. A path with indices,
 * A::FlatMap[7]::B, of which there are too many becomes A::FlatMap[*]::B.
 * False: out of memory. O(names of the trace). */
bool stage_names_fold(const struct trace *t, struct strs *names,
                      struct map *fold);

#endif
