/* SPDX-License-Identifier: Apache-2.0
 * From rings to files: one pass takes what the rings hold, writes it and
 * commits both sides at once. The flusher of a live program and the recovery of
 * a dead one are this same code. */
#ifndef RING_DRAIN_H
#define RING_DRAIN_H

#include "ring/encoder.h"
#include "ring/files.h"

struct ring_map;

struct drain {
    struct ring_map *map;
    int ring; /* the file of which map is a copy; -1: mapped */
    struct files files;
    struct encoder enc;
    /* Add more to a new part (facts), or to the present pass (counters,
     * devices): the drain calls them; they may be NULL. */
    void (*at_open)(struct drain *d, void *ctx);
    /* Is called before a commit holds. */
    void (*at_commit)(struct drain *d, struct rec_commit *c, void *ctx);
    /* Is told that what was encoded since the last commit was not written. */
    void (*at_failure)(struct drain *d, void *ctx);
    /* Takes a scalar; may be NULL. */
    void (*scalar)(void *ctx, const char *tag, size_t n, int64_t step,
                   double value, double unix_s);
    void *ctx; /* of all four */
    /* Takes no more than an eighth of a ring at a time: its writer has room
     * again so much the sooner. If it is off, rings are taken up to their
     * heads. */
    bool in_pieces;
};

/* Opens a drain for a reader: bytes go to `out` instead of files, and nothing
 * is committed. The map must be a copy; begun has a bit for each plane that has
 * begun elsewhere. Returns -1 if there is no memory. */
int drain_open_memory(struct drain *d, struct ring_map *map,
                      struct encoder_out out, uint32_t begun);
/* Writes the names that the file of a plane does not have yet. */
void drain_names(struct drain *d, unsigned file);

/* Opens files in the folder dir, whose names begin with stem. With ring -1 the
 * map is mapped, a new session, whose first file is made. Else the map is a
 * copy of that ring file, and the files that a dead process left go on. Returns
 * -1, and files.error (ENOMEM: no memory). */
int drain_open(struct drain *d, struct ring_map *map, int dir, const char *stem,
               int ring);
/* Writes the name of the event file in the head of a copy to the ring file. */
int drain_keep_events(struct drain *d);

/* Encodes the rings up to their heads; the caller may encode more before
 * drain_commit. final: scopes that are still open are written, too, as ending
 * at `end`, or, when end is 0, at the last known time; but only once, whoever
 * does it. */
void drain_rings(struct drain *d, bool final, uint64_t end);
/* Does the same for a flight recorder, whose threads go on overwriting their
 * rings: what they hold since the last dump, and what is open. A ring is
 * copied, and what may have been overwritten meanwhile is left out. */
void drain_flight(struct drain *d);
/* Notes that the pass has the scopes that are still open. */
void drain_mark_final(struct drain *d);
/* Returns 0 if all is in the files, and the rings have room again; -1 if it is
 * not (files.error), and nothing has changed. */
int drain_commit(struct drain *d);

/* Begins a new part: the old one is closed under its final name. */
int drain_rotate(struct drain *d);
/* Ends the recording: the last part is closed; name becomes its final name. */
int drain_finish(struct drain *d, char name[NAME_MAX + 1]);
/* Closes the descriptors and frees the encoder; the files stay. */
void drain_free(struct drain *d);

#endif
