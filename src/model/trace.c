/* SPDX-License-Identifier: Apache-2.0
 * The trace while it is filled: adders for rows and for the small tables
 * around them. Sealing is seal.c, joining two traces append.c. */
#include "model/trace_fill.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/io/file.h"
#include "base/sum.h"
#include "base/text/plural.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include "model/seal.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct trace *trace_new(void) {
    struct trace *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    if (!strs_init(&t->strs) || !VEC_ROOM(t->cats, t->ncats, t->cap_cats)) {
        trace_free(t);
        return NULL;
    }
    t->cats[t->ncats++] = (struct category){0};
    return t;
}

void trace_drop_halves(struct trace *t) {
    free(t->host_halves.v);
    free(t->device_halves.v);
    free(t->half_flows.v);
    free(t->step_hints.v);
    free(t->group_hints.v);
    free(t->run_hints.v);
    t->host_halves = t->device_halves = (struct half_links){0};
    t->half_flows = (struct half_flows){0};
    t->step_hints = t->group_hints = t->run_hints = (struct step_hints){0};
    map_free(&t->track_map);
    map_free(&t->device_map);
    map_free(&t->cat_map);
    map_free(&t->allocator_map);
    map_free(&t->counter_map);
    map_free(&t->source_map);
    map_free(&t->demangled);
    map_free(&t->stacks.frame_map);
    map_free(&t->stacks.stack_map);
}

void trace_free(struct trace *t) {
    if (t == NULL) return;
    struct spans *s = &t->spans;
#define X(type, column) free(s->column);
    SPAN_COLUMNS(X)
#undef X
    free(s->parent);
    free(s->depth);
    free(s->step);
#define X(type, column) free(t->mem.column);
    MEM_COLUMNS(X)
#undef X
    free(t->mem.stack);
    free(t->samples.ts);
    free(t->samples.value);
    free(t->samples.counter);
    free(t->links.host);
    free(t->links.device);
    free(t->links.by_host);
    free(t->flows.from);
    free(t->flows.to);
    trace_drop_halves(t);
    for (size_t i = 0; i < t->nsources; i++) {
        if (t->sources[i].file) file_close(t->sources[i].file);
        free(t->sources[i].index);
    }
    void *tables[] = {t->tracks,       t->devices,     t->allocators,
                      t->counters,     t->steps,       t->sources,
                      t->meta,         t->cats,        t->name_class,
                      t->cat_class,    t->segments,    t->blocks,
                      t->before,       t->ooms,        t->stacks.frames,
                      t->stacks.items, t->stacks.first};
    for (size_t i = 0; i < COUNT(tables); i++) free(tables[i]);
    hlo_free(t->hlo);
    seal_free(t);
    strs_free(&t->strs);
    arena_free(&t->arena);
    free(t);
}

/* Notes the first source that has these bytes: it is found by them. */
static void note_bytes(struct trace *t, uint32_t source, struct bytes bytes) {
    if (bytes.p == NULL) return;
    uint32_t *at = map_at(&t->source_map, (uintptr_t)bytes.p);
    if (at == NULL) t->oom = true;
    else if (*at == MAP_NONE) *at = source;
}

bool source_is_torchs(const struct source *s) {
    return s->format->writer == WRITER_TORCH && s->format->role == ROLE_PROFILE;
}

uint32_t trace_source(struct trace *t, const char *path,
                      const struct format *format, struct file *file,
                      struct bytes bytes) {
    assert(!t->sealed && path != NULL && format != NULL);
    char *copy = arena_str(&t->arena, path);
    if (copy == NULL || !VEC_ROOM(t->sources, t->nsources, t->cap_sources)) {
        t->oom = true;
        if (file) file_close(file);
        return ROW_NONE;
    }
    note_bytes(t, (uint32_t)t->nsources, bytes);
    uint64_t base = 0;
    if (t->nsources > 0) {
        const struct source *last = &t->sources[t->nsources - 1];
        base = last->args_base + last->bytes.n;
    }
    t->sources[t->nsources] = (struct source){
        .path = copy,
        .format = format,
        .rank = -1,
        .world_size = -1,
        .pid = -1,
        .companion_of = ROW_NONE,
        .decimals = 3,
        .args_base = base,
        .bytes = bytes,
        .file = file,
        .window_end = 0,
    };
    return (uint32_t)t->nsources++;
}

void trace_source_file(struct trace *t, uint32_t source, struct file *file) {
    struct source *s = &t->sources[source];
    assert(t->nsources == 1 && s->index == NULL);
    if (s->file != NULL) file_close(s->file);
    s->file = file;
    s->bytes = file->bytes;
    map_free(&t->source_map);
    note_bytes(t, source, s->bytes);
}

uint32_t trace_source_find(const struct trace *t, struct bytes bytes) {
    uint32_t at = bytes.p == NULL ? MAP_NONE
                                  : map_get(&t->source_map, (uintptr_t)bytes.p);
    return at == MAP_NONE ? ROW_NONE : at;
}

int64_t trace_epoch(struct trace *t, uint32_t source, int64_t unix_ns,
                    bool has_clock) {
    assert(source < t->nsources);
    t->sources[source].has_clock = has_clock;
    if (!t->epoch_set) {
        t->epoch_ns = has_clock ? unix_ns : 0;
        t->epoch_set = true;
        return 0;
    }
    int64_t ns, ps;
    if (!has_clock || __builtin_sub_overflow(unix_ns, t->epoch_ns, &ns) ||
        __builtin_mul_overflow(ns, PS_PER_NS, &ps))
        return 0;
    return ps;
}

static bool track_is(const struct track *tr, uint32_t source,
                     enum track_kind kind, int64_t pid, int64_t tid) {
    return tr->source == source && tr->kind == kind && tr->pid == pid &&
           tr->tid == tid;
}

static uint64_t track_hash(uint32_t source, enum track_kind kind, int64_t pid,
                           int64_t tid) {
    return hash_pair(hash_pair((uint64_t)pid, (uint64_t)tid),
                     (uint64_t)source << 8 | kind);
}

uint32_t trace_track_find(const struct trace *t, uint32_t source,
                          enum track_kind kind, int64_t pid, int64_t tid) {
    uint64_t key = track_hash(source, kind, pid, tid);
    for (uint32_t i; (i = map_get(&t->track_map, key)) != MAP_NONE;
         key = map_next_key(key))
        if (track_is(&t->tracks[i], source, kind, pid, tid)) return i;
    return ROW_NONE;
}

uint32_t trace_track(struct trace *t, uint32_t source, enum track_kind kind,
                     int64_t pid, int64_t tid) {
    assert(!t->sealed && source < t->nsources);
    uint32_t *at;
    MAP_SLOT(at, &t->track_map, track_hash(source, kind, pid, tid),
             track_is(&t->tracks[*at], source, kind, pid, tid));
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || !VEC_ROOM(t->tracks, t->ntracks, t->cap_tracks)) {
        t->oom = true;
        return 0;
    }
    t->tracks[t->ntracks] = (struct track){
        .kind = kind,
        .pid = pid,
        .tid = tid,
        .source = source,
        .device = ROW_NONE,
        .thread = ROW_NONE,
    };
    *at = (uint32_t)t->ntracks;
    return (uint32_t)t->ntracks++;
}

/* Returns how much a thread name tells: nothing, "some Python thread", a real
 * name. */
static int name_worth(struct bytes n) {
    if (n.n == 0) return 0;
    for (size_t i = 0; i + 6 <= n.n; i++)
        if (memcmp(n.p + i, "python", 6) == 0) return 1;
    return 2;
}

void trace_track_name(struct trace *t, uint32_t track, struct bytes name) {
    if (track >= t->ntracks) return;
    /* characters that are mended to a space (utf8.h) go as well: the name is
     * the same when it comes a second time */
    while (name.n > 0 &&
           (name.p[name.n - 1] == ' ' || name.p[name.n - 1] == '\0'))
        name.n--;
    str_id id = trace_str(t, name);
    struct track *tr = &t->tracks[track];
    if (tr->named && tr->name != id) {
        trace_note(t, NOTE_DUPLICATE_TRACK_NAME, 1);
        if (name_worth(strs_bytes(&t->strs, tr->name)) >= name_worth(name))
            return;
    }
    tr->name = id;
    tr->named = true;
}

static bool device_is(const struct device *d, uint32_t source,
                      enum device_kind kind, int64_t ordinal) {
    return d->source == source && d->kind == kind && d->ordinal == ordinal;
}

uint32_t trace_device_find(const struct trace *t, uint32_t source,
                           enum device_kind kind, int64_t ordinal) {
    uint64_t key = hash_pair((uint64_t)ordinal, (uint64_t)source << 8 | kind);
    for (uint32_t i; (i = map_get(&t->device_map, key)) != MAP_NONE;
         key = map_next_key(key))
        if (device_is(&t->devices[i], source, kind, ordinal)) return i;
    return ROW_NONE;
}

uint32_t trace_device(struct trace *t, uint32_t source, enum device_kind kind,
                      int64_t ordinal) {
    assert(!t->sealed && source < t->nsources);
    uint32_t *at;
    MAP_SLOT(at, &t->device_map,
             hash_pair((uint64_t)ordinal, (uint64_t)source << 8 | kind),
             device_is(&t->devices[*at], source, kind, ordinal));
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || !VEC_ROOM(t->devices, t->ndevices, t->cap_devices)) {
        t->oom = true;
        return ROW_NONE;
    }
    *at = (uint32_t)t->ndevices;
    static const char *const words[] = {"GPU", "TPU", "CPU", "device"};
    char label[48];
    snprintf(label, sizeof label, "%s %lld", words[kind], (long long)ordinal);
    t->devices[t->ndevices] = (struct device){
        .kind = kind,
        .ordinal = ordinal,
        .source = source,
        .label = trace_str(t, bytes_of(label)),
    };
    return (uint32_t)t->ndevices++;
}

uint32_t trace_category(struct trace *t, const struct category *c) {
    const str_id ids[] = {c->text, c->hlo_op, c->tf_op, c->details, c->module};
    uint64_t key = 0;
    bool empty = true;
    for (size_t i = 0; i < COUNT(ids); i++) {
        key = hash_pair(key, ids[i]);
        empty &= ids[i] == 0;
    }
    if (empty) return 0;
    uint32_t *at = map_at(&t->cat_map, key);
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || !VEC_ROOM(t->cats, t->ncats, t->cap_cats)) {
        t->oom = true;
        return 0;
    }
    if (t->ncats == CATEGORIES) {
        trace_note(t, NOTE_CATEGORIES_FULL, 1);
        return *at = 0;
    }
    t->cats[t->ncats] = *c;
    return *at = (uint32_t)t->ncats++;
}

uint32_t trace_cat(struct trace *t, struct bytes text) {
    assert(!t->sealed);
    return trace_category(t, &(struct category){.text = trace_str(t, text)});
}

str_id trace_str(struct trace *t, struct bytes b) {
    str_id id = strs_intern(&t->strs, b);
    if (id != STR_NONE) return id;
    t->oom = true;
    return 0;
}

/* Makes every column hold cap rows. */
static bool resize_spans(struct spans *s, size_t cap) {
    if (cap > ROW_NONE) cap = ROW_NONE;
    if (s->n >= cap) return false;
#define X(type, column)                                                        \
    if (!vec_resize(&s->column, cap, sizeof(type))) return false;
    SPAN_COLUMNS(X)
#undef X
    s->cap = cap;
    return true;
}

void trace_reserve(struct trace *t, size_t rows) {
    struct spans *s = &t->spans;
    if (s->n + rows > s->cap) resize_spans(s, s->n + rows);
}

row_id trace_span(struct trace *t, const struct span_in *in) {
    assert(!t->sealed && in->cat < t->ncats && in->name < t->strs.n);
    assert(in->track < t->ntracks || t->oom);
    struct spans *s = &t->spans;
    int64_t dur = in->dur;
    uint64_t args = in->args;
    if (__builtin_expect(dur < 0, 0)) {
        trace_note(t, NOTE_NEGATIVE_DURATION, 1);
        dur = 0;
    }
    if (__builtin_expect(!ts_is_sane(in->ts) || dur > DUR_LIMIT, 0)) {
        trace_note(t, NOTE_TIME_OUT_OF_RANGE, 1);
        return ROW_NONE;
    }
    if (__builtin_expect(s->n == s->cap, 0) &&
        !resize_spans(s, vec_next_cap(s->cap < 64 ? 64 : s->cap, s->n + 1))) {
        t->oom = true;
        return ROW_NONE;
    }
    if (__builtin_expect(args >> 40 != 0, 0)) {
        trace_note(t, NOTE_ARGS_TRUNCATED, 1);
        args = 0;
    }
    row_id r = (row_id)s->n++;
    s->ts[r] = in->ts;
    s->dur[r] = dur;
    s->track[r] = in->track;
    s->name[r] = in->name;
    span_set_cat(s, r, in->cat);
    s->args_lo[r] = (uint32_t)args;
    s->args_hi[r] = (uint8_t)(args >> 32);
    s->args_room[r] = room_for(in->args_n);
    s->kind[r] = in->kind;
    s->flags[r] = in->flags;
    return r;
}

static void add_half(struct trace *t, struct half_links *h, uint32_t source,
                     uint64_t id, row_id r) {
    if (r == ROW_NONE) return;
    assert(source < t->nsources && r < t->spans.n);
    if (!VEC_ROOM(h->v, h->n, h->cap)) {
        t->oom = true;
        return;
    }
    h->v[h->n++] = (struct half_link){id, source, r};
}

void trace_link_host(struct trace *t, uint32_t source, uint64_t id, row_id r) {
    add_half(t, &t->host_halves, source, id, r);
}

void trace_link_device(struct trace *t, uint32_t source, uint64_t id,
                       row_id r) {
    add_half(t, &t->device_halves, source, id, r);
}

static void add_flow(struct trace *t, const struct half_flow *f) {
    struct half_flows *h = &t->half_flows;
    assert(f->phase == 's' || f->phase == 't' || f->phase == 'f' ||
           f->phase == 'i');
    if (!VEC_ROOM(h->v, h->n, h->cap)) t->oom = true;
    else h->v[h->n++] = *f;
}

void trace_flow(struct trace *t, uint64_t id, uint32_t track, int64_t ts,
                uint8_t phase) {
    assert(!t->sealed && (track < t->ntracks || t->oom));
    add_flow(t, &(struct half_flow){id, ts, track, ROW_NONE, phase});
}

void trace_flow_row(struct trace *t, uint64_t id, row_id row, int64_t ts,
                    uint8_t phase) {
    assert(!t->sealed && row < t->spans.n);
    add_flow(t, &(struct half_flow){id, ts, t->spans.track[row], row, phase});
}

static void add_hint(struct trace *t, struct step_hints *h, row_id row,
                     int64_t number) {
    assert(!t->sealed && row < t->spans.n);
    if (!VEC_ROOM(h->v, h->n, h->cap)) {
        t->oom = true;
        return;
    }
    h->v[h->n++] = (struct step_hint){row, number};
}

void trace_step_hint(struct trace *t, row_id row, int64_t number) {
    if (row == ROW_NONE) return;
    add_hint(t, &t->step_hints, row, number);
    t->spans.flags[row] |= SPAN_STEPMARK;
}

void trace_group_hint(struct trace *t, row_id row, int64_t number) {
    if (row != ROW_NONE) add_hint(t, &t->group_hints, row, number);
}

void trace_run_hint(struct trace *t, row_id row, int64_t number) {
    if (row != ROW_NONE) add_hint(t, &t->run_hints, row, number);
}

uint32_t trace_allocator(struct trace *t, uint32_t source, struct bytes name,
                         uint32_t device) {
    assert(!t->sealed && source < t->nsources);
    assert(device == ROW_NONE || device < t->ndevices);
    str_id id = trace_str(t, name);
    uint32_t *at;
    MAP_SLOT(at, &t->allocator_map,
             hash_pair((uint64_t)id << 32 | source, device),
             t->allocators[*at].name == id &&
                 t->allocators[*at].source == source &&
                 t->allocators[*at].device == device);
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || t->nallocators >= ROW_NONE ||
        !VEC_ROOM(t->allocators, t->nallocators, t->cap_allocators)) {
        t->oom = true;
        return 0;
    }
    t->allocators[t->nallocators] = (struct allocator){
        .name = id,
        .source = source,
        .device = device,
        .capacity = -1,
        .peak_life = -1,
        .fragmentation = -1,
    };
    *at = (uint32_t)t->nallocators;
    return (uint32_t)t->nallocators++;
}

static bool grow_mem(struct mem_events *m) {
    size_t cap = vec_next_cap(m->cap, m->n + 1);
#define X(type, column)                                                        \
    if (!vec_resize(&m->column, cap, sizeof(type))) return false;
    MEM_COLUMNS(X)
#undef X
    if (m->stack && !vec_resize(&m->stack, cap, sizeof *m->stack)) return false;
    m->cap = cap;
    return true;
}

row_id trace_mem(struct trace *t, const struct mem_in *in) {
    assert(!t->sealed && (in->allocator < t->nallocators || t->oom));
    assert(in->track == ROW_NONE || in->track < t->ntracks || t->oom);
    struct mem_events *m = &t->mem;
    if (!ts_is_sane(in->ts)) {
        trace_note(t, NOTE_TIME_OUT_OF_RANGE, 1);
        return ROW_NONE;
    }
    if (m->n == ROW_NONE || (m->n == m->cap && !grow_mem(m))) {
        t->oom = true;
        return ROW_NONE;
    }
    size_t i = m->n++;
#define X(type, column) m->column[i] = in->column;
    MEM_COLUMNS(X)
#undef X
    if (m->allocated[i] < 0) m->allocated[i] = -1; /* no file says MEM_APART */
    if (m->stack) m->stack[i] = ROW_NONE;
    return (row_id)i;
}

static bool counter_is(const struct counter *c, str_id name, uint32_t source,
                       int64_t pid, uint32_t device) {
    return c->name == name && c->source == source && c->device == device &&
           c->pid == pid;
}

uint32_t trace_counter_of(struct trace *t, uint32_t source, int64_t pid,
                          struct bytes name, struct bytes unit,
                          uint32_t device) {
    assert(!t->sealed && source < t->nsources);
    assert(device == ROW_NONE || device < t->ndevices);
    str_id id = trace_str(t, name);
    uint64_t h = hash_pair((uint64_t)id << 32 | source, device);
    uint32_t *at;
    MAP_SLOT(at, &t->counter_map, hash_pair(h, (uint64_t)pid),
             counter_is(&t->counters[*at], id, source, pid, device));
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || !VEC_ROOM(t->counters, t->ncounters, t->cap_counters)) {
        t->oom = true;
        return ROW_NONE;
    }
    *at = (uint32_t)t->ncounters;
    t->counters[t->ncounters] = (struct counter){.name = id,
                                                 .unit = trace_str(t, unit),
                                                 .source = source,
                                                 .device = device,
                                                 .pid = pid};
    return (uint32_t)t->ncounters++;
}

uint32_t trace_counter(struct trace *t, uint32_t source, struct bytes name,
                       struct bytes unit, uint32_t device) {
    return trace_counter_of(t, source, NO_PID, name, unit, device);
}

void trace_sample(struct trace *t, uint32_t counter, int64_t ts, double value) {
    assert(!t->sealed);
    struct samples *s = &t->samples;
    if (counter == ROW_NONE) return;
    assert(counter < t->ncounters);
    if (!ts_is_sane(ts)) {
        trace_note(t, NOTE_TIME_OUT_OF_RANGE, 1);
        return;
    }
    if (s->n == s->cap) {
        size_t cap = vec_next_cap(s->cap, s->n + 1);
        if (!vec_resize(&s->ts, cap, sizeof *s->ts) ||
            !vec_resize(&s->value, cap, sizeof *s->value) ||
            !vec_resize(&s->counter, cap, sizeof *s->counter)) {
            t->oom = true;
            return;
        }
        s->cap = cap;
    }
    s->ts[s->n] = ts;
    s->value[s->n] = value;
    s->counter[s->n++] = counter;
}

void trace_meta(struct trace *t, uint32_t source, const char *key,
                struct bytes value) {
    assert(!t->sealed && source < t->nsources);
    if (!VEC_ROOM(t->meta, t->nmeta, t->cap_meta)) {
        t->oom = true;
        return;
    }
    str_id k = trace_str(t, bytes_of(key)), v = trace_str(t, value);
    t->meta[t->nmeta++] = (struct meta){k, v, source};
}

const char *trace_meta_get(const struct trace *t, uint32_t source,
                           const char *key) {
    assert(source == ROW_NONE || source < t->nsources);
    str_id k = strs_find(&t->strs, bytes_of(key));
    const struct lists *l = &t->meta_of;
    bool listed = l->first != NULL && source != ROW_NONE;
    size_t from = listed ? l->first[source] : 0;
    size_t to = listed ? l->first[source + 1] : t->nmeta;
    for (size_t i = from; k != STR_NONE && i < to; i++) {
        const struct meta *m = &t->meta[listed ? l->v[i] : i];
        if (m->key == k && (source == ROW_NONE || m->source == source))
            return strs_text(&t->strs, m->value);
    }
    return NULL;
}

static const struct {
    const char *name, *text, *fix;
    enum note_class class;
} notes[] = {
#define X(id, name, class, text, fix) {name, text, fix, NOTE_CLASS_##class},
#include "model/notes.def"
#undef X
};

const char *note_name(enum note_id id) {
    assert(id < NOTE_COUNT);
    return notes[id].name;
}

const char *note_text(enum note_id id, uint64_t n, char buf[NOTE_TEXT]) {
    assert(id < NOTE_COUNT);
    return plural_put(buf, NOTE_TEXT, notes[id].text, n);
}

const char *note_fix(enum note_id id) {
    assert(id < NOTE_COUNT);
    return notes[id].fix;
}

enum note_class note_class(enum note_id id) {
    assert(id < NOTE_COUNT);
    return notes[id].class;
}

uint32_t args_source(const struct trace *t, uint32_t likely, uint64_t at) {
    const struct source *s = &t->sources[likely];
    if (at == 0 || (at > s->args_base && at - s->args_base <= s->bytes.n))
        return likely;
    /* sources lie one behind the other; an empty one holds nothing */
    size_t i;
    BOUND(i, 0, t->nsources,
          t->sources[i].args_base + t->sources[i].bytes.n < at);
    return i < t->nsources && t->sources[i].args_base < at ? (uint32_t)i
                                                           : likely;
}

uint8_t room_for(size_t n) {
    if (n < 16) return (uint8_t)n;
    int shift = 60 - __builtin_clzll(n); /* that leaves four bits */
    size_t steps = ((n - 1) >> shift) + 1;
    size_t code = 8 * (size_t)shift + steps;
    return code < UINT8_MAX ? (uint8_t)code : UINT8_MAX;
}

size_t room_of(uint8_t room) {
    if (room < 16) return room;
    if (room == UINT8_MAX) return SIZE_MAX;
    unsigned shift = room / 8u - 1;
    return (size_t)(room % 8u + 8) << shift;
}

struct bytes trace_args(const struct trace *t, row_id row, uint32_t *source) {
    assert(row < t->spans.n);
    const struct spans *s = &t->spans;
    uint64_t at = (uint64_t)s->args_hi[row] << 32 | s->args_lo[row];
    uint32_t src = args_source(t, t->tracks[s->track[row]].source, at);
    const struct source *from = &t->sources[src];
    *source = src;
    if (at == 0 || at - 1 < from->args_base) return (struct bytes){NULL, 0};
    uint64_t off = at - 1 - from->args_base;
    if (off >= from->bytes.n) return (struct bytes){NULL, 0};
    size_t left = from->bytes.n - (size_t)off;
    size_t room = room_of(s->args_room[row]);
    return (struct bytes){from->bytes.p + off, left < room ? left : room};
}

size_t trace_link_at(const struct trace *t, row_id device_row) {
    size_t i;
    BOUND(i, 0, t->links.n, t->links.device[i] < device_row);
    return i;
}

int64_t trace_origin(const struct trace *t) {
    const int64_t hour = 3600 * PS_PER_S;
    int64_t first = 0;
    bool any = false;
    for (size_t i = 0; i < t->nsources; i++) {
        const struct source *s = &t->sources[i];
        if (s->window_ts == 0 && s->window_end == 0) continue; /* no span */
        if (!any || s->window_ts < first) first = s->window_ts;
        any = true;
    }
    return first >= 0 && first < hour ? 0 : first;
}

int64_t trace_given_time(const struct trace *t, int64_t ps) {
    int64_t origin = trace_origin(t);
    return ps >= origin ? ps : sat_add(ps, origin);
}

row_id trace_launch_of(const struct trace *t, row_id device_row) {
    assert(t->sealed);
    const struct links *l = &t->links;
    size_t i = trace_link_at(t, device_row);
    return i < l->n && l->device[i] == device_row ? l->host[i] : ROW_NONE;
}

size_t trace_links_from(const struct trace *t, row_id host_row, size_t *first) {
    assert(t->sealed);
    const struct links *l = &t->links;
    size_t i;
    BOUND(i, 0, l->n, l->host[l->by_host[i]] < host_row);
    *first = i;
    while (i < l->n && l->host[l->by_host[i]] == host_row) i++;
    return i;
}

row_id trace_row_at(const struct trace *t, const struct track *tr, int64_t ts) {
    assert(t->sealed && tr->end <= t->spans.n);
    size_t i;
    BOUND(i, tr->first, tr->end, t->spans.ts[i] < ts);
    return (row_id)i;
}

uint32_t *trace_python_tracks(const struct trace *t) {
    uint32_t *of = malloc((t->ntracks + 1) * sizeof *of);
    for (size_t i = 0; of && i < t->ntracks; i++) of[i] = ROW_NONE;
    for (size_t i = 0; of && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind == TRACK_PYTHON && tr->thread < t->ntracks)
            of[tr->thread] = (uint32_t)i;
    }
    return of;
}
