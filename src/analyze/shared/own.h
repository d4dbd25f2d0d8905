/* SPDX-License-Identifier: Apache-2.0
 * Own time, the one way to work it out. At every instant of a track that nests
 * exactly one span has the time: the innermost of those that are open. So the
 * own times of a track sum to the union of its spans, and none is ever
 * negative, whatever the spans are.
 *
 *     |-- a ------------------|
 *         |-- b -----|
 *               |-- c ----|
 *     aaaabbbbbbccccccccccaaaaa     who has it
 *
 * Of two spans that cross the later one wins, and the earlier one ends where it
 * begins. Ends that differ by no more than the source's rounding do not cross.
 *
 * Streams of a GPU do not nest (track_nests): there a span's time is its own,
 * all of it. */
#ifndef ANALYZE_SHARED_OWN_H
#define ANALYZE_SHARED_OWN_H

#include "base/vec.h"
#include "model/trace.h"

/* The walk over one track. It is zeroed at first; own_begin starts each
 * track. */
struct own {
    struct own_open {
        int64_t end;
        row_id row;
    } * v;
    size_t n, cap;
    int64_t now;   /* up to here all time is handed out */
    int64_t slack; /* of the source: rounding, not crossing */
};

/* Is told that the time from..to is row's own. */
typedef void own_spend(void *ctx, row_id row, int64_t from, int64_t to);

static inline void own_begin(struct own *o, int64_t slack) {
    o->n = 0;
    o->now = INT64_MIN;
    o->slack = slack;
}

static inline row_id own_top(const struct own *o) {
    return o->n > 0 ? o->v[o->n - 1].row : ROW_NONE;
}

static inline void own_give(struct own *o, int64_t to, own_spend *spend,
                            void *ctx) {
    if (to <= o->now) return;
    spend(ctx, o->v[o->n - 1].row, o->now, to);
    o->now = to;
}

/* Ends the spans that are over at ts, and hands out the time up to there: call
 * it before each span, with its start, and with INT64_MAX after the last. */
static inline void own_until(struct own *o, int64_t ts, own_spend *spend,
                             void *ctx) {
    while (o->n > 0 && o->v[o->n - 1].end <= ts) {
        own_give(o, o->v[o->n - 1].end, spend, ctx);
        o->n--;
    }
    if (o->n > 0) own_give(o, ts, spend, ctx);
    if (ts > o->now) o->now = ts;
}

/* Ends the spans that one up to end crosses: it then lies in own_top(). */
static inline void own_cross(struct own *o, int64_t end) {
    while (o->n > 0 && o->v[o->n - 1].end < end - o->slack) o->n--;
}

/* Opens a span, after own_until and own_cross; false if out of memory. */
static inline bool own_open(struct own *o, row_id row, int64_t end) {
    if (o->n > 0 && o->v[o->n - 1].end < end) end = o->v[o->n - 1].end;
    if (!VEC_ROOM(o->v, o->n, o->cap)) return false;
    o->v[o->n++] = (struct own_open){end, row};
    return true;
}

/* Calls spend for every stretch of time of the work on a stream, with the
 * innermost work that has it; where the track does not nest, with each work's
 * own time. Returns false if out of memory. O(rows). */
bool own_stretches(const struct trace *t, const struct track *tr,
                   own_spend *spend, void *ctx);

/* The own times of the work on a stream. */
struct own_times {
    const struct trace *t;
    row_id first;
    int64_t *v; /* by row - first; NULL: its durations */
};

/* Returns false if out of memory. O(rows); streams of a GPU need nothing. */
bool own_times_init(struct own_times *o, const struct trace *t,
                    const struct track *tr);
void own_times_free(struct own_times *o);

static inline int64_t own_time(const struct own_times *o, row_id r) {
    return o->v ? o->v[r - o->first] : o->t->spans.dur[r];
}

/* Calls take for all device work in row order, with the call that launched it
 * (ROW_NONE: not recorded) and its own time. Returns false if memory ran out or
 * take returned false. */
typedef bool own_take(void *ctx, row_id device, row_id launch, int64_t own);
bool own_each_work(const struct trace *t, own_take *take, void *ctx);

#endif
