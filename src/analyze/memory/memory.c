/* SPDX-License-Identifier: Apache-2.0
 * memory: one row per allocator: how much, when, and how well it was used; or,
 * with --by, who held what at the peak, or the level over time. */
#include "analyze/analyze.h"
#include "analyze/memory/live.h"
#include "analyze/memory/mem_category.h"
#include "analyze/memory/mem_holders.h"
#include "analyze/memory/mem_segments.h"
#include "analyze/memory/mem_timeline.h"
#include "analyze/shared/label.h"
#include "analyze/shared/mem_scope.h"
#include "analyze/shared/missing.h"
#include "base/text/number.h"
#include "model/span_at.h"
#include <stdio.h>

static const struct opt memory_opts[] = {
    {"by", 0, OPT_CHOICE, "allocator|time|op|category|scope|module|stack",
     "allocator",
     "who held what at the peak, by that; time: the level over time"},
    {"points", 0, OPT_INT, "N", "200",
     "with --by time: at most so many points for each allocator"},
    {0},
};

/* The kinds of tables, in the order of the choices. */
static const struct view {
    const char *name, *title, *help;
    enum mem_key key;
} views[] = {
    {"allocator", "Memory by allocator", NULL, 0},
    {"time", "Memory over time", NULL, 0},
    {"op", "Memory at the peak by operation", "the operation that allocated it",
     MEM_BY_OP},
    {"category", "Memory at the peak by category",
     "what it is for: parameter, gradient, optimizer, activation, input, "
     "temporary; before-window: was there before the first event",
     MEM_BY_CATEGORY},
    {"scope", "Memory at the peak by scope",
     "the named regions around the allocation, or the op's name scope",
     MEM_BY_SCOPE},
    {"module", "Memory at the peak by module",
     "the innermost nn.Module around the allocation", MEM_BY_MODULE},
    {"stack", "Memory at the peak by call stack",
     "frames of the allocation, innermost first", MEM_BY_STACK},
};
enum { VIEW_ALLOCATOR, VIEW_TIME };

struct memory {
    const struct trace *t;
    const struct view *view;
    size_t points;
    struct scope scope;
    struct mem_sites sites; /* only where holders are asked for */
    bool replayed;
};

static void allocator_columns(struct result *r) {
    static const struct column cols[] = {
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, COL_KEY},
        {"peak_bytes", "peak", "bytes", "most in use at any time", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"peak_at_us", "peak at", "us", "when that was", COL_TIME, COL_STAMP},
        {"peak_step", "in step", NULL, "the step that was running then",
         COL_INT, 0},
        {"reserved_bytes", "reserved", "bytes",
         "most that the allocator held, in use or not", COL_BYTES, 0},
        {"allocs", NULL, NULL, "allocations", COL_INT, 0},
        {"frees", NULL, NULL, "frees", COL_INT, 0},
        {"live_at_end_bytes", "live at end", "bytes",
         "in use after the last event", COL_BYTES, 0},
        {"fragmentation_pct", "fragm.", "%",
         "held but not in use at the peak: (reserved - allocated) / reserved",
         COL_PERCENT, 0},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
        {"before_window_bytes", "from before", "bytes",
         "in use before the first event; a lower bound where the profile does "
         "not tell the level",
         COL_BYTES, COL_DETAIL},
        {"peak_life_bytes", "peak ever", "bytes",
         "the allocator's own peak since the program began", COL_BYTES,
         COL_DETAIL},
        {"free_fragmentation_pct", "free fragm.", "%",
         "the allocator's own figure, last reported: how much of what is free "
         "lies outside the largest free piece",
         COL_PERCENT, COL_DETAIL},
        {"capacity_bytes", "capacity", "bytes",
         "most it could ever hold: its own limit, or the device's memory",
         COL_BYTES, COL_DETAIL},
        {"segments", NULL, NULL,
         "pieces that it took from the driver, when a snapshot was taken",
         COL_INT, COL_DETAIL},
        {"segment_free_bytes", "free in them", "bytes",
         "bytes of these pieces in no block", COL_BYTES, COL_DETAIL},
        {"segment_stuck_bytes", "stuck", "bytes",
         "free bytes of pieces that also hold blocks: they cannot go back to "
         "the driver",
         COL_BYTES, COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

/* The step of that source that was running at ts, or NULL. */
static const struct step *step_at(const struct trace *t, uint32_t source,
                                  int64_t ts) {
    const struct source *src = &t->sources[source];
    size_t lo = src->step_first, hi = src->step_end;
    while (lo < hi) { /* the first that ends later; they do not overlap */
        size_t mid = lo + (hi - lo) / 2;
        if (t->steps[mid].ts + t->steps[mid].dur <= ts) lo = mid + 1;
        else hi = mid;
    }
    return lo < src->step_end && t->steps[lo].ts <= ts ? &t->steps[lo] : NULL;
}

struct counts {
    int64_t allocs, frees, reserved; /* reserved: -1 when not recorded */
};

static struct counts count_events(const struct live *l,
                                  const struct mem_scope *in) {
    const struct mem_events *m = &l->t->mem;
    struct counts c = {0, 0, -1};
    for (size_t k = l->first; k < l->first + l->n; k++) {
        if (!mem_scope_has(in, m->ts[k])) continue;
        if (m->bytes[k] >= 0) c.allocs++;
        else c.frees++;
        int64_t held = mem_reserved(l->t, k);
        if (held > c.reserved) c.reserved = held;
    }
    return c;
}

/* The allocator's own limit, else its device's memory, else -1. */
static int64_t capacity_of(const struct trace *t, const struct allocator *a) {
    if (a->capacity >= 0 || a->device >= t->ndevices) return a->capacity;
    int64_t bytes = t->devices[a->device].memory_bytes;
    return bytes > 0 ? bytes : -1;
}

static void put_row(struct result *r, const struct live *l,
                    const struct allocator *a, const struct mem_scope *in) {
    const struct trace *t = l->t;
    uint32_t peak = live_peak(l, mem_scope_has, in);
    if (peak == LIVE_NONE) return;
    int64_t ts = t->mem.ts[l->first + peak];
    int64_t held = mem_reserved(t, l->first + peak);
    int64_t used = l->level[peak];
    const struct step *s = step_at(t, a->source, ts);
    struct counts c = count_events(l, in);
    result_row(r);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    result_int(r, used);
    result_int(r, ts);
    result_int_if(r, s != NULL, s ? s->number : 0);
    /* torch writes 0 for host memory, where nothing is ever held back */
    result_int_if(r, c.reserved > 0, c.reserved);
    result_int(r, c.allocs);
    result_int(r, c.frees);
    result_int(r, l->level[l->n - 1]);
    result_float_if(r, held > 0 && held >= used,
                    100.0 * (1.0 - (double)used / (double)held));
    result_str(r, strs_bytes(&t->strs, a->name));
    result_int(r, l->base);
    result_int_if(r, a->peak_life >= 0, a->peak_life);
    result_float_if(r, a->fragmentation >= 0, 100.0 * a->fragmentation);
    int64_t most = capacity_of(t, a);
    result_int_if(r, most >= 0, most);
    struct mem_use u = mem_use_of(t, t->mem.allocator[l->first]);
    result_int_if(r, u.segments > 0, (int64_t)u.segments);
    result_int_if(r, u.segments > 0, u.free);
    result_int_if(r, u.segments > 0, u.stuck);
}

static void time_columns(struct result *r) {
    static const struct column cols[] = {
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, COL_KEY},
        {"at_us", "at", "us", "when", COL_TIME, COL_STAMP},
        {"allocated_bytes", "allocated", "bytes", "in use then", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"reserved_bytes", "reserved", "bytes",
         "held by the allocator then, in use or not", COL_BYTES, 0},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
    r->in_order = true;
}

static int put_timeline(struct result *r, const struct live *l,
                        const struct allocator *a, const struct mem_scope *in,
                        size_t points, struct ops_err *e) {
    const struct trace *t = l->t;
    struct mem_timeline line;
    TRY(mem_timeline_init(&line, l, in, points, e));
    for (size_t i = 0; i < line.n; i++) {
        size_t k = l->first + line.v[i];
        int64_t held = mem_reserved(t, k);
        result_row(r);
        cell_text(r, "device", label_device(r, t, a->source, a->device));
        result_int(r, t->mem.ts[k]);
        result_int(r, l->level[line.v[i]]);
        result_int_if(r, held > 0, held);
        result_str(r, strs_bytes(&t->strs, a->name));
    }
    mem_timeline_free(&line);
    return 0;
}

static void holder_columns(struct result *r, const struct view *v) {
    const struct column cols[] = {
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
        {v->name, NULL, NULL, v->help, COL_TEXT,
         COL_KEY | (v->key == MEM_BY_STACK ? COL_SYMBOL : 0)},
        {"bytes", NULL, "bytes", "in use at the allocator's peak", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"blocks", NULL, NULL, "in so many blocks", COL_INT, 0},
        {"share_pct", "share", "%", "of the peak", COL_PERCENT, COL_BAR},
        {"peak_at_us", "peak at", "us", "when the peak was", COL_TIME,
         COL_STAMP | COL_DETAIL},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

static int put_holders(struct result *r, const struct memory *m,
                       const struct live *l, const struct allocator *a,
                       const struct mem_scope *in, struct ops_err *e) {
    const struct trace *t = l->t;
    uint32_t peak = live_peak(l, mem_scope_has, in);
    if (peak == LIVE_NONE) return 0;
    struct mem_blocks blocks;
    struct mem_holders h;
    TRY(mem_blocks_init(&blocks, &m->sites, l, e));
    int rc = mem_holders_init(&h, &blocks, peak, m->view->key, e);
    mem_blocks_free(&blocks);
    if (rc != 0) return rc;
    for (size_t i = 0; i < h.n; i++) {
        result_row(r);
        cell_text(r, "device", label_device(r, t, a->source, a->device));
        result_text(r, mem_holder_key(&h, i));
        result_int(r, h.v[i].bytes);
        result_int_if(r, h.v[i].blocks > 0, h.v[i].blocks);
        result_float_if(r, h.total != 0,
                        100.0 * (double)h.v[i].bytes / (double)h.total);
        result_int(r, t->mem.ts[l->first + peak]);
        result_str(r, strs_bytes(&t->strs, a->name));
    }
    if (h.gone) live_say_gone(r);
    mem_holders_free(&h);
    return 0;
}

static int allocator_rows(struct memory *m, struct result *r,
                          const struct live *l, const struct allocator *a,
                          const struct mem_scope *in, struct ops_err *e) {
    m->replayed |= !l->recorded;
    if (m->view == &views[VIEW_TIME])
        return put_timeline(r, l, a, in, m->points, e);
    if (m->view != &views[VIEW_ALLOCATOR])
        return put_holders(r, m, l, a, in, e);
    put_row(r, l, a, in);
    return 0;
}

static int allocator_run(struct memory *m, uint32_t i, struct result *r,
                         struct ops_err *e) {
    const struct allocator *a = &m->t->allocators[i];
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, &m->scope, a->source, &wanted, e));
    struct live l = {0};
    int rc = wanted ? live_init(&l, m->t, i, e) : 0;
    if (rc == 0 && l.n > 0) rc = allocator_rows(m, r, &l, a, &in, e);
    live_free(&l);
    mem_scope_free(&in);
    return rc;
}

/* What a failed allocation was for: its op, else where its stack began. */
static void asker(const struct trace *t, const struct mem_oom *o, char *buf,
                  size_t cap) {
    row_id r = span_at(t, o->track, o->ts);
    for (int i = 0; r != ROW_NONE && t->spans.kind[r] != SPAN_OP; i++)
        r = i < CLIMB_MAX ? t->spans.parent[r] : ROW_NONE;
    if (r != ROW_NONE) snprintf(buf, cap, "%s", span_name(t, r));
    else if (stack_text(t, o->stack, 1, buf, cap) == 0)
        snprintf(buf, cap, "the program");
}

/* "; of 1.20 GiB in use aten::mm held the most, 1.00 GiB". */
static void holder_words(const struct mem_holders *h, char *buf, size_t cap) {
    char most[NUMBER_MAX], all[NUMBER_MAX];
    const char *key = mem_holder_key(h, 0);
    if (!key) key = "somebody unknown";
    if (strcmp(key, "before-window") == 0)
        key = "blocks from before the window";
    const char *end = strstr(key, " < "); /* a stack: where it begins */
    snprintf(buf, cap, "; of %s in use %.*s held the most, %s",
             human_bytes(h->total, all, sizeof all),
             end ? (int)(end - key) : (int)strlen(key), key,
             human_bytes(h->v[0].bytes, most, sizeof most));
}

/* Who held the most when an allocation failed: an op, or, where no op is
 * known (a snapshot alone), a place in the code. Nothing if nobody did. */
static int oom_holder(const struct memory *m, const struct mem_oom *o,
                      char *buf, size_t cap, struct ops_err *e) {
    struct live l;
    struct mem_blocks blocks = {0};
    struct mem_holders h = {0};
    buf[0] = '\0';
    TRY(live_init(&l, m->t, o->allocator, e));
    uint32_t at = live_event_at(&l, o->ts);
    int rc = mem_blocks_init(&blocks, &m->sites, &l, e);
    if (rc == 0 && l.n > 0)
        rc = mem_holders_init(&h, &blocks, at, MEM_BY_OP, e);
    if (rc == 0 && h.n > 0 && !mem_holder_key(&h, 0)) {
        mem_holders_free(&h);
        rc = mem_holders_init(&h, &blocks, at, MEM_BY_STACK, e);
    }
    if (rc == 0 && h.n > 0) holder_words(&h, buf, cap);
    mem_holders_free(&h);
    mem_blocks_free(&blocks);
    live_free(&l);
    return rc;
}

static int say_oom(const struct memory *m, struct result *r,
                   const struct mem_oom *o, struct ops_err *e) {
    char who[512], held[1024], asked[NUMBER_MAX], spare[NUMBER_MAX];
    asker(m->t, o, who, sizeof who);
    TRY(oom_holder(m, o, held, sizeof held, e));
    human_bytes(o->bytes, asked, sizeof asked);
    human_bytes(o->device_free, spare, sizeof spare);
    result_remark(r, "out of memory: %s asked for %s%s%s%s%s", who, asked,
                  o->device_free < 0 ? "" : " when ",
                  o->device_free < 0 ? "" : spare,
                  o->device_free < 0 ? "" : " were free on the device", held);
    return 0;
}

/* A program that is caught running out and tries again does so many times. */
static int say_ooms(const struct memory *m, struct result *r,
                    struct ops_err *e) {
    enum { SHOWN = 3 };
    size_t said = 0, more = 0;
    for (size_t i = 0; i < m->t->nooms; i++) {
        const struct mem_oom *o = &m->t->ooms[i];
        uint32_t source = m->t->allocators[o->allocator].source;
        if (!m->scope.all && !m->scope.source_in[source]) continue;
        if (said == SHOWN) more++;
        else TRY(say_oom(m, r, o, e));
        said += said < SHOWN;
    }
    if (more > 0) result_remark(r, "and %zu more allocations failed", more);
    return 0;
}

static void say_segments(const struct memory *m, struct result *r) {
    const struct trace *t = m->t;
    for (size_t i = 0; t->nsegments > 0 && i < t->nallocators; i++) {
        struct mem_use u = mem_use_of(t, (uint32_t)i);
        uint32_t source = t->allocators[i].source;
        if (u.segments == 0 || (!m->scope.all && !m->scope.source_in[source]))
            continue;
        char all[NUMBER_MAX], spare[NUMBER_MAX], stuck[NUMBER_MAX],
            largest[NUMBER_MAX];
        result_remark(
            r,
            "%s: when the snapshot was taken its %zu segments held %s, of "
            "which %s were free, %s of them in segments that also hold "
            "blocks; the largest free piece is %s",
            strs_text(&t->strs, t->allocators[i].name), u.segments,
            human_bytes(u.bytes, all, sizeof all),
            human_bytes(u.free, spare, sizeof spare),
            human_bytes(u.stuck, stuck, sizeof stuck),
            human_bytes(u.largest_free, largest, sizeof largest));
    }
}

static int memory_options(struct memory *m, const struct opts *o,
                          struct ops_err *e) {
    const char *by = opts_text(o, "by");
    int64_t points = opts_int(o, "points");
    if (points < 2) return fail(e, OPS_EUSAGE, "--points must be 2 or more");
    m->points = (size_t)points;
    m->view = &views[VIEW_ALLOCATOR];
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (by && strcmp(by, views[i].name) == 0) m->view = &views[i];
    return 0;
}

static void memory_head(const struct memory *m, struct result *r) {
    r->title = m->view->title;
    result_from_trace(r, m->t);
    missing_say(r, m->t, MISSING_MEMORY);
    bool frames = m->view->name &&
                  (m->view->key == MEM_BY_MODULE ||
                   (m->view->key == MEM_BY_STACK && m->t->stacks.n == 0));
    if (frames) missing_say(r, m->t, MISSING_STACKS);
    if (m->view == &views[VIEW_ALLOCATOR]) allocator_columns(r);
    else if (m->view == &views[VIEW_TIME]) time_columns(r);
    else holder_columns(r, m->view);
}

static int memory_fill(struct memory *m, const struct opts *o, struct result *r,
                       struct ops_err *e) {
    TRY(scope_init(&m->scope, m->t, o, e));
    if (m->view > &views[VIEW_TIME] || m->t->nooms > 0)
        TRY(mem_sites_init(&m->sites, m->t, e));
    if (m->view->key == MEM_BY_MODULE) TRY(mem_sites_modules(&m->sites, e));
    for (size_t i = 0; i < m->t->nallocators; i++)
        TRY(allocator_run(m, (uint32_t)i, r, e));
    if (m->replayed)
        result_remark(r, "the profile does not tell how much was in use: it "
                         "is counted from its allocations and frees, and "
                         "blocks from before the window that were not freed "
                         "in it are unknown");
    say_segments(m, r);
    return say_ooms(m, r, e);
}

static int memory_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct memory m = {.t = t};
    result_init(r, "memory", NULL);
    int rc = memory_options(&m, o, e);
    if (rc == 0) memory_head(&m, r);
    if (rc == 0) rc = memory_fill(&m, o, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&m.sites);
    scope_free(&m.scope);
    return rc;
}

const struct analysis analysis_memory = {
    .name = "memory",
    .help = "peak, reserved and live memory of each device, and who holds it",
    .row = "one device or allocator",
    .opts = memory_opts,
    .run = memory_run,
};
