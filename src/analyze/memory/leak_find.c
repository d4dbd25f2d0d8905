/* SPDX-License-Identifier: Apache-2.0
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
#include "analyze/memory/leak_find.h"

#include "analyze/analyze.h"
#include "analyze/memory/live.h"
#include "analyze/memory/mem_site.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

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
    struct live l;
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

static unsigned third_of(const struct search *s, size_t step) {
    return (unsigned)(step * 3 / steps_that_tell(s));
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
           (mate == LIVE_NONE || s->t->mem.ts[s->l.first + mate] >= end);
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
    if (step < steps_that_tell(s)) y->third[third_of(s, step)]++;
    return true;
}

static bool count_all(struct search *s) {
    const struct live *l = &s->l;
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
        if (bytes >= 0 || s->l.mate[i] != LIVE_NONE || step == s->steps.n)
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

static bool leaks(const struct search *s, const struct tally *y) {
    if (!in_every_third(s, y)) return false;
    if (s->growth <= 0 || y->later / 4 > s->growth) return false;
    uint32_t back = y->size < 0 ? MAP_NONE
                                : map_get(&s->freed, (uint64_t)-y->size);
    return back == MAP_NONE || back * UINT64_C(2) < y->seen;
}

static int larger_first(const void *pa, const void *pb) {
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
        if (leaks(s, &s->v[i])) ok = take_leak(s, out, &places, &s->v[i]);
    map_free(&places);
    level->sites = out->n - first;
    for (size_t i = first; i < out->n; i++)
        sum_add(&level->bytes_per_step, out->v[i].bytes_per_step);
    if (level->sites > 1)
        qsort(out->v + first, level->sites, sizeof *out->v, larger_first);
    return ok;
}

static void find_level(struct search *s, struct leak_level *level) {
    const struct mem_step *a = &s->steps.v[0];
    const struct mem_step *z = &s->steps.v[s->steps.n - 1];
    level->first = live_level(&s->l, live_event_at(&s->l, a->end - 1));
    level->last = live_level(&s->l, live_event_at(&s->l, z->end - 1));
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
    int rc = live_init(&s.l, t, allocator, e);
    if (rc == 0 && s.l.n > 0) {
        struct leak_level *level = &out->levels[out->nlevels++];
        *level = (struct leak_level){.allocator = allocator,
                                     .steps = s.steps.n};
        if (rc == 0 && s.steps.n >= LEAK_STEPS && !search_sites(&s, out, level))
            rc = fail_oom(e);
    }
    live_free(&s.l);
    map_free(&s.by_site);
    map_free(&s.freed);
    free(s.v);
    return rc;
}

int leaks_find(struct leaks *out, const struct mem_sites *sites,
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

void leaks_free(struct leaks *l) {
    free(l->v);
    free(l->levels);
    *l = (struct leaks){0};
}
