/* SPDX-License-Identifier: Apache-2.0
 * Frees whose size the source does not tell (a C program's free() knows an
 * address and nothing else): events of one allocator stand in time order here,
 * over all threads, so that the last allocation at the address is the block.
 * Frees that fit none are left out: of how much nobody knows. */
#include "model/seal.h"

#include "base/map.h"
#include <assert.h>
#include <stdlib.h>

#define GONE (MAP_NONE - 1) /* in the map: freed */

static bool any_unsized(const struct mem_events *m) {
    for (size_t i = 0; i < m->n; i++)
        if (m->bytes[i] == MEM_UNSIZED) return true;
    return false;
}

/* Sizes of one allocator's frees in events [from, to); what has none keeps
 * MEM_UNSIZED, as does the free of an empty block, which *empty counts: -0
 * would be an allocation. */
static bool size_frees(struct trace *t, size_t from, size_t to,
                       size_t *empty) {
    struct mem_events *m = &t->mem;
    struct map open = {0};
    bool ok = true;
    for (size_t i = from; ok && i < to; i++) {
        uint32_t *at = map_at(&open, m->addr[i]);
        ok = at != NULL;
        if (!ok) break;
        bool taken = *at != MAP_NONE && *at != GONE;
        if (m->bytes[i] >= 0) {
            if (taken) trace_note(t, NOTE_FREE_NOT_RECORDED, 1);
            *at = (uint32_t)i;
            continue;
        }
        if (m->bytes[i] == MEM_UNSIZED && taken) {
            if (m->bytes[*at] == 0) ++*empty;
            else m->bytes[i] = -m->bytes[*at];
        }
        *at = GONE;
    }
    map_free(&open);
    return ok;
}

/* Moves event `from` to place `to` in all columns. */
static void move_event(struct mem_events *m, size_t from, size_t to) {
    m->ts[to] = m->ts[from];
    m->bytes[to] = m->bytes[from];
    m->addr[to] = m->addr[from];
    m->allocated[to] = m->allocated[from];
    if (m->reserved) m->reserved[to] = m->reserved[from];
    m->track[to] = m->track[from];
    m->allocator[to] = m->allocator[from];
    m->what[to] = m->what[from];
    if (m->stack) m->stack[to] = m->stack[from];
}

/* Leaves out what is still without a size. */
static void drop_unsized(struct trace *t, size_t empty) {
    struct mem_events *m = &t->mem;
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->bytes[i] == MEM_UNSIZED) continue;
        if (kept != i) move_event(m, i, kept);
        kept++;
    }
    trace_note(t, NOTE_FREE_WITHOUT_ALLOC, m->n - kept - empty);
    m->n = kept;
}

bool seal_mem_sizes(struct trace *t) {
    const struct mem_events *m = &t->mem;
    size_t empty = 0;
    if (!any_unsized(m)) return true;
    for (size_t i = 0, end; i < m->n; i = end) {
        for (end = i + 1; end < m->n && m->allocator[end] == m->allocator[i];)
            end++;
        if (!size_frees(t, i, end, &empty)) return false;
    }
    drop_unsized(t, empty);
    return true;
}
