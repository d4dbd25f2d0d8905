/* SPDX-License-Identifier: Apache-2.0
 * allocs: one row per allocation with the free that ended it and what it was
 * for. Blocks that were there before the first event are one row per
 * allocator, or one each where the source knows them, so that what is live at
 * any instant sums to the allocator's level. */
#include "analyze/analyze.h"
#include "analyze/memory/live.h"
#include "analyze/memory/mem_category.h"
#include "analyze/memory/mem_shape.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/label.h"
#include "analyze/shared/mem_scope.h"
#include "analyze/shared/missing.h"
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
    struct scope scope;
    struct mem_sites sites;
    bool at_given, peak;
    int64_t at; /* ps */
};

static void put_columns(struct result *r) {
    static const struct column cols[] = {
        {"op", NULL, NULL, "the operation that allocated it", COL_TEXT,
         COL_KEY},
        {"bytes", NULL, "bytes", "size of the block", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
        {"alloc_us", "allocated", "us", "when it was allocated", COL_TIME,
         COL_STAMP},
        {"free_us", "freed", "us", "when it was freed; none: still alive",
         COL_TIME, COL_STAMP},
        {"category", NULL, NULL,
         "parameter, gradient, optimizer, activation, input, temporary, by who "
         "allocated it and how long it lived; before-window: was there before "
         "the first event; unknown: cannot be told",
         COL_TEXT, 0},
        {"shape", NULL, NULL, "shape of the tensor in it", COL_TEXT,
         COL_DETAIL},
        {"dtype", NULL, NULL, "type of its elements", COL_TEXT, COL_DETAIL},
        {"stack", NULL, NULL, "Python frames, innermost first", COL_TEXT,
         COL_DETAIL | COL_SYMBOL},
        {"parent_op", NULL, NULL,
         "the operation that wanted it, where op only makes tensors", COL_TEXT,
         0},
        {"blocks", NULL, NULL, "how many blocks the row stands for", COL_INT,
         COL_DETAIL},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

static void put_span_name(struct result *r, const struct trace *t, row_id s) {
    if (s == ROW_NONE) result_null(r);
    else result_str(r, strs_bytes(&t->strs, t->spans.name[s]));
}

/* The op itself, be it one that only makes room; else what memory --by op
 * says. */
static void put_op(struct result *r, const struct allocs *c,
                   const struct mem_site *at, size_t k) {
    char buf[MEM_TEXT_MAX];
    if (at->op != ROW_NONE) put_span_name(r, c->t, at->op);
    else if (mem_site_text(&c->sites, at, k, MEM_BY_OP, buf, sizeof buf) > 0)
        result_text(r, buf);
    else result_null(r);
}

static void put_shape(struct result *r, const struct trace *t, row_id op,
                      int64_t bytes) {
    struct mem_shape s = mem_shape_of(t, op, bytes);
    if (s.dims.n > 0) result_str(r, s.dims);
    else result_null(r);
    result_text(r, s.dtype);
}

static void put_stack(struct result *r, const struct allocs *c,
                      const struct mem_site *at, size_t k) {
    char buf[MEM_TEXT_MAX];
    if (mem_site_text(&c->sites, at, k, MEM_BY_STACK, buf, sizeof buf) > 0)
        result_text(r, buf);
    else result_null(r);
}

static void put_block(struct result *r, const struct allocs *c,
                      const struct mem_blocks *b, size_t i) {
    const struct trace *t = c->t;
    const struct mem_events *m = &t->mem;
    const struct live *l = b->l;
    size_t k = l->first + i;
    const struct allocator *a = &t->allocators[m->allocator[k]];
    struct mem_site at = mem_site_of(&c->sites, k);
    bool freed = l->mate[i] != LIVE_NONE;
    result_row(r);
    put_op(r, c, &at, k);
    result_int(r, m->bytes[k]);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    result_int(r, m->ts[k]);
    result_int_if(r, freed, freed ? m->ts[l->first + l->mate[i]] : 0);
    result_str(r, mem_block_label(b, i, &at));
    put_shape(r, t, at.op, m->bytes[k]);
    put_stack(r, c, &at, k);
    put_span_name(r, t, at.user != at.op ? at.user : ROW_NONE);
    result_int(r, 1);
    result_str(r, strs_bytes(&t->strs, a->name));
}

/* Blocks that are not among the events: those from before the window of which
 * one was freed in it (blocks is 1), the sum of the others, or what the level
 * has beyond all of them (blocks is 0: nobody knows how many). */
static void put_rest(struct result *r, const struct allocs *c,
                     const struct allocator *a, int64_t bytes, int64_t blocks,
                     int64_t free_ts) {
    bool before = blocks >= 0;
    result_row(r);
    result_null(r);
    result_int(r, bytes);
    cell_text(r, "device", label_device(r, c->t, a->source, a->device));
    result_null(r);
    result_int_if(r, blocks > 0, free_ts);
    result_text(r, mem_category_name(before ? MEM_BEFORE_WINDOW : MEM_UNKNOWN));
    for (int i = 0; i < 4; i++) result_null(r);
    result_int_if(r, blocks > 0, blocks);
    result_str(r, strs_bytes(&c->t->strs, a->name));
}

/* A block from before the window that the source knows. */
static void put_before(struct result *r, const struct allocs *c,
                       const struct live *l, const struct allocator *a,
                       size_t i) {
    enum { SHOWN = 5 };
    char buf[MEM_TEXT_MAX];
    const struct mem_before *b = &c->t->before[l->before_first + i];
    bool freed = l->before_end[i] != LIVE_NONE;
    result_row(r);
    result_null(r);
    result_int(r, b->bytes);
    cell_text(r, "device", label_device(r, c->t, a->source, a->device));
    result_int_if(r, b->ts != TS_NONE, b->ts);
    result_int_if(r, freed,
                  freed ? c->t->mem.ts[l->first + l->before_end[i]] : 0);
    result_text(r, mem_category_name(mem_before_category(&c->sites, b->stack)));
    result_null(r);
    result_null(r);
    size_t n = stack_text(c->t, b->stack, SHOWN, buf, sizeof buf);
    result_text(r, n > 0 ? buf : NULL);
    result_null(r);
    result_int(r, 1);
    result_str(r, strs_bytes(&c->t->strs, a->name));
}

/* All that is live after one event: known blocks, and the rest of the level as
 * blocks from before the window. */
static void put_live(struct result *r, const struct allocs *c,
                     const struct mem_blocks *b, const struct allocator *a,
                     uint32_t after) {
    const struct live *l = b->l;
    struct live_rest rest = live_rest(l, after);
    for (size_t i = 0; after != LIVE_NONE && i <= after; i++)
        if (live_holds(l, i, after, &rest)) put_block(r, c, b, i);
    for (size_t i = 0; i < l->nbefore; i++)
        if (live_holds_before(l, i, after, &rest)) put_before(r, c, l, a, i);
    if (rest.gone + rest.gone_before > 0) live_say_gone(r);
    if (rest.before != 0) put_rest(r, c, a, rest.before, 0, 0);
    if (rest.lost != 0) put_rest(r, c, a, rest.lost, -1, 0);
}

/* Every allocation that counts, each block from before that was freed, and
 * the sum of those that stay: rows never freed add up to what is live at the
 * end. */
static void put_all(struct result *r, const struct allocs *c,
                    const struct mem_blocks *b, const struct allocator *a,
                    const struct mem_scope *in) {
    const struct mem_events *m = &c->t->mem;
    const struct live *l = b->l;
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        if (!mem_scope_has(in, m->ts[k])) continue;
        if (m->bytes[k] >= 0) put_block(r, c, b, i);
        else if (l->mate[i] == LIVE_NONE && l->nbefore == 0)
            put_rest(r, c, a, diff_of(0, m->bytes[k]), 1, m->ts[k]);
    }
    for (size_t i = 0; i < l->nbefore; i++) put_before(r, c, l, a, i);
    struct live_rest rest = live_rest(l, (uint32_t)(l->n - 1));
    if (rest.before != 0) put_rest(r, c, a, rest.before, 0, 0);
    if (rest.lost != 0) put_rest(r, c, a, rest.lost, -1, 0);
}

static int put_allocator(struct allocs *c, const struct live *l,
                         const struct mem_scope *in, struct result *r,
                         struct ops_err *e) {
    const struct allocator *a =
        &c->t->allocators[c->t->mem.allocator[l->first]];
    struct mem_blocks b;
    TRY(mem_blocks_init(&b, &c->sites, l, e));
    if (c->peak) put_live(r, c, &b, a, live_peak(l, mem_scope_has, in));
    else if (c->at_given) put_live(r, c, &b, a, live_event_at(l, c->at));
    else put_all(r, c, &b, a, in);
    mem_blocks_free(&b);
    return 0;
}

static int allocator_run(struct allocs *c, uint32_t i, struct result *r,
                         struct ops_err *e) {
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, &c->scope, c->t->allocators[i].source, &wanted, e));
    struct live l = {0};
    int rc = wanted ? live_init(&l, c->t, i, e) : 0;
    if (rc == 0 && l.n > 0) rc = put_allocator(c, &l, &in, r, e);
    live_free(&l);
    mem_scope_free(&in);
    return rc;
}

static int gather(struct allocs *c, const struct opts *o, struct result *r,
                  struct ops_err *e) {
    c->peak = opts_flag(o, "peak");
    c->at_given = opts_given(o, "at");
    if (c->at_given) c->at = trace_given_time(c->t, opts_ps(o, "at"));
    if (c->peak && c->at_given)
        return fail(e, OPS_EUSAGE, "--at and --peak exclude each other");
    TRY(scope_init(&c->scope, c->t, o, e));
    TRY(mem_sites_init(&c->sites, c->t, e));
    for (size_t i = 0; i < c->t->nallocators; i++)
        TRY(allocator_run(c, (uint32_t)i, r, e));
    return 0;
}

static int allocs_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct allocs c = {.t = t};
    result_init(r, "allocs", "Allocations");
    result_from_trace(r, t);
    put_columns(r);
    if (missing_say(r, t, MISSING_MEMORY)) {
        if (t->stacks.n == 0) missing_say(r, t, MISSING_STACKS);
        missing_say(r, t, MISSING_SHAPES);
    }
    int rc = gather(&c, o, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&c.sites);
    scope_free(&c.scope);
    return rc;
}

const struct analysis analysis_allocs = {
    .name = "allocs",
    .help = "each allocation: who made it, how large, how long it lived",
    .row = "one allocation",
    .opts = allocs_opts,
    .run = allocs_run,
};
