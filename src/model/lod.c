/* SPDX-License-Identifier: Apache-2.0
 * Tiles: a cursor goes once through what lies in the tile, from bin to bin, in
 * blocks where it can (lod_index.h). The totals come from where the cursor was
 * at the tile's ends, never from the bins. */
#include "model/lod.h"

#include "base/array.h"
#include "base/err.h"
#include "model/lod_index.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What a trace keeps: the indices that were asked for, each behind its lock. */
struct lod {
    struct lod_extent extent;
    size_t n;
    struct kept {
        pthread_mutex_t lock;
        struct lod_index *index; /* NULL: nobody has asked yet */
    } * tracks;
};

static void find_extent(const struct trace *t, struct lod_extent *x) {
    const struct spans *s = &t->spans;
    *x = (struct lod_extent){0};
    if (s->n == 0) return;
    x->start = INT64_MAX;
    x->end = INT64_MIN;
    for (row_id r = 0; r < s->n; r++) {
        if (s->ts[r] < x->start) x->start = s->ts[r];
        if (span_end(t, r) > x->end) x->end = span_end(t, r);
    }
    /* an instant at the very end has its bin, too */
    uint64_t last = (uint64_t)x->end - (uint64_t)x->start;
    while (last >> x->top >= LOD_BINS) x->top++;
}

static void drop_lod(void *v) {
    struct lod *l = v;
    for (size_t i = 0; i < l->n; i++) {
        lod_index_free(l->tracks[i].index);
        pthread_mutex_destroy(&l->tracks[i].lock);
    }
    free(l->tracks);
    free(l);
}

static void *make_lod(const struct trace *t) {
    struct lod *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    l->tracks = calloc(t->ntracks + 1, sizeof *l->tracks);
    if (l->tracks == NULL) {
        free(l);
        return NULL;
    }
    for (; l->n < t->ntracks; l->n++)
        pthread_mutex_init(&l->tracks[l->n].lock, NULL);
    find_extent(t, &l->extent);
    return l;
}

static const struct lod *lod_of(const struct trace *t) {
    return trace_memo(t, MEMO_LOD, make_lod, drop_lod);
}

/* Gives the index of a track, made by the first who asks. t is no view. */
static int find_index(const struct trace *t, uint32_t track,
                      const struct lod_index **out, struct ops_err *e) {
    const struct lod *l = lod_of(t);
    if (l == NULL) return fail_oom(e);
    if (track >= l->n)
        return fail(e, OPS_EUSAGE, "no track %u: there are %zu", track, l->n);
    struct kept *kept = &l->tracks[track];
    pthread_mutex_lock(&kept->lock);
    if (kept->index == NULL)
        kept->index = lod_index_new(t, &t->tracks[track],
                                    (uint64_t)l->extent.start);
    *out = kept->index;
    pthread_mutex_unlock(&kept->lock);
    return *out != NULL ? 0 : fail_oom(e);
}

int lod_extent(const struct trace *t, struct lod_extent *out,
               struct ops_err *e) {
    const struct lod *l = lod_of(trace_base(t));
    if (l == NULL) return fail_oom(e);
    *out = l->extent;
    return 0;
}

int lod_track(const struct trace *t, uint32_t track, struct lod_track *out,
              struct ops_err *e) {
    const struct lod_index *x;
    t = trace_base(t);
    TRY(find_index(t, track, &x, e));
    *out = (struct lod_track){.lanes = x->nlanes,
                              .events = x->all.n,
                              .bytes = x->bytes};
    if (x->all.n == 0) return 0;
    struct lod_cursor c = lod_begin(x, LOD_ALL);
    lod_advance(&c, UINT64_MAX, NULL);
    out->busy = c.sum;
    out->start = t->spans.ts[x->all.first];
    /* the last may be an instant, which the union does not have */
    uint64_t last = strip_end(&x->all, t->tracks[track].end - 1);
    out->end = (int64_t)(x->all.zero + (last > c.end ? last : c.end));
    return 0;
}

/* The place of a row among those of a lane; SIZE_MAX: it is not there. */
static size_t lane_place(const struct lod_index *x, size_t lane, row_id row) {
    size_t lo = x->lane_at[lane], end = x->lane_at[lane + 1], hi = end;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (x->rows[mid] < row) lo = mid + 1;
        else hi = mid;
    }
    return lo < end && x->rows[lo] == row ? lo : SIZE_MAX;
}

int lod_lane(const struct trace *t, row_id row, uint32_t *lane,
             struct ops_err *e) {
    const struct lod_index *x;
    t = trace_base(t);
    if (row >= t->spans.n)
        return fail(e, OPS_EUSAGE, "no span %u: there are %zu", row,
                    t->spans.n);
    TRY(find_index(t, t->spans.track[row], &x, e));
    *lane = 0;
    if (x->nlanes == 1) return 0;
    size_t guess = t->spans.depth[row];
    for (size_t k = 0; k < x->nlanes; k++) {
        *lane = (uint32_t)((guess + k) % x->nlanes);
        if (lane_place(x, *lane, row) != SIZE_MAX) break;
    }
    return 0;
}

/* Takes the track and the place of the tile from the question. */
static int check_query(const struct lod_query *q, const struct lod_index *x,
                       const struct lod_extent *of, struct ops_err *e) {
    if (q->lane != LOD_ALL && q->lane >= x->nlanes)
        return fail(e, OPS_EUSAGE, "no lane %u on track %u: there are %zu",
                    q->lane, q->track, x->nlanes);
    if (q->level >= LOD_LEVELS)
        return fail(e, OPS_EUSAGE, "no level %u: they are 0 to %d", q->level,
                    LOD_LEVELS - 1);
    uint64_t last = (uint64_t)of->end - (uint64_t)of->start;
    last = last >> q->level >> 8;
    if (q->tile > last)
        return fail(e, OPS_EUSAGE, "no tile %llu of level %u: the last is %llu",
                    (unsigned long long)q->tile, q->level,
                    (unsigned long long)last);
    return 0;
}

/* Gives the spans that touch the tile: the rows from cursor a to b, and the one
 * before them if it is open. */
static void fill_slices(struct lod_tile *tile, const struct lod_cursor *a,
                        size_t to) {
    const struct trace *t = a->s->t;
    size_t from = a->at - (size_t)(tile->touches - tile->starts);
    for (size_t i = from; i < to; i++) {
        row_id r = strip_row(a->s, i);
        tile->slices[tile->n++] = (struct lod_slice){t->spans.ts[r],
                                                     t->spans.dur[r], r};
    }
}

/* Names a bin by the votes; where these cancel each other out, and where there
 * are none, by row, which touches it. */
static void name_bin(struct lod_bin *bin, const struct spans *s,
                     const struct lod_votes *votes, row_id row) {
    uint64_t most = 0;
    bin->name = s->name[row];
    bin->kind = s->kind[row];
    for (int i = 0; i < LOD_CANDIDATES; i++) {
        if (votes->weight[i] <= most) continue;
        most = votes->weight[i];
        bin->name = votes->name[i];
        bin->kind = votes->kind[i];
    }
}

static void fill_bins(struct lod_tile *tile, struct lod_cursor c,
                      uint64_t from) {
    const struct spans *s = &c.s->t->spans;
    tile->n = LOD_BINS;
    for (uint64_t i = 0; i < LOD_BINS; i++) {
        struct lod_bin *bin = &tile->bins[i];
        uint64_t a = from + (i << tile->at.level);
        uint64_t b = from + ((i + 1) << tile->at.level);
        uint64_t before = lod_busy(&c, a);
        size_t first = c.at;
        struct lod_votes votes = {0};
        *bin = (struct lod_bin){0};
        if (c.end > a)
            lod_vote(&votes, s->name[c.owner], s->kind[c.owner],
                     (c.end < b ? c.end : b) - a);
        lod_advance(&c, b, &votes);
        bin->busy = lod_busy(&c, b) - before;
        bin->starts = c.at - first;
        if (bin->busy == 0 && bin->starts == 0) continue;
        /* without time all that touches it are instants that begin in it */
        name_bin(bin, s, &votes,
                 bin->busy > 0 ? c.owner : strip_row(c.s, first));
    }
}

/* Fills all but the body. a and b stand at the tile's begin and end. */
static void fill_head(struct lod_tile *tile, const struct lod_index *x,
                      const struct lod_cursor *a, const struct lod_cursor *b,
                      uint64_t from) {
    const struct lod_query *q = &tile->at;
    struct lod_cursor lane = lod_begin(x, q->lane);
    tile->start = (int64_t)(x->all.zero + from);
    tile->width = (uint64_t)LOD_BINS << q->level;
    tile->busy = lod_busy(b, from + tile->width) - lod_busy(a, from);
    tile->starts = b->at - a->at;
    tile->touches = tile->starts +
                    (q->lane == LOD_ALL ? lod_open(x, from) : a->end > from);
    tile->lane_events = lane.to - lane.at;
    tile->track_events = x->all.n;
    tile->outside = tile->lane_events - tile->starts;
    tile->lanes = (uint32_t)x->nlanes;
    tile->form = LOD_FORM_BINS;
    tile->n = 0;
    if (tile->touches == 0) tile->form = LOD_EMPTY;
    else if (q->lane != LOD_ALL && tile->touches <= q->slices &&
             tile->touches <= LOD_SLICES)
        tile->form = LOD_FORM_SLICE;
    tile->shown = tile->form == LOD_FORM_SLICE ? tile->starts : 0;
    tile->merged = tile->starts - tile->shown;
}

int lod_tile(const struct trace *t, const struct lod_query *q,
             struct lod_tile *out, struct ops_err *e) {
    const struct lod_index *x;
    t = trace_base(t);
    TRY(find_index(t, q->track, &x, e));
    TRY(check_query(q, x, &lod_of(t)->extent, e));
    uint64_t from = q->tile << q->level << 8;
    out->at = *q;
    struct lod_cursor a = lod_begin(x, q->lane), b;
    lod_advance(&a, from, NULL);
    b = a;
    lod_advance(&b, from + ((uint64_t)LOD_BINS << q->level), NULL);
    fill_head(out, x, &a, &b, from);
    if (out->form == LOD_FORM_SLICE) fill_slices(out, &a, b.at);
    if (out->form == LOD_FORM_BINS) fill_bins(out, a, from);
    return 0;
}

static uint8_t *put(uint8_t *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) *p++ = (uint8_t)(v >> 8 * i);
    return p;
}

/* Of what touches the bin at least 1 is left; all of it alone is 65535. */
static uint16_t busy_share(const struct lod_bin *bin, unsigned level) {
    uint16_t share = (uint16_t)((unsigned __int128)bin->busy * UINT16_MAX >>
                                level);
    bool lit = bin->busy > 0 || bin->starts > 0;
    return lit && share == 0 ? 1 : share;
}

static uint8_t *put_bin(uint8_t *p, const struct lod_bin *bin, unsigned level) {
    uint16_t share = busy_share(bin, level);
    uint32_t name = bin->name;
    if (share == 0 || name > LOD_NO_NAME) name = LOD_NO_NAME;
    p = put(p, share, 2);
    p = put(p, bin->starts < UINT16_MAX ? bin->starts : UINT16_MAX, 2);
    p = put(p, name, 3);
    return put(p, bin->kind, 1);
}

static uint8_t *put_slice(uint8_t *p, const struct trace *t,
                          const struct lod_slice *s) {
    p = put(p, (uint64_t)s->start, 8);
    p = put(p, (uint64_t)s->dur, 8);
    p = put(p, t->spans.name[s->row], 4);
    p = put(p, s->row, 4);
    p = put(p, t->spans.depth[s->row], 2);
    p = put(p, t->spans.kind[s->row], 1);
    return put(p, t->spans.flags[s->row], 1);
}

size_t lod_encode(const struct trace *t, const struct lod_tile *tile,
                  uint8_t out[LOD_TILE_BYTES]) {
    const uint64_t totals[] = {tile->busy,        tile->starts,
                               tile->touches,     tile->shown,
                               tile->merged,      tile->outside,
                               tile->lane_events, tile->track_events};
    uint8_t *p = out;
    memcpy(p, "OLOD", 4);
    p = put(p + 4, 1, 2); /* the version */
    p = put(p, tile->form, 1);
    p = put(p, tile->at.level, 1);
    p = put(p, tile->at.tile, 8);
    p = put(p, (uint64_t)tile->start, 8);
    p = put(p, tile->width, 8);
    p = put(p, tile->at.track, 4);
    p = put(p, tile->at.lane, 4);
    p = put(p, tile->lanes, 4);
    p = put(p, tile->n, 4);
    for (size_t i = 0; i < COUNT(totals); i++) p = put(p, totals[i], 8);
    for (size_t i = 0; tile->form == LOD_FORM_BINS && i < tile->n; i++)
        p = put_bin(p, &tile->bins[i], tile->at.level);
    for (size_t i = 0; tile->form == LOD_FORM_SLICE && i < tile->n; i++)
        p = put_slice(p, trace_base(t), &tile->slices[i]);
    return (size_t)(p - out);
}
