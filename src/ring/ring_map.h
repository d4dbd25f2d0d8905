/* SPDX-License-Identifier: Apache-2.0
 * A ring file in memory: mapped by the program that writes it, or copied by a
 * reader of what it left. All its offsets are checked before anybody gets
 * it. */
#ifndef RING_RING_MAP_H
#define RING_RING_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring.h"

struct ring_map {
    struct rec_head *head;
    struct rec_seg *segs;
    struct rec_async *asyncs;
    struct rec_name *names;
    char *text;
    struct rec_ring *ring[REC_RINGS]; /* NULL: not mapped */
    size_t bytes;     /* of memory from the head on, as long as the file */
    uint32_t nrings;  /* what was seen of the counts that only grow */
    uint32_t damaged; /* rings that make no sense; of a copy */
};

/* Compares two looks at a ring whose thread runs: leaves in `a` the open
 * scopes, step and epoch that both saw. The others began or ended in
 * between. */
void rec_ring_keep_common(struct rec_ring *a, const struct rec_ring *b);

/* Is the last record of the ring this scope? Between the two stores of a
 * scope's end (head, then depth) it is recorded, and stands among the open ones
 * too. */
bool rec_ring_ended(const struct rec_ring *r, const struct rec_slot *slots,
                    enum rec_kind kind, uint64_t time, uint32_t name);

/* Rounds up to the largest pages there are: tables and rings begin there. */
static inline uint64_t rec_paged(uint64_t n) {
    return (n + REC_PAGE - 1) & ~(uint64_t)(REC_PAGE - 1);
}

/* Lays out the tables. Returns the bytes before the first ring. */
size_t rec_layout(struct rec_head *h);
/* Points the map's tables into what is mapped at `base`. */
void ring_map_tables(struct ring_map *map, void *base, size_t bytes);

static inline struct rec_slot *rec_slots(const struct rec_ring *r) {
    return (struct rec_slot *)((char *)r + REC_RING_HEAD);
}

/* Returns a moment of CLOCK_MONOTONIC in ps since the start; 0 before it. */
static inline uint64_t rec_ps_of_ns(const struct rec_head *h, uint64_t mono) {
    return mono <= h->start_mono_ns ? 0 : (mono - h->start_mono_ns) * 1000;
}

/* Copies the ring file fd and checks it. Returns 0, or -1 and why. Names and
 * open scopes of the copy fit to its records even if the program goes on; the
 * caller checks that its commit has not changed meanwhile. The copy is at most
 * as large as what the file really holds. The caller closes fd. */
int ring_map_copy(struct ring_map *map, int fd, const char **why);
void ring_map_free(struct ring_map *map);

/* Makes the name of a file of the session: "<stem>.xplane.pb.part", with part >
 * 0 "<stem>.1.xplane.pb.part", for a device "<stem>.device1.xplane.pb.part".
 * `final`: without .part. The stem may have a folder before it. Returns false
 * if the name does not fit. */
bool rec_part_name(char *out, size_t cap, const char *stem, uint64_t part,
                   unsigned file, bool final);

#endif
