/* SPDX-License-Identifier: Apache-2.0
 * Growing XSpace. Planes and metadata are copied once; every line holds its
 * events again and again, each time later by the length of the whole window,
 * with correlation, context, group and step numbers moved on. Lengths of
 * planes and lines are guessed, and patched when known: no event is ever held.
 * They are not padded: that would mean a recording in progress. */
#include "base/pb.h"
#include "base/vec.h"
#include "grow.h"
#include <stdio.h>

enum { PLANE_LINE = 3, PLANE_STAT_META = 5, LINE_TS = 3, LINE_EVENT = 4 };
enum { EVENT_OFFSET = 2, EVENT_DUR = 3, EVENT_STAT = 4 };

/* Stats whose numbers name something that must stay distinct. */
static const char *const moving[] = {
    "correlation_id", "step_num",    "group_id", "_c",       "_p",
    "consumer_id",    "producer_id", "step_id",  "iter_num", "address",
    "context_id",     "run_id",
};
enum { MOVING = sizeof moving / sizeof *moving, STEP_NUM = 1 };

struct plane_ids {
    uint64_t *id; /* stat metadata ids that move, with their shift's index */
    uint8_t *which;
    size_t n, cap, cap_which;
};

struct space {
    struct bytes in;
    uint64_t shift[MOVING];
    uint64_t first_step; /* the least step_num */
    uint64_t lo_ps, hi_ps, window;
    uint64_t rest, events; /* bytes of all but events, and of events */
    int64_t reps;
};

/* Returns the number of a field of that kind; 0 if it is not there. */
static uint64_t varint_field(struct bytes b, uint32_t num) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f))
        if (f.num == num && f.wire == PB_VARINT) return f.value;
    return 0;
}

static struct bytes bytes_field(struct bytes b, uint32_t num) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f))
        if (f.num == num && f.wire == PB_BYTES) return f.bytes;
    return (struct bytes){NULL, 0};
}

/* Finds which stats of this plane move. */
static struct plane_ids ids_of(struct bytes plane) {
    struct plane_ids ids = {0};
    struct pb r = pb_reader(plane);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.num != PLANE_STAT_META || f.wire != PB_BYTES) continue;
        struct bytes name = bytes_field(bytes_field(f.bytes, 2), 2);
        for (uint8_t k = 0; k < MOVING; k++) {
            if (!bytes_eq(name, moving[k], strlen(moving[k]))) continue;
            if (!VEC_ROOM(ids.id, ids.n, ids.cap)) abort();
            size_t n = ids.n;
            if (!VEC_ROOM(ids.which, n, ids.cap_which)) abort();
            ids.id[ids.n] = varint_field(f.bytes, 1);
            ids.which[ids.n++] = k;
        }
    }
    return ids;
}

static void ids_free(struct plane_ids *ids) {
    free(ids->id);
    free(ids->which);
}

/* Returns the index in moving of a stat, or -1. */
static int moves(const struct plane_ids *ids, struct bytes stat) {
    uint64_t id = varint_field(stat, 1);
    for (size_t i = 0; i < ids->n; i++)
        if (ids->id[i] == id) return ids->which[i];
    return -1;
}

static bool is_number(const struct pb_field *f) {
    return (f->num == 3 || f->num == 4) && f->wire == PB_VARINT;
}

static void measure_event(struct space *s, const struct plane_ids *ids,
                          uint64_t base_ps, struct bytes ev) {
    struct pb r = pb_reader(ev), q;
    struct pb_field f, v;
    uint64_t at = 0, dur = 0;
    while (pb_next(&r, &f)) {
        if (f.num == EVENT_OFFSET && f.wire == PB_VARINT) at = f.value;
        if (f.num == EVENT_DUR && f.wire == PB_VARINT) dur = f.value;
        if (f.num != EVENT_STAT || f.wire != PB_BYTES) continue;
        int k = moves(ids, f.bytes);
        if (k < 0) continue;
        q = pb_reader(f.bytes);
        while (pb_next(&q, &v)) {
            if (!is_number(&v) || v.value >= UINT64_C(1) << 40) continue;
            if (k == STEP_NUM && v.value < s->first_step)
                s->first_step = v.value;
            if (v.value + 1 > s->shift[k]) s->shift[k] = v.value + 1;
        }
    }
    if (s->lo_ps == 0 || base_ps + at < s->lo_ps) s->lo_ps = base_ps + at;
    if (base_ps + at + dur > s->hi_ps) s->hi_ps = base_ps + at + dur;
}

static void measure(struct space *s) {
    s->first_step = UINT64_MAX;
    struct pb space = pb_reader(s->in), plane, line;
    struct pb_field p, l, ev;
    while (pb_next(&space, &p)) {
        if (p.num != 1 || p.wire != PB_BYTES) continue;
        struct plane_ids ids = ids_of(p.bytes);
        plane = pb_reader(p.bytes);
        while (pb_next(&plane, &l)) {
            if (l.num != PLANE_LINE || l.wire != PB_BYTES) continue;
            uint64_t base = varint_field(l.bytes, LINE_TS) * 1000;
            line = pb_reader(l.bytes);
            while (pb_next(&line, &ev))
                if (ev.num == LINE_EVENT && ev.wire == PB_BYTES) {
                    measure_event(s, &ids, base, ev.bytes);
                    s->events += ev.bytes.n + 2;
                }
        }
        ids_free(&ids);
    }
    s->rest = s->in.n - (s->events < s->in.n ? s->events : s->in.n);
    if (s->first_step != UINT64_MAX) s->shift[STEP_NUM] -= s->first_step;
    s->window = s->hi_ps - s->lo_ps + 10000000;
}

static size_t put_varint(uint8_t *to, uint64_t v) {
    size_t n = 0;
    while (v >= 0x80) {
        to[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    to[n++] = (uint8_t)v;
    return n;
}

static size_t varint_size(uint64_t v) {
    uint8_t tmp[10];
    return put_varint(tmp, v);
}

struct message {
    struct space *s;
    const struct plane_ids *ids;
    struct bytes body;
};

/* Pours a message of unknown length; if its length takes more or fewer bytes
 * than that of the guess, it is poured again. */
static void pour_message(struct pour *o, uint32_t num, uint64_t guess,
                         const struct message *m,
                         void (*body)(struct pour *, const struct message *)) {
    uint64_t start = o->total;
    for (size_t k = varint_size(guess);;) {
        uint8_t len[10] = {0};
        pour_byte(o, (uint8_t)(num << 3 | PB_BYTES));
        pour_bytes(o, len, k);
        body(o, m);
        uint64_t n = o->total - start - 1 - k;
        if (put_varint(len, n) == k) {
            pour_patch(o, start + 1, len, k);
            return;
        }
        pour_rewind(o, start);
        k = varint_size(n);
    }
}

/* Writes a stat with its numbers moved (0 names nothing, unless zero_too, as
 * in step 0); returns its new length. */
static size_t stat_moved(uint8_t *to, struct bytes stat, uint64_t by,
                         bool zero_too) {
    struct pb r = pb_reader(stat);
    struct pb_field f;
    size_t n = 0;
    const uint8_t *from = stat.p;
    while (pb_next(&r, &f)) {
        if (is_number(&f)) {
            to[n++] = (uint8_t)(f.num << 3 | PB_VARINT);
            n += put_varint(to + n,
                            f.value == 0 && !zero_too ? 0 : f.value + by);
        } else {
            memcpy(to + n, from, (size_t)(r.p - from));
            n += (size_t)(r.p - from);
        }
        from = r.p;
    }
    return n;
}

/* Events longer than this (none in real files) are copied as they are. */
enum { EVENT_MAX = 16384 };

static void pour_event(const struct space *s, const struct plane_ids *ids,
                       struct pour *o, struct bytes ev, uint64_t rep) {
    uint8_t buf[EVENT_MAX * 4], head[11];
    size_t n = 0, m;
    struct pb r = pb_reader(ev);
    struct pb_field f;
    const uint8_t *from = ev.p;
    bool timed = false;
    while (ev.n <= EVENT_MAX && pb_next(&r, &f)) {
        int k = f.num == EVENT_STAT && f.wire == PB_BYTES ? moves(ids, f.bytes)
                                                          : -1;
        if (f.num == EVENT_OFFSET && f.wire == PB_VARINT) {
            buf[n++] = EVENT_OFFSET << 3;
            n += put_varint(buf + n, f.value + rep * s->window);
            timed = true;
        } else if (k >= 0 && f.bytes.n < 64) {
            uint8_t stat[128];
            m = stat_moved(stat, f.bytes, rep * s->shift[k], k == STEP_NUM);
            buf[n++] = EVENT_STAT << 3 | PB_BYTES;
            n += put_varint(buf + n, m);
            memcpy(buf + n, stat, m);
            n += m;
        } else {
            memcpy(buf + n, from, (size_t)(r.p - from));
            n += (size_t)(r.p - from);
        }
        from = r.p;
    }
    if (!timed && rep != 0) { /* offset 0 is not written */
        buf[n++] = EVENT_OFFSET << 3;
        n += put_varint(buf + n, rep * s->window);
    }
    head[0] = LINE_EVENT << 3 | PB_BYTES;
    m = 1 + put_varint(head + 1, n);
    pour_bytes(o, head, m);
    pour_bytes(o, buf, n);
}

/* Returns about how much a line will take: moved numbers are a little
 * longer. */
static uint64_t line_guess(const struct space *s, struct bytes line) {
    return line.n * (uint64_t)s->reps / 16 * 17;
}

static void pour_line(struct pour *o, const struct message *m) {
    struct pb_field f;
    struct pb r = pb_reader(m->body);
    const uint8_t *from = m->body.p;
    while (pb_next(&r, &f)) {
        if (f.num != LINE_EVENT || f.wire != PB_BYTES)
            pour_bytes(o, from, (size_t)(r.p - from));
        from = r.p;
    }
    for (int64_t rep = 0; rep < m->s->reps; rep++) {
        r = pb_reader(m->body);
        while (pb_next(&r, &f))
            if (f.num == LINE_EVENT && f.wire == PB_BYTES)
                pour_event(m->s, m->ids, o, f.bytes, (uint64_t)rep);
    }
}

static void pour_plane(struct pour *o, const struct message *m) {
    struct pb r = pb_reader(m->body);
    struct pb_field f;
    const uint8_t *from = m->body.p;
    while (pb_next(&r, &f)) {
        if (f.num == PLANE_LINE && f.wire == PB_BYTES) {
            struct message line = {m->s, m->ids, f.bytes};
            pour_message(o, PLANE_LINE, line_guess(m->s, f.bytes), &line,
                         pour_line);
        } else {
            pour_bytes(o, from, (size_t)(r.p - from));
        }
        from = r.p;
    }
}

static uint64_t plane_guess(const struct space *s, struct bytes plane) {
    struct pb r = pb_reader(plane);
    struct pb_field f;
    uint64_t n = plane.n;
    while (pb_next(&r, &f))
        if (f.num == PLANE_LINE && f.wire == PB_BYTES)
            n += line_guess(s, f.bytes) - f.bytes.n;
    return n;
}

void grow_xspace(struct bytes in, struct pour *out, uint64_t size) {
    struct space s = {.in = in};
    measure(&s);
    if (s.events == 0) {
        fprintf(stderr, "grow: no events\n");
        exit(2);
    }
    /* Moved numbers need a little more room: about a sixteenth. */
    uint64_t each = s.events + s.events / 16;
    s.reps = size > s.rest ? (int64_t)((size - s.rest) / each) : 1;
    if (s.reps < 1) s.reps = 1;
    struct pb r = pb_reader(in);
    struct pb_field f;
    const uint8_t *from = in.p;
    while (pb_next(&r, &f)) {
        if (f.num == 1 && f.wire == PB_BYTES) {
            struct plane_ids ids = ids_of(f.bytes);
            struct message plane = {&s, &ids, f.bytes};
            pour_message(out, 1, plane_guess(&s, f.bytes), &plane, pour_plane);
            ids_free(&ids);
        } else {
            pour_bytes(out, from, (size_t)(r.p - from));
        }
        from = r.p;
    }
}
