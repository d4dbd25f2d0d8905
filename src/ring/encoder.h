/* SPDX-License-Identifier: Apache-2.0
 * Slots of rings become XSpace: lines of events, metadata, facts, in any order,
 * as the body of one plane per file (docs/recorder/format.md). The encoder
 * only looks at the rings: what was encoded is known by the caller, who keeps
 * tails and commits.
 *
 * Nothing here fails but the caller's write: a record that makes no sense is
 * left out and counted. */
#ifndef RING_ENCODER_H
#define RING_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rec_head;
struct rec_ring;
struct rec_slot;
struct ring_map;

enum { ENCODER_LANES = 16, ENCODER_NAME = 96 };

/* Which line is which. */
enum {
    ENCODER_HOST,  /* of the thread that is being encoded */
    ENCODER_EARLY, /* its events that start before the line's base */
    ENCODER_COUNTERS,
    ENCODER_DEVICE,
    ENCODER_LANE, /* the first of the asyncs' */
    ENCODER_LINES = ENCODER_LANE + ENCODER_LANES,
};

/* A line that is being filled. It is written, head first, when it is full or
 * something else comes. */
struct encoder_line {
    unsigned file;
    int64_t id;
    char name[ENCODER_NAME]; /* "" until the first event */
    int64_t display_id;      /* the row that others show it in; 0: id */
    uint64_t base_ps;        /* offsets count from here; whole nanoseconds */
    uint8_t *buf;
    size_t n, cap;
};

/* Where the bytes go. open and write return 0; anything else says that it
 * cannot be done, and then all that was written since the last commit is
 * lost. */
struct encoder_out {
    void *self;
    /* Makes the file of a plane, before its first bytes. May be NULL. */
    int (*open)(void *self, unsigned file);
    /* Is called behind the facts that begin the host's plane, to add more. May
     * be NULL. */
    void (*add_facts)(void *self);
    /* Appends to the file of a plane. */
    int (*write)(void *self, unsigned file, const void *p, size_t n);
    /* Takes a scalar. NULL if scalars are not wanted. */
    void (*scalar)(void *self, const char *tag, size_t n, int64_t step,
                   double value, double unix_s);
};

struct encoder {
    const struct ring_map *map;
    struct encoder_out out;
    uint32_t begun; /* a bit for each plane that has its head */
    struct encoder_line line[ENCODER_LINES];
    uint64_t lane_end[ENCODER_LANES];
    uint32_t seg;    /* hint for the clock */
    uint32_t nnames; /* names below are known to be whole */
    uint32_t facts;  /* how many were given: their ids */
    uint64_t events, bad;
    uint64_t last; /* the latest tick that an event ends at */
    bool failed;
    uint8_t *memory;
};

/* Maps memory for the lines, 1 MiB. Ids of facts begin at facts_from, so that
 * two encoders may write into one plane. Returns -1 if there is no memory. */
int encoder_init(struct encoder *e, const struct ring_map *map,
                 struct encoder_out out, uint32_t facts_from);
void encoder_free(struct encoder *e);

/* Begins a plane: its name, its own metadata, and the facts that stand in the
 * ring file's head. The first bytes for a plane that has not begun do the
 * same. */
void encoder_begin(struct encoder *e, unsigned file);
/* Writes a fact about the recording; on device planes about the device. */
void encoder_fact(struct encoder *e, unsigned file, const char *key,
                  const char *value);
void encoder_fact_int(struct encoder *e, unsigned file, const char *key,
                      int64_t value);

/* Writes a loss that no thread's line tells of in words, "<n> <what>", unless
 * n is 0. */
void encoder_loss(struct encoder *e, uint64_t n, const char *what);
/* Writes the losses that the head of the ring file counts. */
void encoder_losses(struct encoder *e, const struct rec_head *h);

/* Writes names [from, to) as metadata of a plane. */
void encoder_names(struct encoder *e, unsigned file, uint64_t from,
                   uint64_t to);

/* What is to be encoded of a ring: records [from, to) in slots, which are its
 * own or a copy of all of them; and its losses, those in lost[] beyond
 * reported[]. */
struct encoder_range {
    const struct rec_slot *slots;
    uint64_t from, to;
    const uint64_t *reported, *lost;
};
void encoder_ring(struct encoder *e, const struct rec_ring *r,
                  const struct encoder_range *range);
/* Writes the scopes, step and epoch that are still open, marked, as ending at
 * tick `end`. slots tell of a scope that has just ended. */
void encoder_open_scopes(struct encoder *e, const struct rec_ring *r,
                         const struct rec_slot *slots, uint64_t end);
void encoder_open_asyncs(struct encoder *e, uint64_t end);

/* Writes a sample of a counter. name is interned, ps since the start. */
void encoder_counter(struct encoder *e, uint32_t name, double value,
                     uint64_t ps);
/* A record of a device, from its own tracer. */
struct encoder_device {
    uint32_t track, kind; /* kind: enum ops_device_class */
    uint32_t name;
    uint64_t start_ps, dur_ps, corr;
    int64_t bytes; /* -1: none */
};
void encoder_device(struct encoder *e, const struct encoder_device *d);

/* Writes out every line that is open; it is called before a commit. */
void encoder_lines(struct encoder *e);

#endif
