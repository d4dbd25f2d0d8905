/* SPDX-License-Identifier: Apache-2.0
 * Frees whose size the source does not tell (a C program's free() knows an
 * address and nothing else): events of one allocator stand in time order here,
 * over all threads, so that the last allocation at the address is the block.
 * A free of a block from before the window has the size by which the level
 * fell, where the source tells the level. Others are left out: of how much
 * nobody knows.
 *
 * Events that no total counts: after an allocation of some bytes the total
 * cannot be 0, so it is not theirs.
 *
 * And sizes that cannot be: after this every sum of sizes of one trace fits
 * int64, in whatever analysis. */
#include "model/seal.h"

#include "base/map.h"
#include "model/trace_fill.h"
#include <stdlib.h>

#define GONE (MAP_NONE - 1) /* in the map: freed */

/* Returns the size of a free by how far the level fell since the event before
 * it; MEM_UNSIZED if it did not, or was not recorded. */
static int64_t size_by_level(const struct mem_events *m, size_t i) {
    int64_t before = m->allocated[i - 1], now = m->allocated[i];
    return now >= 0 && before > now ? now - before : MEM_UNSIZED;
}

/* Does the same for an allocation; 0 if its size cannot be told. */
static int64_t size_of_rise(const struct mem_events *m, size_t i) {
    int64_t before = m->allocated[i - 1], now = m->allocated[i];
    return before >= 0 && now > before ? now - before : 0;
}

/* Finds the sizes of one allocator's frees in events [from, to); a free that
 * has none keeps MEM_UNSIZED, as does that of an empty block, which *empty
 * counts: -0 would be an allocation. */
static bool size_frees(struct trace *t, size_t from, size_t to, size_t *empty) {
    struct mem_events *m = &t->mem;
    struct map open = {0};
    bool ok = true;
    for (size_t i = from; ok && i < to; i++) {
        if (m->bytes[i] == MEM_GROWN)
            m->bytes[i] = i > from ? size_of_rise(m, i) : 0;
        uint32_t *at = map_at(&open, m->addr[i]);
        ok = at != NULL;
        if (!ok) break;
        bool taken = *at != MAP_NONE && *at != GONE;
        if (m->bytes[i] >= 0) {
            if (taken) trace_note(t, NOTE_FREE_NOT_RECORDED, 1);
            *at = (uint32_t)i;
            continue;
        }
        if (m->bytes[i] == MEM_UNSIZED && taken && m->addr[i] != 0) {
            if (m->bytes[*at] == 0) ++*empty;
            else m->bytes[i] = -m->bytes[*at];
        } else if (m->bytes[i] == MEM_UNSIZED && i > from) {
            m->bytes[i] = size_by_level(m, i);
        }
        *at = GONE;
    }
    map_free(&open);
    return ok;
}

/* Does a size fit, with what *sum has already? If so, it is added. */
static bool fits(int64_t bytes, int64_t *sum) {
    if (bytes < -SIZE_LIMIT || bytes > SIZE_LIMIT) return false;
    int64_t size = bytes < 0 ? -bytes : bytes;
    if (size > SIZES_LIMIT - *sum) return false;
    *sum += size;
    return true;
}

/* Treats a total that no machine has as not recorded. */
static void mend_total(struct trace *t, int64_t *total) {
    if (*total <= SIZE_LIMIT) return;
    trace_note(t, NOTE_SIZE_OUT_OF_RANGE, 1);
    *total = -1;
}

static void drop_absurd(struct trace *t) {
    struct mem_events *m = &t->mem;
    size_t kept = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < t->nbefore; i++)
        if (t->before[i].bytes >= 0 && fits(t->before[i].bytes, &sum))
            t->before[kept++] = t->before[i];
    trace_note(t, NOTE_SIZE_OUT_OF_RANGE, t->nbefore - kept);
    t->nbefore = kept;
    kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!fits(m->bytes[i], &sum)) continue;
        mend_total(t, &m->allocated[i]);
        if (m->reserved) mend_total(t, &m->reserved[i]);
        if (kept != i) mem_move(m, kept, i);
        kept++;
    }
    trace_note(t, NOTE_SIZE_OUT_OF_RANGE, m->n - kept);
    m->n = kept;
}

/* Does the total of 0 after this free mean another allocator? `alloc` is its
 * allocation, MAP_NONE if that is not in the window; `told` the last total that
 * is known, which comes down to 0 by the freed bytes if it counted them. */
static bool is_apart(const struct mem_events *m, size_t i, uint32_t alloc,
                     int64_t told) {
    if (alloc != MAP_NONE && alloc != GONE)
        return m->allocated[alloc] == MEM_APART;
    return told + m->bytes[i] != 0;
}

/* Marks the events of one allocator, [from, to), that its totals leave out. */
static bool mark_apart(struct mem_events *m, size_t from, size_t to) {
    struct map open = {0};
    int64_t told = 0;
    bool ok = true;
    for (size_t i = from; ok && i < to; i++) {
        bool frees = m->bytes[i] < 0;
        uint32_t *at = map_at(&open, m->addr[i]);
        ok = at != NULL;
        if (!ok) break;
        if (m->allocated[i] == 0 && m->bytes[i] != 0 &&
            (!frees || is_apart(m, i, m->addr[i] ? *at : MAP_NONE, told))) {
            m->allocated[i] = MEM_APART;
            if (m->reserved) m->reserved[i] = -1;
        }
        if (m->allocated[i] >= 0) told = m->allocated[i];
        *at = frees ? GONE : (uint32_t)i;
    }
    map_free(&open);
    return ok;
}

/* Marks what no total counts, in those allocators that have such events. */
static bool mark_all_apart(struct trace *t) {
    struct mem_events *m = &t->mem;
    for (size_t i = 0, end; i < m->n; i = end) {
        bool any = false;
        for (end = i; end < m->n && m->allocator[end] == m->allocator[i]; end++)
            any |= m->bytes[end] > 0 && m->allocated[end] == 0;
        if (any && !mark_apart(m, i, end)) return false;
    }
    return true;
}

bool seal_mem_sizes(struct trace *t) {
    struct mem_events *m = &t->mem;
    size_t empty = 0, kept = 0;
    bool unsized = false;
    for (size_t i = 0; i < m->n; i++)
        unsized |= m->bytes[i] == MEM_UNSIZED || m->bytes[i] == MEM_GROWN;
    for (size_t i = 0, end; unsized && i < m->n; i = end) {
        for (end = i + 1; end < m->n && m->allocator[end] == m->allocator[i];)
            end++;
        if (!size_frees(t, i, end, &empty)) return false;
    }
    for (size_t i = 0; unsized && i < m->n; i++) {
        if (m->bytes[i] == MEM_UNSIZED) continue; /* still without a size */
        if (kept != i) mem_move(m, kept, i);
        kept++;
    }
    if (unsized) {
        trace_note(t, NOTE_FREE_WITHOUT_ALLOC, m->n - kept - empty);
        m->n = kept;
    }
    drop_absurd(t);
    return mark_all_apart(t);
}
