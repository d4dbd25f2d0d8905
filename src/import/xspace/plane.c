/* SPDX-License-Identifier: Apache-2.0
 * A plane but for its events: {1 id, 2 name, 3 lines, 4 event names, 5 stat
 * names, 6 stats}. Names are maps: entries {1 key, 2 message}. */
#include "import/xspace/xspace.h"

#include "base/array.h"
#include "base/facts.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include "base/xspace.h"
#include "model/trace_fill.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    uint8_t code;
} stat_codes[] = {
#define X(id, name) {name, XSTAT_##id},
#include "import/xspace/stats.def"
#undef X
};
_Static_assert(XSTAT_COUNT <= 64, "codes are bits of a uint64_t");

/* Notes a field that the message does not have, or of the wrong type. */
static void odd_field(struct xspace *x, const struct pb_field *f,
                      uint32_t last) {
    trace_note(x->t, f->num > last ? NOTE_UNKNOWN_FIELD : NOTE_BAD_FIELD, 1);
}

static bool is_bytes(const struct pb_field *f) { return f->wire == PB_BYTES; }
static bool is_varint(const struct pb_field *f) { return f->wire == PB_VARINT; }

/* Finds the key and the message of a map entry. */
static void map_entry(struct xspace *x, struct bytes b, uint64_t *key,
                      struct bytes *value, bool cut) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    *key = 0;
    *value = (struct bytes){b.p, 0};
    while (xspace_next(x->t, &r, &f, cut)) {
        if (f.num == XSPACE_MAP_KEY && is_varint(&f)) *key = f.value;
        else if (f.num == XSPACE_MAP_VALUE && is_bytes(&f)) *value = f.bytes;
        else odd_field(x, &f, XSPACE_MAP_VALUE);
    }
}

/* Returns the id of an entry. The id inside a message must be its key; where a
 * writer left the key out the id is all there is. */
static uint64_t entry_id(struct bytes value, uint64_t key) {
    struct pb r = pb_reader(value);
    struct pb_field f;
    if (key != 0) return key;
    while (pb_next(&r, &f))
        if (f.num == XEVENTMETA_ID && is_varint(&f)) return f.value;
    return key;
}

bool xplane_torn(const struct xspace *x, const struct xplane *p,
                 struct bytes b) {
    return p->cut && b.p + b.n == x->all.p + x->all.n;
}

/* Sets id -> index; the last of two equal ids wins. */
static void ids_set(struct xspace *x, struct xids *m, uint64_t id,
                    uint32_t index) {
    enum { DENSE_MAX = 1 << 20 };
    if (id < DENSE_MAX && id < 64 + 4 * (uint64_t)index) {
        if (id >= m->ndense) {
            size_t want = vec_next_cap(m->ndense, (size_t)id + 1);
            if (!vec_resize(&m->dense, want, sizeof *m->dense)) {
                x->oom = true;
                return;
            }
            memset(m->dense + m->ndense, 0,
                   (want - m->ndense) * sizeof *m->dense);
            /* ids that came when they were too far out stay findable */
            for (size_t i = m->ndense; i < want; i++) {
                uint32_t old = map_get(&m->sparse, i);
                if (old != MAP_NONE) m->dense[i] = old + 1;
            }
            m->ndense = want;
        }
    }
    if (id < m->ndense) m->dense[id] = index + 1;
    else if (!map_set(&m->sparse, id, index)) x->oom = true;
}

/* Cuts a name. It stands in the file once and is used by any number of events,
 * each of which may have to compare or show it: no longer than this. Demangled
 * kernels of templates have some thousand letters. */
static struct bytes cut_name(struct xspace *x, struct bytes b) {
    enum { LONGEST = 1 << 14 };
    if (b.n <= LONGEST) return b;
    trace_note(x->t, NOTE_NAME_CUT, 1);
    b.n = LONGEST;
    while (b.n > LONGEST - 4 && (b.p[b.n] & 0xc0) == 0x80) b.n--;
    return b;
}

static void add_stat_name(struct xspace *x, struct xplane *p, struct bytes b) {
    uint64_t key;
    struct bytes value;
    bool cut = xplane_torn(x, p, b);
    map_entry(x, b, &key, &value, cut);
    if (!VEC_ROOM(p->stats, p->nstats, p->cap_stats)) {
        x->oom = true;
        return;
    }
    struct xstatname *s = &p->stats[p->nstats];
    *s = (struct xstatname){.name = {value.p, 0}};
    struct pb r = pb_reader(value);
    struct pb_field f;
    while (xspace_next(x->t, &r, &f, cut)) {
        if (f.num == XSTATMETA_NAME && is_bytes(&f)) s->name = f.bytes;
        else if (f.num == XSTATMETA_ID ? !is_varint(&f)
                                       : f.num != XSTATMETA_DESCRIPTION)
            odd_field(x, &f, XSTATMETA_DESCRIPTION);
    }
    s->name = cut_name(x, s->name);
    for (size_t i = 0; i < COUNT(stat_codes) && s->code == XSTAT_NONE; i++)
        if (bytes_eq(s->name, stat_codes[i].name, strlen(stat_codes[i].name)))
            s->code = stat_codes[i].code;
    if (s->code == XSTAT_STEP_NUM) p->has_step_num = true;
    if (s->code == XSTAT_CONSUMER) p->consumes = true;
    if (s->code == XSTAT_OPSCOPE_KIND || BYTES_IS(s->name, FACT_VERSION))
        p->own = true;
    if (BYTES_IS(s->name, FACT_VIEW)) p->outside = true;
    ids_set(x, &p->stat_ids, entry_id(value, key), (uint32_t)p->nstats++);
}

/* Mends a name here, so that it counts once: names are interned once by each
 * piece of a file. */
static struct bytes clean_name(struct xspace *x, struct bytes b) {
    if (utf8_clean(b)) return b;
    uint8_t *copy = b.n < SIZE_MAX / 3 ? arena_alloc(&x->arena, 3 * b.n) : NULL;
    if (copy == NULL) {
        x->oom = true;
        return (struct bytes){b.p, 0};
    }
    return (struct bytes){copy, utf8_mend(b, copy, &x->t->strs.mended)};
}

static void add_event_name(struct xspace *x, struct xplane *p, struct bytes b) {
    uint64_t key;
    struct bytes value;
    bool cut = xplane_torn(x, p, b);
    map_entry(x, b, &key, &value, cut);
    if (!VEC_ROOM(p->names, p->nnames, p->cap_names)) {
        x->oom = true;
        return;
    }
    struct xname *n = &p->names[p->nnames];
    *n = (struct xname){.raw = value, .name = {value.p, 0}};
    struct pb r = pb_reader(value);
    struct pb_field f;
    while (xspace_next(x->t, &r, &f, cut)) {
        if (f.num == XEVENTMETA_NAME && is_bytes(&f)) n->name = f.bytes;
        else if (f.num == XEVENTMETA_DISPLAY_NAME && is_bytes(&f))
            n->display = f.bytes;
        else if (f.num == XEVENTMETA_ID
                     ? !is_varint(&f)
                     : f.num > XEVENTMETA_CHILD_ID ||
                           (f.num != XEVENTMETA_CHILD_ID && !is_bytes(&f)))
            odd_field(x, &f, XEVENTMETA_CHILD_ID);
    }
    n->name = clean_name(x, n->name);
    n->display = clean_name(x, n->display);
    if (xname_is_tf(n->name)) p->tf = true;
    if (BYTES_STARTS(n->name, "EagerLocalExecute: ")) p->eager_local = true;
    ids_set(x, &p->name_ids, entry_id(value, key), (uint32_t)p->nnames++);
}

/* The wire type of each field of XLine, or that there is no such field. */
enum { NO_FIELD = 9 };
static const uint8_t line_wires[] = {
    NO_FIELD, PB_VARINT, PB_BYTES, PB_VARINT, PB_BYTES,  NO_FIELD,
    NO_FIELD, NO_FIELD,  NO_FIELD, PB_VARINT, PB_VARINT, PB_BYTES,
};
_Static_assert(sizeof line_wires == XLINE_DISPLAY_NAME + 1, "a wire type each");

static bool line_fits(const struct pb_field *f) {
    return f->num <= XLINE_DISPLAY_NAME && line_wires[f->num] == f->wire;
}

void xline_odd_field(struct trace *t, const struct pb_field *f) {
    if (line_fits(f)) return;
    bool known = f->num <= XLINE_DISPLAY_NAME && line_wires[f->num] != NO_FIELD;
    trace_note(t, known ? NOTE_BAD_FIELD : NOTE_UNKNOWN_FIELD, 1);
}

/* Reads the head of a line. Writers put it before the events, and leave out
 * what is 0: only then, or if the order is odd, the whole line is walked for
 * it. */
static void add_line(struct xspace *x, struct xplane *p, struct bytes b) {
    struct xline l = {.body = b, .name = {b.p, 0}, .events = b.p + b.n};
    struct pb r = pb_reader(b);
    struct pb_field f;
    unsigned found = 0;
    const uint8_t *at = r.p;
    for (; pb_next(&r, &f); at = r.p) {
        if (f.num == XLINE_EVENTS && at < l.events) l.events = at;
        if (f.num == XLINE_EVENTS && found == 7) break;
        if (at < l.events) xline_odd_field(x->t, &f);
        if (!line_fits(&f)) continue;
        if (f.num == XLINE_ID) l.id = (int64_t)f.value;
        if (f.num == XLINE_NAME) l.name = f.bytes;
        if (f.num == XLINE_TIMESTAMP_NS) l.ts_ns = (int64_t)f.value;
        if (f.num == XLINE_DISPLAY_NAME) l.display = f.bytes;
        if (f.num < XLINE_EVENTS) found |= 1u << (f.num - 1);
    }
    if (l.events == b.p + b.n && r.bad && f.num == XLINE_EVENTS) l.events = at;
    if (!VEC_ROOM(p->lines, p->nlines, p->cap_lines)) x->oom = true;
    else p->lines[p->nlines++] = l;
}

/* Reads the constant stats of an event name: those that matter, and its
 * category. */
static void read_consts(struct xspace *x, struct xplane *p, struct xname *n) {
    struct pb r = pb_reader(n->raw);
    struct pb_field f;
    n->stat = (uint32_t)p->nconsts;
    while (pb_next(&r, &f)) {
        uint64_t id;
        struct xconst c = {0};
        if (f.num != XEVENTMETA_STATS || !is_bytes(&f)) continue;
        if (!xstat_read(f.bytes, &id, &c.v) && !xplane_torn(x, p, f.bytes))
            trace_note(x->t, NOTE_BAD_FIELD, 1);
        uint32_t s = xids_get(&p->stat_ids, id);
        if (s == MAP_NONE || p->stats[s].code == XSTAT_NONE) continue;
        c.code = p->stats[s].code;
        if (c.v.type == XVAL_STR) c.v.b = cut_name(x, c.v.b);
        if (c.code == XSTAT_HLO_CATEGORY) n->cat = xval_text(p, &c.v);
        else if (!VEC_ROOM(p->consts, p->nconsts, p->cap_consts)) x->oom = true;
        else p->consts[p->nconsts++] = c;
    }
    n->nstat = (uint32_t)p->nconsts - n->stat;
}

static void plane_field(struct xspace *x, struct xplane *p,
                        const struct pb_field *f) {
    if (f->num == XPLANE_ID && is_varint(f)) p->id = (int64_t)f->value;
    else if (f->num == XPLANE_NAME && is_bytes(f)) p->name = f->bytes;
    else if (is_bytes(f) && f->bytes.n == 0 && f->num >= XPLANE_LINES &&
             f->num <= XPLANE_STATS)
        return; /* says nothing */
    else if (f->num == XPLANE_LINES && is_bytes(f)) add_line(x, p, f->bytes);
    else if (f->num == XPLANE_EVENT_METADATA && is_bytes(f))
        add_event_name(x, p, f->bytes);
    else if (f->num == XPLANE_STAT_METADATA && is_bytes(f))
        add_stat_name(x, p, f->bytes);
    else if (f->num != XPLANE_STATS || !is_bytes(f))
        odd_field(x, f, XPLANE_STATS);
    else if (!VEC_ROOM(p->facts, p->nfacts, p->cap_facts)) x->oom = true;
    else p->facts[p->nfacts++] = f->bytes;
}

/* Returns the number after the last ':' or '#', up to a blank; 0 if there is
 * none. */
static int64_t name_ordinal(struct bytes b) {
    size_t at = b.n;
    while (at > 0 && b.p[at - 1] != ':') at--;
    int64_t v = 0;
    for (; at > 0 && at < b.n && b.p[at] >= '0' && b.p[at] <= '9'; at++)
        if (v < INT64_C(1) << 40) v = v * 10 + (b.p[at] - '0');
    return v;
}

/* Returns the process that a "/host:CPU [4711]" plane came from. */
static int64_t name_pid(struct bytes b) {
    if (b.n < 3 || b.p[b.n - 1] != ']') return 0;
    size_t at = b.n - 1;
    int64_t v = 0, unit = 1;
    for (; at > 0 && b.p[at - 1] >= '0' && b.p[at - 1] <= '9'; at--) {
        if (unit > INT64_C(1) << 40) return 0;
        v += unit * (b.p[at - 1] - '0');
        unit *= 10;
    }
    return at > 0 && b.p[at - 1] == '[' ? v : 0;
}

/* Does it have lines named like those of a TPU, and no streams: an XLA
 * device? */
static bool has_xla_ops(const struct xplane *p) {
    bool ops = false;
    for (size_t i = 0; i < p->nlines; i++) {
        struct bytes n = p->lines[i].name;
        if (BYTES_STARTS(n, "Stream #")) return false;
        if (BYTES_IS(n, "XLA Ops") || BYTES_IS(n, "Sparse Core Ops"))
            ops = true;
    }
    return ops;
}

/* Is it a plane of the host whose lines are no threads? Their ids would meet
 * those of threads. */
static bool is_side_plane(struct bytes n) {
    return BYTES_STARTS(n, "Host CPUs") || BYTES_STARTS(n, "Syscalls") ||
           BYTES_STARTS(n, "/host:tfstreamz");
}

static enum xplane_kind kind_of(const struct xplane *p) {
    struct bytes n = p->name;
    if (p->own && BYTES_STARTS(n, "/device:")) return XPLANE_GPU;
    if (p->outside) return XPLANE_OTHER; /* lifetimes are no work */
    if (BYTES_STARTS(n, "/device:TPU:")) return XPLANE_XLA;
    if (BYTES_STARTS(n, "#Chip") || is_side_plane(n)) return XPLANE_OTHER;
    if (BYTES_STARTS(n, "/device:CUSTOM:MOSAIC")) return XPLANE_OTHER;
    if (BYTES_STARTS(n, "/device:GPU:")) return XPLANE_GPU;
    if (BYTES_STARTS(n, "/device:") || BYTES_STARTS(n, "/custom:") ||
        BYTES_STARTS(n, "/virtualdevice:"))
        return has_xla_ops(p) ? XPLANE_XLA : XPLANE_GPU;
    if (BYTES_IS(n, XSPACE_ENVIRONMENT) || BYTES_IS(n, "/host:metadata") ||
        BYTES_STARTS(n, "/host:__ScopeRangeCallStack__"))
        return XPLANE_FACTS;
    return XPLANE_HOST;
}

/* No host has more; a file with a million of them is an attack on the linear
 * searches among devices. */
enum { DEVICES_MAX = 1024 };

static void xplane_classify(struct xspace *x, struct xplane *p) {
    p->kind = kind_of(p);
    p->device = ROW_NONE;
    if (p->kind == XPLANE_HOST || p->kind == XPLANE_FACTS) {
        p->pid = name_pid(p->name);
        return;
    }
    if (p->outside) x->t->sources[x->source].process_view = true;
    if (p->outside || is_side_plane(p->name)) return;
    if (x->t->ndevices >= DEVICES_MAX) {
        trace_note(x->t, NOTE_BAD_EVENT, 1);
        p->kind = XPLANE_OTHER;
        return;
    }
    enum device_kind kind = DEVICE_OTHER;
    if (BYTES_STARTS(p->name, "/device:GPU:")) kind = DEVICE_GPU;
    if (BYTES_STARTS(p->name, "/device:TPU:")) kind = DEVICE_TPU;
    p->dev_kind = kind;
    p->ordinal = p->own ? xplane_own_ordinal(p) : name_ordinal(p->name);
    p->device = trace_device(x->t, x->source, kind, p->ordinal);
    /* devices of the recorder have the name that the program gave them */
    struct bytes label = xplane_own_label(p);
    if (p->own && p->device != ROW_NONE && label.n > 0) {
        x->t->devices[p->device].label = trace_str(x->t, label);
        x->t->devices[p->device].labelled = true;
    }
    /* A core's tracks must not meet those of another with the same line ids:
     * a SparseCore's, or another kind of device's. */
    p->pid = kind == DEVICE_GPU ? p->ordinal : p->id + (INT64_C(1000) << kind);
    x->t->sources[x->source].has_device = true;
}

/* Gives back what growing left over: all planes are open at once, and most of
 * what a small one would hold is room for more. */
static void trim(struct xplane *p) {
    if (p->nnames) vec_resize(&p->names, p->nnames, sizeof *p->names);
    if (p->nstats) vec_resize(&p->stats, p->nstats, sizeof *p->stats);
    if (p->nconsts) vec_resize(&p->consts, p->nconsts, sizeof *p->consts);
    if (p->nlines) vec_resize(&p->lines, p->nlines, sizeof *p->lines);
    if (p->nfacts) vec_resize(&p->facts, p->nfacts, sizeof *p->facts);
    p->cap_names = p->nnames;
    p->cap_stats = p->nstats;
    p->cap_consts = p->nconsts;
    p->cap_lines = p->nlines;
    p->cap_facts = p->nfacts;
}

void xplane_open(struct xspace *x, struct xplane *p) {
    struct pb r = pb_reader(p->body);
    struct pb_field f;
    while (xspace_next(x->t, &r, &f, p->cut)) plane_field(x, p, &f);
    xplane_classify(x, p);
    x->own |= p->own;
    for (size_t i = 0; i < p->nnames; i++) {
        read_consts(x, p, &p->names[i]);
        xname_classify(p, &p->names[i]);
        p->names[i].name = cut_name(x, p->names[i].name);
    }
    for (size_t i = 0; i < p->nlines; i++)
        p->lines[i].kind = xline_classify(p, &p->lines[i]);
    x->consumes |= p->consumes && p->kind == XPLANE_XLA;
    for (size_t i = 0; i < p->nlines; i++)
        p->lines[i].modules = p->kind == XPLANE_XLA &&
                              BYTES_IS(p->lines[i].name, "XLA Modules");
    trim(p);
}

void xplane_free(struct xplane *p) {
    free(p->names);
    free(p->stats);
    free(p->consts);
    free(p->lines);
    free(p->facts);
    free(p->name_ids.dense);
    map_free(&p->name_ids.sparse);
    free(p->stat_ids.dense);
    map_free(&p->stat_ids.sparse);
}
