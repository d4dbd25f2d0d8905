/* SPDX-License-Identifier: Apache-2.0
 * A ring file, mapped: by the program that writes it, or by somebody who reads
 * what a dead one left. All offsets were checked when it was opened. */
#ifndef REC_VIEW_H
#define REC_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rec/ring.h"

struct rec_view {
    struct rec_head *head;
    struct rec_seg *segs;
    struct rec_async *asyncs;
    struct rec_name *names;
    char *text;
    struct rec_ring *ring[REC_RINGS]; /* NULL: not mapped */
    size_t bytes;     /* mapped from the head on; of a reader: as the file */
    uint32_t nrings;  /* what was seen of the counts that only grow */
};

/* Of two looks at a ring whose thread runs: leaves in `a` the open scopes, step
 * and epoch that both saw. The others began or ended in between. */
void rec_ring_keep_common(struct rec_ring *a, const struct rec_ring *b);

/* Tables and rings begin on borders of the largest pages there are. */
static inline uint64_t rec_paged(uint64_t n) {
    return (n + REC_PAGE - 1) & ~(uint64_t)(REC_PAGE - 1);
}

/* Bytes before the first ring. */
size_t rec_layout(struct rec_head *h);
/* Points the view's tables into what is mapped at `base`. */
void rec_view_tables(struct rec_view *v, void *base, size_t bytes);

static inline struct rec_slot *rec_slots(const struct rec_ring *r) {
    return (struct rec_slot *)((char *)r + REC_RING_HEAD);
}

/* A moment of CLOCK_MONOTONIC in ps since the start; 0 before it. */
static inline uint64_t rec_ps_of_ns(const struct rec_head *h, uint64_t mono) {
    return mono <= h->start_mono_ns ? 0 : (mono - h->start_mono_ns) * 1000;
}

/* Opens the ring file fd and checks it: 0, or -1 and why. writable: mapped,
 * what is written goes to the file; only for files of our own. Else a copy, in
 * which names and open scopes fit to the records even if the program goes on;
 * that its commit has not changed meanwhile is for the caller to see. Takes
 * nothing: the caller closes fd. */
int rec_view_open(struct rec_view *v, int fd, bool writable, const char **why);
void rec_view_close(struct rec_view *v);

/* The path of a file of the session: "<stem>.xplane.pb.part", with part > 0
 * "<stem>.1.xplane.pb.part", for a device "<stem>.device1.xplane.pb.part".
 * `final`: without .part. False when it does not fit. */
bool rec_part_path(char *out, size_t cap, const char *stem, uint64_t part,
                   unsigned file, bool final);

#endif
