/* SPDX-License-Identifier: Apache-2.0
 * The index of a track: rows are given to lanes, laid out by lane, and summed
 * up by blocks. See lod_index.h for the picture. */
#include "model/lod_index.h"

#include "base/sort.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void lod_vote(struct lod_votes *v, str_id name, uint8_t kind, uint64_t weight) {
    int place = -1;
    uint64_t least = weight;
    if (weight == 0) return;
    for (int i = LOD_CANDIDATES - 1; i >= 0; i--) {
        if (v->weight[i] == 0) place = i;
        else if (v->name[i] == name) {
            v->weight[i] += weight;
            return;
        }
        if (v->weight[i] < least) least = v->weight[i];
    }
    if (place < 0) {
        for (int i = LOD_CANDIDATES - 1; i >= 0; i--)
            if ((v->weight[i] -= least) == 0) place = i;
        if ((weight -= least) == 0) return;
    }
    v->weight[place] = weight;
    v->name[place] = name;
    v->kind[place] = kind;
}

static void votes_add(struct lod_votes *v, const struct lod_votes *more) {
    for (int i = 0; i < LOD_CANDIDATES; i++)
        lod_vote(v, more->name[i], more->kind[i], more->weight[i]);
}

/* Takes the row at the cursor into it. Its time before ts goes to votes. */
static void take_row(struct lod_cursor *c, row_id r, uint64_t ts,
                     struct lod_votes *votes) {
    const struct spans *s = &c->s->t->spans;
    uint64_t from = strip_ts(c->s, r), end = strip_end(c->s, r);
    c->at++;
    if (from < c->end) from = c->end;
    if (end <= from) return;
    if (votes != NULL && from < ts)
        lod_vote(votes, s->name[r], s->kind[r], (end < ts ? end : ts) - from);
    c->sum += end - from;
    c->end = end;
    c->owner = r;
}

/* Does the cursor, at a block's beginning, come before ts with 2^level blocks
 * more? With votes all time of theirs must lie before ts, too: what they tell
 * cannot be cut. A row that lies in what is covered has no time of its own. */
static bool jumps(const struct lod_cursor *c, uint64_t ts, int level,
                  bool votes) {
    size_t block = c->at / LOD_BLOCK, blocks = (size_t)1 << level;
    if (block & (blocks - 1)) return false;
    size_t next = block + blocks;
    if (next >= c->to / LOD_BLOCK + (c->to % LOD_BLOCK != 0)) return false;
    const struct lod_mark *m = &c->s->marks[next];
    return m->ts < ts && (!votes || c->end >= ts || m->end <= ts);
}

/* Returns the votes of node i of a level of the tree: the levels lie one behind
 * the other, the lowest first. */
static struct lod_votes *node(const struct lod_strip *s, int level, size_t i) {
    size_t at = i;
    for (int k = 0; k < level; k++) at += s->n / LOD_BLOCK >> k;
    return &s->votes[at];
}

void lod_advance(struct lod_cursor *c, uint64_t ts, struct lod_votes *votes) {
    while (c->at < c->to) {
        if (c->at % LOD_BLOCK == 0 && jumps(c, ts, 0, votes != NULL)) {
            int level = 0;
            size_t block = c->at / LOD_BLOCK;
            while (jumps(c, ts, level + 1, votes != NULL)) level++;
            if (votes != NULL && c->end < ts)
                votes_add(votes, node(c->s, level, block >> level));
            const struct lod_mark *m =
                &c->s->marks[block + ((size_t)1 << level)];
            c->at = (block + ((size_t)1 << level)) * LOD_BLOCK;
            c->sum = m->sum;
            c->end = m->end;
            c->owner = m->owner;
            continue;
        }
        row_id r = strip_row(c->s, c->at);
        if (strip_ts(c->s, r) >= ts) break;
        take_row(c, r, ts, votes);
    }
}

struct lod_cursor lod_begin(const struct lod_index *x, uint32_t lane) {
    const struct lod_strip *s = &x->all;
    struct lod_cursor c = {.s = s, .to = s->n, .owner = ROW_NONE};
    if (lane == UINT32_MAX || x->nlanes == 1 || s->n == 0) return c;
    s = c.s = &x->lane;
    c.at = x->lane_at[lane];
    c.to = x->lane_at[lane + 1];
    size_t block = c.at / LOD_BLOCK;
    if (block > 0) c.sum = s->marks[block].sum;
    /* rows of a lane do not overlap: each adds its duration */
    for (size_t i = block * LOD_BLOCK; i < c.at; i++)
        c.sum += (uint64_t)s->t->spans.dur[strip_row(s, i)];
    return c;
}

/* Builds the votes of each level from those below it. */
static void build_tree(struct lod_strip *s) {
    size_t blocks = s->n / LOD_BLOCK;
    for (int level = 1; blocks >> level > 0; level++) {
        const struct lod_votes *below = node(s, level - 1, 0);
        struct lod_votes *v = node(s, level, 0);
        for (size_t i = 0; i < blocks >> level; i++) {
            v[i] = below[2 * i];
            votes_add(&v[i], &below[2 * i + 1]);
        }
    }
}

/* Sums up a strip whose lanes end at the places lane_end[0], [1], ... */
static bool build_strip(struct lod_strip *s, const uint32_t *lane_end,
                        size_t *bytes) {
    size_t blocks = s->n / LOD_BLOCK;
    if (blocks == 0) return true;
    s->marks = vec_zeroed(blocks + 1, sizeof *s->marks);
    s->votes = vec_zeroed(2 * blocks, sizeof *s->votes);
    if (s->marks == NULL || s->votes == NULL) return false;
    *bytes += (blocks + 1) * sizeof *s->marks + 2 * blocks * sizeof *s->votes;
    struct lod_cursor c = {.s = s, .to = s->n, .owner = ROW_NONE};
    for (size_t lane = 0; c.at < s->n; lane++) {
        c.end = 0;
        while (c.at < lane_end[lane]) {
            row_id r = strip_row(s, c.at);
            size_t block = c.at / LOD_BLOCK;
            if (c.at % LOD_BLOCK == 0)
                s->marks[block] = (struct lod_mark){strip_ts(s, r), c.sum,
                                                    c.end, c.owner};
            /* rows behind the last whole block are always walked over */
            take_row(&c, r, UINT64_MAX,
                     block < blocks ? &s->votes[block] : NULL);
        }
    }
    build_tree(s);
    return true;
}

/* Where the lanes are taken up to: leaves of a tree of minima, so that the
 * first lane that is free is found without a look at all of them. */
struct taken {
    uint64_t *min; /* 1 is the root; lane k is leaf cap + k; 0: never used */
    size_t cap;    /* a power of two, over the number of lanes */
};

static bool taken_grow(struct taken *k) {
    size_t cap = k->cap > 0 ? 2 * k->cap : 64;
    uint64_t *min = vec_zeroed(2 * cap, sizeof *min);
    if (min == NULL) return false;
    if (k->cap > 0) memcpy(min + cap, k->min + k->cap, k->cap * sizeof *min);
    for (size_t i = cap - 1; i > 0; i--)
        min[i] = min[2 * i] < min[2 * i + 1] ? min[2 * i] : min[2 * i + 1];
    free(k->min);
    k->min = min;
    k->cap = cap;
    return true;
}

/* Returns the first lane from `from` on that is free at ts. A lane that was
 * never used always is, and there is one. */
static size_t taken_find(const struct taken *k, size_t from, uint64_t ts) {
    size_t i = k->cap + from;
    while (k->min[i] > ts) {
        while (i & 1) i >>= 1;
        i++;
    }
    while (i < k->cap) i = 2 * i + (k->min[2 * i] > ts);
    return i - k->cap;
}

static void taken_set(struct taken *k, size_t lane, uint64_t end) {
    size_t i = k->cap + lane;
    k->min[i] = end;
    while ((i >>= 1) > 0) {
        uint64_t a = k->min[2 * i], b = k->min[2 * i + 1];
        if (k->min[i] == (a < b ? a : b)) break;
        k->min[i] = a < b ? a : b;
    }
}

/* Gives each row its lane: below its parent's, the first that is free. Sets
 * nlanes. */
static bool find_lanes(struct lod_index *x, uint32_t *lane) {
    const struct lod_strip *s = &x->all;
    struct taken k = {0};
    bool ok = taken_grow(&k);
    for (size_t i = 0; ok && i < s->n; i++) {
        row_id r = s->first + (row_id)i, up = s->t->spans.parent[r];
        assert(up == ROW_NONE || (up >= s->first && up < r));
        size_t want = up == ROW_NONE ? 0 : lane[up - s->first] + 1;
        lane[i] = (uint32_t)taken_find(&k, want, strip_ts(s, r));
        taken_set(&k, lane[i], strip_room(s, r));
        if (lane[i] == x->nlanes) x->nlanes++;
        if (x->nlanes == k.cap) ok = taken_grow(&k);
    }
    free(k.min);
    return ok;
}

/* Lays the rows out by lane. */
static bool sort_lanes(struct lod_index *x, const uint32_t *lane) {
    size_t n = x->all.n;
    x->rows = vec_alloc(n, sizeof *x->rows);
    /* each count stands one further on: filling moves it into its place */
    x->lane_at = vec_zeroed(x->nlanes + 2, sizeof *x->lane_at);
    if (x->rows == NULL || x->lane_at == NULL) return false;
    for (size_t i = 0; i < n; i++) x->lane_at[lane[i] + 2]++;
    for (size_t k = 1; k < x->nlanes + 2; k++)
        x->lane_at[k] += x->lane_at[k - 1];
    for (size_t i = 0; i < n; i++)
        x->rows[x->lane_at[lane[i] + 1]++] = x->all.first + (row_id)i;
    x->bytes += n * sizeof *x->rows + (x->nlanes + 2) * sizeof *x->lane_at;
    return true;
}

static bool sort_ends(struct lod_index *x) {
    size_t n = x->all.n;
    struct sort_key *v = vec_alloc(n, sizeof *v);
    x->ends = vec_alloc(n, sizeof *x->ends);
    bool ok = v != NULL && x->ends != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        row_id r = x->all.first + (row_id)i;
        v[i] = (struct sort_key){strip_room(&x->all, r), 0, r};
    }
    ok = ok && sort_keys(v, n);
    for (size_t i = 0; ok && i < n; i++) x->ends[i] = v[i].row;
    free(v);
    x->bytes += n * sizeof *x->ends;
    return ok;
}

static bool build(struct lod_index *x) {
    uint32_t all_end = (uint32_t)x->all.n;
    uint32_t *lane = vec_alloc(x->all.n, sizeof *lane);
    bool ok = lane != NULL && find_lanes(x, lane) &&
              build_strip(&x->all, &all_end, &x->bytes);
    if (ok && x->nlanes > 1) {
        ok = sort_lanes(x, lane);
        x->lane = x->all;
        x->lane.votes = NULL;
        x->lane.marks = NULL;
        x->lane.rows = x->rows;
        ok = ok && build_strip(&x->lane, x->lane_at + 1, &x->bytes);
    }
    if (ok && x->nlanes > LOD_LANES_FEW) ok = sort_ends(x);
    free(lane);
    return ok;
}

struct lod_index *lod_index_new(const struct trace *t, const struct track *tr,
                                uint64_t zero) {
    struct lod_index *x = calloc(1, sizeof *x);
    if (x == NULL) return NULL;
    x->bytes = sizeof *x;
    x->all = (struct lod_strip){.t = t,
                                .zero = zero,
                                .first = tr->first,
                                .n = tr->end - tr->first};
    if (build(x)) return x;
    lod_index_free(x);
    return NULL;
}

void lod_index_free(struct lod_index *x) {
    if (x == NULL) return;
    free(x->all.marks);
    free(x->all.votes);
    free(x->lane.marks);
    free(x->lane.votes);
    free(x->lane_at);
    free(x->rows);
    free(x->ends);
    free(x);
}

size_t lod_open(const struct lod_index *x, uint64_t ts) {
    size_t open = 0;
    if (x->all.n == 0) return 0;
    if (x->ends == NULL) {
        for (size_t k = 0; k < x->nlanes; k++) {
            struct lod_cursor c = lod_begin(x, (uint32_t)k);
            lod_advance(&c, ts, NULL);
            open += c.end > ts;
        }
        return open;
    }
    struct lod_cursor c = lod_begin(x, UINT32_MAX);
    lod_advance(&c, ts, NULL);
    size_t lo = 0, hi = x->all.n; /* how many have ended at ts */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strip_room(&x->all, x->ends[mid]) <= ts) lo = mid + 1;
        else hi = mid;
    }
    return c.at - lo;
}
