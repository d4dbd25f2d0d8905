/* SPDX-License-Identifier: Apache-2.0
 * memory: one row per allocator: how much, when, and how well it was used; or,
 * with --by, who held what at the peak, or the level over time. */
#include "analyze/analyze.h"
#include "analyze/memory/mem_levels.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "base/vec.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const struct opt memory_opts[] = {
    {"by", 0, OPT_CHOICE, "allocator|time|op|category|scope|module|stack",
     "allocator",
     .help = "who held what at the peak, by that; time: the level over time"},
    {"points", 0, OPT_INT, "N", "200",
     .help = "with --by time: at most so many points for each allocator",
     .limits = {2, OPT_NO_END}},
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
    struct selection selection;
    struct mem_sites sites; /* only where holders are asked for */
    bool replayed, apart;
};

/* ---- one row per allocator ---- */

static const struct column allocator_cols[] = {
    {"device", NULL, NULL, "whose memory it is", COL_TEXT, COL_KEY},
    {"peak_bytes", "peak", "bytes", "most in use at any time", COL_BYTES,
     COL_MAIN | COL_SIZE},
    {"peak_at_us", "peak at", "us", "when that was", COL_TIME, COL_STAMP},
    {"peak_step", "in step", NULL, "the step that was running then", COL_INT,
     0},
    {"reserved_bytes", "reserved", "bytes",
     "most that the allocator held, in use or not", COL_BYTES, 0},
    {"allocs", NULL, NULL, "allocations", COL_INT, 0},
    {"frees", NULL, NULL, "frees", COL_INT, 0},
    {"live_at_end_bytes", "live at end", "bytes", "in use after the last event",
     COL_BYTES, 0},
    {"fragmentation_pct", "fragm.", "%",
     "held but not in use at the peak: (reserved - allocated) / reserved",
     COL_PERCENT, 0},
    {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT, COL_DETAIL},
    {"before_window_bytes", "from before", "bytes",
     "in use before the first event; a lower bound where the profile does not "
     "tell the level",
     COL_BYTES, COL_DETAIL},
    {"peak_life_bytes", "peak ever", "bytes",
     "the allocator's own peak since the program began", COL_BYTES, COL_DETAIL},
    {"free_fragmentation_pct", "free fragm.", "%",
     "the allocator's own figure, last reported: how much of what is free lies "
     "outside the largest free piece",
     COL_PERCENT, COL_DETAIL},
    {"capacity_bytes", "capacity", "bytes",
     "most it could ever hold: its own limit, or the device's memory",
     COL_BYTES, COL_DETAIL},
    {"segments", NULL, NULL,
     "pieces that it took from the driver, when a snapshot was taken", COL_INT,
     COL_DETAIL},
    {"segment_free_bytes", "free in them", "bytes",
     "bytes of these pieces in no block", COL_BYTES, COL_DETAIL},
    {"segment_stuck_bytes", "stuck", "bytes",
     "free bytes of pieces that also hold blocks: they cannot go back to the "
     "driver",
     COL_BYTES, COL_DETAIL},
};

/* How well a caching allocator uses what it holds: its segments and the free
 * pieces in them, at the moment when a memory snapshot was taken. */
struct segment_use {
    size_t segments;      /* 0: the source tells nothing of them */
    int64_t bytes;        /* in all segments */
    int64_t free;         /* of these in no block */
    int64_t stuck;        /* of the free ones in segments that hold blocks as
                             well: the allocator cannot give them back */
    int64_t largest_free; /* the largest request that fits without asking the
                             driver */
};

/* Returns the sums over one allocator's segments. O(blocks). */
static struct segment_use segment_use_of(const struct trace *t,
                                         uint32_t allocator) {
    struct segment_use u = {0};
    size_t i; /* segments stand by allocator */
    BOUND(i, 0, t->nsegments, t->segments[i].allocator < allocator);
    for (; i < t->nsegments && t->segments[i].allocator == allocator; i++) {
        const struct mem_segment *s = &t->segments[i];
        int64_t free = 0, used = 0;
        for (size_t k = s->first; k < s->end; k++) {
            const struct mem_block *b = &t->blocks[k];
            /* a block that waits for its stream is not free yet */
            bool is_free = b->state == BLOCK_FREE;
            sat_inc(is_free ? &free : &used, b->bytes);
            if (is_free && b->bytes > u.largest_free) u.largest_free = b->bytes;
        }
        u.segments++;
        sat_inc(&u.bytes, s->bytes);
        sat_inc(&u.free, free);
        if (used > 0) sat_inc(&u.stuck, free);
    }
    return u;
}

/* Return when memory events of step i begin and end. */
static int64_t mem_start(const struct trace *t, size_t i) {
    int64_t from, to;
    step_mem_time(t, &t->steps[i], &from, &to);
    return from;
}

static int64_t mem_end(const struct trace *t, size_t i) {
    int64_t from, to;
    step_mem_time(t, &t->steps[i], &from, &to);
    return to;
}

static void put_allocator(struct result *r, const struct mem_levels *l,
                          const struct allocator *a,
                          const struct mem_scope *in) {
    const struct trace *t = l->t;
    uint32_t peak = mem_peak(l, in);
    if (peak == EVENT_NONE) return;
    int64_t ts = t->mem.ts[l->first + peak];
    int64_t held = mem_reserved(t, l->first + peak);
    int64_t used = l->level[peak], most = a->capacity;
    if (most < 0 && a->device < t->ndevices && /* not its own: the device's */
        t->devices[a->device].memory_bytes > 0)
        most = t->devices[a->device].memory_bytes;
    const struct source *src = &t->sources[a->source];
    size_t i; /* behind the last step that begins by then */
    BOUND(i, src->step_first, src->step_end, mem_start(t, i) <= ts);
    int64_t allocs = 0, frees = 0, reserved = -1; /* -1: not recorded */
    for (size_t k = l->first; k < l->first + l->n; k++) {
        if (!mem_scope_has(in, t->mem.ts[k])) continue;
        if (t->mem.bytes[k] >= 0) allocs++;
        else frees++;
        int64_t now = mem_reserved(t, k);
        if (now > reserved) reserved = now;
    }
    struct segment_use u = segment_use_of(t, t->mem.allocator[l->first]);
    result_row(r);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    cell_int(r, "peak_bytes", used);
    cell_int(r, "peak_at_us", ts);
    if (i > src->step_first && ts < mem_end(t, i - 1))
        cell_int(r, "peak_step", t->steps[i - 1].number);
    /* torch writes 0 for host memory, where nothing is ever held back */
    if (reserved > 0) cell_int(r, "reserved_bytes", reserved);
    cell_int(r, "allocs", allocs);
    cell_int(r, "frees", frees);
    cell_int(r, "live_at_end_bytes", l->level[l->n - 1]);
    if (held > 0 && held >= used)
        cell_float(r, "fragmentation_pct",
                   100.0 * (1.0 - (double)used / (double)held));
    cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
    cell_int(r, "before_window_bytes", l->base);
    if (a->peak_life >= 0) cell_int(r, "peak_life_bytes", a->peak_life);
    if (a->fragmentation >= 0)
        cell_float(r, "free_fragmentation_pct", 100.0 * a->fragmentation);
    if (most >= 0) cell_int(r, "capacity_bytes", most);
    if (u.segments == 0) return;
    cell_int(r, "segments", (int64_t)u.segments);
    cell_int(r, "segment_free_bytes", u.free);
    cell_int(r, "segment_stuck_bytes", u.stuck);
}

/* ---- the level over time ---- */

static const struct column time_cols[] = {
    {"device", NULL, NULL, "whose memory it is", COL_TEXT, COL_KEY},
    {"at_us", "at", "us", "when", COL_TIME, COL_STAMP},
    {"allocated_bytes", "allocated", "bytes", "in use then", COL_BYTES,
     COL_MAIN | COL_SIZE},
    {"reserved_bytes", "reserved", "bytes",
     "held by the allocator then, in use or not", COL_BYTES, 0},
    {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT, COL_DETAIL},
};

static void put_point(struct result *r, const struct mem_levels *l,
                      const struct allocator *a, size_t i) {
    const struct trace *t = l->t;
    size_t k = l->first + i;
    int64_t held = mem_reserved(t, k);
    result_row(r);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    cell_int(r, "at_us", t->mem.ts[k]);
    cell_int(r, "allocated_bytes", l->level[i]);
    if (held > 0) cell_int(r, "reserved_bytes", held);
    cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
}

/* Puts a stretch of the time: its highest and its last event. */
static void put_stretch(struct result *r, const struct mem_levels *l,
                        const struct allocator *a, size_t highest,
                        size_t last) {
    put_point(r, l, a, highest);
    if (last != highest) put_point(r, l, a, last);
}

/* Puts at most `points` of the events that count, in time order: all where they
 * fit; else the time is cut into points / 2 equal stretches, and each gives
 * its highest level and its last. Every point is exact. O(events). */
static void put_timeline(struct result *r, const struct mem_levels *l,
                         const struct allocator *a, const struct mem_scope *in,
                         size_t points) {
    const int64_t *ts = l->t->mem.ts + l->first;
    const size_t stretches = points / 2, none = SIZE_MAX;
    size_t n = 0, from = 0, to = 0, now = none, highest = 0, last = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (!mem_scope_has(in, ts[i])) continue;
        if (n++ == 0) from = i;
        to = i;
    }
    double whole = (double)(ts[to] - ts[from]);
    for (size_t i = from; i <= to; i++) {
        if (!mem_scope_has(in, ts[i])) continue;
        size_t s = i; /* where all fit each event is a stretch */
        if (n > points) {
            /* a double is exact enough to choose a stretch */
            double part = whole > 0 ? (double)(ts[i] - ts[from]) / whole : 0;
            s = (size_t)(part * (double)stretches);
            if (s >= stretches) s = stretches - 1;
        }
        if (s != now && now != none) put_stretch(r, l, a, highest, last);
        if (s != now || l->level[i] > l->level[highest]) highest = i;
        now = s;
        last = i;
    }
    if (now != none) put_stretch(r, l, a, highest, last);
}

/* ---- who held what at one instant ---- */

struct holder {
    str_id key; /* in holders.texts; 0: not known */
    int64_t bytes;
    int64_t blocks; /* 0: nobody knows how many */
};

/* Who holds the memory that is in use at one instant, such as the peak: every
 * byte of the level is in exactly one row. A zeroed one is empty. */
struct holders {
    struct strs texts;
    struct holder *v; /* largest first */
    size_t n, cap;
    struct map rows; /* while rows are added: key -> index in v */
    int64_t total;   /* = the level, to the byte */
    bool gone;       /* blocks were taken as freed: see mem_rest */
};

static void holders_free(struct holders *h) {
    if (h->texts.text) strs_free(&h->texts);
    free(h->v);
    map_free(&h->rows);
    *h = (struct holders){0};
}

/* Returns the key of row i; NULL if it is not known. */
static const char *holder_key(const struct holders *h, size_t i) {
    assert(i < h->n);
    str_id key = h->v[i].key;
    return key == 0 ? NULL : strs_text(&h->texts, key);
}

static bool holders_add(struct holders *h, struct bytes key, int64_t bytes,
                        int64_t blocks) {
    str_id id = key.n == 0 ? 0 : strs_intern(&h->texts, key);
    uint32_t *row = id == STR_NONE ? NULL : map_at(&h->rows, id);
    if (!row || (*row == MAP_NONE && !VEC_ROOM(h->v, h->n, h->cap)))
        return false;
    if (*row == MAP_NONE) {
        *row = (uint32_t)h->n;
        h->v[h->n++] = (struct holder){.key = id};
    }
    sat_inc(&h->v[*row].bytes, bytes);
    sat_inc(&h->v[*row].blocks, blocks);
    sat_inc(&h->total, bytes);
    return true;
}

/* Adds all that is in use after that event. Returns false if out of memory. */
static bool holders_add_all(struct holders *h, const struct mem_blocks *b,
                            uint32_t after, enum mem_key by) {
    const struct mem_levels *l = b->l;
    const struct trace *t = l->t;
    struct mem_rest rest = mem_rest(l, after);
    char buf[MEM_TEXT_MAX];
    bool ok = true;
    h->gone = rest.gone + rest.gone_before > 0;
    for (size_t i = 0; ok && after != EVENT_NONE && i <= after; i++) {
        if (!mem_held(l, i, after, &rest)) continue;
        size_t k = l->first + i;
        struct mem_site at = mem_site_of(b->sites, k);
        struct bytes key = {(const uint8_t *)buf, 0};
        if (by == MEM_BY_CATEGORY) key = mem_block_label(b, i, &at);
        else key.n = mem_site_text(b->sites, &at, k, by, buf, sizeof buf);
        ok = holders_add(h, key, t->mem.bytes[k], 1);
    }
    for (size_t i = 0; ok && i < l->nbefore; i++) {
        if (!mem_held_before(l, i, after, &rest)) continue;
        const struct mem_before *old = &t->before[l->before_first + i];
        struct bytes key = {(const uint8_t *)buf, 0};
        if (by == MEM_BY_CATEGORY)
            key = bytes_of(
                mem_category_name(mem_before_category(b->sites, old->stack)));
        else if (by == MEM_BY_STACK)
            key.n = stack_text(t, old->stack, MEM_FRAMES, buf, sizeof buf);
        if (key.n == 0) key = bytes_of("before-window");
        ok = holders_add(h, key, old->bytes, 1);
    }
    if (ok && rest.before != 0)
        ok = holders_add(h, bytes_of("before-window"), rest.before, 0);
    const char *lost = by == MEM_BY_CATEGORY ? "unknown" : "unrecorded";
    if (ok && rest.lost != 0) ok = holders_add(h, bytes_of(lost), rest.lost, 0);
    return ok;
}

static int larger_holder(const void *pa, const void *pb) {
    const struct holder *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Finds what is in use after that event of the allocator (EVENT_NONE: before
 * the first), by that key. Blocks from before the window are the row
 * "before-window" unless the source knows their stacks; what the level holds
 * beyond all blocks is "unrecorded" (category: "unknown"). O(events). */
static int holders_init(struct holders *h, const struct mem_blocks *b,
                        uint32_t after, enum mem_key by, struct ops_err *e) {
    *h = (struct holders){0};
    if (!strs_init(&h->texts) || !holders_add_all(h, b, after, by)) {
        holders_free(h);
        return fail_oom(e);
    }
    if (h->n > 1) qsort(h->v, h->n, sizeof *h->v, larger_holder);
    map_free(&h->rows); /* the rows have moved */
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
    result_cols(r, cols, COUNT(cols));
}

static int put_holders(struct result *r, const struct memory *m,
                       const struct mem_levels *l, const struct allocator *a,
                       const struct mem_scope *in, struct ops_err *e) {
    const struct trace *t = l->t;
    uint32_t peak = mem_peak(l, in);
    if (peak == EVENT_NONE) return 0;
    struct mem_blocks blocks;
    struct holders h;
    TRY(mem_blocks_init(&blocks, &m->sites, l, e));
    int rc = holders_init(&h, &blocks, peak, m->view->key, e);
    mem_blocks_free(&blocks);
    if (rc != 0) return rc;
    for (size_t i = 0; i < h.n; i++) {
        result_row(r);
        cell_text(r, "device", label_device(r, t, a->source, a->device));
        cell_text(r, m->view->name, holder_key(&h, i));
        cell_int(r, "bytes", h.v[i].bytes);
        if (h.v[i].blocks > 0) cell_int(r, "blocks", h.v[i].blocks);
        if (h.total != 0)
            cell_float(r, "share_pct",
                       100.0 * (double)h.v[i].bytes / (double)h.total);
        cell_int(r, "peak_at_us", t->mem.ts[l->first + peak]);
        cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
    }
    if (h.gone) mem_say_gone(r);
    holders_free(&h);
    return 0;
}

/* ---- what is said beside the table ---- */

/* Finds who held the most when an allocation failed: an op, or, where no op is
 * known (a snapshot alone), a place in the code. Writes nothing if nobody
 * did. */
static int oom_holder(const struct memory *m, const struct mem_oom *o,
                      char *buf, size_t cap, struct ops_err *e) {
    struct mem_levels l;
    struct mem_blocks blocks = {0};
    struct holders h = {0};
    buf[0] = '\0';
    TRY(mem_levels_init(&l, m->t, o->allocator, e));
    uint32_t at = mem_event_at(&l, o->ts);
    int rc = mem_blocks_init(&blocks, &m->sites, &l, e);
    if (rc == 0 && l.n > 0) rc = holders_init(&h, &blocks, at, MEM_BY_OP, e);
    if (rc == 0 && h.n > 0 && !holder_key(&h, 0)) {
        holders_free(&h);
        rc = holders_init(&h, &blocks, at, MEM_BY_STACK, e);
    }
    if (rc == 0 && h.n > 0) {
        /* writes "; of 1.20 GiB in use aten::mm held the most, 1.00 GiB" */
        char most[NUMBER_MAX], all[NUMBER_MAX];
        const char *key = holder_key(&h, 0);
        if (!key) key = "somebody unknown";
        if (strcmp(key, "before-window") == 0)
            key = "blocks from before the window";
        const char *end = strstr(key, " < "); /* a stack: where it begins */
        cut_fmt(buf, cap, "; of %s in use %.*s held the most, %s",
                human_bytes(h.total, all, sizeof all),
                end ? (int)(end - key) : (int)strlen(key), key,
                human_bytes(h.v[0].bytes, most, sizeof most));
    }
    holders_free(&h);
    mem_blocks_free(&blocks);
    mem_levels_free(&l);
    return rc;
}

/* Says which allocations failed, the first few: a program that catches the
 * failure and tries again fails many times. */
static int say_ooms(const struct memory *m, struct result *r,
                    struct ops_err *e) {
    enum { SHOWN = 3 };
    size_t n = 0;
    for (size_t i = 0; i < m->t->nooms; i++) {
        const struct mem_oom *o = &m->t->ooms[i];
        uint32_t source = m->t->allocators[o->allocator].source;
        if ((!m->selection.all && !m->selection.source_in[source]) ||
            n++ >= SHOWN)
            continue;
        char who[512], held[1024], asked[NUMBER_MAX], spare[NUMBER_MAX];
        bool known = o->device_free >= 0;
        /* says what it was for: its op, else where its stack began */
        const struct trace *t = m->t;
        row_id op = span_at(t, o->track, o->ts);
        for (int k = 0; op != ROW_NONE && t->spans.kind[op] != SPAN_OP; k++)
            op = k < CLIMB_MAX ? t->spans.parent[op] : ROW_NONE;
        if (op != ROW_NONE) cut_fmt(who, sizeof who, "%s", span_name(t, op));
        else if (stack_text(t, o->stack, 1, who, sizeof who) == 0)
            snprintf(who, sizeof who, "the program");
        TRY(oom_holder(m, o, held, sizeof held, e));
        human_bytes(o->bytes, asked, sizeof asked);
        human_bytes(o->device_free, spare, sizeof spare);
        result_remark(r, "out of memory: %s asked for %s%s%s%s%s", who, asked,
                      known ? " when " : "", known ? spare : "",
                      known ? " were free on the device" : "", held);
    }
    if (n > SHOWN)
        result_remark_n(r, n - SHOWN, "and %zu more allocation[|s] failed",
                        n - SHOWN);
    return 0;
}

static void say_segments(const struct memory *m, struct result *r) {
    const struct trace *t = m->t;
    for (size_t i = 0; t->nsegments > 0 && i < t->nallocators; i++) {
        struct segment_use u = segment_use_of(t, (uint32_t)i);
        uint32_t source = t->allocators[i].source;
        if (u.segments == 0 ||
            (!m->selection.all && !m->selection.source_in[source]))
            continue;
        char all[NUMBER_MAX], spare[NUMBER_MAX], stuck[NUMBER_MAX],
            largest[NUMBER_MAX];
        result_remark_n(
            r, u.segments,
            "%s: when the snapshot was taken its %zu segment[|s] held %s, of "
            "which %s were free, %s of them in segments that also hold "
            "blocks; the largest free piece is %s",
            strs_text(&t->strs, t->allocators[i].name), u.segments,
            human_bytes(u.bytes, all, sizeof all),
            human_bytes(u.free, spare, sizeof spare),
            human_bytes(u.stuck, stuck, sizeof stuck),
            human_bytes(u.largest_free, largest, sizeof largest));
    }
}

/* ---- the analysis ---- */

/* Puts the rows of allocator i. */
static int memory_allocator(struct memory *m, uint32_t i, struct result *r,
                            struct ops_err *e) {
    const struct allocator *a = &m->t->allocators[i];
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, &m->selection, a->source, &wanted, e));
    struct mem_levels l = {0};
    int rc = wanted ? mem_levels_init(&l, m->t, i, e) : 0;
    if (rc == 0 && l.n > 0) {
        m->replayed |= !l.recorded;
        m->apart |= l.recorded && l.apart;
        if (m->view == &views[VIEW_TIME])
            put_timeline(r, &l, a, &in, m->points);
        else if (m->view == &views[VIEW_ALLOCATOR])
            put_allocator(r, &l, a, &in);
        else rc = put_holders(r, m, &l, a, &in, e);
    }
    mem_levels_free(&l);
    mem_scope_free(&in);
    return rc;
}

static int memory_fill(struct memory *m, const struct opts *o, struct result *r,
                       struct ops_err *e) {
    enum mem_key key = m->view->key;
    r->title = m->view->title;
    result_from_trace(r, m->t);
    missing_say(r, m->t, MISSING_MEMORY);
    if (key == MEM_BY_MODULE || (key == MEM_BY_STACK && m->t->stacks.n == 0))
        missing_say(r, m->t, MISSING_STACKS);
    if (m->view == &views[VIEW_ALLOCATOR])
        result_cols(r, allocator_cols, COUNT(allocator_cols));
    else if (m->view == &views[VIEW_TIME]) {
        result_cols(r, time_cols, COUNT(time_cols));
        r->in_order = true;
    } else holder_columns(r, m->view);
    TRY(select_init(&m->selection, m->t, o, e));
    if (m->view > &views[VIEW_TIME] || m->t->nooms > 0)
        TRY(mem_sites_init(&m->sites, m->t, e));
    if (key == MEM_BY_MODULE) TRY(mem_sites_modules(&m->sites, e));
    for (size_t i = 0; i < m->t->nallocators; i++)
        TRY(memory_allocator(m, (uint32_t)i, r, e));
    if (m->replayed)
        result_remark(r, "the profile does not tell how much was in use: it "
                         "is counted from its allocations and frees, and "
                         "blocks from before the window that were not freed "
                         "in it are unknown");
    if (m->apart)
        result_remark(r, "shared memory (batches of a DataLoader's workers) is "
                         "not in the allocator's own total: it is counted from "
                         "its allocations and frees, and added");
    say_segments(m, r);
    return say_ooms(m, r, e);
}

static int memory_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    const char *by = opts_text(o, "by");
    int64_t points = opts_int(o, "points");
    struct memory m = {.t = t, .view = views, .points = (size_t)points};
    result_init(r, "memory", NULL);
    for (size_t i = 0; i < COUNT(views); i++)
        if (by && strcmp(by, views[i].name) == 0) m.view = &views[i];
    int rc = memory_fill(&m, o, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&m.sites);
    select_free(&m.selection);
    return rc;
}

const struct analysis analysis_memory = {
    .name = "memory",
    .help = "peak, reserved and live memory of each device, and who holds it",
    .row = "one device or allocator",
    .opts = memory_opts,
    .run = memory_run,
};
