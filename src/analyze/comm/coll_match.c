/* SPDX-License-Identifier: Apache-2.0
 * The same collective on all ranks.
 *
 *   1 Collectives that may be the same (group, kind, size) are a stream. In
 *     one stream the k-th of one rank is the k-th of another, moved by a lag
 *     where the windows do not begin together: the recorded number decides,
 *     else the lag on which most step numbers agree, else the one on which
 *     most ends in time do.
 *   2 The clocks are read off the ends of what was matched.
 *   3 A collective that one rank has left before another came was not one
 *     collective: such matches are undone.
 *
 * Every rank is held against the lowest of its stream, never each against
 * each: a thousand ranks cost a thousand times as much as one. */
#include "analyze/comm/collective.h"

#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

struct matcher {
    struct collectives *c;
    struct sort_key *order; /* all collectives, row is the index */
    int64_t *ordinal;       /* by collective: number within its stream */
    uint64_t *votes;        /* scratch: one lag per collective */
};

/* A member's part of a stream: [from, to) in order. */
struct block {
    size_t from, to;
};

static struct coll *coll_at(const struct matcher *w, size_t i) {
    return &w->c->v[w->order[i].row];
}

/* Returns the number whose key sort_signed made. */
static int64_t signed_of(uint64_t key) {
    return (int64_t)(key ^ (UINT64_C(1) << 63));
}

static int64_t end_of(const struct coll *x) { return x->ts + x->dur; }

/* Sorts by stream, member, recorded number, time. */
static bool sort_streams(struct matcher *w) {
    struct collectives *c = w->c;
    for (size_t i = 0; i < c->n; i++)
        w->order[i] = (struct sort_key){sort_signed(c->v[i].seq),
                                        sort_signed(c->v[i].ts), (uint32_t)i};
    if (!sort_keys(w->order, c->n)) return false;
    for (size_t i = 0; i < c->n; i++) {
        const struct coll *x = coll_at(w, i);
        w->order[i].hi = x->stream;
        w->order[i].lo = x->member;
    }
    return sort_keys(w->order, c->n);
}

/* Returns the step in which it ran as the program counts; INT64_MIN if not
 * known: guessed steps do not bear the same number on all ranks. */
static int64_t step_of(const struct collectives *c, const struct coll *x) {
    const struct trace *t = trace_base(c->t);
    uint32_t st = t->spans.step[x->row];
    if (st == ROW_NONE) return INT64_MIN;
    if (t->sources[t->steps[st].source].step_rule > STEPS_BY_GROUP)
        return INT64_MIN;
    return t->steps[st].number;
}

/* Finds lags by step: the k-th of a step here is the k-th of that step
 * there. */
static size_t vote_steps(struct matcher *w, struct block ref, struct block b) {
    size_t n = 0, j = ref.from, first = b.from;
    for (size_t i = b.from; i < b.to; i++) {
        int64_t step = step_of(w->c, coll_at(w, i));
        if (step != step_of(w->c, coll_at(w, first))) first = i;
        if (step == INT64_MIN) continue;
        while (j < ref.to && step_of(w->c, coll_at(w, j)) < step) j++;
        size_t k = j + (i - first);
        if (k >= ref.to || step_of(w->c, coll_at(w, k)) != step) continue;
        w->votes[n++] = sort_signed((int64_t)(k - ref.from) -
                                    (int64_t)(i - b.from));
    }
    return n;
}

/* Finds lags by time: the one there whose end is nearest. */
static size_t vote_times(struct matcher *w, struct block ref, struct block b) {
    size_t n = 0, j = ref.from;
    for (size_t i = b.from; i < b.to; i++) {
        int64_t end = end_of(coll_at(w, i));
        while (j + 1 < ref.to &&
               llabs(sat_sub(end_of(coll_at(w, j + 1)), end)) <=
                   llabs(sat_sub(end_of(coll_at(w, j)), end)))
            j++;
        w->votes[n++] = sort_signed((int64_t)(j - ref.from) -
                                    (int64_t)(i - b.from));
    }
    return n;
}

/* Numbers one member's part: by what the source recorded (several of one
 * number, a coalesced call, are told apart by their order), or by position,
 * moved to that of the stream's lowest member. */
static bool number_block(struct matcher *w, struct block ref, struct block b,
                         bool by_seq) {
    size_t same = 0;
    for (size_t i = b.from; by_seq && i < b.to; i++) {
        struct coll *x = coll_at(w, i);
        same = i > b.from && coll_at(w, i - 1)->seq == x->seq ? same + 1 : 0;
        w->ordinal[w->order[i].row] = x->seq;
        x->stream += same;
    }
    if (by_seq) return true;
    size_t n = vote_steps(w, ref, b);
    if (n == 0) n = vote_times(w, ref, b);
    if (!sort_numbers(w->votes, n)) return false;
    int64_t lag = 0; /* the most frequent vote; of equal ones nearest to 0 */
    size_t most = 0;
    for (size_t i = 0, from = 0; i < n; from = i) {
        while (i < n && w->votes[i] == w->votes[from]) i++;
        int64_t vote = signed_of(w->votes[from]);
        if (i - from < most || (i - from == most && llabs(vote) >= llabs(lag)))
            continue;
        most = i - from;
        lag = vote;
    }
    for (size_t i = b.from; i < b.to; i++)
        w->ordinal[w->order[i].row] = (int64_t)(i - b.from) + lag;
    return true;
}

static bool number_streams(struct matcher *w) {
    for (size_t i = 0, to; i < w->c->n; i = to) {
        to = same_hi_end(w->order, i, w->c->n);
        struct block ref = {i, i}, b = {i, i};
        bool by_seq = true;
        for (size_t k = i; k < to; k++) by_seq &= coll_at(w, k)->seq >= 0;
        for (; b.from < to; b.from = b.to) {
            while (b.to < to && w->order[b.to].lo == w->order[b.from].lo)
                b.to++;
            if (b.from == i) ref = b;
            if (!number_block(w, ref, b, by_seq)) return false;
        }
    }
    return true;
}

/* Makes one match of equal stream and number. Members stand in their order. */
static bool make_matches(struct matcher *w) {
    struct collectives *c = w->c;
    for (size_t i = 0; i < c->n; i++) {
        const struct coll *x = coll_at(w, i);
        w->order[i].hi = x->stream;
        w->order[i].lo = sort_signed(w->ordinal[w->order[i].row]);
    }
    if (!sort_keys(w->order, c->n)) return false;
    for (size_t i = 0, to; i < c->n; i = to) {
        to = i + 1;
        while (to < c->n && w->order[to].hi == w->order[i].hi &&
               w->order[to].lo == w->order[i].lo)
            to++;
        if (to - i < 2) continue;
        if (!VEC_ROOM(c->matches, c->nmatches, c->cap_matches)) return false;
        c->matches[c->nmatches++] =
            (struct coll_match){.first = (uint32_t)i, .n = (uint32_t)(to - i)};
    }
    for (size_t i = 0; i < c->n; i++) c->by_match[i] = w->order[i].row;
    return true;
}

/* ---- how the clocks of the ranks stand to each other ----
 *
 * Nobody leaves an all_reduce before the last one came. So in truth each end
 * lies behind each start, which gives an interval in which the offset of two
 * clocks must lie:
 *
 *     start_a - end_b  <=  offset  <=  end_a - start_b
 *
 * Most of these intervals overlap; those that do not are of collectives that
 * were matched wrongly and do not count. Of the others the median difference
 * of ends is the offset, since all leave at about the same time; its error is
 * the spread of the differences or, when that is less, what the intervals have
 * in common. An offset within its error is none. */

/* The spread of fewer differences than this says little. */
enum { FEW = 5 };

/* One collective on two sources. */
struct sample {
    int64_t d;      /* end_a - end_b */
    int64_t lo, hi; /* where the offset must lie */
};

/* How one source's clock stands to another's. */
struct edge {
    uint32_t a, b;         /* sources; a has the lowest member */
    int64_t offset, error; /* add to b's times for a's */
};

struct clocks {
    struct collectives *c;
    struct sample *samples;
    struct sort_key *order; /* samples by pair of members; sync ones first */
    size_t n;
    uint64_t *lo, *hi; /* scratch: the ends of a pair's intervals */
    struct edge *edges;
    size_t nedges, cap_edges;
};

/* Compares every member of a match with the lowest. */
static void take_samples(struct clocks *k, const uint32_t *first_of) {
    const struct collectives *c = k->c;
    for (size_t i = 0; i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        const struct coll *a = &c->v[c->by_match[m->first]];
        uint64_t x = first_of[coll_source(c, a)];
        for (size_t n = 1; n < m->n && !coll_is_p2p(a->kind); n++) {
            const struct coll *b = &c->v[c->by_match[m->first + n]];
            uint64_t y = first_of[coll_source(c, b)];
            if (x == y) continue; /* devices of one process have one clock */
            struct sample *s = &k->samples[k->n];
            *s = (struct sample){.d = sat_sub(end_of(a), end_of(b)),
                                 .lo = sat_sub(a->ts, end_of(b)),
                                 .hi = sat_sub(end_of(a), b->ts)};
            uint64_t pair = x << 32 | y;
            k->order[k->n] =
                (struct sort_key){pair << 1 | !coll_is_sync(a->kind),
                                  sort_signed(s->d), (uint32_t)k->n};
            k->n++;
        }
    }
}

/* Returns the offsets that lie in most of the n intervals, and of equally good
 * ones those nearest to 0: where lo's have come and hi's not. */
static struct sample best_region(const uint64_t *lo, const uint64_t *hi,
                                 size_t n) {
    struct sample best = {0};
    size_t most = 0, gone = 0;
    for (size_t i = 0; i < n; i++) {
        while (gone < n && hi[gone] < lo[i]) gone++;
        if (i + 1 < n && lo[i + 1] <= hi[gone]) continue; /* gets deeper */
        int64_t from = signed_of(lo[i]), to = signed_of(hi[gone]);
        int64_t mid = sat_add(from, sat_sub(to, from) / 2);
        size_t depth = i + 1 - gone;
        if (depth < most || (depth == most && llabs(mid) >= llabs(best.d)))
            continue;
        most = depth;
        best = (struct sample){.d = mid, .lo = from, .hi = to};
    }
    return best;
}

/* Judges the samples [from, to) of one pair, sorted by difference. */
static bool judge_pair(struct clocks *k, size_t from, size_t to,
                       struct edge *out) {
    size_t n = 0;
    for (size_t i = from; i < to; i++, n++) {
        k->lo[n] = sort_signed(k->samples[k->order[i].row].lo);
        k->hi[n] = sort_signed(k->samples[k->order[i].row].hi);
    }
    if (!sort_numbers(k->lo, n) || !sort_numbers(k->hi, n)) return false;
    struct sample in = best_region(k->lo, k->hi, n);
    int64_t least = INT64_MAX; /* the shortest on either side */
    n = 0;
    for (size_t i = from; i < to; i++) {
        const struct sample *s = &k->samples[k->order[i].row];
        if (s->lo > in.d || in.d > s->hi) continue;
        k->lo[n++] = sort_signed(s->d);
        int64_t a = sat_sub(s->d, s->lo), b = sat_sub(s->hi, s->d);
        if (a < least) least = a;
        if (b < least) least = b;
    }
    assert(n > 0);
    /* exits differ, by the algorithm and by which rank is scheduled when: the
     * central four fifths say by how much */
    int64_t mid = signed_of(k->lo[n / 2]);
    if (mid < in.lo) mid = in.lo;
    if (mid > in.hi) mid = in.hi;
    int64_t down = sat_sub(mid, signed_of(k->lo[n / 10]));
    int64_t up = sat_sub(signed_of(k->lo[n - 1 - n / 10]), mid);
    int64_t error = down > up ? down : up;
    int64_t below = sat_sub(mid, in.lo), above = sat_sub(in.hi, mid);
    int64_t bound = below > above ? below : above;
    /* all leave between the last one's arrival and its exit */
    if (n < FEW && error < least) error = least;
    if (error > bound) error = bound;
    if (error < PS_PER_NS) error = PS_PER_NS; /* no clock is better */
    bool none = mid <= error && mid >= -error;
    out->offset = none ? 0 : mid;
    out->error = error;
    return true;
}

static bool make_edges(struct clocks *k) {
    for (size_t i = 0, to; i < k->n; i = to) {
        to = same_hi_end(k->order, i, k->n);
        uint64_t pair = k->order[i].hi >> 1;
        /* pairs from collectives in which all wait for all tell more than
         * others */
        if (i > 0 && k->order[i - 1].hi >> 1 == pair) continue;
        if (!VEC_ROOM(k->edges, k->nedges, k->cap_edges)) return false;
        struct edge e = {.a = k->c->members[pair >> 32].source,
                         .b = k->c->members[pair & UINT32_MAX].source};
        if (!judge_pair(k, i, to, &e)) return false;
        k->edges[k->nedges++] = e;
    }
    return true;
}

/* Carries the clock of one side of each pair to the other. Returns false if
 * nothing was left to do. */
static bool spread(struct clocks *k) {
    bool more = false;
    for (size_t i = 0; i < k->nedges; i++) {
        const struct edge *e = &k->edges[i];
        struct coll_clock *a = &k->c->clocks[e->a], *b = &k->c->clocks[e->b];
        if (a->known == b->known) continue;
        more = true;
        struct coll_clock *from = a->known ? a : b, *to = a->known ? b : a;
        to->offset = a->known ? sat_add(from->offset, e->offset)
                              : sat_sub(from->offset, e->offset);
        to->error = sat_add(from->error, e->error);
        to->known = true;
    }
    return more;
}

/* Makes the lowest rank's clock the common one; where groups of ranks have
 * nothing in common, each has its own. */
static void set_clocks(struct clocks *k) {
    for (size_t i = 0; i < k->nedges; i++) {
        if (k->c->clocks[k->edges[i].a].known ||
            k->c->clocks[k->edges[i].b].known)
            continue;
        k->c->clocks[k->edges[i].a].known = true;
        while (spread(k)) {
        }
    }
}

/* Sets the clocks from matches that are not judged yet. Returns false if out of
 * memory. */
static bool find_clocks(struct collectives *c) {
    struct clocks k = {.c = c};
    uint32_t *first_of = malloc((c->t->nsources + 1) * sizeof *first_of);
    k.samples = calloc(c->n + 1, sizeof *k.samples);
    k.order = calloc(c->n + 1, sizeof *k.order);
    k.lo = calloc(c->n + 1, sizeof *k.lo);
    k.hi = calloc(c->n + 1, sizeof *k.hi);
    bool ok = first_of && k.samples && k.order && k.lo && k.hi;
    if (ok) {
        for (size_t i = c->nmembers; i-- > 0;)
            first_of[c->members[i].source] = (uint32_t)i;
        take_samples(&k, first_of);
        ok = sort_keys(k.order, k.n) && make_edges(&k);
    }
    if (ok) set_clocks(&k);
    free(first_of);
    free(k.samples);
    free(k.order);
    free(k.lo);
    free(k.hi);
    free(k.edges);
    return ok;
}

/* ---- matches that cannot be ---- */

static struct coll *nth(const struct collectives *c, const struct coll_match *m,
                        size_t i) {
    return &c->v[c->by_match[m->first + i]];
}

/* Finds when the last two came, and how long the shortest took. */
static void measure_match(const struct collectives *c, struct coll_match *m) {
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

/* Had a member left before the last one came, by more than the clocks can be
 * wrong? A sender may leave early, so only collectives in which all wait for
 * all are asked. */
static bool is_crossed(const struct collectives *c,
                       const struct coll_match *m) {
    if (!coll_is_sync(nth(c, m, 0)->kind)) return false;
    int64_t slack = c->clocks[coll_source(c, &c->v[m->last])].error;
    for (size_t i = 0; i < m->n; i++) {
        const struct coll *x = nth(c, m, i);
        const struct coll_clock *k = &c->clocks[coll_source(c, x)];
        int64_t left = sat_add(end_of(x), k->offset);
        if (sat_sub(m->latest, left) > sat_add(slack, k->error)) return true;
    }
    return false;
}

/* Undoes matches that cannot be. If more than one in twenty of a stream is
 * such, and no recorded group tells them apart, the stream mixes several
 * groups: all of it goes. Matches of one stream stand together. */
static void drop_crossed(struct collectives *c) {
    size_t keep = 0;
    for (size_t i = 0; i < c->nmatches;) {
        size_t to = i, bad = 0;
        uint64_t stream = nth(c, &c->matches[i], 0)->stream;
        while (to < c->nmatches &&
               nth(c, &c->matches[to], 0)->stream == stream) {
            measure_match(c, &c->matches[to]);
            bad += is_crossed(c, &c->matches[to++]);
        }
        bool all = bad * 20 > to - i &&
                   c->groups[nth(c, &c->matches[i], 0)->group].n == 0;
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

bool collectives_match(struct collectives *c) {
    struct matcher w = {.c = c};
    if (c->n == 0) return true;
    if (c->nmembers < 2) {
        c->unmatched = c->n;
        return true;
    }
    w.order = calloc(c->n, sizeof *w.order);
    w.ordinal = calloc(c->n, sizeof *w.ordinal);
    w.votes = calloc(c->n, sizeof *w.votes);
    c->by_match = calloc(c->n, sizeof *c->by_match);
    bool ok = w.order && w.ordinal && w.votes && c->by_match &&
              sort_streams(&w) && number_streams(&w) && make_matches(&w) &&
              find_clocks(c);
    if (ok) drop_crossed(c);
    size_t matched = 0;
    for (size_t i = 0; ok && i < c->nmatches; i++) {
        struct coll_match *m = &c->matches[i];
        assert(m->n >= 2 && m->second <= m->latest);
        for (size_t k = 0; k < m->n; k++) nth(c, m, k)->match = (uint32_t)i;
        matched += m->n;
    }
    assert(!ok || matched + c->crossed <= c->n);
    c->unmatched = c->n - matched - c->crossed;
    free(w.order);
    free(w.ordinal);
    free(w.votes);
    return ok;
}
