/* SPDX-License-Identifier: Apache-2.0
 * Level-of-detail tiles: what a time line draws, at any zoom, without a look at
 * all spans. A tile is 256 bins of one lane of one track; a bin says how much
 * of it was busy, how many spans begin in it, and what took most of it. What
 * lies in no bin is in the tile's totals, which are exact.
 *
 *     level   a bin is 2^level ps wide, a tile 256 times that
 *     tile    tile k begins k widths after the trace's first start: tile 0 of
 *             level lod_extent.top has all of the trace
 *     lane    spans of a lane never overlap, not in one picosecond; every span
 *             is in one lane. Where spans nest as they should, the lane is the
 *             depth; what crosses or overlaps takes the next lane that is free.
 *             An instant takes a picosecond there
 *     LOD_ALL all lanes in one: busy is the union
 *
 * Times are half open: a span [start, end) touches a tile [a, b) if start < b
 * and end > a; an instant if a <= start < b.
 *
 * A track is indexed when it is first asked for, by one walk over its rows, and
 * the index stays with the trace. Any number of threads may ask. Its size, in
 * bytes per span of the track: about 0.9 where one lane is enough, 5.9 where
 * there are more, 10 with more than 64 lanes; 4 more per lane, and some 250 for
 * each track. A tile costs O(bins * (log n + a block of 128 rows)), whatever
 * the zoom; with LOD_ALL up to 64 lanes cost a search each.
 *
 * docs/tiles.md has the bytes of an encoded tile. */
#ifndef MODEL_LOD_H
#define MODEL_LOD_H

#include "model/trace.h"

enum {
    LOD_BINS = 256,
    LOD_LEVELS = 56,  /* a tile of the last level is 2^63 ps wide */
    LOD_SLICES = 256, /* in a tile at most; never more than bins */
    LOD_HEAD_BYTES = 112,
    LOD_BIN_BYTES = 8,
    LOD_SLICE_BYTES = 28,
    LOD_TILE_BYTES = LOD_HEAD_BYTES + LOD_SLICES * LOD_SLICE_BYTES,
};
#define LOD_ALL     UINT32_MAX
#define LOD_NO_NAME 0xFFFFFF /* in an encoded bin */

enum lod_form {
    LOD_EMPTY,      /* nothing touches the tile: no body */
    LOD_FORM_BINS,  /* 256 bins */
    LOD_FORM_SLICE, /* few spans touch it: they themselves */
};

/* The time that all spans of a trace take, in ps from its epoch. */
struct lod_extent {
    int64_t start, end;
    unsigned top; /* the least level of which tile 0 has all of it */
};

/* What is known of a track before a tile is asked for. */
struct lod_track {
    size_t lanes;
    uint64_t events;    /* in all lanes; none is left out */
    uint64_t busy;      /* ps: the union of its spans */
    int64_t start, end; /* of the first, of the last; 0, 0 if it has none */
    size_t bytes;       /* that its index takes */
};

struct lod_query {
    uint32_t track, lane; /* lane: or LOD_ALL */
    unsigned level;
    uint64_t tile;
    size_t slices; /* take spans instead of bins if no more than so many touch
                      the tile: at most LOD_SLICES; 0: always bins. LOD_ALL has
                      bins only */
};

struct lod_bin {
    uint64_t busy;   /* ps, exact: of all that touches it */
    uint64_t starts; /* spans that begin in it */
    str_id name;     /* what took most of it, if anything touches it. A name
                        that has over half of busy is always the one, and one
                        that has over a quarter was compared. In LOD_ALL the
                        outermost has the time */
    uint8_t kind;    /* enum span_kind of one of that name */
};

struct lod_slice {
    int64_t start, dur; /* whole, also where they reach over the tile's ends */
    row_id row;
};

/* shown + merged + outside = events of the lane; those of the lanes sum to
 * track_events. Each span is counted by the one tile in which it begins, so
 * that the tiles of a level, and of a level's children, have the same sums. */
struct lod_tile {
    struct lod_query at;
    enum lod_form form;
    int64_t start;         /* ps from the epoch */
    uint64_t width;        /* ps */
    uint64_t busy;         /* ps, exact */
    uint64_t starts;       /* spans that begin in it */
    uint64_t touches;      /* and those that were open when it began */
    uint64_t shown;        /* of starts: given as slices */
    uint64_t merged;       /* of starts: told by bins alone */
    uint64_t outside;      /* spans of the lane that begin in other tiles */
    uint64_t lane_events;  /* of the lane; with LOD_ALL of all lanes */
    uint64_t track_events; /* of all lanes */
    uint32_t lanes;        /* of the track */
    uint32_t n;            /* bins or slices */
    struct lod_bin bins[LOD_BINS];
    struct lod_slice slices[LOD_SLICES]; /* by start */
};

/* Gives the trace's extent; all 0 if it has no span. O(n) for the first call.
 * Fails when out of memory. */
int lod_extent(const struct trace *t, struct lod_extent *out,
               struct ops_err *e);

/* Indexes the track, if that was not done. OPS_EUSAGE: no such track. */
int lod_track(const struct trace *t, uint32_t track, struct lod_track *out,
              struct ops_err *e);

/* Fills a tile. OPS_EUSAGE: there is no such track, lane or level, or the tile
 * lies behind the trace's end. */
int lod_tile(const struct trace *t, const struct lod_query *q,
             struct lod_tile *out, struct ops_err *e);

/* Gives the lane of a row. O(log n) where lanes are depths, else up to O(lanes
 * * log n). */
int lod_lane(const struct trace *t, row_id row, uint32_t *lane,
             struct ops_err *e);

/* Writes a tile as bytes (docs/tiles.md). Returns how many. */
size_t lod_encode(const struct trace *t, const struct lod_tile *tile,
                  uint8_t out[LOD_TILE_BYTES]);

#endif
