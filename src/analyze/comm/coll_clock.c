/* SPDX-License-Identifier: Apache-2.0
 * How the clocks of the ranks stand to each other, from matched collectives.
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
#include "analyze/comm/collective.h"

#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

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

static uint32_t source_of(const struct collectives *c, const struct coll *x) {
    return c->members[x->member].source;
}

static int64_t signed_of(uint64_t key) {
    return (int64_t)(key ^ (UINT64_C(1) << 63));
}

static void add_sample(struct clocks *k, uint64_t pair, const struct coll *a,
                       const struct coll *b) {
    int64_t end_a = a->ts + a->dur, end_b = b->ts + b->dur;
    size_t i = k->n++;
    k->samples[i] = (struct sample){.d = diff_of(end_a, end_b),
                                    .lo = diff_of(a->ts, end_b),
                                    .hi = diff_of(end_a, b->ts)};
    k->order[i] = (struct sort_key){pair << 1 | !coll_is_sync(a->kind),
                                    sort_signed(k->samples[i].d), (uint32_t)i};
}

/* Every member of a match is held against the lowest. */
static void take_samples(struct clocks *k, const uint32_t *first_of) {
    const struct collectives *c = k->c;
    for (size_t i = 0; i < c->nmatches; i++) {
        const struct coll_match *m = &c->matches[i];
        const struct coll *a = &c->v[c->by_match[m->first]];
        uint64_t x = first_of[source_of(c, a)];
        for (size_t n = 1; n < m->n && !coll_is_p2p(a->kind); n++) {
            const struct coll *b = &c->v[c->by_match[m->first + n]];
            uint64_t y = first_of[source_of(c, b)];
            /* devices of one process have one clock */
            if (x != y) add_sample(k, x << 32 | y, a, b);
        }
    }
}

/* The offsets that lie in most of the n intervals, and of equally good ones
 * those nearest to 0: where lo's have come and hi's not. */
static struct sample best_region(const uint64_t *lo, const uint64_t *hi,
                                 size_t n) {
    struct sample best = {0};
    size_t most = 0, gone = 0;
    for (size_t i = 0; i < n; i++) {
        while (gone < n && hi[gone] < lo[i]) gone++;
        if (i + 1 < n && lo[i + 1] <= hi[gone]) continue; /* gets deeper */
        int64_t from = signed_of(lo[i]), to = signed_of(hi[gone]);
        int64_t mid = sum_of(from, diff_of(to, from) / 2);
        size_t depth = i + 1 - gone;
        if (depth < most || (depth == most && llabs(mid) >= llabs(best.d)))
            continue;
        most = depth;
        best = (struct sample){.d = mid, .lo = from, .hi = to};
    }
    return best;
}

/* The samples [from, to) of one pair, sorted by difference. */
static bool judge(struct clocks *k, size_t from, size_t to, struct edge *out) {
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
        int64_t a = diff_of(s->d, s->lo), b = diff_of(s->hi, s->d);
        if (a < least) least = a;
        if (b < least) least = b;
    }
    assert(n > 0);
    /* exits differ, by the algorithm and by who is scheduled when: the
     * central four fifths say by how much */
    int64_t mid = signed_of(k->lo[n / 2]);
    if (mid < in.lo) mid = in.lo;
    if (mid > in.hi) mid = in.hi;
    int64_t down = diff_of(mid, signed_of(k->lo[n / 10]));
    int64_t up = diff_of(signed_of(k->lo[n - 1 - n / 10]), mid);
    int64_t error = down > up ? down : up;
    int64_t below = diff_of(mid, in.lo), above = diff_of(in.hi, mid);
    int64_t bound = below > above ? below : above;
    /* all leave between the last one's coming and its going */
    if (n < FEW && error < least) error = least;
    if (error > bound) error = bound;
    if (error < PS_PER_NS) error = PS_PER_NS; /* no clock is better */
    bool none = mid <= error && mid >= -error;
    out->offset = none ? 0 : mid;
    out->error = error;
    return true;
}

static bool make_edges(struct clocks *k) {
    for (size_t i = 0; i < k->n;) {
        size_t to = i;
        while (to < k->n && k->order[to].hi == k->order[i].hi) to++;
        uint64_t pair = k->order[i].hi >> 1;
        bool had = i > 0 && k->order[i - 1].hi >> 1 == pair;
        if (!had) { /* where all wait for all tells more than the others */
            if (!VEC_ROOM(k->edges, k->nedges, k->cap_edges)) return false;
            struct edge e = {.a = k->c->members[pair >> 32].source,
                             .b = k->c->members[pair & UINT32_MAX].source};
            if (!judge(k, i, to, &e)) return false;
            k->edges[k->nedges++] = e;
        }
        i = to;
    }
    return true;
}

/* Carries the clock of one side of each pair to the other; false: nothing
 * was left to do. */
static bool spread(struct clocks *k) {
    bool more = false;
    for (size_t i = 0; i < k->nedges; i++) {
        const struct edge *e = &k->edges[i];
        struct coll_clock *a = &k->c->clocks[e->a], *b = &k->c->clocks[e->b];
        if (a->known == b->known) continue;
        more = true;
        struct coll_clock *from = a->known ? a : b, *to = a->known ? b : a;
        to->offset = a->known ? sum_of(from->offset, e->offset)
                              : diff_of(from->offset, e->offset);
        to->error = sum_of(from->error, e->error);
        to->known = true;
    }
    return more;
}

/* The lowest rank's clock is the common one; where groups of ranks have
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

bool collectives_clocks(struct collectives *c) {
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
