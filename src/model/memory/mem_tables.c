/* SPDX-License-Identifier: Apache-2.0
 * What a source tells of its allocators beside their events: how the memory
 * they hold is cut at the moment of the dump, what was there before the first
 * event, which allocations failed. */
#include "model/seal.h"

#include "base/vec.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>

static bool stack_ok(const struct trace *t, uint32_t stack) {
    return stack == ROW_NONE || stack < t->stacks.n;
}

/* Sets a size that cannot be to instead, and counts it. */
static void mend_size(struct trace *t, int64_t *size, int64_t instead) {
    if (size_is_sane(*size) || *size == instead) return;
    trace_note(t, NOTE_SIZE_OUT_OF_RANGE, 1);
    *size = instead;
}

void trace_segment(struct trace *t, const struct mem_segment *s) {
    assert(!t->sealed && s->allocator < t->nallocators);
    assert(stack_ok(t, s->stack));
    if (!VEC_ROOM(t->segments, t->nsegments, t->cap_segments)) {
        t->oom = true;
        return;
    }
    struct mem_segment *to = &t->segments[t->nsegments++];
    *to = *s;
    to->first = to->end = t->nblocks;
    mend_size(t, &to->bytes, 0);
    mend_size(t, &to->allocated, 0);
    mend_size(t, &to->active, 0);
    mend_size(t, &to->requested, -1);
}

void trace_block(struct trace *t, const struct mem_block *b) {
    assert(!t->sealed && (t->nsegments > 0 || t->oom));
    assert(stack_ok(t, b->stack) && b->state <= BLOCK_PENDING_FREE);
    if (t->oom || !VEC_ROOM(t->blocks, t->nblocks, t->cap_blocks)) {
        t->oom = true;
        return;
    }
    struct mem_block *to = &t->blocks[t->nblocks++];
    *to = *b;
    mend_size(t, &to->bytes, 0);
    mend_size(t, &to->requested, -1);
    t->segments[t->nsegments - 1].end = t->nblocks;
}

void trace_before(struct trace *t, const struct mem_before *b) {
    assert(!t->sealed && b->allocator < t->nallocators);
    assert(stack_ok(t, b->stack));
    if (!VEC_ROOM(t->before, t->nbefore, t->cap_before)) {
        t->oom = true;
        return;
    }
    t->before[t->nbefore++] = *b;
}

void trace_oom(struct trace *t, const struct mem_oom *o) {
    assert(!t->sealed && (o->allocator < t->nallocators || t->oom));
    assert(stack_ok(t, o->stack));
    if (!ts_is_sane(o->ts)) {
        trace_note(t, NOTE_TIME_OUT_OF_RANGE, 1);
        return;
    }
    if (!VEC_ROOM(t->ooms, t->nooms, t->cap_ooms)) {
        t->oom = true;
        return;
    }
    t->ooms[t->nooms++] = *o;
}

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

/* Compares by place; equal places (a hostile file) get an order that does not
 * depend on qsort. */
static int by_place(const void *pa, const void *pb) {
    const struct mem_segment *a = pa, *b = pb;
    int c = compare(a->allocator, b->allocator);
    if (c == 0) c = compare(a->addr, b->addr);
    return c ? c : compare(a->first, b->first);
}

static int by_address(const void *pa, const void *pb) {
    const struct mem_before *a = pa, *b = pb;
    int c = compare(a->allocator, b->allocator);
    if (c == 0) c = compare(a->addr, b->addr);
    if (c == 0) c = compare((uint64_t)a->bytes, (uint64_t)b->bytes);
    return c ? c : compare(a->stack, b->stack);
}

static int by_ts(const void *pa, const void *pb) {
    const struct mem_oom *a = pa, *b = pb;
    if (a->ts != b->ts) return a->ts < b->ts ? -1 : 1;
    int c = compare(a->allocator, b->allocator);
    if (c == 0) c = compare((uint64_t)a->bytes, (uint64_t)b->bytes);
    return c ? c : compare(a->stack, b->stack);
}

void seal_mem_tables(struct trace *t) {
    size_t i = 1; /* importers mostly give segments in order */
    while (i < t->nsegments &&
           by_place(&t->segments[i - 1], &t->segments[i]) <= 0)
        i++;
    if (i < t->nsegments)
        qsort(t->segments, t->nsegments, sizeof *t->segments, by_place);
    if (t->nbefore > 1)
        qsort(t->before, t->nbefore, sizeof *t->before, by_address);
    if (t->nooms > 1) qsort(t->ooms, t->nooms, sizeof *t->ooms, by_ts);
}
