/* SPDX-License-Identifier: Apache-2.0
 * leaks: sites whose blocks stay, step after step.
 *
 * A survivor is a block that was allocated in a step and is still there after
 * the last one. In a healthy program the last step has survivors (gradients,
 * results, a batch that was loaded ahead) and perhaps the first (an optimizer's
 * state, caches that fill once). A leak has them all along. So a site leaks if
 *
 *   - its survivors come from at least half of the steps in each third of the
 *     run (rounded down: every other step is enough), the last step apart: a
 *     cache that stops growing misses the last third, buffers of any depth the
 *     first;
 *   - nothing of the same size from before the window was freed in as many
 *     steps: a ring deeper than the window takes one and gives one back;
 *   - the level at the end of the steps grows by a good part of it.
 *
 * Blocks are told apart by op and call stack; where no stack was recorded, by
 * op and size; and if that finds nothing though the level grows, by op alone:
 * sizes may differ from step to step. */
#include "analyze/analyze.h"
#include "analyze/memory/mem_levels.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/where.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include <stdlib.h>

/* ---- finding ---- */

struct leak_site {
    size_t event;        /* row of trace->mem: its first block, by which it
                               is named (mem_site_of, mem_site_text) */
    int64_t total_bytes; /* still there after the last step */
    int64_t blocks;
    int64_t bytes_per_step; /* mean over the steps */
    uint32_t steps_seen;    /* steps that left some */
};

/* The level of one allocator, whether it leaks or not. */
struct leak_level {
    uint32_t allocator;
    size_t steps;        /* that were looked at; fewer than LEAK_STEPS: too
                                few to tell, and no level */
    int64_t first, last; /* bytes in use at the end of the first and of the
                                last of them */
    int64_t first_step, last_step; /* their numbers */
    size_t sites;                  /* that leak */
    int64_t bytes_per_step;        /* of all of them */
};

enum { LEAK_STEPS = 3 }; /* one can be a start, two a replacement */

/* Zeroed is empty. */
struct leaks {
    struct leak_site *v;
    size_t n, cap; /* by allocator, largest first */
    struct leak_level *levels;
    size_t nlevels; /* of allocators with events */
};

static void leaks_free(struct leaks *l) {
    free(l->v);
    free(l->levels);
    *l = (struct leaks){0};
}

/* A site while it is being counted. */
struct tally {
    size_t event;
    uint64_t place; /* place_key: the same for all sizes of one op */
    int64_t bytes, blocks;
    int64_t later;     /* bytes of steps after the first */
    int64_t size;      /* of all its blocks, or -1: they differ */
    uint32_t seen;     /* steps */
    uint32_t third[3]; /* the same in each third of the steps but the last */
    size_t last;       /* last step seen */
};

struct search {
    const struct mem_sites *sites;
    const struct trace *t;
    struct mem_levels l;
    struct mem_steps steps; /* borrowed: allocators of a source share them */
    struct map by_site;     /* key -> tally */
    struct tally *v;
    size_t n, cap;
    struct map freed; /* size of blocks from before the window that were
                           freed -> steps that did so */
    int64_t growth;   /* of the level, end of the first to end of the last */
    bool coarse;      /* by op alone */
};

/* Steps that must have survivors: all but the last, whose blocks may just not
 * have been replaced yet; with three there is none to spare. */
static size_t steps_that_tell(const struct search *s) {
    return s->steps.n > LEAK_STEPS ? s->steps.n - 1 : s->steps.n;
}

/* The step that event i is in, or steps.n. */
static size_t step_of(const struct search *s, size_t i) {
    int64_t ts = s->t->mem.ts[s->l.first + i];
    size_t k = mem_steps_at(&s->steps, ts);
    return k < s->steps.n && ts < s->steps.v[k].end ? k : s->steps.n;
}

static bool survives(const struct search *s, size_t i, int64_t end) {
    uint32_t mate = s->l.mate[i];
    size_t k = s->l.first + i;
    return s->t->mem.bytes[k] > 0 && s->t->mem.addr[k] != 0 &&
           (mate == EVENT_NONE || s->t->mem.ts[s->l.first + mate] >= end);
}

/* The site by its op, or by op and stack where there is one. */
static uint64_t place_key(const struct search *s, size_t k, bool *stack) {
    const struct trace *t = s->t;
    struct mem_site at = mem_site_of(s->sites, k);
    uint64_t h = t->mem.what[k];
    if (at.user != ROW_NONE) h = t->spans.name[at.user];
    h = hash_pair(h, (uint64_t)at.phase);
    if (at.root != ROW_NONE) h = hash_pair(h, t->spans.name[at.root]);
    uint64_t frames = s->coarse ? 0 : mem_site_stack(s->sites, k);
    *stack = frames != 0;
    return *stack ? hash_pair(h, frames) : h;
}

static struct tally *tally_of(struct search *s, size_t k) {
    bool stack;
    uint64_t place = place_key(s, k, &stack), key = place;
    if (!stack && !s->coarse)
        key = hash_pair(place, (uint64_t)s->t->mem.bytes[k]);
    uint32_t *at = map_at(&s->by_site, key);
    if (!at) return NULL;
    if (*at == MAP_NONE) {
        if (!VEC_ROOM(s->v, s->n, s->cap)) return NULL;
        *at = (uint32_t)s->n;
        s->v[s->n++] = (struct tally){.event = k,
                                      .last = SIZE_MAX,
                                      .place = place,
                                      .size = s->t->mem.bytes[k]};
    }
    return &s->v[*at];
}

static bool count_survivor(struct search *s, size_t k, size_t step) {
    struct tally *y = tally_of(s, k);
    if (!y) return false;
    int64_t bytes = s->t->mem.bytes[k];
    sum_add(&y->bytes, bytes);
    if (step > 0) sum_add(&y->later, bytes);
    y->blocks++;
    if (y->size != bytes) y->size = -1;
    if (y->last == step) return true;
    y->last = step;
    y->seen++;
    size_t tell = steps_that_tell(s);
    if (step < tell) y->third[step * 3 / tell]++;
    return true;
}

static bool count_all(struct search *s) {
    const struct mem_levels *l = &s->l;
    int64_t end = s->steps.v[s->steps.n - 1].end;
    s->n = 0;
    map_free(&s->by_site);
    for (size_t i = 0; i < l->n; i++) {
        size_t step = step_of(s, i);
        if (step == s->steps.n || !survives(s, i, end)) continue;
        if (!count_survivor(s, l->first + i, step)) return false;
    }
    return true;
}

/* In how many steps a block from before the window was freed, by its size.
 * Events come in time order, so a step is counted when it is first seen. */
static bool count_freed(struct search *s) {
    const struct mem_events *m = &s->t->mem;
    struct map last = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->l.n; i++) {
        int64_t bytes = m->bytes[s->l.first + i];
        size_t step = step_of(s, i);
        if (bytes >= 0 || s->l.mate[i] != EVENT_NONE || step == s->steps.n)
            continue;
        uint32_t *seen = map_at(&last, (uint64_t)bytes);
        if (seen && *seen == step) continue;
        if (seen) *seen = (uint32_t)step;
        uint32_t *n = map_at(&s->freed, (uint64_t)bytes);
        if (n) *n = *n == MAP_NONE ? 1 : *n + 1;
        ok = seen && n;
    }
    map_free(&last);
    return ok;
}

static bool in_every_third(const struct search *s, const struct tally *y) {
    uint32_t steps[3] = {0, 0, 0};
    size_t n = steps_that_tell(s);
    /* thirds differ by one step at the most: count, do not guess */
    for (unsigned k = 0; k < 3; k++)
        steps[k] = (uint32_t)((n * (k + 1) + 2) / 3 - (n * k + 2) / 3);
    uint64_t all = 0;
    for (unsigned k = 0; k < 3; k++) {
        if (y->third[k] < steps[k] / 2 || y->third[k] == 0) return false;
        all += y->third[k];
    }
    return all >= n / 2;
}

static bool is_leak(const struct search *s, const struct tally *y) {
    if (!in_every_third(s, y)) return false;
    if (s->growth <= 0 || y->later / 4 > s->growth) return false;
    uint32_t back = y->size < 0 ? MAP_NONE
                                : map_get(&s->freed, (uint64_t)-y->size);
    return back == MAP_NONE || back * UINT64_C(2) < y->seen;
}

static int larger_leak(const void *pa, const void *pb) {
    const struct leak_site *a = pa, *b = pb;
    if (a->total_bytes != b->total_bytes)
        return a->total_bytes < b->total_bytes ? 1 : -1;
    return a->event < b->event ? -1 : a->event > b->event;
}

/* One more leak. Sizes of one op are one row: an allocator that does not split
 * a block gives more than was asked for, now and then. */
static bool take_leak(struct search *s, struct leaks *out, struct map *places,
                      const struct tally *y) {
    uint32_t *at = map_at(places, y->place);
    if (!at) return false;
    if (*at == MAP_NONE) {
        if (!VEC_ROOM(out->v, out->n, out->cap)) return false;
        *at = (uint32_t)out->n;
        out->v[out->n++] = (struct leak_site){.event = y->event};
    }
    struct leak_site *to = &out->v[*at];
    sum_add(&to->total_bytes, y->bytes);
    to->blocks += y->blocks;
    to->bytes_per_step = to->total_bytes / (int64_t)s->steps.n;
    if (y->seen > to->steps_seen) to->steps_seen = y->seen;
    return true;
}

static bool take_leaks(struct search *s, struct leaks *out,
                       struct leak_level *level) {
    size_t first = out->n;
    struct map places = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++)
        if (is_leak(s, &s->v[i])) ok = take_leak(s, out, &places, &s->v[i]);
    map_free(&places);
    level->sites = out->n - first;
    for (size_t i = first; i < out->n; i++)
        sum_add(&level->bytes_per_step, out->v[i].bytes_per_step);
    if (level->sites > 1)
        qsort(out->v + first, level->sites, sizeof *out->v, larger_leak);
    return ok;
}

static void find_level(struct search *s, struct leak_level *level) {
    const struct mem_step *a = &s->steps.v[0];
    const struct mem_step *z = &s->steps.v[s->steps.n - 1];
    level->first = mem_level_after(&s->l, mem_event_at(&s->l, a->end - 1));
    level->last = mem_level_after(&s->l, mem_event_at(&s->l, z->end - 1));
    level->first_step = s->t->steps[a->step].number;
    level->last_step = s->t->steps[z->step].number;
    s->growth = diff_of(level->last, level->first);
}

static bool search_sites(struct search *s, struct leaks *out,
                         struct leak_level *level) {
    find_level(s, level);
    if (!count_freed(s) || !count_all(s) || !take_leaks(s, out, level))
        return false;
    if (level->sites > 0 || s->growth <= 0) return true;
    s->coarse = true;
    return count_all(s) && take_leaks(s, out, level);
}

static int search_allocator(struct leaks *out, const struct mem_sites *sites,
                            const struct mem_steps *steps, uint32_t allocator,
                            struct ops_err *e) {
    const struct trace *t = sites->t;
    struct search s = {.sites = sites, .t = t, .steps = *steps};
    int rc = mem_levels_init(&s.l, t, allocator, e);
    if (rc == 0 && s.l.n > 0) {
        struct leak_level *level = &out->levels[out->nlevels++];
        *level = (struct leak_level){.allocator = allocator,
                                     .steps = s.steps.n};
        if (s.steps.n >= LEAK_STEPS && !search_sites(&s, out, level))
            rc = fail_oom(e);
    }
    mem_levels_free(&s.l);
    map_free(&s.by_site);
    map_free(&s.freed);
    free(s.v);
    return rc;
}

/* Looks at every allocator and step that scope takes. O(events). */
static int leaks_find(struct leaks *out, const struct mem_sites *sites,
                      const struct scope *scope, struct ops_err *e) {
    const struct trace *t = sites->t;
    *out = (struct leaks){0};
    out->levels = vec_alloc(t->nallocators + 1, sizeof *out->levels);
    struct mem_steps steps = {0}; /* of the source at hand */
    uint32_t source = ROW_NONE;
    int rc = out->levels ? 0 : fail_oom(e);
    for (size_t i = 0; rc == 0 && i < t->nallocators; i++) {
        uint32_t now = t->allocators[i].source;
        if (!scope->all && !scope->source_in[now]) continue;
        if (now != source) {
            mem_steps_free(&steps);
            source = now;
            rc = mem_steps_init(&steps, t, scope, source, e);
        }
        if (rc == 0) rc = search_allocator(out, sites, &steps, (uint32_t)i, e);
    }
    mem_steps_free(&steps);
    if (rc != 0) leaks_free(out);
    return rc;
}

/* ---- the table ---- */

static void leaks_columns(struct result *r) {
    static const struct column cols[] = {
        {"op", NULL, NULL, "the operation that allocates what stays", COL_TEXT,
         COL_KEY},
        {"stack", NULL, NULL, "where it is called from, innermost frame first",
         COL_TEXT, COL_SYMBOL},
        {"bytes_per_step", "per step", "bytes",
         "what a step leaves behind, on average", COL_BYTES, 0},
        {"steps_seen", "steps", NULL, "in so many steps it left some", COL_INT,
         0},
        {"total_bytes", "total", "bytes",
         "left behind by all steps and still there after the last", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
        {"blocks", NULL, NULL, "in so many blocks", COL_INT, 0},
        {"scope", NULL, NULL, "the named regions around the operation",
         COL_TEXT, COL_DETAIL},
        {"module", NULL, NULL, "the innermost nn.Module around it", COL_TEXT,
         COL_DETAIL},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

static void put_leak(struct result *r, const struct mem_sites *s,
                     const struct leak_site *leak) {
    const struct trace *t = s->t;
    struct mem_site at = mem_site_of(s, leak->event);
    const struct allocator *a = &t->allocators[t->mem.allocator[leak->event]];
    result_row(r);
    mem_site_cell(r, "op", s, &at, leak->event, MEM_BY_OP);
    mem_site_cell(r, "stack", s, &at, leak->event, MEM_BY_STACK);
    cell_int(r, "bytes_per_step", leak->bytes_per_step);
    cell_int(r, "steps_seen", leak->steps_seen);
    cell_int(r, "total_bytes", leak->total_bytes);
    where_device(r, t, a->source, a->device);
    cell_int(r, "blocks", leak->blocks);
    mem_site_cell(r, "scope", s, &at, leak->event, MEM_BY_SCOPE);
    mem_site_cell(r, "module", s, &at, leak->event, MEM_BY_MODULE);
    cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
}

/* What was found, or that nothing was, with the levels to judge by. */
static void say_level(struct result *r, const struct trace *t,
                      const struct leak_level *l) {
    const char *name = strs_text(&t->strs, t->allocators[l->allocator].name);
    char first[NUMBER_MAX], last[NUMBER_MAX], each[NUMBER_MAX];
    if (l->steps < LEAK_STEPS) {
        result_remark(r,
                      "%s: %zu steps are too few to tell a leak from a "
                      "start; %d or more are needed",
                      name, l->steps, (int)LEAK_STEPS);
        return;
    }
    human_bytes(l->first, first, sizeof first);
    human_bytes(l->last, last, sizeof last);
    if (l->sites > 0)
        result_remark(r,
                      "%s: %zu %s behind %s per step; in use at the "
                      "end of step %lld: %s, of step %lld: %s",
                      name, l->sites,
                      l->sites > 1 ? "sites leave" : "site leaves",
                      human_bytes(l->bytes_per_step, each, sizeof each),
                      (long long)l->first_step, first, (long long)l->last_step,
                      last);
    else
        result_remark(r,
                      "%s: nothing grows %s; in use at the end of step "
                      "%lld: %s, of step %lld: %s%s",
                      name,
                      l->last > l->first ? "in every step"
                                         : "from step to step",
                      (long long)l->first_step, first, (long long)l->last_step,
                      last,
                      l->last / 2 > l->first
                          ? ". It grew all the same: `allocs` has what was "
                            "not freed"
                          : "");
}

static int leaks_fill(const struct mem_sites *s, const struct scope *scope,
                      struct result *r, struct ops_err *e) {
    struct leaks found;
    TRY(leaks_find(&found, s, scope, e));
    for (size_t i = 0; i < found.n; i++) put_leak(r, s, &found.v[i]);
    for (size_t i = 0; i < found.nlevels; i++)
        say_level(r, s->t, &found.levels[i]);
    leaks_free(&found);
    return 0;
}

static int leaks_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    struct scope scope = {0};
    struct mem_sites sites = {0};
    result_init(r, "leaks", "Memory that grows from step to step");
    result_from_trace(r, t);
    leaks_columns(r);
    if (missing_say(r, t, MISSING_MEMORY) && t->stacks.n == 0)
        missing_say(r, t, MISSING_STACKS);
    int rc = scope_init(&scope, t, o, e);
    if (rc == 0) rc = mem_sites_init(&sites, t, e);
    if (rc == 0) rc = leaks_fill(&sites, &scope, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&sites);
    scope_free(&scope);
    return rc;
}

const struct analysis analysis_leaks = {
    .name = "leaks",
    .help = "what stays in memory after each step and grows",
    .row = "one site that keeps growing",
    .run = leaks_run,
};
