/* SPDX-License-Identifier: Apache-2.0
 * A snapshot's device_traces: what the allocator did, one entry each.
 *
 *     alloc            a block is handed out; size is what was asked for
 *     free_requested   the program gives it back; the device may still use it
 *     free_completed   it can be handed out again: here its life ends
 *     segment_alloc, segment_map      the allocator took memory from the driver
 *     segment_free, segment_unmap     ... and gave it back
 *     oom              it could not: size, and device_free instead of addr
 *
 * Bytes are those of the block, as a trace's [memory] events count them, not
 * what was asked for: a block that is still in use has its size in the
 * segments, for others it is worked out as the allocator does (find_sizes).
 *
 * The entries are a ring, whose oldest are lost. What was in use before the
 * first is known all the same: blocks that are freed here and allocated
 * nowhere, and blocks of the segments that nothing here allocated. They go to
 * trace->before, and the level after every event follows. */
#include "import/snapshot/snapshot.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>

/* What the allocator did: one entry of a device's trace. */
struct snap_entry {
    int64_t ts;
    int64_t bytes;    /* > 0 allocated, < 0 freed, 0: only reserved changes */
    int64_t reserved; /* change of what is held */
    uint64_t addr;
    uint32_t stack;
    uint32_t mate; /* of a free: its allocation's index, or ROW_NONE */
    uint32_t old;  /* of a free of an older block: index in trace->before,
                         or ROW_NONE */
    str_id what;
    bool exact; /* bytes are the block's own */
};

struct snap_entries {
    struct snap_entry *v;
    size_t n, cap;
    struct map open; /* address -> its allocation, or a mark: freed */
    int64_t base;    /* bytes in use before the first */
    size_t before0;  /* the device's own in trace->before are the last, from
                        this one on */
};

/* How large the block for an allocation was, which a snapshot does not tell.
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
 * Such places are numbered by address; which of them there are at a moment is
 * kept in a binary tree, where the next one is found in O(log n). In a real
 * trace all 644 sizes come out as the allocator had them; by rounding alone 8
 * do not. */
enum {
    LEAST = 512,     /* every size is a multiple of it */
    SMALL = 1 << 20, /* requests up to this come from the small pool */
    MUCH = 20 << 20, /* what a block may be larger than asked for */
};

static int log2_of(uint64_t v) { return 63 - __builtin_clzll(v); }

/* Returns the size of the block for a request, as the allocator rounds it. */
static int64_t snap_round(const struct snap *s, int64_t asked) {
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

/* The places by address, and which of them are in the set. Each has a count:
 * one place may be a segment's end and the next segment's first block. */
struct places {
    uint64_t *addr; /* sorted, each once */
    int32_t *count; /* in the set: above 0 */
    size_t n, half; /* half: a power of two, at least n */
    uint32_t *used; /* a binary tree: used[half + i] is 1 where place i is in
                       the set, used[k] the sum of used[2k] and used[2k+1] */
};

/* Returns the number of an address that is known to be one of them. */
static size_t place_of(const struct places *p, uint64_t addr) {
    size_t i;
    BOUND(i, 0, p->n, p->addr[i] < addr);
    assert(i < p->n && p->addr[i] == addr);
    return i;
}

/* Adds by to the count of an address; a count below zero (a free without an
 * allocation, in a made-up file) counts as none. */
static void change(struct places *p, uint64_t addr, int by) {
    size_t i = place_of(p, addr);
    bool was = p->count[i] > 0;
    p->count[i] += by;
    bool is = p->count[i] > 0;
    for (size_t k = p->half + i; is != was && k > 0; k /= 2)
        p->used[k] += is ? 1u : -1u;
}

/* Returns the next place in the set behind i; n if there is none. */
static size_t next_place(const struct places *p, size_t i) {
    size_t k = p->half + i;
    while (k > 1 && (k % 2 == 1 || p->used[k + 1] == 0)) k /= 2;
    if (k <= 1) return p->n;
    for (k++; k < p->half;) k = 2 * k + (p->used[2 * k] == 0);
    return k - p->half;
}

static uint64_t end_of(uint64_t addr, int64_t bytes) {
    return addr + (uint64_t)bytes;
}

/* Returns where an entry changes something: its block, or its segment's end. */
static uint64_t entry_place(const struct snap_entry *e) {
    if (e->reserved == 0) return e->addr;
    return end_of(e->addr, e->reserved > 0 ? e->reserved : -e->reserved);
}

/* Finds every place that will ever be in the set; false if out of memory. */
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
    for (p->half = 1; p->half < p->n;) p->half *= 2;
    p->count = calloc(p->n, sizeof *p->count);
    p->used = calloc(2 * p->half, sizeof *p->used);
    return p->count != NULL && p->used != NULL;
}

/* Makes the set as it was before the first entry. Its blocks are those of
 * trace->before. Its segments are those at the dump, without the ones that an
 * entry added and with the ones that an entry gave back. */
static void places_begin(struct places *p, const struct snap *s,
                         const struct snap_entries *es,
                         const struct snap_device *d) {
    const struct trace *t = s->t;
    for (size_t i = es->before0; i < t->nbefore; i++)
        change(p, t->before[i].addr, 1);
    for (uint32_t i = d->segments; i != ROW_NONE; i = s->chain[i])
        change(p, end_of(t->segments[i].addr, t->segments[i].bytes), 1);
    for (size_t i = 0; i < es->n; i++)
        if (es->v[i].reserved != 0)
            change(p, entry_place(&es->v[i]), es->v[i].reserved > 0 ? -1 : 1);
}

/* Returns what a block at addr has beyond its size, in the state at hand. */
static int64_t excess(const struct snap *s, const struct places *p,
                      uint64_t addr, int64_t bytes) {
    size_t next = next_place(p, place_of(p, addr));
    if (next == p->n) return 0;
    uint64_t left = p->addr[next] - addr;
    if (left < (uint64_t)bytes) return 0; /* then something is not known */
    left -= (uint64_t)bytes;
    bool split = bytes <= SMALL ? left >= LEAST
                                : left > SMALL && bytes < s->max_split;
    /* of blocks that are never split only one that nearly fits is taken */
    return !split && left <= MUCH ? (int64_t)left : 0;
}

/* Grows blocks from before whose size was only rounded. The rule holds for them
 * as well: behind a large block no piece of up to 1 MiB is free by itself,
 * because no large block is that small. */
static void grow_old(struct snap *s, const struct places *p,
                     struct snap_entries *es) {
    for (size_t i = 0; i < es->n; i++) {
        struct snap_entry *e = &es->v[i];
        if (e->old == ROW_NONE) continue;
        int64_t more = excess(s, p, e->addr, -e->bytes);
        e->bytes -= more;
        s->t->before[e->old].bytes += more;
        es->base = sat_add(es->base, more);
    }
}

/* Finds the blocks, of allocations and from before, that were larger than
 * rounding makes them, because what was left of them was too small to be split
 * off. The state at the end must be whole. O(n log n). */
static void find_sizes(struct snap *s, struct snap_entries *es,
                       const struct snap_device *d) {
    struct places p = {0};
    if (s->expandable || es->n == 0) return;
    if (find_places(&p, s, es, d)) {
        places_begin(&p, s, es, d);
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
    free(p.addr);
    free(p.count);
    free(p.used);
}

#define ADDR_GONE (MAP_NONE - 1) /* freed */

/* The largest size that can be true, so that rounding up cannot overflow. */
#define MAX_BYTES (INT64_C(1) << 50)

static void add_entry(struct snap *s, struct snap_entries *es,
                      struct snap_entry e) {
    if (!VEC_ROOM(es->v, es->n, es->cap)) s->t->oom = true;
    else es->v[es->n++] = e;
}

static void add_before(struct snap *s, struct snap_entries *es,
                       const struct snap_device *d, uint64_t addr,
                       int64_t bytes, uint32_t stack) {
    sat_inc(&es->base, bytes);
    trace_before(s->t, &(struct mem_before){.addr = addr,
                                            .bytes = bytes,
                                            .ts = TS_NONE,
                                            .allocator = d->allocator,
                                            .stack = stack});
}

/* Gives a free the size of its allocation; without one, the block is older than
 * the first entry. */
static void on_free(struct snap *s, struct snap_entries *es,
                    const struct snap_device *d, struct snap_entry e) {
    uint32_t *at = map_at(&es->open, e.addr);
    if (at == NULL) {
        s->t->oom = true;
        return;
    }
    if (*at == ADDR_GONE) { /* freed twice */
        trace_note(s->t, NOTE_BAD_EVENT, 1);
        return;
    }
    if (*at != MAP_NONE) {
        e.mate = *at;
    } else if (s->whole) {
        e.old = (uint32_t)s->t->nbefore;
        add_before(s, es, d, e.addr, e.bytes, ROW_NONE);
    }
    *at = ADDR_GONE;
    e.bytes = -e.bytes;
    add_entry(s, es, e);
}

enum action { ALLOC, FREE, GROW, SHRINK, FAIL, NOTHING, UNKNOWN };

static enum action action_of(const struct pickle_value *v) {
    static const struct {
        const char *name;
        enum action a;
    } names[] = {
        {"alloc", ALLOC},
        {"free_completed", FREE},
        {"free_requested", NOTHING},
        {"segment_alloc", GROW},
        {"segment_map", GROW},
        {"segment_free", SHRINK},
        {"segment_unmap", SHRINK},
        {"oom", FAIL},
        {"snapshot", NOTHING},
        {"user_defined", NOTHING},
        {"workspace_snapshot", NOTHING},
    };
    struct bytes b = pickle_text(pickle_get(v, "action"));
    for (size_t i = 0; i < COUNT(names); i++)
        if (bytes_eq(b, names[i].name, strlen(names[i].name)))
            return names[i].a;
    return UNKNOWN;
}

static void read_entry(struct snap *s, struct snap_entries *es,
                       const struct snap_device *d,
                       const struct pickle_value *v, size_t i) {
    enum action a = action_of(v);
    int64_t size = pickle_int(pickle_get(v, "size"), -1), left;
    struct snap_entry e = {.addr = snap_addr(pickle_get(v, "addr")),
                           .stack = ROW_NONE,
                           .mate = ROW_NONE,
                           .old = ROW_NONE};
    if (a == NOTHING) return;
    if (a == UNKNOWN || size < 0 || size > MAX_BYTES) {
        trace_note(s->t, NOTE_BAD_EVENT, 1);
        return;
    }
    if (!snap_time(s, v, i, &e.ts)) return;
    switch (a) {
    case ALLOC:
        e.bytes = snap_round(s, size);
        e.stack = snap_stack(s, v);
        e.what = snap_text(s, pickle_get(v, "user_metadata"));
        if (es->n >= ADDR_GONE || !map_set(&es->open, e.addr, (uint32_t)es->n))
            s->t->oom = true;
        else add_entry(s, es, e);
        break;
    case FREE:
        e.bytes = snap_round(s, size);
        on_free(s, es, d, e);
        break;
    case GROW:
    case SHRINK:
        e.reserved = a == GROW ? size : -size;
        add_entry(s, es, e);
        break;
    default: /* FAIL */
        left = pickle_int(pickle_get(v, "device_free"), -1);
        trace_oom(s->t, &(struct mem_oom){.ts = e.ts,
                                          .bytes = size,
                                          .device_free = left >= 0 ? left : -1,
                                          .allocated = -1,
                                          .reserved = -1,
                                          .track = ROW_NONE,
                                          .stack = snap_stack(s, v),
                                          .allocator = d->allocator});
    }
}

/* Gives allocations that are still in use the size of their block. Blocks in
 * use that no entry allocated were there before. */
static void settle(struct snap *s, struct snap_entries *es,
                   const struct snap_device *d) {
    for (uint32_t i = d->segments; i != ROW_NONE; i = s->chain[i]) {
        const struct mem_segment *seg = &s->t->segments[i];
        for (size_t k = seg->first; k < seg->end && !s->t->oom; k++) {
            const struct mem_block *b = &s->t->blocks[k];
            /* an address that is listed twice counts once */
            if (map_get(&d->active, b->addr) != k) continue;
            uint32_t at = map_get(&es->open, b->addr);
            if (at < es->n) {
                es->v[at].bytes = b->bytes;
                es->v[at].exact = true;
                continue;
            }
            add_before(s, es, d, b->addr, b->bytes, b->stack);
        }
    }
}

/* Turns the entries into memory events, with the level after each. */
static void emit(struct snap *s, const struct snap_entries *es,
                 const struct snap_device *d) {
    int64_t level = es->base, held = d->reserved;
    for (size_t i = 0; i < es->n; i++) sat_dec(&held, es->v[i].reserved);
    for (size_t i = 0; i < es->n && !s->t->oom; i++) {
        const struct snap_entry *e = &es->v[i];
        int64_t bytes = e->mate == ROW_NONE ? e->bytes : -es->v[e->mate].bytes;
        sat_inc(&held, e->reserved);
        sat_inc(&level, bytes);
        if (bytes == 0) continue;
        row_id m = trace_mem(
            s->t,
            &(struct mem_in){.ts = e->ts,
                             .bytes = mem_told(bytes),
                             .addr = e->addr,
                             .allocated = s->whole && level >= 0 ? level : -1,
                             .reserved = s->whole && held >= 0 ? held : -1,
                             .track = ROW_NONE,
                             .allocator = d->allocator,
                             .what = e->what});
        trace_mem_stack(s->t, m, e->stack);
    }
}

static void read_device(struct snap *s, const struct pickle_value *list,
                        int64_t ordinal) {
    struct snap_entries es = {.before0 = s->t->nbefore};
    struct snap_device *d = snap_device(s, ordinal);
    if (d == NULL) return;
    for (size_t i = 0; i < pickle_count(list) && !s->t->oom; i++)
        if (snap_first_entry(s, pickle_item(list, i)))
            read_entry(s, &es, d, pickle_item(list, i), i);
    s->events += pickle_count(list);
    if (s->whole) settle(s, &es, d);
    if (s->whole && !s->t->oom) find_sizes(s, &es, d);
    if (!s->t->oom) emit(s, &es, d);
    free(es.v);
    map_free(&es.open);
}

void snap_events(struct snap *s) {
    const struct pickle_value *traces = pickle_get(s->root, "device_traces");
    for (size_t i = 0; i < pickle_count(traces) && !s->t->oom; i++) {
        const struct pickle_value *list = pickle_item(traces, i);
        if (snap_first_visit(list)) read_device(s, list, (int64_t)i);
    }
}
