/* SPDX-License-Identifier: Apache-2.0
 * Tiles against plain loops over all spans: made-up tracks of every kind, at
 * levels and tiles drawn at random. */
#include "tiny.h"

#include "model/lod.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef __int128 wide;

enum { TRACES = 900, LONG = 12, TILES = 4, NAMES = 6 };

static uint64_t seed = 7;

static uint64_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static int64_t below(int64_t n) {
    return (int64_t)(draw() % (uint64_t)(n > 0 ? n : 1));
}

static int64_t favour = 3;    /* one in so many has another name than ... */
static int64_t favourite = 0; /* ... this one */

static row_id put(struct trace *t, uint32_t track, int64_t ts, int64_t dur,
                  uint8_t flags) {
    static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f"};
    int64_t name = below(favour) == 0 ? below(NAMES) : favourite;
    struct span_in s = {.ts = ts,
                        .dur = dur,
                        .track = track,
                        .name = trace_str(t, bytes_of(names[name])),
                        .kind = (uint8_t)(SPAN_OP + name % 3),
                        .flags = flags};
    return trace_span(t, &s);
}

/* A tree of spans, of which some begin or end with their parent. */
static void put_tree(struct trace *t, uint32_t track, int64_t from, int64_t to,
                     int deep) {
    put(t, track, from, to - from, to == from ? SPAN_INSTANT : 0);
    for (int64_t at = from; deep > 0 && at < to;) {
        int64_t end = at + 1 + below((to - from) / 2);
        if (end > to) end = to;
        if (below(4)) put_tree(t, track, at, end, deep - 1);
        at = end + below(3) * below((to - from) / 8 + 1);
    }
}

/* Spans anywhere in a range, of some longest duration. */
static void put_any(struct trace *t, uint32_t track, int n, uint8_t flags) {
    static const int64_t longs[] = {1, 30, 1000, 1 << 20, DUR_LIMIT};
    static const int64_t ranges[] = {1, 200, 100000, TS_LIMIT};
    int64_t most = longs[below(5)], range = ranges[below(4)];
    int64_t from = below(2) ? -below(DUR_LIMIT) : 0;
    int64_t grid = below(3) ? 1 : (int64_t)1 << below(12);
    for (int i = 0; i < n; i++) {
        int64_t ts = (from + below(range)) / grid * grid;
        int64_t dur = below(5) ? below(most + 1) / grid * grid : 0;
        put(t, track, ts, dur,
            (uint8_t)(flags | (dur == 0 && below(2) ? SPAN_INSTANT : 0)));
    }
}

/* One behind the other, of which some touch, and some overlap a little. */
static void put_queue(struct trace *t, uint32_t track, int n) {
    int64_t most = (int64_t)1 << below(40), at = 0;
    int change = 1 << below(11);
    for (int i = 0; i < n; i++) {
        if (i % change == 0) favourite = below(NAMES);
        int64_t dur = below(8) ? below(most) : most * below(200);
        put(t, track, at, dur, 0);
        at += dur + below(3) * below(most) - (below(20) ? 0 : below(dur + 1));
    }
}

/* A trace of one track of each kind. */
static struct trace *draw_trace(int n) {
    struct trace *t = tiny_new(true, false);
    t->sources[0].rounding_ps = below(2) ? below(40) : 0;
    favour = 1 + below(4);
    int64_t size = below(2) ? 5000 : 1 + below(TS_LIMIT / 2);
    put_tree(t, tiny_thread(t, 1), -below(900), size, 3);
    put_any(t, tiny_thread(t, 2), n / 4, 0); /* crosses */
    put_queue(t, tiny_stream(t, 0, 8), n);
    put_any(t, tiny_thread(t, 3), n / 4, SPAN_ASYNC);
    put_any(t, tiny_stream(t, 0, 7), n, 0);
    put_any(t, trace_track(t, 0, TRACK_ASYNC, 1, 4), n, SPAN_ASYNC);
    tiny_thread(t, 5); /* has none */
    tiny_seal(t);
    return t;
}

static int64_t end_of(const struct trace *t, row_id r, bool room) {
    return span_end(t, r) + (room && t->spans.dur[r] == 0);
}

/* The rows that a tile is asked about, and how they are looked at. */
struct truth {
    const struct trace *t;
    row_id *rows;
    size_t n;
};

static void find_rows(struct truth *w, const struct trace *t, uint32_t track,
                      uint32_t lane) {
    const struct track *tr = &t->tracks[track];
    struct ops_err e;
    *w = (struct truth){t, malloc((tr->end - tr->first + 1) * sizeof(row_id)),
                        0};
    for (row_id r = tr->first; r < tr->end; r++) {
        uint32_t at;
        if (lane != LOD_ALL) assert_int_equal(lod_lane(t, r, &at, &e), 0);
        if (lane == LOD_ALL || at == lane) w->rows[w->n++] = r;
    }
}

struct counted {
    uint64_t busy, starts, touches;
    uint64_t touching[NAMES + 1]; /* ps by the name's letter */
    uint64_t having[NAMES + 1];   /* the same, each instant once: the first that
                                     runs has it until it ends, what is open at
                                     a the one that ends last */
};

static int letter(const struct truth *w, row_id r) {
    return span_name(w->t, r)[0] - 'a';
}

/* Everything of [a, b), by a look at every row. */
static struct counted count(const struct truth *w, wide a, wide b) {
    struct counted c = {0};
    wide upto = a, longest = a;
    uint64_t open = 0;
    int last = NAMES;
    for (size_t i = 0; i < w->n; i++) {
        row_id r = w->rows[i];
        wide ts = w->t->spans.ts[r], end = span_end(w->t, r);
        c.starts += ts >= a && ts < b;
        c.touches += ts < b && end_of(w->t, r, true) > a;
        wide from = ts > a ? ts : a, to = end < b ? end : b;
        if (to > from) c.touching[letter(w, r)] += (uint64_t)(to - from);
        if (ts < a && end > longest) {
            longest = end;
            last = letter(w, r);
        }
        if (from < upto) from = upto;
        if (to <= from) continue;
        if (ts < a) open += (uint64_t)(to - from);
        else c.having[letter(w, r)] += (uint64_t)(to - from);
        c.busy += (uint64_t)(to - from);
        upto = to;
    }
    c.having[last] += open;
    return c;
}

static void check_bins(const struct lod_tile *tile, const struct truth *w) {
    wide width = (wide)1 << tile->at.level, a = tile->start;
    for (int i = 0; i < LOD_BINS; i++, a += width) {
        const struct lod_bin *bin = &tile->bins[i];
        struct counted c = count(w, a, a + width);
        assert_true(bin->busy == c.busy);
        assert_true(bin->starts == c.starts);
        if (c.busy == 0 && c.starts == 0) continue;
        int name = strs_text(&w->t->strs, bin->name)[0] - 'a';
        if (c.busy > 0) assert_true(c.touching[name] > 0);
        for (int k = 0; k < NAMES; k++)
            if (c.having[k] > c.busy / 2) assert_int_equal(name, k);
    }
}

static void check_slices(const struct lod_tile *tile, const struct truth *w) {
    assert_int_equal(w->n, tile->n);
    for (size_t i = 0; i < w->n; i++) {
        row_id r = w->rows[i];
        assert_true(tile->slices[i].row == r);
        assert_true(tile->slices[i].start == w->t->spans.ts[r]);
        assert_true(tile->slices[i].dur == w->t->spans.dur[r]);
    }
}

/* Leaves out the rows that do not touch the tile. */
static void leave_out(struct truth *w, wide a, wide b) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        row_id r = w->rows[i];
        if (w->t->spans.ts[r] < b && end_of(w->t, r, true) > a)
            w->rows[n++] = r;
    }
    w->n = n;
}

static void check_tile(const struct lod_tile *tile, struct truth *w) {
    const struct track *tr = &w->t->tracks[tile->at.track];
    wide a = tile->start;
    struct counted c = count(w, a, a + (wide)tile->width);
    assert_true(tile->busy == c.busy);
    assert_true(tile->starts == c.starts);
    assert_true(tile->touches == c.touches);
    assert_true(tile->shown + tile->merged == tile->starts);
    assert_true(tile->starts + tile->outside == tile->lane_events);
    assert_int_equal(tile->lane_events, w->n);
    assert_int_equal(tile->track_events, tr->end - tr->first);
    leave_out(w, a, a + (wide)tile->width);
    if (tile->form == LOD_EMPTY) assert_int_equal(w->n, 0);
    if (tile->form == LOD_FORM_BINS) check_bins(tile, w);
    if (tile->form == LOD_FORM_SLICE) check_slices(tile, w);
    if (tile->touches <= tile->at.slices && tile->at.lane != LOD_ALL)
        assert_true(tile->form != LOD_FORM_BINS);
}

static struct lod_tile *ask(const struct trace *t, struct lod_query q) {
    static struct lod_tile tile;
    struct ops_err e = {0};
    memset(&tile, 0xee, sizeof tile);
    if (lod_tile(t, &q, &tile, &e) != 0) fail_msg("%s", e.text);
    return &tile;
}

static struct lod_extent extent_of(const struct trace *t) {
    struct lod_extent x;
    struct ops_err e;
    assert_int_equal(lod_extent(t, &x, &e), 0);
    return x;
}

static struct lod_track track_of(const struct trace *t, uint32_t track) {
    struct lod_track k;
    struct ops_err e;
    assert_int_equal(lod_track(t, track, &k, &e), 0);
    return k;
}

/* A level at which a tile has about the whole track, a part of it, or any. */
static unsigned draw_level(const struct lod_track *k) {
    unsigned level = 0;
    if (below(4) == 0) return (unsigned)below(LOD_LEVELS);
    while ((k->end - k->start) >> level >= LOD_BINS) level++;
    level += (unsigned)below(9);
    if (level >= LOD_LEVELS) level = LOD_LEVELS - 1;
    unsigned finer = (unsigned)below(14);
    return level > finer ? level - finer : level;
}

/* A question about that track; most tiles have a span's begin or end. */
static struct lod_query draw_query(const struct trace *t, uint32_t track) {
    struct lod_extent x = extent_of(t);
    struct lod_track k = track_of(t, track);
    const struct track *tr = &t->tracks[track];
    struct lod_query q = {.track = track, .lane = LOD_ALL};
    if (k.lanes > 0 && below(4)) q.lane = (uint32_t)below((int64_t)k.lanes);
    q.level = draw_level(&k);
    uint64_t at = (uint64_t)below(x.end - x.start + 1);
    if (k.events > 0 && below(8)) {
        row_id r = tr->first + (row_id)below((int64_t)k.events);
        at = (uint64_t)(below(2) ? t->spans.ts[r] : span_end(t, r)) -
             (uint64_t)x.start;
    }
    q.tile = at >> q.level >> 8;
    q.slices = below(2) ? 0 : (size_t)below(LOD_SLICES + 1);
    return q;
}

static void check_random(struct trace *t, int tiles) {
    for (uint32_t track = 0; track < t->ntracks; track++)
        for (int i = 0; i < tiles; i++) {
            struct lod_query q = draw_query(t, track);
            struct truth w;
            find_rows(&w, t, track, q.lane);
            check_tile(ask(t, q), &w);
            free(w.rows);
        }
}

static void tiles_equal_a_loop_over_all_spans(void **state) {
    (void)state;
    for (int i = 0; i < TRACES; i++) {
        struct trace *t = draw_trace((int)below(i % 16 ? 60 : 600));
        check_random(t, TILES);
        trace_free(t);
    }
}

/* Blocks, and trees over them, are only in tracks of some length. */
static void tiles_of_long_tracks_do_too(void **state) {
    (void)state;
    for (int i = 0; i < LONG; i++) {
        struct trace *t = draw_trace(1500 + (int)below(1500));
        check_random(t, TILES);
        trace_free(t);
    }
}

/* Bins of many blocks, which begin anywhere among them. */
static void whose_a_bin_is_comes_from_its_own_blocks(void **state) {
    (void)state;
    enum { ROWS = 8000 };
    for (int period = 400; period < 4000; period += 900) {
        struct trace *t = tiny_new(true, false);
        uint32_t track = tiny_stream(t, 0, 7);
        put(t, track, 0, 200, 0);
        favour = 1 << 30;
        for (int i = 0; i < ROWS; i++) {
            favourite = i / period % NAMES;
            put(t, track, 200 + i, 1, 0);
        }
        tiny_seal(t);
        for (unsigned level = 9; level < 13; level++) {
            struct truth w;
            find_rows(&w, t, track, 0);
            check_tile(ask(t, (struct lod_query){.level = level}), &w);
            free(w.rows);
        }
        trace_free(t);
    }
}

/* The long span begins in the middle of a block, and there are blocks inside of
 * it: most of its time is not the bin's. */
static void what_reaches_over_a_bin_has_only_its_part_of_it(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = tiny_thread(t, 1);
    favour = 1 << 30;
    favourite = 0;
    for (int i = 0; i < 150; i++) put(t, track, 10 * i, 10, 0);
    favourite = 1;
    put(t, track, 1500, 100000, 0);
    for (int i = 0; i < 400; i++) put(t, track, 1500 + i, 1, 0);
    tiny_seal(t);
    struct lod_tile *tile = ask(t, (struct lod_query){.lane = LOD_ALL,
                                                      .level = 11});
    assert_string_equal(strs_text(&t->strs, tile->bins[0].name), "a");
    assert_string_equal(strs_text(&t->strs, tile->bins[1].name), "b");
    trace_free(t);
}

/* Lanes by themselves: no two spans of one at an instant, each in one. */
static void check_lanes(const struct trace *t, uint32_t track) {
    size_t n = 0, lanes = track_of(t, track).lanes;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        struct truth w;
        find_rows(&w, t, track, lane);
        assert_true(w.n > 0);
        for (size_t i = 1; i < w.n; i++)
            assert_true(end_of(t, w.rows[i - 1], true) <=
                        t->spans.ts[w.rows[i]]);
        n += w.n;
        free(w.rows);
    }
    assert_int_equal(n, t->tracks[track].end - t->tracks[track].first);
}

/* Where nothing nests there are no more lanes than spans run at once. */
static void check_lanes_are_few(const struct trace *t, uint32_t track) {
    const struct track *tr = &t->tracks[track];
    size_t most = 0;
    if (track_nests(t, tr)) return;
    for (row_id r = tr->first; r < tr->end; r++) {
        size_t open = 1;
        for (row_id k = tr->first; k < r; k++)
            open += end_of(t, k, true) > t->spans.ts[r];
        if (open > most) most = open;
    }
    assert_int_equal(track_of(t, track).lanes, most);
}

static void no_two_spans_of_a_lane_overlap(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct trace *t = draw_trace((int)below(100));
        for (uint32_t k = 0; k < t->ntracks; k++) {
            check_lanes(t, k);
            check_lanes_are_few(t, k);
        }
        trace_free(t);
    }
}

static void lanes_are_depths_where_spans_nest(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    struct ops_err e;
    put_tree(t, tiny_thread(t, 1), 0, 1000000, 5);
    tiny_seal(t);
    for (row_id r = 0; r < t->spans.n; r++) {
        uint32_t lane;
        assert_int_equal(lod_lane(t, r, &lane, &e), 0);
        assert_int_equal(lane, t->spans.depth[r]);
    }
    trace_free(t);
}

/* The two halves of a tile, where the second is not behind the end. */
static void sums_of_children_are_their_parents(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct trace *t = draw_trace((int)below(60));
        struct lod_extent x = extent_of(t);
        for (uint32_t track = 0; track < t->ntracks; track++) {
            struct lod_query q = draw_query(t, track);
            if (q.level == 0) continue;
            struct lod_tile sum = *ask(t, q);
            q.level--;
            q.tile *= 2;
            for (int k = 0; k < 2; k++, q.tile++) {
                uint64_t from = q.tile << q.level << 8;
                if (from > (uint64_t)x.end - (uint64_t)x.start) break;
                struct lod_tile *child = ask(t, q);
                sum.busy -= child->busy;
                sum.starts -= child->starts;
            }
            assert_true(sum.busy == 0 && sum.starts == 0);
        }
        trace_free(t);
    }
}

static void check_track(const struct trace *t, uint32_t track,
                        const struct lod_track *k) {
    const struct track *tr = &t->tracks[track];
    int64_t last = tr->first < tr->end ? INT64_MIN : 0;
    for (row_id r = tr->first; r < tr->end; r++)
        if (span_end(t, r) > last) last = span_end(t, r);
    assert_true(k->end == last);
    assert_int_equal(k->events, tr->end - tr->first);
}

static void one_tile_of_all_lights_every_track_and_counts_all(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct trace *t = draw_trace(1 + (int)below(40));
        for (uint32_t track = 0; track < t->ntracks; track++) {
            struct lod_track k = track_of(t, track);
            uint64_t events = 0, lit = 0;
            check_track(t, track, &k);
            struct lod_tile *tile =
                ask(t, (struct lod_query){.track = track,
                                          .lane = LOD_ALL,
                                          .level = extent_of(t).top});
            assert_true(tile->busy == k.busy);
            assert_int_equal(tile->starts, k.events);
            uint8_t bytes[LOD_TILE_BYTES];
            size_t n = lod_encode(t, tile, bytes);
            for (size_t at = LOD_HEAD_BYTES; at < n; at += LOD_BIN_BYTES)
                lit += bytes[at] != 0 || bytes[at + 1] != 0;
            assert_true((lit > 0) == (k.events > 0));
            for (uint32_t lane = 0; lane < k.lanes; lane++) {
                tile = ask(t, (struct lod_query){.track = track,
                                                 .lane = lane,
                                                 .level = extent_of(t).top,
                                                 .slices = 10});
                events += tile->shown + tile->merged + tile->outside;
                assert_int_equal(tile->outside, 0);
            }
            assert_int_equal(events, k.events);
        }
        trace_free(t);
    }
}

static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* What docs/tiles.md says, by its offsets. */
static void bytes_are_where_the_page_says(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = tiny_thread(t, 1);
    put(t, track, -100, 0, SPAN_INSTANT);
    put(t, track, 0, 1 << 20, 0);
    put(t, track, 5, 7, 0);
    tiny_seal(t);
    uint8_t b[LOD_TILE_BYTES];
    struct lod_query q = {.track = track, .level = 10, .slices = 2};
    assert_int_equal(lod_encode(t, ask(t, q), b), 112 + 2 * 28);
    assert_memory_equal(b, "OLOD\1\0\2\12", 8);
    assert_int_equal((int64_t)get(b + 16, 8), -100);
    assert_int_equal(get(b + 24, 8), 1 << 18);
    assert_int_equal(get(b + 40, 4), 2);
    assert_int_equal(get(b + 44, 4), 2);
    assert_int_equal(get(b + 48, 8), (1 << 18) - 100);
    assert_int_equal(get(b + 56, 8), 2);
    assert_int_equal(get(b + 72, 8), 2);
    assert_int_equal(get(b + 96, 8), 2);
    assert_int_equal(get(b + 104, 8), 3);
    assert_int_equal((int64_t)get(b + 112, 8), -100);
    assert_int_equal(get(b + 112 + 28 + 8, 8), 1 << 20);
    assert_int_equal(get(b + 112 + 28 + 16, 4), t->spans.name[1]);
    assert_int_equal(get(b + 112 + 28 + 20, 4), 1);
    assert_int_equal(get(b + 112 + 27, 1), SPAN_INSTANT);

    q.slices = 0;
    assert_int_equal(lod_encode(t, ask(t, q), b), 112 + 256 * 8);
    assert_int_equal(get(b + 112, 2), (1024 - 100) * 65535 / 1024);
    assert_int_equal(get(b + 112 + 2, 2), 2);
    assert_int_equal(get(b + 112 + 4, 3), t->spans.name[1]);
    assert_int_equal(get(b + 120, 2), 65535); /* all of it */
    assert_int_equal(get(b + 120 + 2, 2), 0);

    q.tile = 3; /* goes on into it, but nothing begins there */
    assert_int_equal(lod_encode(t, ask(t, q), b), 112 + 256 * 8);
    assert_int_equal(get(b + 56, 8), 0);
    assert_int_equal(get(b + 64, 8), 1);
    q.tile = 0;
    q.lane = 1; /* 7 of 2^13 ps of bin 0, then nothing */
    q.level = 13;
    lod_encode(t, ask(t, q), b);
    assert_int_equal(get(b + 112, 2), 7 * 65535 >> 13);
    assert_int_equal(get(b + 120, 2), 0);
    assert_int_equal(get(b + 124, 3), LOD_NO_NAME);
    q.level = 40; /* less than 1/65535 is 1 */
    lod_encode(t, ask(t, q), b);
    assert_int_equal(get(b + 112, 2), 1);
    q.level = 0;
    q.tile = 1;
    assert_int_equal(lod_encode(t, ask(t, q), b), 112);
    assert_int_equal(b[6], LOD_EMPTY);
    trace_free(t);
}

static void starts_in_a_bin_stop_at_65535(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = tiny_stream(t, 0, 7);
    for (int64_t i = 0; i < 70000; i++) put(t, track, 2 * i, 1, 0);
    tiny_seal(t);
    uint8_t b[LOD_TILE_BYTES];
    struct lod_query q = {.track = track, .level = 20};
    struct lod_tile *tile = ask(t, q);
    assert_int_equal(tile->bins[0].starts, 70000);
    assert_int_equal(tile->busy, 70000);
    lod_encode(t, tile, b);
    assert_int_equal(get(b + 114, 2), 65535);
    q.slices = SIZE_MAX; /* there is no room for so many */
    assert_int_equal(ask(t, q)->form, LOD_FORM_BINS);
    assert_true(track_of(t, track).bytes < 70000);
    trace_free(t);
}

static void refuse(const struct trace *t, struct lod_query q) {
    struct lod_tile tile;
    struct ops_err e = {0};
    assert_int_equal(lod_tile(t, &q, &tile, &e), OPS_EUSAGE);
    assert_true(e.text[0] != '\0');
}

static void what_is_not_there_is_refused(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t lane;
    struct ops_err e;
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "op", 0, 1);
    tiny_thread(t, 2);
    tiny_seal(t);
    refuse(t, (struct lod_query){.track = 2});
    refuse(t, (struct lod_query){.track = UINT32_MAX, .lane = LOD_ALL});
    refuse(t, (struct lod_query){.lane = 1});
    refuse(t, (struct lod_query){.track = 1});
    refuse(t, (struct lod_query){.level = LOD_LEVELS});
    refuse(t, (struct lod_query){.level = UINT32_MAX});
    refuse(t, (struct lod_query){.level = 55, .tile = 1});
    refuse(t, (struct lod_query){.tile = UINT64_MAX});
    refuse(t, (struct lod_query){.tile = US / 256 + 1});
    assert_int_equal(lod_lane(t, 1, &lane, &e), OPS_EUSAGE);
    assert_int_equal(
        ask(t, (struct lod_query){.track = 1, .lane = LOD_ALL})->form,
        LOD_EMPTY);
    assert_int_equal(ask(t, (struct lod_query){.slices = SIZE_MAX})->n, 1);
    trace_free(t);

    t = tiny_new(false, false);
    tiny_seal(t);
    assert_int_equal(extent_of(t).top, 0);
    refuse(t, (struct lod_query){.lane = LOD_ALL});
    trace_free(t);
}

static void what_ends_where_a_tile_begins_is_not_in_it(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = trace_track(t, 0, TRACK_ASYNC, 1, 1);
    for (int i = 0; i < 100; i++) put(t, track, i, 256 - i, SPAN_ASYNC);
    for (int i = 0; i < 3; i++) put(t, track, 256, 9, SPAN_ASYNC);
    put(t, track, 255, 2, SPAN_ASYNC);
    tiny_seal(t);
    assert_int_equal(track_of(t, track).lanes, 101);
    struct lod_query q = {.lane = LOD_ALL, .tile = 1};
    assert_int_equal(ask(t, q)->starts, 3);
    assert_int_equal(ask(t, q)->touches, 4);
    trace_free(t);
}

static void the_last_instant_has_its_bin(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = tiny_thread(t, 1);
    put(t, track, 0, 0, SPAN_INSTANT);
    put(t, track, 3, 250, 0);
    put(t, track, 256, 0, SPAN_INSTANT);
    tiny_seal(t);
    assert_int_equal(extent_of(t).top, 1);
    assert_int_equal(track_of(t, track).end, 256);
    struct lod_tile *tile = ask(t, (struct lod_query){.level = 1});
    assert_int_equal(tile->bins[128].starts, 1);
    trace_free(t);
}

/* The earliest and the latest that can be: a tile of the widest level. */
static void the_widest_trace_fits_a_tile(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t track = tiny_thread(t, 1);
    put(t, track, -DUR_LIMIT, DUR_LIMIT, 0);
    put(t, track, TS_LIMIT, DUR_LIMIT, 0);
    tiny_seal(t);
    assert_true(extent_of(t).top < LOD_LEVELS);
    struct lod_tile *tile = ask(t, (struct lod_query){.track = track,
                                                      .level = LOD_LEVELS - 1});
    assert_true(tile->busy == 2 * (uint64_t)DUR_LIMIT);
    assert_true(tile->width == UINT64_C(1) << 63);
    assert_int_equal(tile->starts, 2);
    trace_free(t);
}

static void *ask_from_a_thread(void *v) {
    const struct trace *t = v;
    struct lod_tile *tile = malloc(sizeof *tile);
    uint64_t busy = 0;
    struct ops_err e;
    for (uint32_t track = 0; track < t->ntracks; track++) {
        struct lod_query q = {.track = track, .lane = LOD_ALL, .level = 55};
        if (lod_tile(t, &q, tile, &e) == 0) busy += tile->busy;
    }
    free(tile);
    return (void *)(uintptr_t)busy;
}

static void threads_may_ask_at_once(void **state) {
    (void)state;
    struct trace *t = draw_trace(500);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_from_a_thread,
                                        t),
                         0);
    uint64_t want = (uintptr_t)ask_from_a_thread(t);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_true((uintptr_t)got == want);
    }
    trace_free(t);
}

/* Time and memory grow as the spans do, whatever they are made of. */
static void put_deep(struct trace *t, int64_t n) {
    uint32_t track = tiny_thread(t, 1);
    for (int64_t i = 0; i < n; i++) put(t, track, i, 2 * (n - i), 0);
}

static void put_crossing(struct trace *t, int64_t n) {
    uint32_t track = tiny_thread(t, 1);
    for (int64_t i = 0; i < n; i++) put(t, track, i, n, 0);
}

static void put_instants(struct trace *t, int64_t n) {
    uint32_t track = tiny_thread(t, 1);
    for (int64_t i = 0; i < n; i++) put(t, track, i / (n / 2), 0, 0);
}

static void put_row(struct trace *t, int64_t n) {
    uint32_t track = tiny_stream(t, 0, 1);
    for (int64_t i = 0; i < n; i++) put(t, track, 3 * i, 2, 0);
}

static double cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns what the index and a hundred tiles of some lanes cost. */
static double cost(void (*fill)(struct trace *t, int64_t n), int64_t n) {
    struct trace *t = tiny_new(true, false);
    fill(t, n);
    tiny_seal(t);
    double start = cpu_now();
    struct lod_track k = track_of(t, 0);
    unsigned top = extent_of(t).top;
    for (uint32_t i = 0; i < 100; i++) {
        ask(t, (struct lod_query){.lane = LOD_ALL, .level = top});
        ask(t, (struct lod_query){.lane = (uint32_t)((k.lanes - 1) * i / 100),
                                  .level = top});
    }
    double took = cpu_now() - start;
    assert_true(k.bytes < 14 * (uint64_t)n + 250);
    trace_free(t);
    return took;
}

static void cost_grows_as_the_track_does(void **state) {
    (void)state;
    enum { FEW = 20000, BOUND = 28, TRIES = 4 };
    void (*const kinds[])(struct trace *, int64_t) = {put_deep, put_crossing,
                                                      put_instants, put_row};
    for (int i = 0; i < 4; i++) {
        double best = 1e9;
        for (int k = 0; k < TRIES && best > BOUND; k++) {
            double one = cost(kinds[i], FEW) + 0.002;
            double eight = cost(kinds[i], 8 * FEW);
            if (eight / one < best) best = eight / one;
        }
        if (best > BOUND)
            fail_msg("kind %d: 8 times as many take %.0f times as long", i,
                     best);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_equal_a_loop_over_all_spans),
        cmocka_unit_test(tiles_of_long_tracks_do_too),
        cmocka_unit_test(whose_a_bin_is_comes_from_its_own_blocks),
        cmocka_unit_test(what_reaches_over_a_bin_has_only_its_part_of_it),
        cmocka_unit_test(no_two_spans_of_a_lane_overlap),
        cmocka_unit_test(lanes_are_depths_where_spans_nest),
        cmocka_unit_test(sums_of_children_are_their_parents),
        cmocka_unit_test(one_tile_of_all_lights_every_track_and_counts_all),
        cmocka_unit_test(bytes_are_where_the_page_says),
        cmocka_unit_test(starts_in_a_bin_stop_at_65535),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(what_ends_where_a_tile_begins_is_not_in_it),
        cmocka_unit_test(the_last_instant_has_its_bin),
        cmocka_unit_test(the_widest_trace_fits_a_tile),
        cmocka_unit_test(threads_may_ask_at_once),
        cmocka_unit_test(cost_grows_as_the_track_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
