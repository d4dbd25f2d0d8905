/* SPDX-License-Identifier: Apache-2.0
 * From rings to files: one pass takes what the rings hold, writes it and
 * commits both sides at once. The flusher of a live program and the rescue of a
 * dead one are this same code. */
#ifndef RING_DRAIN_H
#define RING_DRAIN_H

#include "ring/encode.h"
#include "ring/files.h"

struct rec_view;

struct drain {
    struct rec_view *v;
    int ring; /* the file of which v is a copy; -1: v is mapped */
    struct files files;
    struct encoder enc;
    /* More for a new part (facts), or for the pass that is going on
     * (counters, devices): called by the drain; may be NULL. */
    void (*at_open)(struct drain *d, void *ctx);
    /* Before a commit holds. */
    void (*at_commit)(struct drain *d, struct rec_commit *c, void *ctx);
    /* What was encoded since the last commit was not written. */
    void (*at_failure)(struct drain *d, void *ctx);
    void *ctx;
    struct enc_to events; /* only .scalar and its .self are used */
    /* Takes no more than an eighth of a ring: its writer has room again so
     * much the sooner. Off: rings up to their heads. */
    bool in_pieces;
};

/* For a reader: bytes go to `to` instead of files, and nothing is committed.
 * The view must be private. -1: no memory. */
int drain_open_memory(struct drain *d, struct rec_view *v, struct enc_to to);
/* Names that the file of a plane does not have yet. */
void drain_names(struct drain *d, unsigned file);

/* Files in the folder dir, whose names begin with stem. ring -1: v is mapped, a
 * new session, whose first file is made. Else v is a copy of that ring file,
 * and the files go on that a dead process left. -1: files.error, or no memory
 * (ENOMEM). */
int drain_open(struct drain *d, struct rec_view *v, int dir, const char *stem,
               int ring);
/* Of a copy: the name of the event file in its head goes to the ring file. */
int drain_keep_events(struct drain *d);

/* A pass begins; drain_rings does this itself. */
void drain_begin(struct drain *d);
/* Encodes the rings up to their heads; the caller may encode more before
 * drain_commit. final: what is still open too, as ending at `end`, or, when end
 * is 0, at the last known time; but only once, whoever does it. */
void drain_rings(struct drain *d, bool final, uint64_t end);
/* The pass that is going on has what is still open. */
void drain_closed(struct drain *d);
/* 0: it is in the files, and the rings have room again. -1: it is not
 * (files.error), and nothing has changed. */
int drain_commit(struct drain *d);

/* A new part: the old one is closed under its final name. */
int drain_rotate(struct drain *d);
/* The end: the last part is closed. name: what it is called now. */
int drain_finish(struct drain *d, char name[NAME_MAX + 1]);
void drain_close(struct drain *d);

#endif
