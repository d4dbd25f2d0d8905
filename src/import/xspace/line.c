/* SPDX-License-Identifier: Apache-2.0
 * The events of a line: the loop that a gigabyte goes through.
 *
 *     XEvent { 1 name id, 2 offset_ps | 5 occurrences, 3 duration_ps, 4 stats }
 *
 * All tags of the messages met here are one byte. Numbers are read without a
 * look at the end: a varint has at most ten bytes, and 64 readable bytes stand
 * behind every file; the end is checked once per field. Whatever is not the
 * expected shape goes the slow way, through pb_next(). */
#include "import/xspace/xspace.h"

#include "base/io/file.h"
#include "import/import.h"
#include "model/trace_fill.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TAG_NAME = XEVENT_METADATA_ID << 3, /* and of a stat: XSTAT_METADATA_ID */
    TAG_OFFSET = XEVENT_OFFSET_PS << 3,
    TAG_DURATION = XEVENT_DURATION_PS << 3,
    TAG_STAT = XEVENT_STATS << 3 | PB_BYTES,
    TAG_COUNT = XEVENT_NUM_OCCURRENCES << 3,
    TAG_EVENT = XLINE_EVENTS << 3 | PB_BYTES,
};

/* Reads a varint. One of up to 8 bytes is gathered from one load; 9 and 10
 * bytes and endless ones (NULL) go byte by byte. Reads at most 10 bytes from p
 * on. */
static inline const uint8_t *varint(const uint8_t *p, uint64_t *out) {
    if (*p < 0x80) {
        *out = *p;
        return p + 1;
    }
    uint64_t w;
    memcpy(&w, p, 8);
    uint64_t stops = ~w & UINT64_C(0x8080808080808080);
    if (stops == 0) return pb_varint(p, p + 10, out);
    unsigned n = (unsigned)__builtin_ctzll(stops) / 8 + 1;
    if (n < 8) w &= (UINT64_C(1) << (8 * n)) - 1;
    w = (w & UINT64_C(0x007f007f007f007f)) |
        (w & UINT64_C(0x7f007f007f007f00)) >> 1;
    w = (w & UINT64_C(0x00003fff00003fff)) |
        (w & UINT64_C(0x3fff00003fff0000)) >> 2;
    w = (w & UINT64_C(0x000000000fffffff)) |
        (w & UINT64_C(0x0fffffff00000000)) >> 4;
    *out = w;
    return p + n;
}

/* A scope may have launched several things, and taken several arrows. */
__attribute__((noinline, cold)) static void
put_more(struct xpiece *w, uint8_t code, struct xval v) {
    bool ids = code == XSTAT_FLOW || code == XSTAT_CORRELATION;
    if (!w->plane->own || !ids || w->facts.v[code].type != XVAL_UINT) {
        w->facts.v[code] = v;
        return;
    }
    if (w->nmore == XMORE_MAX || v.type != XVAL_UINT) return;
    w->more[w->nmore].code = code;
    w->more[w->nmore++].v = v.u;
}

static inline void put_fact(struct xpiece *w, uint8_t code, struct xval v) {
    if (__builtin_expect((w->facts.seen & XBIT(code)) != 0, 0)) {
        put_more(w, code, v);
        return;
    }
    w->facts.seen |= XBIT(code);
    w->facts.v[code] = v;
}

/* Reads a stat of odd shape, or a damaged one. */
__attribute__((noinline, cold)) static void stat_slow(struct xpiece *w,
                                                      struct bytes b) {
    uint64_t id;
    struct xval v;
    if (!xstat_read(b, &id, &v)) trace_note(w->t, NOTE_BAD_FIELD, 1);
    uint32_t i = xids_get(&w->plane->stat_ids, id);
    uint8_t code = i == MAP_NONE ? XSTAT_NONE : w->plane->stats[i].code;
    if (code != XSTAT_NONE && v.type != XVAL_NONE) put_fact(w, code, v);
}

/* Reads one stat: its id, then its value, which must end where the stat
 * does. */
static inline void stat(struct xpiece *w, const uint8_t *p,
                        const uint8_t *end) {
    uint64_t id, u = 0;
    struct bytes all = {p, (size_t)(end - p)}, text = {p, 0};
    if (p == end || *p != TAG_NAME || !(p = varint(p + 1, &id)) || p >= end) {
        stat_slow(w, all);
        return;
    }
    uint8_t tag = *p++;
    switch (tag) {
    case XVAL_DOUBLE << 3 | PB_FIXED64:
        memcpy(&u, p, 8);
        p += 8;
        break;
    case XVAL_UINT << 3:
    case XVAL_INT << 3:
    case XVAL_REF << 3: p = varint(p, &u); break;
    case XVAL_STR << 3 | PB_BYTES:
    case XVAL_BYTES << 3 | PB_BYTES:
        p = varint(p, &u);
        if (p == NULL || p > end || u > (size_t)(end - p)) {
            p = NULL;
            break;
        }
        text = (struct bytes){p, (size_t)u};
        p += u;
        break;
    default: p = NULL;
    }
    if (p != end) {
        stat_slow(w, all);
        return;
    }
    uint32_t i = xids_get(&w->plane->stat_ids, id);
    uint8_t code = i == MAP_NONE ? XSTAT_NONE : w->plane->stats[i].code;
    if (code != XSTAT_NONE)
        put_fact(w, code, (struct xval){(enum xtype)(tag >> 3), u, text});
}

/* Reads a field of an event that has no fast way. Returns where the next
 * begins; NULL if the rest of the event is damaged. */
__attribute__((noinline, cold)) static const uint8_t *
field_slow(struct xpiece *w, const uint8_t *p, const uint8_t *end) {
    struct pb r = {p, end, false};
    struct pb_field f;
    if (!pb_next(&r, &f)) {
        trace_note(w->t, NOTE_BAD_FIELD, 1);
        return NULL;
    }
    trace_note(w->t,
               f.num > XEVENT_NUM_OCCURRENCES ? NOTE_UNKNOWN_FIELD
                                              : NOTE_BAD_FIELD,
               1);
    return r.p;
}

/* Reads the fields and stats of one event, its offset into ev->ts. Of a damaged
 * one what was read before the damage stays. */
static inline void event_fields(struct xpiece *w, const uint8_t *p,
                                const uint8_t *end, uint64_t *name,
                                struct xevent *ev) {
    uint64_t v;
    while (p < end) {
        const uint8_t *at = p;
        switch (*p++) {
        case TAG_NAME: p = varint(p, name); break;
        case TAG_OFFSET:
            if ((p = varint(p, &v)) == NULL) break;
            ev->ts = (int64_t)v;
            ev->count = false;
            break;
        case TAG_DURATION:
            if ((p = varint(p, &v)) == NULL) break;
            ev->dur = (int64_t)v;
            ev->timed = true;
            break;
        case TAG_COUNT:
            if ((p = varint(p, &v)) != NULL) ev->count = true;
            break;
        case TAG_STAT:
            p = varint(p, &v);
            if (p == NULL || p > end || v > (size_t)(end - p)) {
                p = NULL;
                break;
            }
            stat(w, p, p + v);
            p += v;
            break;
        default: p = NULL;
        }
        if (p == NULL && (p = field_slow(w, at, end)) == NULL) return;
    }
    /* has a number run past the event? */
    if (p != end) trace_note(w->t, NOTE_BAD_FIELD, 1);
}

/* Adds the facts that the name gives to all its events; few names have any,
 * and the event's own win. */
static inline void name_facts(struct xpiece *w, const struct xname *n) {
    for (uint32_t i = 0; i < n->nstat; i++) {
        const struct xconst *c = &w->plane->consts[n->stat + i];
        if (!(w->facts.seen & XBIT(c->code))) put_fact(w, c->code, c->v);
    }
}

/* Emits an event whose name the file does not have: it is called by the
 * number. */
__attribute__((noinline, cold)) static void
emit_nameless(struct xpiece *w, const struct xline *l, struct xtracks *tr,
              uint64_t id, struct xevent *e) {
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRId64, (int64_t)id);
    struct xname none = {.name = {(const uint8_t *)text, (size_t)n},
                         .kind = w->plane->kind == XPLANE_XLA ? SPAN_KERNEL
                                                              : SPAN_OTHER};
    e->name = trace_str(w->t, none.name);
    e->cat = 0;
    trace_note(w->t, NOTE_METADATA_MISSING, 1);
    xevent_emit(w, l, tr, &none, e);
}

/* Returns the category of an op of an XLA device: its name, framework op, kind
 * and program (struct launch), by which its instruction is found. 0 if its
 * program was not recorded. */
static uint32_t xla_op_cat(struct xpiece *w, const struct xname *n) {
    char program[32];
    struct launch l = {.hlo_op = n->name, .details = n->cat};
    for (uint32_t k = n->stat; k < n->stat + n->nstat; k++) {
        const struct xconst *c = &w->plane->consts[k];
        if (c->code == XSTAT_TF_OP) l.tf_op = xval_text(w->plane, &c->v);
        if (c->code != XSTAT_PROGRAM) continue;
        snprintf(program, sizeof program, "(%" PRIu64 ")",
                 (uint64_t)xval_int(w->plane, &c->v));
        l.module = bytes_of(program);
    }
    return l.module.n > 0 ? launch_cat(w->t, &l) : 0;
}

/* Interns the name and category of an event name for this piece's trace. */
__attribute__((noinline, cold)) static void intern_name(struct xpiece *w,
                                                        uint32_t i) {
    const struct xname *n = &w->plane->names[i];
    w->names[i].name = trace_str(w->t, n->name);
    bool op = w->plane->kind == XPLANE_XLA && w->x->t->hlo != NULL;
    uint32_t cat = op ? xla_op_cat(w, n) : 0;
    if (cat == 0 && n->cat.n > 0) cat = trace_cat(w->t, n->cat);
    w->names[i].cat = cat;
}

enum { PROGRESS_EVERY = 1 << 16 }; /* events */

/* Tells how far the first piece is, which stands for the whole file; asks
 * whether to stop; lets go of the bytes of the events before p. */
__attribute__((noinline, cold)) static void look_around(struct xpiece *w,
                                                        const uint8_t *p) {
    const struct file *f = w->x->t->sources[w->x->source].file;
    if (f != NULL && p > w->kept)
        file_forget(f, (struct bytes){w->kept, (size_t)(p - w->kept)});
    w->kept = p;
    if (w->tells && p >= w->from && p <= w->to)
        import_told(w->watch, (uint64_t)(p - w->from),
                    (uint64_t)(w->to - w->from));
    w->stopped = import_stopped(w->watch);
}

static inline void event(struct xpiece *w, const struct xline *l,
                         struct xtracks *tr, const uint8_t *p,
                         const uint8_t *end, uint64_t args, size_t args_n) {
    struct xevent e = {.args = args, .args_n = args_n};
    uint64_t id = 0;
    w->facts.seen = 0;
    w->nmore = 0;
    if (++w->events % PROGRESS_EVERY == 0) look_around(w, p);
    event_fields(w, p, end, &id, &e);
    if (__builtin_add_overflow(l->base, e.ts, &e.ts)) e.ts = INT64_MAX;
    uint32_t i = xids_get(&w->plane->name_ids, id);
    if (i == MAP_NONE) {
        emit_nameless(w, l, tr, id, &e);
        return;
    }
    const struct xname *n = &w->plane->names[i];
    if (n->nstat > 0) name_facts(w, n);
    if (w->names[i].name == STR_NONE) intern_name(w, i);
    e.name = w->names[i].name;
    e.cat = w->names[i].cat;
    xevent_emit(w, l, tr, n, &e);
}

/* Reads a field of the line that is not an event. Returns where the next
 * begins; NULL if the rest of the line is damaged, or cut off (which the file's
 * note says already). */
static const uint8_t *line_slow(struct xpiece *w, const struct xline *l,
                                const uint8_t *p, struct bytes *display) {
    const uint8_t *end = l->body.p + l->body.n;
    struct pb r = {p, end, false};
    struct pb_field f;
    if (!pb_next(&r, &f)) {
        if (!xplane_torn(w->x, w->plane, l->body))
            trace_note(w->t, NOTE_BAD_FIELD, 1);
        return NULL;
    }
    xline_odd_field(w->t, &f);
    if (f.num == XLINE_DISPLAY_NAME && f.wire == PB_BYTES) *display = f.bytes;
    return r.p;
}

void xline_read(struct xpiece *w, const struct xline *l) {
    const struct xspace *x = w->x;
    const uint8_t *end = l->body.p + l->body.n, *p = l->events;
    const uint8_t *stop = l->stop ? l->stop : end;
    uint64_t args = w->t->sources[w->source].args_base + 1;
    struct bytes display = l->display;
    struct xtracks tr;
    xtracks_open(w, l, &tr);
    if (w->kept < p || w->kept > end) w->kept = p;
    while (p != NULL && p < stop && !w->stopped) {
        uint64_t n;
        const uint8_t *body;
        if (*p == TAG_EVENT && (body = varint(p + 1, &n)) != NULL &&
            body <= end && n <= (size_t)(end - body)) {
            event(w, l, &tr, body, body + n,
                  args + (uint64_t)(p + 1 - x->all.p),
                  (size_t)(body + n - p) - 1);
            p = body + n;
        } else {
            p = line_slow(w, l, p, &display);
        }
    }
    struct bytes name = display.n > 0 ? display : l->name;
    /* a thread may be given another name: the last one holds */
    if (w->plane->own && tr.main < w->t->ntracks)
        w->t->tracks[tr.main].named = false;
    if (l->stop == NULL && name.n > 0 && tr.main != ROW_NONE)
        trace_track_name(w->t, tr.main, name);
}
