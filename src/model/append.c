/* SPDX-License-Identifier: Apache-2.0
 * Joining two unsealed traces: the pieces that parallel importers fill, or the
 * ranks of one job. Small tables are merged entry by entry, with a table from
 * old to new numbers; the columns are copied whole and then renumbered. */
#include "base/facts.h"
#include "base/io/file.h"
#include "base/par.h"
#include "base/vec.h"
#include "model/hlo/hlo.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>

/* The tables of struct renumber, and how many numbers b has of each. */
#define RENUMBERED(X)                                                          \
    X(source, nsources)                                                        \
    X(str, strs.n)                                                             \
    X(cat, ncats)                                                              \
    X(device, ndevices)                                                        \
    X(track, ntracks)                                                          \
    X(allocator, nallocators)                                                  \
    X(counter, ncounters)                                                      \
    X(frame, stacks.nframes)                                                   \
    X(stack, stacks.n)

/* Old number -> new number, for everything that rows refer to. */
struct renumber {
#define X(table, n) uint32_t *table;
    RENUMBERED(X)
#undef X
    int64_t shift;   /* ps to add to times */
    uint32_t beside; /* the source of a that everything of b becomes part of;
                        ROW_NONE: each source of b stays one of its own */
};

/* Returns the source of a that the devices, tracks and allocators of a source
 * of b belong to from now on. */
static uint32_t source_in_a(const struct renumber *m, uint32_t source) {
    return m->beside != ROW_NONE ? m->beside : m->source[source];
}

static void renumber_free(struct renumber *m) {
#define X(table, n) free(m->table);
    RENUMBERED(X)
#undef X
}

static bool renumber_init(struct renumber *m, const struct trace *b) {
    *m = (struct renumber){.beside = ROW_NONE};
#define X(table, n)                                                            \
    if (!vec_resize(&m->table, b->n, sizeof *m->table)) return false;
    RENUMBERED(X)
#undef X
    return true;
}

/* Takes over facts that one piece knows and another does not. */
static void merge_source(struct source *to, const struct source *from) {
    if (to->rank < 0) to->rank = from->rank;
    if (to->world_size < 0) to->world_size = from->world_size;
    if (to->pid < 0) to->pid = from->pid;
    if (to->family == 0) to->family = from->family;
    if (from->decimals > to->decimals) to->decimals = from->decimals;
    if (from->rounding_ps > to->rounding_ps)
        to->rounding_ps = from->rounding_ps;
    to->has_clock |= from->has_clock;
    to->has_memory |= from->has_memory;
    to->has_device |= from->has_device;
    to->has_shapes |= from->has_shapes;
    to->has_stacks |= from->has_stacks;
    to->by_opscope |= from->by_opscope;
    to->process_view |= from->process_view;
    to->beside |= from->beside;
    to->events += from->events;
}

/* Moves sources: the same bytes are the same source. */
static bool move_sources(struct trace *a, struct trace *b, struct renumber *m) {
    for (size_t i = 0; i < b->nsources; i++) {
        struct source *from = &b->sources[i];
        uint32_t k = trace_source_find(a, from->bytes);
        if (k == ROW_NONE) {
            k = trace_source(a, from->path, from->format, from->file,
                             from->bytes);
            from->file = NULL;
            if (k == ROW_NONE) return false;
            a->sources[k].index = from->index;
            from->index = NULL;
        } else if (from->file == a->sources[k].file) {
            from->file = NULL;
        }
        m->source[i] = k;
        merge_source(&a->sources[k], from);
        if (from->host)
            a->sources[k].host = trace_str(a, strs_bytes(&b->strs, from->host));
    }
    for (size_t i = 0; i < b->nsources; i++)
        if (b->sources[i].companion_of != ROW_NONE)
            a->sources[m->source[i]].companion_of =
                m->source[b->sources[i].companion_of];
    return !a->oom;
}

/* Takes over what b's file knows of a device and a's does not, field by field:
 * one piece may have its model, another its memory. */
static void merge_device(struct device *to, const struct device *from,
                         str_id model) {
    if (model) to->model = model;
    if (from->memory_bytes) to->memory_bytes = from->memory_bytes;
    if (from->units) to->units = from->units;
    if (from->cc_major) to->cc_major = from->cc_major;
    if (from->cc_minor) to->cc_minor = from->cc_minor;
    if (from->clock_hz) to->clock_hz = from->clock_hz;
    if (from->bandwidth_bytes_per_s)
        to->bandwidth_bytes_per_s = from->bandwidth_bytes_per_s;
    if (from->peak_flops) to->peak_flops = from->peak_flops;
    if (from->threads_per_unit) to->threads_per_unit = from->threads_per_unit;
}

static void move_devices(struct trace *a, const struct trace *b,
                         struct renumber *m) {
    for (size_t i = 0; i < b->ndevices; i++) {
        const struct device *d = &b->devices[i];
        uint32_t k = trace_device(a, source_in_a(m, d->source), d->kind,
                                  d->ordinal);
        m->device[i] = k;
        if (k == ROW_NONE) continue;
        merge_device(&a->devices[k], d, m->str[d->model]);
        if (!d->labelled) continue;
        a->devices[k].label = m->str[d->label];
        a->devices[k].labelled = true;
    }
}

static uint32_t moved(const uint32_t *map, uint32_t old) {
    return old == ROW_NONE ? ROW_NONE : map[old];
}

static void move_tracks(struct trace *a, const struct trace *b,
                        struct renumber *m) {
    for (size_t i = 0; i < b->ntracks; i++) {
        const struct track *tr = &b->tracks[i];
        uint32_t k = trace_track(a, source_in_a(m, tr->source), tr->kind,
                                 tr->pid, tr->tid);
        m->track[i] = k;
        if (a->oom) return;
        if (a->tracks[k].device == ROW_NONE)
            a->tracks[k].device = moved(m->device, tr->device);
        if (tr->named) trace_track_name(a, k, strs_bytes(&b->strs, tr->name));
    }
    for (size_t i = 0; i < b->ntracks; i++)
        if (b->tracks[i].thread != ROW_NONE)
            a->tracks[m->track[i]].thread = m->track[b->tracks[i].thread];
}

static void move_allocators(struct trace *a, const struct trace *b,
                            struct renumber *m) {
    for (size_t i = 0; i < b->nallocators; i++) {
        const struct allocator *from = &b->allocators[i];
        uint32_t k = trace_allocator(a, source_in_a(m, from->source),
                                     strs_bytes(&b->strs, from->name),
                                     moved(m->device, from->device));
        m->allocator[i] = k;
        if (a->oom) return;
        struct allocator *to = &a->allocators[k];
        if (from->capacity >= 0) to->capacity = from->capacity;
        if (from->peak_life > to->peak_life) to->peak_life = from->peak_life;
        if (from->fragmentation >= 0) to->fragmentation = from->fragmentation;
    }
    for (size_t i = 0; i < b->ncounters; i++) {
        const struct counter *c = &b->counters[i];
        m->counter[i] = trace_counter_of(a, source_in_a(m, c->source), c->pid,
                                         strs_bytes(&b->strs, c->name),
                                         strs_bytes(&b->strs, c->unit),
                                         moved(m->device, c->device));
        if (m->counter[i] == ROW_NONE) continue;
        a->counters[m->counter[i]].ranges = c->ranges;
        a->counters[m->counter[i]].launched = c->launched;
        if (c->process != 0)
            a->counters[m->counter[i]].process =
                trace_str(a, strs_bytes(&b->strs, c->process));
    }
}

static void move_texts(struct trace *a, const struct trace *b,
                       struct renumber *m) {
    for (size_t i = 0; i < b->strs.n; i++)
        m->str[i] = trace_str(a, strs_bytes(&b->strs, (str_id)i));
    a->strs.mended += b->strs.mended;
    for (size_t i = 0; i < b->ncats; i++)
        m->cat[i] =
            trace_category(a, &(struct category){m->str[b->cats[i].text],
                                                 m->str[b->cats[i].hlo_op],
                                                 m->str[b->cats[i].tf_op],
                                                 m->str[b->cats[i].details],
                                                 m->str[b->cats[i].module]});
    for (size_t i = 0; i < b->nmeta && !a->oom; i++) {
        if (!VEC_ROOM(a->meta, a->nmeta, a->cap_meta)) a->oom = true;
        else
            a->meta[a->nmeta++] = (struct meta){m->str[b->meta[i].key],
                                                m->str[b->meta[i].value],
                                                m->source[b->meta[i].source]};
    }
}

/* Rows [from, to) of b, to be put behind a's; and b's memory events. */
struct copy {
    struct trace *a;
    const struct trace *b;
    const struct renumber *m;
    size_t from, to, at; /* at: a's row of b's row 0 */
    uint64_t delta;      /* b's args lie so much further on in a */
    uint64_t lost;       /* args that lie too far on */
    bool mem;            /* the memory events, too? */
};

/* Returns how much further on the args of that source of b lie in a. */
static uint64_t args_delta(const struct trace *a, const struct trace *b,
                           const struct renumber *m, uint32_t source) {
    return a->sources[m->source[source]].args_base -
           b->sources[source].args_base;
}

static void copy_mem(struct copy *c) {
    const struct mem_events *e = &c->b->mem;
    const struct renumber *m = c->m;
    for (size_t i = 0; i < e->n && !c->a->oom; i++) {
        row_id k = trace_mem(
            c->a, &(struct mem_in){.ts = e->ts[i] + m->shift,
                                   .bytes = e->bytes[i],
                                   .allocated = e->allocated[i],
                                   .reserved = e->reserved[i],
                                   .addr = e->addr[i],
                                   .track = moved(m->track, e->track[i]),
                                   .allocator = m->allocator[e->allocator[i]],
                                   .what = m->str[e->what[i]]});
        if (e->stack) trace_mem_stack(c->a, k, moved(m->stack, e->stack[i]));
    }
}

static bool copy_rows(void *ctx) {
    struct copy *c = ctx;
    struct spans *to = &c->a->spans;
    const struct spans *from = &c->b->spans;
    const struct renumber *m = c->m;
    bool many = c->b->nsources > 1;
    for (size_t i = c->from, k = c->at + c->from; i < c->to; i++, k++) {
        uint64_t delta = c->delta, args;
        args = (uint64_t)from->args_hi[i] << 32 | from->args_lo[i];
        if (many)
            delta = args_delta(c->a, c->b, m,
                               args_source(c->b,
                                           c->b->tracks[from->track[i]].source,
                                           args));
        if (args) args += delta;
        if (__builtin_expect(args >> 40 != 0, 0)) {
            c->lost++;
            args = 0;
        }
        to->ts[k] = from->ts[i] + m->shift;
        to->dur[k] = from->dur[i];
        to->track[k] = m->track[from->track[i]];
        to->name[k] = m->str[from->name[i]];
        span_set_cat(to, (row_id)k, m->cat[span_cat(c->b, (row_id)i)]);
        to->args_lo[k] = (uint32_t)args;
        to->args_hi[k] = (uint8_t)(args >> 32);
        to->args_room[k] = from->args_room[i];
        to->kind[k] = from->kind[i];
        to->flags[k] = from->flags[i];
    }
    if (c->mem) copy_mem(c);
    return true;
}

/* Spans and memory events keep their order behind a's, half of them in each of
 * two threads. The arguments of spans move with their source. */
static bool move_events(struct trace *a, const struct trace *b,
                        const struct renumber *m) {
    enum { MANY_ROWS = 100000 };
    size_t n = b->spans.n, half = (n + b->mem.n) / 2;
    assert(n == 0 || (b->nsources > 0 && b->ntracks > 0));
    trace_reserve(a, n);
    if (a->spans.cap - a->spans.n < n) return false;
    struct copy c = {.a = a,
                     .b = b,
                     .m = m,
                     .to = half < n ? half : n,
                     .at = a->spans.n,
                     .delta = n > 0 ? args_delta(a, b, m, 0) : 0};
    struct copy d = c;
    d.from = c.to;
    d.to = n;
    d.mem = true;
    par_both((struct work){copy_rows, &c}, (struct work){copy_rows, &d},
             n < MANY_ROWS ? 1 : a->threads);
    trace_note(a, NOTE_ARGS_TRUNCATED, c.lost + d.lost);
    a->spans.n += n;
    return !a->oom;
}

static void move_halves(struct trace *a, struct half_links *to,
                        const struct half_links *from, const struct renumber *m,
                        row_id offset) {
    if (from->n == 0) return;
    if (!vec_resize(&to->v, to->n + from->n, sizeof *to->v)) {
        a->oom = true;
        return;
    }
    to->cap = to->n + from->n;
    for (size_t i = 0; i < from->n; i++)
        to->v[to->n++] = (struct half_link){from->v[i].key,
                                            source_in_a(m, from->v[i].source),
                                            from->v[i].row + offset};
}

/* Moves b's stacks among a's; their frames are listed once more. */
static void move_stacks(struct trace *a, const struct trace *b,
                        struct renumber *m) {
    const struct stacks *s = &b->stacks;
    for (size_t i = 0; i < s->nframes; i++) {
        const struct frame *f = &s->frames[i];
        m->frame[i] = trace_frame(a, m->str[f->name], m->str[f->file], f->line);
    }
    uint32_t *list = vec_alloc(s->nitems + 1, sizeof *list);
    if (list == NULL) a->oom = true;
    for (size_t i = 0; i < s->nitems && !a->oom; i++)
        list[i] = m->frame[s->items[i]];
    for (size_t i = 0; i < s->n && !a->oom; i++)
        m->stack[i] = trace_stack(a, list + s->first[i],
                                  s->first[i + 1] - s->first[i]);
    free(list);
}

/* Moves the allocators' state. Segments stand before their blocks. */
static void move_mem_tables(struct trace *a, const struct trace *b,
                            const struct renumber *m) {
    for (size_t i = 0; i < b->nsegments && !a->oom; i++) {
        struct mem_segment s = b->segments[i];
        s.allocator = m->allocator[s.allocator];
        s.stack = moved(m->stack, s.stack);
        trace_segment(a, &s);
        for (size_t k = b->segments[i].first; k < b->segments[i].end; k++) {
            struct mem_block block = b->blocks[k];
            block.stack = moved(m->stack, block.stack);
            trace_block(a, &block);
        }
    }
    for (size_t i = 0; i < b->nbefore && !a->oom; i++) {
        struct mem_before old = b->before[i];
        old.allocator = m->allocator[old.allocator];
        old.stack = moved(m->stack, old.stack);
        if (old.ts != TS_NONE) old.ts += m->shift;
        trace_before(a, &old);
    }
    for (size_t i = 0; i < b->nooms && !a->oom; i++) {
        struct mem_oom o = b->ooms[i];
        o.allocator = m->allocator[o.allocator];
        o.stack = moved(m->stack, o.stack);
        o.track = moved(m->track, o.track);
        o.ts += m->shift;
        trace_oom(a, &o);
    }
}

static void move_rest(struct trace *a, const struct trace *b,
                      const struct renumber *m, row_id offset) {
    for (size_t i = 0; i < b->samples.n && !a->oom; i++)
        trace_sample(a, m->counter[b->samples.counter[i]],
                     b->samples.ts[i] + m->shift, b->samples.value[i]);
    for (size_t i = 0; i < b->half_flows.n && !a->oom; i++) {
        const struct half_flow *h = &b->half_flows.v[i];
        if (h->row == ROW_NONE)
            trace_flow(a, h->id, m->track[h->track], h->ts + m->shift,
                       h->phase);
        else
            trace_flow_row(a, h->id, h->row + offset, h->ts + m->shift,
                           h->phase);
    }
    for (size_t i = 0; i < NOTE_COUNT; i++) a->notes[i] += b->notes[i];
}

/* Makes [*lo, *hi] hold these times. */
static void widen(const int64_t *ts, size_t n, int64_t *lo, int64_t *hi) {
    for (size_t i = 0; i < n; i++) {
        if (ts[i] < *lo) *lo = ts[i];
        if (ts[i] > *hi) *hi = ts[i];
    }
}

/* Finds how far b's times lie from a's zero. Returns false if they are too far
 * to be one trace. */
static bool find_shift(struct trace *a, const struct trace *b,
                       struct renumber *m) {
    if (!a->epoch_set) {
        a->epoch_ns = b->epoch_ns;
        a->epoch_set = b->epoch_set;
    }
    int64_t ns = 0;
    if (b->epoch_set && a->epoch_ns && b->epoch_ns &&
        __builtin_sub_overflow(b->epoch_ns, a->epoch_ns, &ns))
        return false;
    if (ns > TS_LIMIT / PS_PER_NS || ns < -TS_LIMIT / PS_PER_NS) return false;
    m->shift = ns * PS_PER_NS;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    if (m->shift != 0) {
        widen(b->spans.ts, b->spans.n, &lo, &hi);
        widen(b->mem.ts, b->mem.n, &lo, &hi);
        widen(b->samples.ts, b->samples.n, &lo, &hi);
        for (size_t i = 0; i < b->nbefore; i++)
            if (b->before[i].ts != TS_NONE)
                widen(&b->before[i].ts, 1, &lo, &hi);
        for (size_t i = 0; i < b->nooms; i++)
            widen(&b->ooms[i].ts, 1, &lo, &hi);
        for (size_t i = 0; i < b->half_flows.n; i++)
            widen(&b->half_flows.v[i].ts, 1, &lo, &hi);
    }
    int64_t sum;
    if (lo > hi) return true; /* it stays, or has nothing that moves */
    return !__builtin_add_overflow(lo, m->shift, &sum) && ts_is_sane(sum) &&
           !__builtin_add_overflow(hi, m->shift, &sum) && ts_is_sane(sum);
}

static bool move_all(struct trace *a, struct trace *b, struct renumber *m) {
    if (!move_sources(a, b, m)) return false;
    move_texts(a, b, m);
    if (a->oom) return false;
    move_devices(a, b, m);
    move_tracks(a, b, m);
    if (!a->oom) move_allocators(a, b, m);
    if (!a->oom) hlo_append(a, b, m->source, m->str);
    if (!a->oom) move_stacks(a, b, m);
    row_id offset = (row_id)a->spans.n;
    if (a->oom || !move_events(a, b, m)) return false;
    move_halves(a, &a->host_halves, &b->host_halves, m, offset);
    move_halves(a, &a->device_halves, &b->device_halves, m, offset);
    for (size_t i = 0; i < b->step_hints.n; i++)
        trace_step_hint(a, b->step_hints.v[i].row + offset,
                        b->step_hints.v[i].number);
    for (size_t i = 0; i < b->group_hints.n; i++)
        trace_group_hint(a, b->group_hints.v[i].row + offset,
                         b->group_hints.v[i].number);
    for (size_t i = 0; i < b->run_hints.n; i++)
        trace_run_hint(a, b->run_hints.v[i].row + offset,
                       b->run_hints.v[i].number);
    if (a->oom) return false;
    move_rest(a, b, m, offset);
    move_mem_tables(a, b, m);
    return !a->oom;
}

/* beside: see struct renumber. */
static int append(struct trace *a, struct trace *b, uint32_t beside,
                  struct ops_err *e) {
    assert(!a->sealed && !b->sealed && a != b);
    struct renumber m;
    int rc = 0;
    bool ok = renumber_init(&m, b) && !b->oom;
    m.beside = beside;
    if (!ok) rc = fail_oom(e);
    else if (!find_shift(a, b, &m))
        rc = fail(e, OPS_EUNSUP,
                  "profiles lie too far apart in time to be "
                  "shown on one time line");
    else if (!move_all(a, b, &m)) rc = fail_oom(e);
    renumber_free(&m);
    if (rc != 0) a->oom |= rc == OPS_ELIMIT;
    trace_free(b);
    return rc;
}

int trace_append(struct trace *a, struct trace *b, struct ops_err *e) {
    return append(a, b, ROW_NONE, e);
}

/* Keeps the last of equal facts: a later file of the same process tells them
 * again as they grow. Texts of losses are each their own. */
static void fold_meta(struct trace *t, uint32_t source, size_t from) {
    str_id loss = trace_str(t, bytes_of(FACT_LOSS));
    size_t n = from;
    struct map known = {0}; /* key -> where the source tells it first */
    for (size_t i = 0; i < from; i++) {
        if (t->meta[i].source != source || t->meta[i].key == loss) continue;
        uint32_t *at = map_at(&known, t->meta[i].key);
        if (at == NULL) t->oom = true;
        else if (*at == MAP_NONE) *at = (uint32_t)i;
    }
    for (size_t i = from; i < t->nmeta; i++) {
        struct meta m = t->meta[i];
        m.source = source;
        uint32_t *at = m.key == loss ? NULL : map_at(&known, m.key);
        if (m.key != loss && at == NULL) t->oom = true;
        uint32_t k = at == NULL || *at == MAP_NONE ? (uint32_t)n : *at;
        if (at != NULL) *at = k;
        t->meta[k] = m;
        n += k == n;
    }
    t->nmeta = n;
    map_free(&known);
}

int trace_append_continuation(struct trace *a, struct trace *b, uint32_t source,
                              struct ops_err *e) {
    assert(source < a->nsources && a->sources[source].companion_of == ROW_NONE);
    size_t first = a->nsources, meta = a->nmeta;
    TRY(append(a, b, source, e));
    struct source *s = &a->sources[source];
    for (size_t i = first; i < a->nsources; i++) {
        uint64_t events = s->events;
        merge_source(s, &a->sources[i]);
        s->events = events; /* each file has its own */
        if (s->host == 0) s->host = a->sources[i].host;
    }
    for (size_t i = first; i < a->nsources; i++) {
        struct source *p = &a->sources[i];
        uint64_t events = p->events;
        p->companion_of = source;
        p->rank = p->world_size = p->pid = -1;
        merge_source(p, s);
        p->events = events;
        p->host = s->host;
    }
    fold_meta(a, source, meta);
    return a->oom ? fail_oom(e) : 0;
}

int trace_append_companion(struct trace *a, struct trace *b, uint32_t source,
                           struct ops_err *e) {
    assert(source < a->nsources);
    return append(a, b, source, e);
}
