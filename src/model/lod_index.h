/* SPDX-License-Identifier: Apache-2.0
 * The index of one track behind its tiles (lod.h): its rows by lanes, and what
 * was busy up to every 128th of them.
 *
 * A strip is rows in an order in which starts rise: all rows of the track, or
 * those of one lane behind those of another. Blocks of 128 rows are cut through
 * it without regard to lanes, so that a million lanes of one span each cost no
 * more than one lane of a million. Before each block stands a mark, and the
 * names that took most of it are in a tree of votes over the blocks.
 *
 *     rows    r r r r r r r r | r r r r r r r r | r r r ...
 *     marks   ^               ^                 ^
 *     votes   [       0      ] [       1       ]    level 0
 *             [               0               ]     level 1
 *
 * Times are offsets from the trace's first start: no offset is negative, and
 * all sums are modulo 2^64. A sum within a lane fits; one over several lanes is
 * only ever subtracted from another. */
#ifndef MODEL_LOD_INDEX_H
#define MODEL_LOD_INDEX_H

#include "model/trace.h"

enum {
    LOD_BLOCK = 128,
    LOD_CANDIDATES = 3,
    LOD_LANES_FEW = 64,
};

/* Which names have most of the time: Misra and Gries' summary. A name that is
 * new while all places are taken takes as much from each of them as it loses
 * itself. So a name that has over half of all time has most of what is left,
 * and one that has over a quarter has some left; summaries of parts may be put
 * together in any order. */
struct lod_votes {
    uint64_t weight[LOD_CANDIDATES]; /* 0: a free place */
    str_id name[LOD_CANDIDATES];
    uint8_t kind[LOD_CANDIDATES];
};

/* The state before a place in a strip: of all rows before it in its lane. */
struct lod_mark {
    uint64_t ts;  /* start of the row at that place */
    uint64_t sum; /* length of their union, and of the lanes before */
    uint64_t end; /* where the union ends; 0: no row is before it */
    row_id owner; /* the row that ends there */
};

struct lod_strip {
    const struct trace *t;
    uint64_t zero;
    row_id first;            /* of the track */
    size_t n;                /* rows */
    const row_id *rows;      /* by place; NULL: first + place */
    struct lod_mark *marks;  /* these two are NULL below a block of rows: */
    struct lod_votes *votes; /* a file may have a track for each span */
};

struct lod_index {
    struct lod_strip all;  /* one lane with the union of all */
    struct lod_strip lane; /* lane k: places lane_at[k] .. lane_at[k + 1] - 1.
                              Not made where one lane is enough */
    size_t nlanes;
    uint32_t *lane_at;
    row_id *rows; /* of the strip `lane` */
    row_id *ends; /* by end; only with more than LOD_LANES_FEW lanes */
    size_t bytes;
};

/* Returns the index of a track; NULL if out of memory. O(n log lanes). */
struct lod_index *lod_index_new(const struct trace *t, const struct track *tr,
                                uint64_t zero);
void lod_index_free(struct lod_index *x);

/* A place that moves forward through one lane of a strip. */
struct lod_cursor {
    const struct lod_strip *s;
    size_t at, to; /* the place, the lane's end */
    uint64_t sum, end;
    row_id owner; /* these three as in lod_mark */
};

/* Returns a cursor before the lane's first row; lane UINT32_MAX: of all. */
struct lod_cursor lod_begin(const struct lod_index *x, uint32_t lane);

/* Moves before the first row that starts at ts or later. If votes is not NULL,
 * it gets the rows' time before ts. O(log n) blocks, and one or two row by
 * row. */
void lod_advance(struct lod_cursor *c, uint64_t ts, struct lod_votes *votes);

/* Adds time of a name. */
void lod_vote(struct lod_votes *v, str_id name, uint8_t kind, uint64_t weight);

/* Returns the time before ts that is busy, of the rows before the cursor. */
static inline uint64_t lod_busy(const struct lod_cursor *c, uint64_t ts) {
    return c->sum - (c->end > ts ? c->end - ts : 0);
}

/* Returns how many rows of the track began before ts and are open then. */
size_t lod_open(const struct lod_index *x, uint64_t ts);

static inline row_id strip_row(const struct lod_strip *s, size_t at) {
    return s->rows != NULL ? s->rows[at] : s->first + (row_id)at;
}

static inline uint64_t strip_ts(const struct lod_strip *s, row_id r) {
    return (uint64_t)s->t->spans.ts[r] - s->zero;
}

static inline uint64_t strip_end(const struct lod_strip *s, row_id r) {
    return strip_ts(s, r) + (uint64_t)s->t->spans.dur[r];
}

/* Returns the end of what the row takes of its lane: an instant takes a
 * picosecond. */
static inline uint64_t strip_room(const struct lod_strip *s, row_id r) {
    return strip_end(s, r) + (s->t->spans.dur[r] == 0);
}

#endif
