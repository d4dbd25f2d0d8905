/* SPDX-License-Identifier: Apache-2.0
 * The collectives and transfers between ranks that a trace holds, each once,
 * and the same collective of all ranks put together. What `comm`, `ranks` and
 * the hints on communication stand on.
 *
 * One collective leaves many spans: c10d::allreduce_, record_param_comms,
 * nccl:all_reduce and the kernel. One of them carries its time: the kernel
 * where there is one; for gloo, MPI and the like the span of the thread that
 * carries it out; else the outermost call. */
#ifndef ANALYZE_COMM_COLLECTIVE_H
#define ANALYZE_COMM_COLLECTIVE_H

#include "base/err.h"
#include "base/sort.h"
#include "model/trace.h"
#include "names/name_class.h"

/* ---- what is known of one collective (coll_facts.c) ----
 *
 * Its kind, its message, its process group, from the name and the arguments of
 * its span, in the spellings of NCCL, RCCL, Gloo, MPI, TensorFlow, XLA,
 * Horovod; and the usual formulas of each kind. */

/* -1 and empty stand for what was not recorded. Texts are borrowed from the
 * file. */
struct coll_facts {
    enum coll_kind kind;
    int64_t in_elems, out_elems; /* of the rank's own buffers */
    int64_t dims_elems;          /* of the tensors handed over ... */
    int64_t dims_bytes;          /* ... and their size, if types are known */
    int64_t group_size;          /* ranks in the process group */
    int64_t ratio;               /* the same, by what goes in and out; or -1 */
    int64_t seq;                 /* number within the group, same on all */
    int64_t src, dst;            /* of a send or receive: global ranks */
    struct bytes dtype; /* by its name in names/dtype.h, or as recorded */
    struct bytes group, group_ranks;
};

struct coll_facts coll_facts_none(void);

/* Adds what the row's name and arguments say and f does not know yet. */
void coll_facts_add(struct coll_facts *f, const struct trace *t, row_id row);

/* Returns the elements of the message as handed over, which tell collectives
 * apart, or -1. */
int64_t coll_elems(const struct coll_facts *f);

/* Returns the size of the message by the convention of nccl-tests: the whole
 * one, that is the output of an all_gather, the input of the others; -1 if it
 * was not recorded. */
int64_t coll_bytes(const struct coll_facts *f);

/* Returns bus bandwidth divided by algorithm bandwidth: 2(n-1)/n for an
 * all_reduce of n ranks and so on; -1 if it depends on n and n is not known. */
double coll_bus_factor(enum coll_kind k, int64_t n);

/* ---- all collectives of a trace ---- */

/* A member: a rank or, where one process drives several devices that
 * communicate, one of its devices. Members are sorted by rank, then host, then
 * device, so that the order of the files does not matter. */
struct coll_member {
    uint32_t source;
    uint32_t device; /* index in devices, or ROW_NONE: the whole source */
};

/* How a source's clock stands to that of the others. */
struct coll_clock {
    int64_t offset; /* ps to add to its times for the common clock; 0 unless
                       it is larger than its error */
    int64_t error;  /* ps by which it may be wrong */
    bool known;     /* enough collectives were matched to say */
};

/* Which span carries the time. */
enum coll_carrier { COLL_KERNEL, COLL_CPU, COLL_CALL };

/* One collective on one member. */
struct coll {
    row_id row; /* the span that carries the time */
    uint32_t member;
    uint32_t group;        /* index in groups */
    uint32_t match;        /* index in matches, or ROW_NONE */
    uint8_t kind, carrier; /* enum coll_kind, enum coll_carrier */
    int64_t ts, dur;       /* on its own clock; with XLA's start and done,
                               from the one to the other */
    int64_t bytes;         /* the whole message, or -1 */
    int64_t ranks;         /* in its process group, or -1 */
    int64_t seq;           /* number within the group, or -1 */
    uint64_t stream;       /* equal on the ranks for what may be the same
                               collective; the low half tells apart those of
                               one recorded number */
    struct bytes dtype;    /* borrowed from the file */
};

/* The same collective on two or more members. */
struct coll_match {
    uint32_t first, n; /* in by_match */
    uint32_t last;     /* the collective of the member that came last */
    int64_t latest;    /* when it came, on the common clock */
    int64_t second;    /* when the last but one came */
    int64_t least;     /* the shortest duration: nobody waits in that one */
};

struct collectives {
    const struct trace *t;
    struct coll *v;
    size_t n, cap;
    struct coll_member *members;
    size_t nmembers;
    struct bytes *groups; /* names of process groups; empty: not recorded */
    size_t ngroups, cap_groups;
    struct coll_match *matches;
    size_t nmatches, cap_matches;
    uint32_t *by_match;        /* indices in v, match by match */
    struct coll_clock *clocks; /* by source */
    size_t unmatched;          /* of groups of which others' files are here */
    size_t crossed;     /* looked equal but cannot be: one member had left
                          before another came */
    row_id crossed_row; /* one of them */
};

/* Finds and matches all collectives. O(spans + collectives log collectives);
 * with a thousand ranks, too. */
int collectives_init(struct collectives *c, const struct trace *t,
                     struct ops_err *e);
void collectives_free(struct collectives *c);

/* Does the second half of collectives_init (coll_match.c). Returns false if out
 * of memory. */
bool collectives_match(struct collectives *c);

/* Returns the source of the member that took part in x. */
static inline uint32_t coll_source(const struct collectives *c,
                                   const struct coll *x) {
    return c->members[x->member].source;
}

/* Returns the end of the sorted keys, from i on, that have the same hi. */
static inline size_t same_hi_end(const struct sort_key *k, size_t i, size_t n) {
    size_t end = i + 1;
    while (end < n && k[end].hi == k[i].hi) end++;
    return end;
}

/* Returns the largest number of ranks that a source says its job has; 0 if none
 * says it. */
int64_t coll_world_size(const struct trace *t);

/* Returns when x began, on the common clock. */
int64_t coll_arrival(const struct collectives *c, const struct coll *x);

/* Returns until when x waited for the last rank, on its own clock: between its
 * start and its end. x must have a match. */
int64_t coll_wait_end(const struct collectives *c, const struct coll *x);

/* Returns the name of x on screen: XLA's start and done are one instruction,
 * TensorFlow's node:Type is the node. */
struct bytes coll_name(const struct collectives *c, const struct coll *x);

#endif
