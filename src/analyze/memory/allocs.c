/* SPDX-License-Identifier: Apache-2.0
 * allocs: one row per allocation with the free that ended it and what it was
 * for. Blocks that were there before the first event are one row per
 * allocator, or one each where the source knows them, so that what is live at
 * any instant sums to the allocator's level. */
#include "analyze/analyze.h"
#include "analyze/memory/mem_levels.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sum.h"

static const struct opt allocs_opts[] = {
    {.name = "at",
     .type = OPT_US,
     .arg = "US",
     .help = "only what is live at that time, as JSON or text shows times"},
    {.name = "peak",
     .type = OPT_FLAG,
     .help = "only what is live at each allocator's peak"},
    {0},
};

struct allocs {
    const struct trace *t;
    struct selection selection;
    struct mem_sites sites;
    bool at_given, peak;
    int64_t at; /* ps */
};

static const struct column allocs_cols[] = {
    {"op", NULL, NULL, "the operation that allocated it", COL_TEXT, COL_KEY},
    {"bytes", NULL, "bytes", "size of the block", COL_BYTES,
     COL_MAIN | COL_SIZE},
    {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
    {"alloc_us", "allocated", "us", "when it was allocated", COL_TIME,
     COL_STAMP},
    {"free_us", "freed", "us", "when it was freed; none: still alive", COL_TIME,
     COL_STAMP},
    {"category", NULL, NULL,
     "parameter, gradient, optimizer, activation, input, temporary, by who "
     "allocated it and how long it lived; before-window: was there before the "
     "first event; unknown: cannot be told",
     COL_TEXT, 0},
    {"shape", NULL, NULL, "shape of the tensor in it", COL_TEXT, COL_DETAIL},
    {"dtype", NULL, NULL, "type of its elements", COL_TEXT, COL_DETAIL},
    {"stack", NULL, NULL, "Python frames, innermost first", COL_TEXT,
     COL_DETAIL | COL_SYMBOL},
    {"parent_op", NULL, NULL,
     "the operation that wanted it, where op only makes tensors", COL_TEXT, 0},
    {"blocks", NULL, NULL, "how many blocks the row stands for", COL_INT,
     COL_DETAIL},
    {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT, COL_DETAIL},
};

static void put_block(struct result *r, const struct allocs *c,
                      const struct mem_blocks *b, size_t i) {
    const struct trace *t = c->t;
    const struct mem_events *m = &t->mem;
    const struct mem_levels *l = b->l;
    size_t k = l->first + i;
    const struct allocator *a = &t->allocators[m->allocator[k]];
    struct mem_site at = mem_site_of(&c->sites, k);
    struct mem_shape shape = mem_shape_of(t, at.op, m->bytes[k]);
    result_row(r);
    /* this is the op itself, even one that only makes room; else what memory
     * --by op says */
    if (at.op != ROW_NONE)
        cell_str(r, "op", strs_bytes(&t->strs, t->spans.name[at.op]));
    else mem_site_cell(r, "op", &c->sites, &at, k, MEM_BY_OP);
    cell_int(r, "bytes", m->bytes[k]);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    cell_int(r, "alloc_us", m->ts[k]);
    if (l->mate[i] != EVENT_NONE)
        cell_int(r, "free_us", m->ts[l->first + l->mate[i]]);
    cell_str(r, "category", mem_block_label(b, i, &at));
    if (shape.dims.n > 0) cell_str(r, "shape", shape.dims);
    cell_text(r, "dtype", shape.dtype);
    mem_site_cell(r, "stack", &c->sites, &at, k, MEM_BY_STACK);
    if (at.user != at.op)
        cell_str(r, "parent_op", strs_bytes(&t->strs, t->spans.name[at.user]));
    cell_int(r, "blocks", 1);
    cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
}

/* Puts blocks that are not among the events: those from before the window of
 * which one was freed in it (blocks is 1), the sum of the others, or what the
 * level has beyond all of them (blocks is 0: nobody knows how many). */
static void put_rest(struct result *r, const struct allocs *c,
                     const struct allocator *a, int64_t bytes, int64_t blocks,
                     int64_t free_ts) {
    enum mem_category what = blocks >= 0 ? MEM_BEFORE_WINDOW : MEM_UNKNOWN;
    result_row(r);
    cell_int(r, "bytes", bytes);
    cell_text(r, "device", label_device(r, c->t, a->source, a->device));
    if (blocks > 0) cell_int(r, "free_us", free_ts);
    cell_text(r, "category", mem_category_name(what));
    if (blocks > 0) cell_int(r, "blocks", blocks);
    cell_str(r, "allocator", strs_bytes(&c->t->strs, a->name));
}

/* Puts a block from before the window that the source knows. */
static void put_before(struct result *r, const struct allocs *c,
                       const struct mem_levels *l, const struct allocator *a,
                       size_t i) {
    const struct mem_before *b = &c->t->before[l->before_first + i];
    enum mem_category what = mem_before_category(&c->sites, b->stack);
    result_row(r);
    cell_int(r, "bytes", b->bytes);
    cell_text(r, "device", label_device(r, c->t, a->source, a->device));
    if (b->ts != TS_NONE) cell_int(r, "alloc_us", b->ts);
    if (l->before_end[i] != EVENT_NONE)
        cell_int(r, "free_us", c->t->mem.ts[l->first + l->before_end[i]]);
    cell_text(r, "category", mem_category_name(what));
    mem_stack_cell(r, "stack", c->t, b->stack);
    cell_int(r, "blocks", 1);
    cell_str(r, "allocator", strs_bytes(&c->t->strs, a->name));
}

/* Puts all that is live after one event: known blocks, and the rest of the
 * level as blocks from before the window. */
static void put_live(struct result *r, const struct allocs *c,
                     const struct mem_blocks *b, const struct allocator *a,
                     uint32_t after) {
    const struct mem_levels *l = b->l;
    struct mem_rest rest = mem_rest(l, after);
    for (size_t i = 0; after != EVENT_NONE && i <= after; i++)
        if (mem_held(l, i, after, &rest)) put_block(r, c, b, i);
    for (size_t i = 0; i < l->nbefore; i++)
        if (mem_held_before(l, i, after, &rest)) put_before(r, c, l, a, i);
    if (rest.gone + rest.gone_before > 0) mem_say_gone(r);
    if (rest.before != 0) put_rest(r, c, a, rest.before, 0, 0);
    if (rest.lost != 0) put_rest(r, c, a, rest.lost, -1, 0);
}

/* Puts every allocation that counts, each block from before that was freed, and
 * the sum of those that stay: rows never freed add up to what is live at the
 * end. */
static void put_all(struct result *r, const struct allocs *c,
                    const struct mem_blocks *b, const struct allocator *a,
                    const struct mem_scope *in) {
    const struct mem_events *m = &c->t->mem;
    const struct mem_levels *l = b->l;
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        if (!mem_scope_has(in, m->ts[k])) continue;
        if (m->bytes[k] >= 0) put_block(r, c, b, i);
        else if (l->mate[i] == EVENT_NONE && l->nbefore == 0)
            put_rest(r, c, a, sat_sub(0, m->bytes[k]), 1, m->ts[k]);
    }
    for (size_t i = 0; i < l->nbefore; i++) put_before(r, c, l, a, i);
    struct mem_rest rest = mem_rest(l, (uint32_t)(l->n - 1));
    if (rest.before != 0) put_rest(r, c, a, rest.before, 0, 0);
    if (rest.lost != 0) put_rest(r, c, a, rest.lost, -1, 0);
}

/* Puts the rows of allocator i. */
static int allocs_of(struct allocs *c, uint32_t i, struct result *r,
                     struct ops_err *e) {
    const struct allocator *a = &c->t->allocators[i];
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, &c->selection, a->source, &wanted, e));
    struct mem_levels l = {0};
    struct mem_blocks b = {0};
    int rc = wanted ? mem_levels_init(&l, c->t, i, e) : 0;
    if (rc == 0 && l.n > 0) rc = mem_blocks_init(&b, &c->sites, &l, e);
    if (rc == 0 && l.n > 0) {
        if (c->peak) put_live(r, c, &b, a, mem_peak(&l, &in));
        else if (c->at_given) put_live(r, c, &b, a, mem_event_at(&l, c->at));
        else put_all(r, c, &b, a, &in);
    }
    mem_blocks_free(&b);
    mem_levels_free(&l);
    mem_scope_free(&in);
    return rc;
}

static int allocs_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct allocs c = {.t = t,
                       .peak = opts_flag(o, "peak"),
                       .at_given = opts_given(o, "at")};
    result_init(r, "allocs", "Allocations");
    result_from_trace(r, t);
    result_cols(r, allocs_cols, COUNT(allocs_cols));
    if (missing_say(r, t, MISSING_MEMORY)) {
        if (t->stacks.n == 0) missing_too(r, t, MISSING_STACKS);
        missing_too(r, t, MISSING_SHAPES);
    }
    if (c.at_given) c.at = trace_given_time(t, opts_ps(o, "at"));
    if (c.peak && c.at_given)
        return fail(e, OPS_EUSAGE, "--at and --peak exclude each other");
    int rc = select_init(&c.selection, t, o, e);
    if (rc == 0) rc = mem_sites_init(&c.sites, t, e);
    for (size_t i = 0; rc == 0 && i < t->nallocators; i++)
        rc = allocs_of(&c, (uint32_t)i, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&c.sites);
    select_free(&c.selection);
    return rc;
}

const struct analysis analysis_allocs = {
    .name = "allocs",
    .help = "each allocation: who made it, how large, how long it lived",
    .row = "one allocation",
    .opts = allocs_opts,
    .run = allocs_run,
};
