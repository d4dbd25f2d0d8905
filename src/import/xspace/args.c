/* SPDX-License-Identifier: Apache-2.0
 * Arguments of events, read from the mapped file when asked for. An event says
 * only numbers for its stats; their names stand elsewhere in the plane, and the
 * index says where.
 *
 * What stands with a name is an argument of every event of that name: a few
 * bytes an event, and any number behind them. So of what is shared an event
 * gets only as much as real ones have. */
#include "import/xspace/xspace.h"

#include "base/array.h"
#include "base/pb.h"
#include "base/vec.h"
#include "model/args.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Stats of a name, and bytes of a text that events share: compilers write some
 * twenty, and instructions of some kilobytes. */
enum { SHARED_STATS = 256, SHARED_TEXT = 1 << 16 };

struct index_plane {
    uint64_t begin, end;    /* its bytes in the file */
    uint32_t stats, nstats; /* in entries, sorted by id */
    uint32_t names, nnames;
};

/* A name of a stat, or the message of an event name. */
struct index_entry {
    uint64_t id;
    uint64_t at;
    uint64_t n;
};

struct xspace_index {
    uint32_t nplanes;
    uint32_t nentries;
    struct index_plane *planes; /* both point into this block */
    struct index_entry *entries;
};

/* While it is built. */
struct build {
    struct bytes all;
    struct index_plane *planes;
    size_t nplanes, cap_planes;
    struct index_entry *entries;
    size_t nentries, cap_entries;
    bool oom;
};

static int by_id(const void *a, const void *b) {
    const struct index_entry *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Adds a map entry {1 key, 2 message}; of a stat's message its name is kept. */
static void add_entry(struct build *x, struct bytes b, bool stat) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    uint64_t key = 0, id = 0;
    struct bytes value = {b.p, 0}, name = {b.p, 0};
    while (pb_next_cut(&r, &f)) {
        if (f.num == XSPACE_MAP_KEY && f.wire == PB_VARINT) key = f.value;
        if (f.num == XSPACE_MAP_VALUE && f.wire == PB_BYTES) value = f.bytes;
    }
    for (r = pb_reader(value); pb_next_cut(&r, &f);) {
        if (f.num == XSTATMETA_ID && f.wire == PB_VARINT) id = f.value;
        if (f.num == XSTATMETA_NAME && f.wire == PB_BYTES) name = f.bytes;
    }
    if (stat) value = name;
    if (!VEC_ROOM(x->entries, x->nentries, x->cap_entries)) x->oom = true;
    else
        x->entries[x->nentries++] =
            (struct index_entry){key ? key : id, (uint64_t)(value.p - x->all.p),
                                 value.n};
}

/* Adds the entries of one of the plane's maps, sorted. */
static uint32_t add_map(struct build *x, struct bytes plane, uint32_t num) {
    size_t first = x->nentries;
    struct pb r = pb_reader(plane);
    struct pb_field f;
    while (!x->oom && pb_next_cut(&r, &f))
        if (f.num == num && f.wire == PB_BYTES && f.bytes.n > 0)
            add_entry(x, f.bytes, num == XPLANE_STAT_METADATA);
    if (x->nentries > first)
        qsort(x->entries + first, x->nentries - first, sizeof *x->entries,
              by_id);
    return (uint32_t)(x->nentries - first);
}

static void add_plane(struct build *x, struct bytes b) {
    struct index_plane p = {.begin = (uint64_t)(b.p - x->all.p)};
    p.end = p.begin + b.n;
    p.stats = (uint32_t)x->nentries;
    p.nstats = add_map(x, b, XPLANE_STAT_METADATA);
    p.names = (uint32_t)x->nentries;
    p.nnames = add_map(x, b, XPLANE_EVENT_METADATA);
    if (!VEC_ROOM(x->planes, x->nplanes, x->cap_planes)) x->oom = true;
    else x->planes[x->nplanes++] = p;
}

/* Puts the parts into one block. */
static struct xspace_index *pack(const struct build *x) {
    size_t planes = x->nplanes * sizeof *x->planes;
    size_t entries = x->nentries * sizeof *x->entries;
    struct xspace_index *ix = malloc(sizeof *ix + planes + entries);
    if (ix == NULL) return NULL;
    ix->nplanes = (uint32_t)x->nplanes;
    ix->nentries = (uint32_t)x->nentries;
    ix->planes = (struct index_plane *)(ix + 1);
    ix->entries = (struct index_entry *)(ix->planes + x->nplanes);
    if (planes > 0) memcpy(ix->planes, x->planes, planes);
    if (entries > 0) memcpy(ix->entries, x->entries, entries);
    return ix;
}

struct xspace_index *xspace_index_new(struct bytes all) {
    struct build x = {.all = all};
    struct pb r = pb_reader(all);
    struct pb_field f;
    while (!x.oom && pb_next_cut(&r, &f))
        if (f.num == XSPACE_PLANES && f.wire == PB_BYTES)
            add_plane(&x, f.bytes);
    struct xspace_index *ix = x.oom ? NULL : pack(&x);
    free(x.planes);
    free(x.entries);
    return ix;
}

/* Returns the last entry with this id (of two the later counts), or NULL. */
static const struct index_entry *find(const struct index_entry *v, size_t n,
                                      uint64_t id) {
    size_t i;
    BOUND(i, 0, n, v[i].id <= id);
    return i > 0 && v[i - 1].id == id ? &v[i - 1] : NULL;
}

/* What the readers of one event share. */
struct view {
    struct bytes all;
    const struct xspace_index *ix;
    const struct index_plane *plane;
    args_each_fn *each;
    void *ctx;
};

/* Returns no more of a text than may be shared. */
static struct bytes at_most(struct bytes b) {
    if (b.n > SHARED_TEXT) b.n = SHARED_TEXT;
    return b;
}

static struct bytes stat_name(const struct view *v, uint64_t id) {
    const struct index_entry *e = find(v->ix->entries + v->plane->stats,
                                       v->plane->nstats, id);
    if (e == NULL) return (struct bytes){v->all.p, 0};
    return at_most((struct bytes){v->all.p + e->at, e->n});
}

/* Gives one XStat; see facts.c for its fields. */
static bool give_stat(const struct view *v, struct bytes b, bool shared) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    struct arg a = {.type = ARG_NONE};
    uint64_t id = 0;
    while (pb_next(&r, &f)) {
        if (f.wire == PB_VARINT) {
            if (f.num == XSTAT_METADATA_ID) id = f.value;
            if (f.num == XSTAT_UINT64)
                a = (struct arg){.type = ARG_UINT, .u = f.value};
            if (f.num == XSTAT_INT64)
                a = (struct arg){.type = ARG_INT, .i = (int64_t)f.value};
            if (f.num == XSTAT_REF)
                a = (struct arg){.type = ARG_TEXT,
                                 .text = stat_name(v, f.value)};
        } else if (f.wire == PB_FIXED64 && f.num == XSTAT_DOUBLE) {
            a = (struct arg){.type = ARG_FLOAT, .f = pb_double(f.value)};
        } else if (f.wire == PB_BYTES && f.num == XSTAT_STR) {
            a = (struct arg){.type = ARG_TEXT,
                             .text = shared ? at_most(f.bytes) : f.bytes};
        }
    }
    if (a.type == ARG_NONE) return true; /* empty, or bytes: no text */
    struct bytes key = stat_name(v, id);
    char number[24];
    if (key.n == 0) {
        snprintf(number, sizeof number, "%" PRId64, (int64_t)id);
        key = bytes_of(number);
    }
    return v->each(v->ctx, key, &a);
}

/* Gives the stats of an event name; and the full name where the span has a
 * shorter one. */
static void give_name(const struct view *v, struct bytes meta) {
    struct pb r = pb_reader(meta);
    struct pb_field f;
    struct bytes name = {meta.p, 0}, display = name;
    for (int fields = 0; fields < SHARED_STATS && pb_next(&r, &f); fields++) {
        if (f.wire != PB_BYTES) continue;
        if (f.num == XEVENTMETA_STATS && !give_stat(v, f.bytes, true)) return;
        if (f.num == XEVENTMETA_NAME) name = f.bytes;
        if (f.num == XEVENTMETA_DISPLAY_NAME) display = f.bytes;
    }
    if (display.n == 0 || name.n == 0) return;
    struct arg a = {.type = ARG_TEXT, .text = at_most(name)};
    v->each(v->ctx, bytes_of("long_name"), &a);
}

static void give_event(const struct view *v, struct bytes event) {
    struct pb r = pb_reader(event);
    struct pb_field f;
    uint64_t name = 0;
    while (pb_next(&r, &f)) {
        if (f.num == XEVENT_METADATA_ID && f.wire == PB_VARINT) name = f.value;
        if (f.num != XEVENT_NUM_OCCURRENCES || f.wire != PB_VARINT) continue;
        struct arg a = {.type = ARG_INT, .i = (int64_t)f.value};
        if (!v->each(v->ctx, bytes_of("num_occurrences"), &a)) return;
    }
    for (r = pb_reader(event); pb_next(&r, &f);)
        if (f.num == XEVENT_STATS && f.wire == PB_BYTES &&
            !give_stat(v, f.bytes, false))
            return;
    const struct index_entry *e = find(v->ix->entries + v->plane->names,
                                       v->plane->nnames, name);
    if (e != NULL) give_name(v, (struct bytes){v->all.p + e->at, e->n});
}

void xspace_args_each(const struct trace *t, row_id row, args_each_fn *each,
                      void *ctx) {
    uint32_t source;
    struct bytes event;
    if (!args_message(t, row, &source, &event)) return;
    const struct source *s = &t->sources[source];
    struct view v = {s->bytes, s->index, NULL, each, ctx};
    if (v.ix == NULL) return;
    uint64_t at = (uint64_t)(event.p - v.all.p);
    size_t i; /* planes stand in file order */
    BOUND(i, 0, v.ix->nplanes, v.ix->planes[i].begin <= at);
    if (i == 0 || at > v.ix->planes[i - 1].end) return;
    v.plane = &v.ix->planes[i - 1];
    give_event(&v, event);
}
