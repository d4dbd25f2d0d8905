/* SPDX-License-Identifier: Apache-2.0
 * How large the block for an allocation was, which a snapshot does not tell.
 *
 * The allocator rounds a request up, takes a free block, and splits off what
 * is left of it, but only if that is worth it: from 512 bytes on in the pool of
 * small blocks, over 1 MiB in that of large ones. Else the program gets all of
 * it. Free neighbours are always merged, so that the free block at an address
 * ends where the next block in use begins, or the segment ends: it is enough
 * to know at each moment where blocks begin and segments end.
 *
 *     used     used      free                used
 *     |--------|---------|...................|-------
 *                        A                   next: the free block is next - A
 *
 * Such places are numbered by address and kept as a set of bits with a
 * summary of each 64 above them, where the next one is found in a few steps.
 * In a real trace all 644 sizes come out as the allocator had them; by rounding
 * alone 8 do not. */
#include "import/snapshot/snapshot.h"

#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

enum {
    LEAST = 512,     /* every size is a multiple of it */
    SMALL = 1 << 20, /* requests up to this come from the small pool */
    MUCH = 20 << 20, /* what a block may be larger than asked for */
    LEVELS = 6,      /* 64 to the 6th places */
};

static int log2_of(uint64_t v) { return 63 - __builtin_clzll(v); }

int64_t snap_round(const struct snap *s, int64_t asked) {
    enum { FROM = 20, STEPS = 16 };
    if (asked <= LEAST) return LEAST;
    int at = log2_of((uint64_t)asked) - FROM;
    if (at < 0) at = 0;
    if (at >= STEPS) at = STEPS - 1;
    int64_t parts = s->divisions[at];
    if (parts > 1 && parts <= (asked - 1) / LEAST) {
        int64_t floor = INT64_C(1) << log2_of((uint64_t)asked);
        int64_t part = floor >> log2_of((uint64_t)parts);
        return (asked + part - 1) / part * part;
    }
    return (asked + LEAST - 1) / LEAST * LEAST;
}

/* A set of places, each counted: one may be a segment's end and the next
 * one's first block. */
struct places {
    uint64_t *addr; /* sorted, each once */
    int32_t *count;
    size_t n;
    uint64_t *bits[LEVELS]; /* the last level has one word */
    int levels;
};

static void free_places(struct places *p) {
    free(p->addr);
    free(p->count);
    for (int i = 0; i < p->levels; i++) free(p->bits[i]);
}

/* The number of an address that is known to be one of them. */
static size_t place_of(const struct places *p, uint64_t addr) {
    size_t lo = 0, hi = p->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->addr[mid] < addr) lo = mid + 1;
        else hi = mid;
    }
    assert(lo < p->n && p->addr[lo] == addr);
    return lo;
}

static void set_bit(struct places *p, size_t i) {
    for (int k = 0; k < p->levels; k++, i /= 64)
        p->bits[k][i / 64] |= UINT64_C(1) << i % 64;
}

static void clear_bit(struct places *p, size_t i) {
    for (int k = 0; k < p->levels; k++, i /= 64) {
        p->bits[k][i / 64] &= ~(UINT64_C(1) << i % 64);
        if (p->bits[k][i / 64] != 0) return;
    }
}

/* Adds by to the count of an address; a count below zero (a free that has no
 * allocation, in a made-up file) counts as none. */
static void change(struct places *p, uint64_t addr, int by) {
    size_t i = place_of(p, addr);
    bool was = p->count[i] > 0;
    p->count[i] += by;
    bool is = p->count[i] > 0;
    if (is && !was) set_bit(p, i);
    if (was && !is) clear_bit(p, i);
}

/* The next place in the set behind i, or n. */
static size_t next_place(const struct places *p, size_t i) {
    int k = 0;
    for (i++; k < p->levels; k++, i = i / 64 + 1) {
        uint64_t word = i / 64 < (p->n >> 6 * k) / 64 + 1
                            ? p->bits[k][i / 64] >> i % 64
                            : 0;
        if (word == 0) continue;
        i += (size_t)__builtin_ctzll(word);
        while (k-- > 0) i = i * 64 + (size_t)__builtin_ctzll(p->bits[k][i]);
        return i;
    }
    return p->n;
}

/* Room for the bits of n places, none set. */
static bool make_bits(struct places *p) {
    size_t n = p->n;
    p->count = calloc(n + 1, sizeof *p->count);
    bool ok = p->count != NULL;
    do {
        assert(p->levels < LEVELS);
        uint64_t **bits = &p->bits[p->levels++];
        n = n / 64 + 1;
        *bits = calloc(n, sizeof **bits);
        ok = ok && *bits != NULL;
    } while (n > 1);
    return ok;
}

static uint64_t end_of(uint64_t addr, int64_t bytes) {
    return addr + (uint64_t)bytes;
}

/* Where an entry changes something: its block, or its segment's end. */
static uint64_t entry_place(const struct snap_entry *e) {
    if (e->reserved == 0) return e->addr;
    return end_of(e->addr, e->reserved > 0 ? e->reserved : -e->reserved);
}

/* Every place that will ever be one. */
static bool find_places(struct places *p, const struct snap *s,
                        const struct snap_entries *es,
                        const struct snap_device *d) {
    const struct trace *t = s->t;
    size_t n = es->n + t->nbefore - es->before0;
    for (uint32_t i = d->segments; i != ROW_NONE; i = s->chain[i]) n++;
    p->addr = vec_alloc(n + 1, sizeof *p->addr);
    if (p->addr == NULL) return false;
    n = 0;
    for (size_t i = 0; i < es->n; i++) p->addr[n++] = entry_place(&es->v[i]);
    for (size_t i = es->before0; i < t->nbefore; i++)
        p->addr[n++] = t->before[i].addr;
    for (uint32_t i = d->segments; i != ROW_NONE; i = s->chain[i])
        p->addr[n++] = end_of(t->segments[i].addr, t->segments[i].bytes);
    if (!sort_numbers(p->addr, n)) return false;
    for (size_t i = 0; i < n; i++)
        if (p->n == 0 || p->addr[i] != p->addr[p->n - 1])
            p->addr[p->n++] = p->addr[i];
    return make_bits(p);
}

/* The set before the first entry: blocks from before; and of segments those of
 * the end, less those that were added, plus those that were given back. */
static void begin(struct places *p, const struct snap *s,
                  const struct snap_entries *es, const struct snap_device *d) {
    const struct trace *t = s->t;
    for (size_t i = es->before0; i < t->nbefore; i++)
        change(p, t->before[i].addr, 1);
    for (uint32_t i = d->segments; i != ROW_NONE; i = s->chain[i])
        change(p, end_of(t->segments[i].addr, t->segments[i].bytes), 1);
    for (size_t i = 0; i < es->n; i++)
        if (es->v[i].reserved != 0)
            change(p, entry_place(&es->v[i]), es->v[i].reserved > 0 ? -1 : 1);
}

/* What a block at addr has beyond its size, in the state at hand. */
static int64_t excess(const struct snap *s, const struct places *p,
                      uint64_t addr, int64_t bytes) {
    size_t next = next_place(p, place_of(p, addr));
    if (next == p->n) return 0;
    uint64_t left = p->addr[next] - addr;
    if (left < (uint64_t)bytes) return 0; /* then something is not known */
    left -= (uint64_t)bytes;
    bool split = bytes <= SMALL ? left >= LEAST
                                : left > SMALL && bytes < s->max_split;
    /* of those that are never split only a block that nearly fits is taken */
    return !split && left <= MUCH ? (int64_t)left : 0;
}

/* Blocks from before whose size was only rounded. The rule holds for them as
 * well: behind a large block a piece of up to 1 MiB is never free by itself,
 * for no large block is that small. */
static void grow_old(struct snap *s, const struct places *p,
                     struct snap_entries *es) {
    for (size_t i = 0; i < es->n; i++) {
        struct snap_entry *e = &es->v[i];
        if (e->old == ROW_NONE) continue;
        int64_t more = excess(s, p, e->addr, -e->bytes);
        e->bytes -= more;
        s->t->before[e->old].bytes += more;
        es->base = sum_of(es->base, more);
    }
}

void snap_sizes(struct snap *s, struct snap_entries *es,
                const struct snap_device *d) {
    struct places p = {0};
    if (s->expandable || es->n == 0) return;
    if (find_places(&p, s, es, d)) {
        begin(&p, s, es, d);
        grow_old(s, &p, es);
        for (size_t i = 0; i < es->n; i++) {
            struct snap_entry *e = &es->v[i];
            if (e->reserved != 0)
                change(&p, entry_place(e), e->reserved > 0 ? 1 : -1);
            else if (e->bytes < 0) change(&p, e->addr, -1);
            else if (!e->exact) e->bytes += excess(s, &p, e->addr, e->bytes);
            if (e->bytes > 0) change(&p, e->addr, 1);
        }
    } else {
        s->t->oom = true;
    }
    free_places(&p);
}
