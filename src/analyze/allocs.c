/* SPDX-License-Identifier: Apache-2.0
 * allocs: one row per allocation with the free that ended it. Blocks that were
 * there before the first event are one row per allocator, so that what is live
 * at any instant sums to the allocator's level. */
#include "analyze/analyze.h"
#include "analyze/live.h"
#include "analyze/mem_scope.h"
#include "analyze/missing.h"
#include "analyze/pystack.h"
#include "analyze/where.h"
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
    struct pystack stacks;
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
         "temporary: freed before the operation ended; before-window: was "
         "there before the first event; else unknown",
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

static row_id climb_to_op(const struct trace *t, row_id r) {
    for (int i = 0; r != ROW_NONE && t->spans.kind[r] != SPAN_OP; i++)
        r = i < CLIMB_MAX ? t->spans.parent[r] : ROW_NONE;
    return r;
}

/* From the op that allocated to the one that wanted the tensor: factories
 * such as aten::empty_strided are called from it. */
static row_id climb_to_user(const struct trace *t, row_id r) {
    for (int i = 0; i < CLIMB_MAX && r != ROW_NONE; i++) {
        struct bytes n = strs_bytes(&t->strs, t->spans.name[r]);
        if (!BYTES_STARTS(n, "aten::empty")) return r;
        r = climb_to_op(t, t->spans.parent[r]);
    }
    return ROW_NONE;
}

static void put_span_name(struct result *r, const struct trace *t, row_id s) {
    if (s == ROW_NONE)
        result_null(r);
    else
        result_str(r, strs_bytes(&t->strs, t->spans.name[s]));
}

/* The op: the span around the event; else what the source wrote. */
static void put_op(struct result *r, const struct trace *t, row_id op,
                   str_id what) {
    if (op == ROW_NONE && what != 0)
        result_str(r, strs_bytes(&t->strs, what));
    else
        put_span_name(r, t, op);
}

static void put_stack(struct result *r, const struct allocs *c, uint32_t track,
                      int64_t ts) {
    enum { FRAMES = 5 };
    char buf[4096];
    if (track != ROW_NONE &&
        pystack_text(&c->stacks, track, ts, FRAMES, buf, sizeof buf) > 0)
        result_text(r, buf);
    else
        result_null(r);
}

static void put_block(struct result *r, const struct allocs *c,
                      const struct live *l, size_t i) {
    const struct trace *t = c->t;
    const struct mem_events *m = &t->mem;
    size_t k = l->first + i;
    const struct allocator *a = &t->allocators[m->allocator[k]];
    row_id op = climb_to_op(t, span_at(t, m->track[k], m->ts[k]));
    row_id user = climb_to_user(t, op);
    bool freed = l->mate[i] != LIVE_NONE;
    int64_t free_ts = freed ? m->ts[l->first + l->mate[i]] : 0;
    bool temporary = freed && user != ROW_NONE && free_ts <= span_end(t, user);
    result_row(r);
    put_op(r, t, op, m->what[k]);
    result_int(r, m->bytes[k]);
    where_device(r, t, a->source, a->device);
    result_int(r, m->ts[k]);
    result_int_if(r, freed, free_ts);
    result_text(r, temporary ? "temporary" : "unknown");
    result_null(r);
    result_null(r);
    put_stack(r, c, m->track[k], m->ts[k]);
    put_span_name(r, t, user != op ? user : ROW_NONE);
    result_int(r, 1);
    result_str(r, strs_bytes(&t->strs, a->name));
}

/* Blocks from before the window: one that was freed in it (blocks is 1), or
 * the sum of those that stay (blocks is 0: nobody knows how many). */
static void put_before(struct result *r, const struct allocs *c,
                       const struct allocator *a, int64_t bytes,
                       int64_t blocks, int64_t free_ts) {
    result_row(r);
    result_null(r);
    result_int(r, bytes);
    where_device(r, c->t, a->source, a->device);
    result_null(r);
    result_int_if(r, blocks > 0, free_ts);
    result_text(r, "before-window");
    for (int i = 0; i < 4; i++) result_null(r);
    result_int_if(r, blocks > 0, blocks);
    result_str(r, strs_bytes(&c->t->strs, a->name));
}

/* Is block i live after event `after`? */
static bool is_live(const struct live *l, size_t i, uint32_t after) {
    return i <= after && (l->mate[i] == LIVE_NONE || l->mate[i] > after);
}

/* All that is live after one event: known blocks, and the rest of the level as
 * blocks from before the window. */
static void put_live(struct result *r, const struct allocs *c,
                     const struct live *l, const struct allocator *a,
                     uint32_t after) {
    const struct mem_events *m = &c->t->mem;
    int64_t rest = after == LIVE_NONE ? l->base : l->level[after];
    if (after != LIVE_NONE) {
        for (size_t i = 0; i <= after; i++) {
            if (m->bytes[l->first + i] < 0 || !is_live(l, i, after)) continue;
            put_block(r, c, l, i);
            sum_sub(&rest, m->bytes[l->first + i]);
        }
    }
    if (rest != 0) put_before(r, c, a, rest, 0, 0);
}

/* Every allocation that counts, each block from before that was freed, and
 * the sum of those that stay: rows never freed add up to what is live at the
 * end. */
static void put_all(struct result *r, const struct allocs *c,
                    const struct live *l, const struct allocator *a,
                    const struct mem_scope *in) {
    const struct mem_events *m = &c->t->mem;
    int64_t rest = l->base;
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->first + i;
        bool counts = mem_scope_has(in, m->ts[k]);
        if (m->bytes[k] >= 0) {
            if (counts) put_block(r, c, l, i);
            continue;
        }
        if (l->mate[i] != LIVE_NONE) continue;
        int64_t bytes = diff_of(0, m->bytes[k]);
        sum_sub(&rest, bytes);
        if (counts) put_before(r, c, a, bytes, 1, m->ts[k]);
    }
    if (rest != 0) put_before(r, c, a, rest, 0, 0);
}

static int allocator_run(struct allocs *c, uint16_t i, struct result *r,
                         struct ops_err *e) {
    const struct allocator *a = &c->t->allocators[i];
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, &c->scope, a->source, &wanted, e));
    struct live l = {0};
    int rc = wanted ? live_init(&l, c->t, i, e) : 0;
    if (rc == 0 && l.n > 0) {
        if (c->peak)
            put_live(r, c, &l, a, live_peak(&l, mem_scope_has, &in));
        else if (c->at_given)
            put_live(r, c, &l, a, live_event_at(&l, c->at));
        else
            put_all(r, c, &l, a, &in);
    }
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
    TRY(pystack_init(&c->stacks, c->t, e));
    for (size_t i = 0; i < c->t->nallocators; i++)
        TRY(allocator_run(c, (uint16_t)i, r, e));
    return 0;
}

static int allocs_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct allocs c = {.t = t};
    result_init(r, "allocs", "Allocations");
    result_from_trace(r, t);
    put_columns(r);
    if (missing_say(r, t, MISSING_MEMORY)) {
        missing_say(r, t, MISSING_STACKS);
        result_missing(r, "shape and type of a block",
                       "the profile's memory events have an address and a "
                       "size only",
                       "look at the operation's own input shapes: ops --group "
                       "shapes");
        result_remark(r, "categories other than temporary and before-window "
                         "cannot be told from the events alone: unknown");
    }
    int rc = gather(&c, o, r, e);
    if (rc == 0) rc = result_done(r, e);
    pystack_free(&c.stacks);
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
