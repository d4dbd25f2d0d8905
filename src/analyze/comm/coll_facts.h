/* SPDX-License-Identifier: Apache-2.0
 * What is known of one collective: its kind, its message, its process group;
 * and the usual formulas of each kind. From the name and the arguments of its
 * span, in the spellings of NCCL, RCCL, Gloo, MPI, TensorFlow, XLA, Horovod. */
#ifndef ANALYZE_COMM_COLL_FACTS_H
#define ANALYZE_COMM_COLL_FACTS_H

#include "names/coll_names.h"
#include <stdint.h>

struct trace;

/* -1 and empty: not recorded. Texts are borrowed from the file. */
struct coll_facts {
    enum coll_kind kind;
    int64_t in_elems, out_elems; /* of the rank's own buffers */
    int64_t dims_elems;          /* of the tensors handed over ... */
    int64_t dims_bytes;          /* ... and their size, if types are known */
    int64_t group_size;          /* ranks in the process group */
    int64_t seq;                 /* number within the group, same on all */
    int64_t src, dst;            /* of a send or receive: global ranks */
    struct bytes dtype; /* by its name in names/dtype.h, or as recorded */
    struct bytes group, group_desc, group_ranks;
};

struct coll_facts coll_facts_none(void);

/* Adds what the row's name and arguments tell and f does not know yet. */
void coll_facts_add(struct coll_facts *f, const struct trace *t, uint32_t row);

/* Elements of the message as handed over, for telling collectives apart, or
 * -1. */
int64_t coll_elems(const struct coll_facts *f);

/* The message by the convention of nccl-tests: the whole one, that is the
 * output of an all_gather, the input of the others. -1: not recorded. */
int64_t coll_bytes(const struct coll_facts *f);

/* Bus bandwidth by algorithm bandwidth: 2(n-1)/n for an all_reduce of n ranks
 * and so on; -1 when it depends on n and n is not known. */
double coll_bus_factor(enum coll_kind k, int64_t n);

#endif
