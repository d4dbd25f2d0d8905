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
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include <stdlib.h>

enum { LEAK_STEPS = 3 }; /* one can be a start, two a replacement */

/* A site while it is being counted. */
struct tally {
    size_t event;
    uint64_t place; /* the same for all sizes of one op */
    int64_t bytes, blocks;
    int64_t later;     /* bytes of steps after the first */
    int64_t size;      /* of all its blocks, or -1: they differ */
    uint32_t seen;     /* steps */
    uint32_t third[3]; /* the same in each third of the steps but the last */
    size_t last;       /* last step seen */
};

/* A site that leaks. */
struct leak_site {
    size_t event;        /* row of trace->mem: its first block, by which it is
                            named (mem_site_of, mem_site_text) */
    int64_t total_bytes; /* still there after the last step */
    int64_t blocks;
    int64_t bytes_per_step; /* mean over the steps */
    uint32_t steps_seen;    /* steps that left some */
};

/* The search in one allocator. */
struct leak_search {
    const struct mem_sites *sites;
    const struct trace *t;
    struct mem_levels l;
    struct mem_steps steps; /* borrowed: allocators of a source share them */
    struct map by_site;     /* key -> tally */
    struct tally *v;
    size_t n, cap;
    struct map freed;    /* size of blocks from before the window that were
                            freed -> steps that did so */
    int64_t first, last; /* bytes in use at the end of the first and of the last
                            step */
    bool coarse;         /* sites are told apart by op alone */
    struct leak_site *found; /* largest first */
    size_t nfound, cap_found;
};

/* Returns how many steps must have survivors: all but the last, whose blocks
 * may just not have been replaced yet; with three there is none to spare. */
static size_t steps_that_tell(const struct leak_search *s) {
    return s->steps.n > LEAK_STEPS ? s->steps.n - 1 : s->steps.n;
}

/* Returns the step that event i is in, or steps.n. */
static size_t step_of(struct leak_search *s, size_t i) {
    int64_t ts = s->t->mem.ts[s->l.first + i];
    size_t k = mem_steps_at(&s->steps, ts);
    return k < s->steps.n && ts < s->steps.v[k].end ? k : s->steps.n;
}

/* Counts the block that event k allocated and that stays. */
static bool count_survivor(struct leak_search *s, size_t k, size_t step) {
    const struct trace *t = s->t;
    int64_t bytes = t->mem.bytes[k];
    /* the site is known by its op, and by its stack where there is one */
    struct mem_site site = mem_site_of(s->sites, k);
    uint64_t frames = s->coarse ? 0 : mem_site_stack(s->sites, k);
    uint64_t place = t->mem.what[k];
    if (site.user != ROW_NONE) place = t->spans.name[site.user];
    place = hash_pair(place, (uint64_t)site.phase);
    if (site.root != ROW_NONE)
        place = hash_pair(place, t->spans.name[site.root]);
    if (frames != 0) place = hash_pair(place, frames);
    uint64_t key = place;
    if (frames == 0 && !s->coarse) key = hash_pair(place, (uint64_t)bytes);
    uint32_t *at = map_at(&s->by_site, key);
    if (!at || (*at == MAP_NONE && !VEC_ROOM(s->v, s->n, s->cap))) return false;
    if (*at == MAP_NONE) {
        *at = (uint32_t)s->n;
        s->v[s->n++] = (struct tally){.event = k,
                                      .last = SIZE_MAX,
                                      .place = place,
                                      .size = bytes};
    }
    struct tally *y = &s->v[*at];
    sat_inc(&y->bytes, bytes);
    if (step > 0) sat_inc(&y->later, bytes);
    y->blocks++;
    if (y->size != bytes) y->size = -1;
    if (y->last == step) return true;
    y->last = step;
    y->seen++;
    size_t tell = steps_that_tell(s);
    if (step < tell) y->third[step * 3 / tell]++;
    return true;
}

static bool count_all(struct leak_search *s) {
    const struct mem_levels *l = &s->l;
    const struct mem_events *m = &s->t->mem;
    int64_t end = s->steps.v[s->steps.n - 1].end;
    s->n = 0;
    map_free(&s->by_site);
    for (size_t i = 0; i < l->n; i++) {
        size_t step = step_of(s, i), k = l->first + i;
        if (step == s->steps.n || m->bytes[k] <= 0 || m->addr[k] == 0 ||
            (l->mate[i] != EVENT_NONE && m->ts[l->first + l->mate[i]] < end))
            continue;
        if (!count_survivor(s, k, step)) return false;
    }
    return true;
}

/* Counts in how many steps a block from before the window was freed, by its
 * size. Events come in time order, so a step is counted when it is first
 * seen. */
static bool count_freed(struct leak_search *s) {
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

static bool is_leak(const struct leak_search *s, const struct tally *y) {
    size_t n = steps_that_tell(s);
    uint64_t all = 0;
    for (size_t k = 0; k < 3; k++) {
        /* thirds differ by one step at the most, so they are counted */
        size_t steps = (n * (k + 1) + 2) / 3 - (n * k + 2) / 3;
        if (y->third[k] < steps / 2 || y->third[k] == 0) return false;
        all += y->third[k];
    }
    if (all < n / 2) return false;
    int64_t growth = sat_sub(s->last, s->first);
    if (growth <= 0 || y->later / 4 > growth) return false;
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

/* Finds the leaks among the tallies. Sizes of one op are one leak: an allocator
 * that does not split a block now and then gives more than was asked for. */
static bool take_leaks(struct leak_search *s) {
    struct map places = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++) {
        const struct tally *y = &s->v[i];
        if (!is_leak(s, y)) continue;
        uint32_t *at = map_at(&places, y->place);
        ok = at &&
             (*at != MAP_NONE || VEC_ROOM(s->found, s->nfound, s->cap_found));
        if (!ok) break;
        if (*at == MAP_NONE) {
            *at = (uint32_t)s->nfound;
            s->found[s->nfound++] = (struct leak_site){.event = y->event};
        }
        struct leak_site *to = &s->found[*at];
        sat_inc(&to->total_bytes, y->bytes);
        to->blocks += y->blocks;
        to->bytes_per_step = to->total_bytes / (int64_t)s->steps.n;
        if (y->seen > to->steps_seen) to->steps_seen = y->seen;
    }
    map_free(&places);
    if (s->nfound > 1)
        qsort(s->found, s->nfound, sizeof *s->found, larger_leak);
    return ok;
}

static bool find_leaks(struct leak_search *s) {
    int64_t first_end = s->steps.v[0].end - 1;
    int64_t last_end = s->steps.v[s->steps.n - 1].end - 1;
    s->first = mem_level_after(&s->l, mem_event_at(&s->l, first_end));
    s->last = mem_level_after(&s->l, mem_event_at(&s->l, last_end));
    if (!count_freed(s) || !count_all(s) || !take_leaks(s)) return false;
    if (s->nfound > 0 || s->last <= s->first) return true;
    s->coarse = true;
    return count_all(s) && take_leaks(s);
}

static const struct column leaks_cols[] = {
    {"op", NULL, NULL, "the operation that allocates what stays", COL_TEXT,
     COL_KEY},
    {"stack", NULL, NULL, "where it is called from, innermost frame first",
     COL_TEXT, COL_SYMBOL},
    {"bytes_per_step", "per step", "bytes",
     "what a step leaves behind, on average", COL_BYTES, 0},
    {"steps_seen", "steps", NULL, "in so many steps it left some", COL_INT, 0},
    {"total_bytes", "total", "bytes",
     "left behind by all steps and still there after the last", COL_BYTES,
     COL_MAIN | COL_SIZE},
    {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
    {"blocks", NULL, NULL, "in so many blocks", COL_INT, COL_LESS},
    {"scope", NULL, NULL, "the named regions around the operation", COL_TEXT,
     COL_DETAIL},
    {"module", NULL, NULL, "the innermost nn.Module around it", COL_TEXT,
     COL_DETAIL},
    {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT, COL_DETAIL},
};

/* Says what was found, or that nothing was, with the levels to judge by. */
static void say_level(struct result *r, const struct leak_search *s,
                      const char *name) {
    char first[NUMBER_MAX], last[NUMBER_MAX], each[NUMBER_MAX];
    if (s->steps.n < LEAK_STEPS) {
        result_remark_n(r, s->steps.n,
                        "%s: %zu step[ is|s are] too few to tell a leak from a "
                        "start; %d or more are needed",
                        name, s->steps.n, (int)LEAK_STEPS);
        return;
    }
    const struct step *steps = s->t->steps;
    long long from = steps[s->steps.v[0].step].number;
    long long to = steps[s->steps.v[s->steps.n - 1].step].number;
    int64_t per_step = 0;
    for (size_t i = 0; i < s->nfound; i++)
        sat_inc(&per_step, s->found[i].bytes_per_step);
    human_bytes(s->first, first, sizeof first);
    human_bytes(s->last, last, sizeof last);
    if (s->nfound > 0)
        result_remark(r,
                      "%s: %zu %s behind %s per step; in use at the "
                      "end of step %lld: %s, of step %lld: %s",
                      name, s->nfound,
                      s->nfound > 1 ? "sites leave" : "site leaves",
                      human_bytes(per_step, each, sizeof each), from, first, to,
                      last);
    else
        result_remark(r,
                      "%s: nothing grows %s; in use at the end of step "
                      "%lld: %s, of step %lld: %s%s",
                      name,
                      s->last > s->first ? "in every step"
                                         : "from step to step",
                      from, first, to, last,
                      s->last / 2 > s->first
                          ? ". It grew all the same: `allocs` has what was "
                            "not freed"
                          : "");
}

/* Puts the leaks of one allocator. The steps are those of t. O(events). */
static int leaks_of(struct result *r, const struct trace *t,
                    const struct mem_sites *sites,
                    const struct mem_steps *steps, uint32_t allocator,
                    struct ops_err *e) {
    const struct allocator *a = &t->allocators[allocator];
    struct leak_search s = {.sites = sites, .t = t, .steps = *steps};
    int rc = mem_levels_init(&s.l, t, allocator, e);
    if (rc == 0 && s.l.n > 0) {
        if (steps->n >= LEAK_STEPS && !find_leaks(&s)) rc = fail_oom(e);
        for (size_t i = 0; rc == 0 && i < s.nfound; i++) {
            const struct leak_site *leak = &s.found[i];
            size_t k = leak->event;
            struct mem_site at = mem_site_of(sites, k);
            result_row(r);
            mem_site_cell(r, "op", sites, &at, k, MEM_BY_OP);
            mem_site_cell(r, "stack", sites, &at, k, MEM_BY_STACK);
            cell_int(r, "bytes_per_step", leak->bytes_per_step);
            cell_int(r, "steps_seen", leak->steps_seen);
            cell_int(r, "total_bytes", leak->total_bytes);
            cell_text(r, "device", label_device(r, t, a->source, a->device));
            cell_int(r, "blocks", leak->blocks);
            mem_site_cell(r, "scope", sites, &at, k, MEM_BY_SCOPE);
            mem_site_cell(r, "module", sites, &at, k, MEM_BY_MODULE);
            cell_str(r, "allocator", strs_bytes(&t->strs, a->name));
        }
        say_level(r, &s, strs_text(&t->strs, a->name));
    }
    mem_levels_free(&s.l);
    map_free(&s.by_site);
    map_free(&s.freed);
    free(s.v);
    free(s.found);
    return rc;
}

static int leaks_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    struct selection scope = {0};
    struct mem_sites sites = {0};
    result_init(r, "leaks", "Memory that grows from step to step");
    result_from_trace(r, t);
    result_cols(r, leaks_cols, COUNT(leaks_cols));
    if (missing_say(r, t, MISSING_MEMORY) && t->stacks.n == 0)
        missing_too(r, t, MISSING_STACKS);
    int rc = select_init(&scope, t, o, e);
    if (rc == 0) rc = mem_sites_init(&sites, t, e);
    struct mem_steps steps = {0}; /* of the source at hand */
    uint32_t source = ROW_NONE;
    for (size_t i = 0; rc == 0 && i < t->nallocators; i++) {
        uint32_t now = t->allocators[i].source;
        if (!scope.all && !scope.source_in[now]) continue;
        if (now != source) {
            mem_steps_free(&steps);
            source = now;
            rc = mem_steps_init(&steps, t, &scope, source, e);
        }
        if (rc == 0) rc = leaks_of(r, t, &sites, &steps, (uint32_t)i, e);
    }
    mem_steps_free(&steps);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&sites);
    select_free(&scope);
    return rc;
}

const struct analysis analysis_leaks = {
    .name = "leaks",
    .help = "what stays in memory after each step and grows",
    .row = "one site that keeps growing",
    .run = leaks_run,
};
