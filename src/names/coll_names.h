/* SPDX-License-Identifier: Apache-2.0
 * The kind of a collective, by its name. */
#ifndef NAMES_COLL_NAMES_H
#define NAMES_COLL_NAMES_H

#include "base/bytes.h"
#include <stdbool.h>

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
