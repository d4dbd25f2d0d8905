/* SPDX-License-Identifier: Apache-2.0
 * Slots of rings become XSpace: lines of events, metadata, facts, in any order,
 * as the body of one plane per file (docs/recorder/format.md). It only looks;
 * what was encoded is known by the caller, who keeps tails and commits.
 *
 * Nothing here fails but the caller's write: a record that makes no sense is
 * left out and counted. */
#ifndef RING_ENCODE_H
#define RING_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rec_head;
struct rec_ring;
struct rec_slot;
struct rec_view;

enum { ENC_LANES = 16, ENC_NAME = 96 };

/* A line that is being filled; it is written, head first, when it is full or
 * something else comes. */
struct enc_line {
    unsigned file;
    int64_t id;
    char name[ENC_NAME]; /* "" until the first event */
    int64_t display_id;  /* the row that others show it in; 0: id */
    uint64_t base_ps;    /* offsets count from here; whole nanoseconds */
    uint8_t *buf;
    size_t n, cap;
};

/* Where the bytes go. */
struct enc_to {
    void *self;
    /* Appends to the file of a plane; not 0: it cannot, and all is lost that
     * was written since the last commit. */
    int (*write)(void *self, unsigned file, const void *p, size_t n);
    /* A scalar; NULL: they are not wanted. */
    void (*scalar)(void *self, const char *tag, size_t n, int64_t step,
                   double value, double unix_s);
};

struct encoder {
    const struct rec_view *v;
    struct enc_to to;
    struct enc_line host, early, counters, device, lane[ENC_LANES];
    uint64_t lane_end[ENC_LANES];
    uint32_t seg;    /* hint for the clock */
    uint32_t nnames; /* names below are known to be whole */
    uint32_t facts;  /* how many were given: their ids */
    uint64_t events, bad;
    uint64_t last; /* the latest tick that an event ends at */
    bool failed;
    uint8_t *memory;
};

/* Memory for the lines, 1 MiB, mapped. facts_from: ids of facts begin there, so
 * that two encoders may write into one plane. -1: no memory. */
int encoder_init(struct encoder *e, const struct rec_view *v, struct enc_to to,
                 uint32_t facts_from);
void encoder_free(struct encoder *e);

/* The first bytes of a plane's body: its name. */
void encode_plane(struct encoder *e, unsigned file);
/* A fact about the recording; on device planes about the device. */
void encode_fact(struct encoder *e, unsigned file, const char *key,
                 const char *value);
void encode_fact_int(struct encoder *e, unsigned file, const char *key,
                     int64_t value);
/* The facts that stand in the ring file's head. */
void encode_head_facts(struct encoder *e);

/* Names [from, to) as metadata of a plane. */
void encode_names(struct encoder *e, unsigned file, uint64_t from, uint64_t to);

/* Records [from, to) of a ring, whose slots are at `slots` (its own, or a copy
 * of all of them); then its losses, those in lost[] beyond told[]. */
void encode_ring(struct encoder *e, const struct rec_ring *r,
                 const struct rec_slot *slots, uint64_t from, uint64_t to,
                 const uint64_t *told, const uint64_t *lost);
/* The scopes, step and epoch that are still open, as ending at tick `end`, and
 * marked. last: the slot before head, to tell a scope that has just ended. */
void encode_open(struct encoder *e, const struct rec_ring *r,
                 const struct rec_slot *slots, uint64_t end);
void encode_asyncs(struct encoder *e, uint64_t end);

/* A sample of a counter. name: interned. ps since the start. */
void encode_counter(struct encoder *e, uint32_t name, double value,
                    uint64_t ps);
/* A record of a device, from its own tracer. */
struct enc_device {
    uint32_t track, kind; /* kind: enum ops_device_class */
    uint32_t name;
    uint64_t start_ps, dur_ps, corr;
    int64_t bytes; /* -1: none */
};
void encode_device(struct encoder *e, const struct enc_device *d);

/* Writes out every line that is open: before a commit. */
void encode_lines(struct encoder *e);

/* The planes behind the host's and the devices': when it was taken. Returns the
 * bytes written to p, which has room for 256. */
size_t encode_environment(const struct rec_head *h, uint64_t end_ps,
                          uint8_t *p);

#endif
