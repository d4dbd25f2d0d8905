/* SPDX-License-Identifier: Apache-2.0
 * The same collective on all ranks.
 *
 *   1 Collectives that may be the same (group, kind, size) are a stream. In
 *     one stream the k-th of one rank is the k-th of another, moved by a lag
 *     where the windows do not begin together: the recorded number decides,
 *     else the lag on which most step numbers agree, else the one on which
 *     most ends in time do.
 *   2 The clocks are read off the ends of what was matched: coll_clock.c.
 *   3 A collective that one rank has left before another came was not one
 *     collective: such matches are undone.
 *
 * Every rank is held against the lowest of its stream, never each against
 * each: a thousand ranks cost a thousand times as much as one. */
#include "analyze/comm/collective.h"

#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

struct work {
    struct collectives *c;
    struct sort_key *order; /* all collectives, row is the index */
    int64_t *ordinal;       /* by collective: number within its stream */
    uint64_t *votes;        /* scratch: one lag per collective */
};

/* A member's part of a stream: [from, to) in order. */
struct block {
    size_t from, to;
};

static struct coll *at(const struct work *w, size_t i) {
    return &w->c->v[w->order[i].row];
}

static int64_t end_of(const struct coll *x) { return x->ts + x->dur; }

/* By stream, member, recorded number, time. */
static bool sort_streams(struct work *w) {
    struct collectives *c = w->c;
    for (size_t i = 0; i < c->n; i++)
        w->order[i] = (struct sort_key){sort_signed(c->v[i].seq),
                                        sort_signed(c->v[i].ts), (uint32_t)i};
    if (!sort_keys(w->order, c->n)) return false;
    for (size_t i = 0; i < c->n; i++) {
        const struct coll *x = at(w, i);
        w->order[i].hi = x->stream;
        w->order[i].lo = x->member;
    }
    return sort_keys(w->order, c->n);
}

/* The step in which it ran as the program counts, or INT64_MIN: guessed steps
 * do not bear the same number on all ranks. */
static int64_t step_of(const struct collectives *c, const struct coll *x) {
    const struct trace *t = c->t;
    uint32_t st = t->spans.step[x->row];
    if (st == ROW_NONE) return INT64_MIN;
    if (t->sources[t->steps[st].source].step_rule > STEPS_BY_GROUP)
        return INT64_MIN;
    return t->steps[st].number;
}

/* Lags by step: the k-th of a step here is the k-th of that step there. */
static size_t vote_steps(struct work *w, struct block ref, struct block b) {
    size_t n = 0, j = ref.from, first = b.from;
    for (size_t i = b.from; i < b.to; i++) {
        int64_t step = step_of(w->c, at(w, i));
        if (step != step_of(w->c, at(w, first))) first = i;
        if (step == INT64_MIN) continue;
        while (j < ref.to && step_of(w->c, at(w, j)) < step) j++;
        size_t k = j + (i - first);
        if (k >= ref.to || step_of(w->c, at(w, k)) != step) continue;
        w->votes[n++] = sort_signed((int64_t)(k - ref.from) -
                                    (int64_t)(i - b.from));
    }
    return n;
}

/* Lags by time: it is the one there whose end is nearest. */
static size_t vote_times(struct work *w, struct block ref, struct block b) {
    size_t n = 0, j = ref.from;
    for (size_t i = b.from; i < b.to; i++) {
        int64_t end = end_of(at(w, i));
        while (j + 1 < ref.to && llabs(diff_of(end_of(at(w, j + 1)), end)) <=
                                     llabs(diff_of(end_of(at(w, j)), end)))
            j++;
        w->votes[n++] = sort_signed((int64_t)(j - ref.from) -
                                    (int64_t)(i - b.from));
    }
    return n;
}

/* The most frequent vote; of equal ones the nearest to 0. */
static int64_t elect(uint64_t *v, size_t n) {
    int64_t best = 0;
    size_t most = 0;
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && v[i] == v[from]) i++;
        int64_t lag = (int64_t)(v[from] ^ (UINT64_C(1) << 63));
        size_t count = i - from;
        if (count < most || (count == most && llabs(lag) >= llabs(best)))
            continue;
        most = count;
        best = lag;
    }
    return best;
}

/* Numbers one member's part: by what the source recorded (several of one
 * number, a coalesced call, are told apart by their order), or by position,
 * moved to that of the stream's lowest member. */
static bool number_block(struct work *w, struct block ref, struct block b,
                         bool by_seq) {
    size_t same = 0;
    for (size_t i = b.from; by_seq && i < b.to; i++) {
        struct coll *x = at(w, i);
        same = i > b.from && at(w, i - 1)->seq == x->seq ? same + 1 : 0;
        w->ordinal[w->order[i].row] = x->seq;
        x->stream += same;
    }
    if (by_seq) return true;
    size_t n = vote_steps(w, ref, b);
    if (n == 0) n = vote_times(w, ref, b);
    if (!sort_numbers(w->votes, n)) return false;
    int64_t lag = elect(w->votes, n);
    for (size_t i = b.from; i < b.to; i++)
        w->ordinal[w->order[i].row] = (int64_t)(i - b.from) + lag;
    return true;
}

static bool number_stream(struct work *w, size_t from, size_t to) {
    struct block ref = {from, from};
    bool by_seq = true;
    for (size_t i = from; i < to; i++) by_seq &= at(w, i)->seq >= 0;
    for (size_t i = from; i < to;) {
        struct block b = {i, i};
        while (b.to < to && w->order[b.to].lo == w->order[i].lo) b.to++;
        if (i == from) ref = b;
        if (!number_block(w, ref, b, by_seq)) return false;
        i = b.to;
    }
    return true;
}

static bool number_all(struct work *w) {
    size_t n = w->c->n;
    for (size_t i = 0; i < n;) {
        size_t to = i;
        while (to < n && w->order[to].hi == w->order[i].hi) to++;
        if (!number_stream(w, i, to)) return false;
        i = to;
    }
    return true;
}

/* Equal stream and number: one collective. Members stand in their order. */
static bool make_matches(struct work *w) {
    struct collectives *c = w->c;
    for (size_t i = 0; i < c->n; i++) {
        const struct coll *x = at(w, i);
        w->order[i].hi = x->stream;
        w->order[i].lo = sort_signed(w->ordinal[w->order[i].row]);
    }
    if (!sort_keys(w->order, c->n)) return false;
    for (size_t i = 0; i < c->n;) {
        size_t to = i;
        while (to < c->n && w->order[to].hi == w->order[i].hi &&
               w->order[to].lo == w->order[i].lo)
            to++;
        if (to - i > 1) {
            if (!VEC_ROOM(c->matches, c->nmatches, c->cap_matches))
                return false;
            c->matches[c->nmatches++] =
                (struct coll_match){.first = (uint32_t)i,
                                    .n = (uint32_t)(to - i)};
        }
        i = to;
    }
    for (size_t i = 0; i < c->n; i++) c->by_match[i] = w->order[i].row;
    return true;
}

static struct coll *nth(const struct collectives *c, const struct coll_match *m,
                        size_t i) {
    return &c->v[c->by_match[m->first + i]];
}

static uint32_t source_of(const struct collectives *c, const struct coll *x) {
    return c->members[x->member].source;
}

/* When the last two came, and how long the shortest took. */
static void measure(const struct collectives *c, struct coll_match *m) {
    m->last = c->by_match[m->first];
    m->latest = coll_arrival(c, nth(c, m, 0));
    m->second = INT64_MIN;
    m->least = nth(c, m, 0)->dur;
    for (size_t i = 1; i < m->n; i++) {
        const struct coll *x = nth(c, m, i);
        int64_t came = coll_arrival(c, x);
        if (x->dur < m->least) m->least = x->dur;
        if (came <= m->latest) {
            if (came > m->second) m->second = came;
            continue;
        }
        m->second = m->latest;
        m->latest = came;
        m->last = c->by_match[m->first + i];
    }
}

/* Had somebody left before the last one came, by more than the clocks can be
 * wrong? Who sends may leave early, so only where all wait for all. */
static bool is_crossed(const struct collectives *c,
                       const struct coll_match *m) {
    if (!coll_is_sync(nth(c, m, 0)->kind)) return false;
    int64_t slack = c->clocks[source_of(c, &c->v[m->last])].error;
    for (size_t i = 0; i < m->n; i++) {
        const struct coll *x = nth(c, m, i);
        const struct coll_clock *k = &c->clocks[source_of(c, x)];
        int64_t left = sum_of(end_of(x), k->offset);
        if (diff_of(m->latest, left) > sum_of(slack, k->error)) return true;
    }
    return false;
}

/* Undoes matches that cannot be. A stream of which more than one in twenty is
 * such, with no group recorded that would tell, mixes several groups: all of
 * it goes. Matches of one stream stand together. */
static void drop_crossed(struct work *w) {
    struct collectives *c = w->c;
    size_t keep = 0;
    for (size_t i = 0; i < c->nmatches;) {
        size_t to = i, bad = 0;
        uint64_t stream = nth(c, &c->matches[i], 0)->stream;
        while (to < c->nmatches &&
               nth(c, &c->matches[to], 0)->stream == stream) {
            measure(c, &c->matches[to]);
            bad += is_crossed(c, &c->matches[to++]);
        }
        bool all = bad * 20 > to - i &&
                   c->groups[nth(c, &c->matches[i], 0)->group].name.n == 0;
        for (; i < to; i++) {
            if (!all && !is_crossed(c, &c->matches[i])) {
                c->matches[keep++] = c->matches[i];
                continue;
            }
            c->crossed += c->matches[i].n;
            c->crossed_row = nth(c, &c->matches[i], 0)->row;
        }
    }
    c->nmatches = keep;
}

static bool match(struct work *w) {
    struct collectives *c = w->c;
    if (!sort_streams(w) || !number_all(w) || !make_matches(w) ||
        !collectives_clocks(c))
        return false;
    drop_crossed(w);
    size_t matched = 0;
    for (size_t i = 0; i < c->nmatches; i++) {
        struct coll_match *m = &c->matches[i];
        assert(m->n >= 2 && m->second <= m->latest);
        for (size_t k = 0; k < m->n; k++) nth(c, m, k)->match = (uint32_t)i;
        matched += m->n;
    }
    assert(matched + c->crossed <= c->n);
    c->unmatched = c->n - matched - c->crossed;
    return true;
}

bool collectives_match(struct collectives *c) {
    struct work w = {.c = c};
    if (c->n == 0) return true;
    if (c->nmembers < 2) {
        c->unmatched = c->n;
        return true;
    }
    w.order = calloc(c->n, sizeof *w.order);
    w.ordinal = calloc(c->n, sizeof *w.ordinal);
    w.votes = calloc(c->n, sizeof *w.votes);
    c->by_match = calloc(c->n, sizeof *c->by_match);
    bool ok = w.order && w.ordinal && w.votes && c->by_match && match(&w);
    free(w.order);
    free(w.ordinal);
    free(w.votes);
    return ok;
}
