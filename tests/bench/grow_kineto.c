/* SPDX-License-Identifier: Apache-2.0
 * Growing PyTorch's Chrome JSON. The events are cut apart once into literal
 * text and numbers that must change (holes); each repetition prints them with
 * its own shift. Times move on by the length of the window; ids by one more
 * than the largest; steps are numbered on; one name in 97 gets a suffix, so
 * that the string table grows as it does in real long runs. */
#include "base/vec.h"
#include "grow.h"
#include <ctype.h>
#include <stdio.h>

enum hole_kind {
    HOLE_TIME, /* microseconds with decimals */
    HOLE_ID,   /* correlation, External id and flow id: one number space */
    HOLE_EVENT,
    HOLE_PYTHON,
    HOLE_SEQUENCE,
    HOLE_ADDRESS,
    HOLE_STEP, /* the N of ProfilerStep#N */
    HOLE_NAME, /* the end of a name that is varied */
    HOLES,
};

static const struct {
    const char *key;
    enum hole_kind kind;
} keys[] = {
    {"ts", HOLE_TIME},
    {"correlation", HOLE_ID},
    {"External id", HOLE_ID},
    {"id", HOLE_ID},
    {"Ev Idx", HOLE_EVENT},
    {"Python id", HOLE_PYTHON},
    {"Addr", HOLE_ADDRESS},
    {"Python parent id", HOLE_PYTHON},
    {"Sequence number", HOLE_SEQUENCE},
};

struct hole {
    uint32_t at, len; /* in the event's text */
    uint8_t kind;
    uint8_t decimals; /* HOLE_TIME */
    int64_t value;    /* HOLE_TIME: in units of its last decimal */
};

enum when { EACH, FIRST, LAST };

struct event {
    const uint8_t *p;
    uint32_t n;
    uint32_t holes, nholes;
    enum when when;
};

struct grower {
    struct event *events;
    size_t n, cap;
    struct hole *holes;
    size_t nholes, cap_holes;
    int64_t shift[HOLES];
    int64_t lo_ns, hi_ns; /* the window */
    int decimals;         /* of the times */
    int64_t first_step;   /* the least N of ProfilerStep#N, or 0 */
};

/* Returns the end of the JSON value that starts at p. */
static const uint8_t *value_end(const uint8_t *p, const uint8_t *end) {
    int depth = 0;
    for (; p < end; p++) {
        if (*p == '"') {
            for (p++; p < end && *p != '"'; p++)
                if (*p == '\\') p++;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            if (depth == 0) return p;
            if (--depth == 0) return p + 1;
            continue;
        } else if (depth == 0 && (*p == ',' || isspace(*p))) {
            return p;
        }
        if (depth == 0 && *p == '"') return p + 1;
    }
    return end;
}

static void add_hole(struct grower *g, struct hole h) {
    if (!VEC_ROOM(g->holes, g->nholes, g->cap_holes)) abort();
    g->holes[g->nholes++] = h;
    if (h.kind != HOLE_TIME && h.kind != HOLE_NAME &&
        h.value + 1 > g->shift[h.kind])
        g->shift[h.kind] = h.value + 1;
}

/* Reads a decimal number at p as an integer in units of its last digit. */
static struct hole number(const uint8_t *p, const uint8_t *end) {
    struct hole h = {0};
    const uint8_t *q = p;
    bool minus = q < end && *q == '-', dot = false;
    if (minus) q++;
    for (; q < end && (isdigit(*q) || (*q == '.' && !dot)); q++) {
        if (*q == '.') {
            dot = true;
            continue;
        }
        h.value = h.value * 10 + (*q - '0');
        h.decimals += dot;
    }
    if (minus) h.value = -h.value;
    h.len = (uint32_t)(q - p);
    return h;
}

static void hole_for(struct grower *g, struct event *ev, struct bytes key,
                     const uint8_t *v, const uint8_t *end) {
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (!bytes_eq(key, keys[k].key, strlen(keys[k].key))) continue;
        struct hole h = number(v, end);
        h.at = (uint32_t)(v - ev->p);
        h.kind = (uint8_t)keys[k].kind;
        /* 0 and -1 mean "none" in ids */
        if (h.len != 0 && (h.kind == HOLE_TIME || h.value > 0)) add_hole(g, h);
    }
}

static void name_hole(struct grower *g, struct event *ev, struct bytes name) {
    struct hole h = {.kind = HOLE_NAME};
    h.at = (uint32_t)(name.p + name.n - ev->p);
    if (BYTES_STARTS(name, "ProfilerStep#")) {
        h = number(name.p + 13, name.p + name.n);
        h.at = (uint32_t)(name.p + 13 - ev->p);
        h.kind = HOLE_STEP;
        if (h.value < 0) return;
        if (g->shift[HOLE_STEP] == 0 || h.value < g->first_step)
            g->first_step = h.value;
        add_hole(g, h);
    } else if (g->n % 97 == 3 && name.p[0] != '[') {
        add_hole(g, h);
    }
}

/* Finds the keys of an event at any depth; strings are never taken for keys. */
static void find_holes(struct grower *g, struct event *ev) {
    const uint8_t *p = ev->p, *end = ev->p + ev->n;
    int64_t ts = 0, dur = 0;
    bool meta = false, named = false;
    while (p < end) {
        if (*p++ != '"') continue;
        struct bytes key = {p, 0};
        while (p < end && *p != '"') p += *p == '\\' ? 2 : 1;
        key.n = (size_t)(p - key.p);
        p++;
        while (p < end && isspace(*p)) p++;
        if (p >= end || *p != ':') continue;
        p++;
        while (p < end && isspace(*p)) p++;
        const uint8_t *stop = *p == '"' ? value_end(p, end) : p;
        struct bytes text = {p + 1, stop > p ? (size_t)(stop - p - 2) : 0};
        if (BYTES_IS(key, "ts")) ts = number(p, end).value;
        if (BYTES_IS(key, "ts")) g->decimals = number(p, end).decimals;
        if (BYTES_IS(key, "dur")) dur = number(p, end).value;
        if (BYTES_IS(key, "ph") && BYTES_IS(text, "M")) meta = true;
        if (BYTES_IS(key, "cat") && BYTES_IS(text, "Trace")) meta = true;
        if (BYTES_IS(key, "name") && BYTES_STARTS(text, "Iteration Start"))
            ev->when = FIRST;
        if (BYTES_IS(key, "name") && BYTES_IS(text, "Record Window End"))
            ev->when = LAST;
        if (BYTES_IS(key, "name") && !named && text.n != 0) {
            named = true;
            if (!meta && ev->when == EACH) name_hole(g, ev, text);
        }
        if (*p == '"') p = stop;
        else hole_for(g, ev, key, p, end);
    }
    if (meta) ev->when = FIRST;
    if (ev->when != EACH) return;
    if (g->lo_ns == 0 || ts < g->lo_ns) g->lo_ns = ts;
    if (ts + dur > g->hi_ns) g->hi_ns = ts + dur;
}

/* Cuts the array apart. Returns where its ']' stands. */
static const uint8_t *split(struct grower *g, const uint8_t *p,
                            const uint8_t *end) {
    for (;;) {
        while (p < end && (isspace(*p) || *p == ',')) p++;
        if (p >= end || *p != '{') return p;
        const uint8_t *stop = value_end(p, end);
        if (!VEC_ROOM(g->events, g->n, g->cap)) abort();
        struct event ev = {.p = p, .n = (uint32_t)(stop - p)};
        ev.holes = (uint32_t)g->nholes;
        find_holes(g, &ev);
        ev.nholes = (uint32_t)(g->nholes - ev.holes);
        g->events[g->n++] = ev;
        p = stop;
    }
}

static void pour_number(struct pour *o, int64_t v, int decimals) {
    char tmp[24];
    int n = 24, digits = 0;
    bool minus = v < 0;
    uint64_t u = minus ? -(uint64_t)v : (uint64_t)v;
    do {
        if (decimals != 0 && digits++ == decimals) tmp[--n] = '.';
        tmp[--n] = (char)('0' + u % 10);
        u /= 10;
    } while (u != 0 || digits <= decimals - 1);
    if (minus) pour_byte(o, '-');
    pour_bytes(o, tmp + n, (size_t)(24 - n));
}

static void pour_hole(struct grower *g, struct pour *o, const struct hole *h,
                      int64_t rep) {
    if (h->kind == HOLE_NAME) {
        if (rep == 0) return;
        pour_bytes(o, "_v", 2);
        pour_number(o, rep, 0);
        return;
    }
    pour_number(o, h->value + rep * g->shift[h->kind], h->decimals);
}

static void pour_event(struct grower *g, struct pour *o, struct event *ev,
                       int64_t rep) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < ev->nholes; i++) {
        const struct hole *h = &g->holes[ev->holes + i];
        pour_bytes(o, ev->p + at, h->at - at);
        pour_hole(g, o, h, rep);
        at = h->at + h->len;
    }
    pour_bytes(o, ev->p + at, ev->n - at);
}

static bool pour_rep(struct grower *g, struct pour *o, int64_t rep, bool last,
                     bool comma) {
    for (size_t i = 0; i < g->n; i++) {
        struct event *ev = &g->events[i];
        if (ev->when == FIRST && rep != 0) continue;
        if (ev->when == LAST && !last) continue;
        pour_bytes(o, comma ? ",\n  " : "\n  ", comma ? 4 : 3);
        pour_event(g, o, ev, rep);
        comma = true;
    }
    return comma;
}

void grow_kineto(struct bytes in, struct pour *out, uint64_t size) {
    struct grower g = {0};
    const uint8_t *key = memmem(in.p, in.n, "\"traceEvents\"", 13);
    const uint8_t *open = key ? memchr(key, '[', 200) : NULL;
    if (open == NULL) {
        fprintf(stderr, "grow: no traceEvents\n");
        exit(2);
    }
    const uint8_t *close = split(&g, open + 1, in.p + in.n);
    size_t rest = (size_t)(in.p + in.n - close);
    int64_t unit = 1; /* a gap of 10 us between windows */
    for (int i = 0; i < g.decimals; i++) unit *= 10;
    g.shift[HOLE_TIME] = g.hi_ns - g.lo_ns + 10 * unit;
    g.shift[HOLE_STEP] -= g.first_step; /* the next window counts on */
    g.shift[HOLE_ADDRESS] = INT64_C(1) << 36;
    pour_bytes(out, in.p, (size_t)(open + 1 - in.p));
    uint64_t before = out->total, one = 0;
    bool comma = false;
    for (int64_t rep = 0;; rep++) {
        bool last = out->total + one * 3 / 2 + rest >= size && rep != 0;
        if (rep == 0 && size <= in.n) last = true;
        comma = pour_rep(&g, out, rep, last, comma);
        one = (out->total - before) / (uint64_t)(rep + 1);
        if (last) break;
    }
    pour_bytes(out, "\n  ", 3);
    pour_bytes(out, close, rest);
    free(g.events);
    free(g.holes);
}
