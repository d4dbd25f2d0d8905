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
 * segments, for others it is worked out as the allocator does
 * (snapshot_sizes.c).
 *
 * The entries are a ring, whose oldest are lost. What was in use before the
 * first is known all the same: blocks that are freed here and allocated
 * nowhere, and blocks of the segments that nothing here allocated. They go to
 * trace->before, and the level after every event follows. */
#include "import/snapshot/snapshot.h"

#include "base/sum.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <stdlib.h>

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
    sum_add(&es->base, bytes);
    trace_before(s->t, &(struct mem_before){.addr = addr,
                                            .bytes = bytes,
                                            .ts = TS_NONE,
                                            .allocator = d->allocator,
                                            .stack = stack});
}

static void on_alloc(struct snap *s, struct snap_entries *es,
                     struct snap_entry e) {
    uint32_t *at = map_at(&es->open, e.addr);
    if (at == NULL || es->n >= ADDR_GONE) {
        s->t->oom = true;
        return;
    }
    *at = (uint32_t)es->n;
    add_entry(s, es, e);
}

/* A free has the size of its allocation; without one, the block is older than
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

static void on_oom(struct snap *s, const struct snap_device *d,
                   const struct pickle_value *v, int64_t ts) {
    int64_t left = pickle_int(pickle_get(v, "device_free"), -1);
    trace_oom(s->t,
              &(struct mem_oom){.ts = ts,
                                .bytes = pickle_int(pickle_get(v, "size"), 0),
                                .device_free = left >= 0 ? left : -1,
                                .allocated = -1,
                                .reserved = -1,
                                .track = ROW_NONE,
                                .stack = snap_stack(s, v),
                                .allocator = d->allocator});
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_eq(b, names[i].name, strlen(names[i].name)))
            return names[i].a;
    return UNKNOWN;
}

static void read_entry(struct snap *s, struct snap_entries *es,
                       const struct snap_device *d,
                       const struct pickle_value *v, size_t i) {
    enum action a = action_of(v);
    int64_t size = pickle_int(pickle_get(v, "size"), -1);
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
        on_alloc(s, es, e);
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
    default: on_oom(s, d, v, e.ts);
    }
}

/* Allocations that are still in use get the size of their block; blocks in use
 * that no entry allocated were there before. */
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

/* The entries become memory events, with the level after each. */
static void emit(struct snap *s, const struct snap_entries *es,
                 const struct snap_device *d) {
    int64_t level = es->base, held = d->reserved;
    for (size_t i = 0; i < es->n; i++) sum_sub(&held, es->v[i].reserved);
    for (size_t i = 0; i < es->n && !s->t->oom; i++) {
        const struct snap_entry *e = &es->v[i];
        int64_t bytes = e->mate == ROW_NONE ? e->bytes : -es->v[e->mate].bytes;
        sum_add(&held, e->reserved);
        sum_add(&level, bytes);
        if (bytes == 0) continue;
        row_id m = trace_mem(
            s->t,
            &(struct mem_in){.ts = e->ts,
                             .bytes = bytes,
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
    if (s->whole && !s->t->oom) snap_sizes(s, &es, d);
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
