/* SPDX-License-Identifier: Apache-2.0
 * What a name says: this is the one place where names of ops, calls, kernels
 * and regions are understood. Each distinct name is looked at once, at seal,
 * for trace->name_class. To add a library's spelling, add a row in
 * name_class.c. */
#ifndef NAMES_NAME_CLASS_H
#define NAMES_NAME_CLASS_H

#include "base/bytes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum name_class {
    CLASS_COMM = 1,         /* a collective or transfer between ranks */
    CLASS_INPUT = 2,        /* the input pipeline: tf.data, DataLoader */
    CLASS_STEP = 4,         /* a step marker: ProfilerStep#N, Profiled batch */
    CLASS_LAUNCH = 8,       /* API: puts work on a device (kernel, graph) */
    CLASS_COPY = 16,        /* API: a copy or fill; device: a copy */
    CLASS_SYNC = 32,        /* API: waits for the device */
    CLASS_TENSOR_CORE = 64, /* kernel: uses matrix units */
    CLASS_ALLOC = 128,      /* API: allocates or frees memory */
    CLASS_OPTIMIZER = 256,  /* Optimizer.step#..., optimizer regions */
    CLASS_BACKWARD = 512,   /* backward pass: autograd nodes */
    CLASS_ITERATOR = 1024,  /* a tf.data iterator: Iterator::... */
    CLASS_GRAPH = 2048,     /* API: launches a whole graph (cudaGraphLaunch) */
    CLASS_WRAPPER = 4096,   /* framework wrapper around an op: EagerExecute */
    CLASS_COMM_HLO = 8192,  /* an HLO collective, if an op: compiler passes have
                             such names, too */
    CLASS_COMM_CPU = 16384, /* a collective that the host itself carries out
                              (gloo, MPI), not the call that starts one */
    CLASS_EPOCH = 32768,    /* an epoch around steps: a mark, no work */
};

/* Returns the class bits of a name. O(length). */
uint16_t name_classify(struct bytes name);

/* Returns the class bits of a category that opscope's own recorder wrote (enum
 * ops_kind of record.h): "ops_input", "ops_comm", "ops_copy", "ops_wait",
 * "ops_phase", "ops_epoch". They survive a conversion to Chrome JSON and
 * back. */
uint16_t cat_classify(struct bytes cat);

/* Does the call put a function of the host on a stream? */
static inline bool name_is_host_func(struct bytes name) {
    return BYTES_STARTS(name, "cuLaunchHostFunc") ||
           BYTES_STARTS(name, "cudaLaunchHostFunc");
}

/* What a queue of a device does at its own hands, told by the event's name. */
enum queue_word {
    QUEUE_WORK, /* it runs something */
    QUEUE_WAIT, /* it waits for another queue, or lets others wait */
    QUEUE_COPY, /* it moves memory */
};
enum queue_word queue_word_of(struct bytes name);

/* Returns 12 for ProfilerStep#12, and so for any text with a number after its
 * last '#' or blank; -1 if there is none. */
int64_t name_step_number(struct bytes name);

/* Groups names as the frameworks do: ProfilerStep#3 becomes ProfilerStep*.
 * Returns the length of the prefix to keep before '*'; 0 to keep the name. */
size_t name_group_prefix(struct bytes name);

/* The kind of a collective. */
enum coll_kind {
    COLL_ALL_REDUCE,
    COLL_ALL_GATHER,
    COLL_REDUCE_SCATTER,
    COLL_ALL_TO_ALL,
    COLL_BARRIER, /* up to here nobody leaves before the last one came */
    COLL_BROADCAST,
    COLL_REDUCE,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_PERMUTE,
    COLL_SEND,
    COLL_RECV,
    COLL_SEND_RECV, /* one kernel of sends and receives */
    COLL_OTHER,
    COLL_KINDS,
};

/* Returns the word that tables print: "all_reduce". */
const char *coll_kind_name(enum coll_kind k);

/* Returns the kind by a name in any spelling: gloo:all_reduce, MPI_Allreduce,
 * ncclDevKernel_AllReduce_Sum_f32_RING_LL, CollectiveReduceV2,
 * all-reduce-start.3. */
enum coll_kind coll_kind_of(struct bytes name);

/* Must every rank wait in it until the last one has come? */
static inline bool coll_is_sync(enum coll_kind k) { return k <= COLL_BARRIER; }

/* Does it go from one rank to one other? */
static inline bool coll_is_p2p(enum coll_kind k) {
    return k == COLL_SEND || k == COLL_RECV;
}

#endif
