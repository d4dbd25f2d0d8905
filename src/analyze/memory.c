/* SPDX-License-Identifier: Apache-2.0
 * memory: one row per allocator: how much, when, and how well it was used. */
#include "analyze/analyze.h"
#include "analyze/live.h"
#include "analyze/mem_scope.h"
#include "analyze/missing.h"
#include "analyze/where.h"

static void put_columns(struct result *r) {
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
        {"capacity_bytes", "capacity", "bytes", "most it could ever hold",
         COL_BYTES, COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

/* The step of that source that was running at ts, or NULL. */
static const struct step *step_at(const struct trace *t, uint32_t source,
                                  int64_t ts) {
    for (size_t i = 0; i < t->nsteps; i++) {
        const struct step *s = &t->steps[i];
        if (s->source == source && s->ts <= ts && ts < s->ts + s->dur)
            return s;
    }
    return NULL;
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
        if (m->bytes[k] >= 0)
            c.allocs++;
        else
            c.frees++;
        int64_t held = mem_reserved(l->t, k);
        if (held > c.reserved) c.reserved = held;
    }
    return c;
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
    where_device(r, t, a->source, a->device);
    result_int(r, used);
    result_int(r, ts);
    result_int_if(r, s != NULL, s ? s->number : 0);
    /* torch writes 0 for host memory, where nothing is ever held back */
    result_int_if(r, c.reserved > 0, c.reserved);
    result_int(r, c.allocs);
    result_int(r, c.frees);
    result_int(r, l->level[l->n - 1]);
    result_float_if(r, held > 0,
                    100.0 * (1.0 - (double)used / (double)held));
    result_str(r, strs_bytes(&t->strs, a->name));
    result_int(r, l->base);
    result_int_if(r, a->peak_life >= 0, a->peak_life);
    result_float_if(r, a->fragmentation >= 0, 100.0 * a->fragmentation);
    result_int_if(r, a->capacity >= 0, a->capacity);
}

static int allocator_run(const struct trace *t, uint16_t i,
                         const struct scope *scope, struct result *r,
                         bool *replayed, struct ops_err *e) {
    const struct allocator *a = &t->allocators[i];
    struct mem_scope in;
    bool wanted;
    TRY(mem_scope_init(&in, scope, a->source, &wanted, e));
    struct live l = {0};
    int rc = wanted ? live_init(&l, t, i, e) : 0;
    if (rc == 0 && l.n > 0) {
        put_row(r, &l, a, &in);
        *replayed |= !l.recorded;
    }
    live_free(&l);
    mem_scope_free(&in);
    return rc;
}

static int memory_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct scope scope = {0};
    bool replayed = false;
    result_init(r, "memory", "Memory by allocator");
    result_from_trace(r, t);
    missing_say(r, t, MISSING_MEMORY);
    put_columns(r);
    int rc = scope_init(&scope, t, o, e);
    for (size_t i = 0; rc == 0 && i < t->nallocators; i++)
        rc = allocator_run(t, (uint16_t)i, &scope, r, &replayed, e);
    if (replayed)
        result_remark(r, "the profile does not tell how much was in use: it "
                         "is counted from its allocations and frees, and "
                         "blocks from before the window that were not freed "
                         "in it are unknown");
    if (rc == 0) rc = result_done(r, e);
    scope_free(&scope);
    return rc;
}

const struct analysis analysis_memory = {
    .name = "memory",
    .help = "peak, reserved and live memory of each device",
    .row = "one device or allocator",
    .run = memory_run,
};
