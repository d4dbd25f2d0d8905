/* SPDX-License-Identifier: Apache-2.0
 * A reader of XSpace files for the recorder's tests: nothing of src/ is used,
 * so that what the recorder writes is read by somebody else. It stops the test
 * at the first byte that is not protobuf.
 *
 *     struct xs x = {0};
 *     xs_load(&x, path);            more files: xs_load again
 *     for (size_t i = 0; i < x.n; i++) x.v[i] ...
 *     xs_free(&x); */
#ifndef TESTS_REC_XS_H
#define TESTS_REC_XS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xs_bytes {
    const uint8_t *p;
    size_t n;
};

struct xs_text {
    int64_t id;
    const char *s; /* ended by 0 */
};

struct xs_names {
    struct xs_text *v;
    size_t n, cap;
};

struct xs_plane {
    char *name;
    struct xs_bytes body;
    struct xs_names events, stats;
};

struct xs_event {
    uint32_t plane;
    uint32_t file; /* the how many-th that was loaded */
    int64_t line;  /* its id */
    const char *line_name, *name;
    uint64_t start, end; /* ps since the fact start_unix_ns */
    struct xs_bytes body;
};

struct xs {
    struct xs_event *v;
    size_t n, cap;
    struct xs_plane *plane;
    uint32_t planes, planes_cap, files;
    void **kept; /* what to free */
    size_t nkept, kept_cap;
};

/* --- protobuf ----------------------------------------------------------- */

static inline void xs_die(const char *what) {
    printf("xspace: %s\n", what);
    fflush(stdout);
    abort();
}

static inline uint64_t xs_varint(struct xs_bytes *b) {
    uint64_t v = 0;
    for (int i = 0; i < 10; i++) {
        if (b->n == 0) xs_die("a number is cut short");
        uint8_t c = *b->p++;
        b->n--;
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) return v;
    }
    xs_die("a number is too long");
    return 0;
}

struct xs_field {
    uint32_t number, type;
    uint64_t v;        /* numbers, doubles as bits */
    struct xs_bytes b; /* type 2 */
};

static inline bool xs_next(struct xs_bytes *b, struct xs_field *f) {
    if (b->n == 0) return false;
    uint64_t tag = xs_varint(b);
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    f->v = 0;
    size_t n = f->type == 1 ? 8 : f->type == 5 ? 4 : 0;
    if (f->number == 0) xs_die("field 0");
    if (f->type == 0) f->v = xs_varint(b);
    else if (f->type == 2) n = xs_varint(b);
    else if (n == 0) xs_die("an unknown wire type");
    if (n > b->n) xs_die("a field is longer than its message");
    f->b = (struct xs_bytes){b->p, n};
    if (f->type == 1 || f->type == 5) memcpy(&f->v, b->p, n);
    b->p += n;
    b->n -= n;
    return true;
}

/* --- names -------------------------------------------------------------- */

static inline void *xs_hold(struct xs *x, void *p) {
    if (x->nkept == x->kept_cap) {
        x->kept_cap = x->kept_cap * 2 + 64;
        x->kept = realloc(x->kept, x->kept_cap * sizeof *x->kept);
    }
    return x->kept[x->nkept++] = p;
}

static inline char *xs_keep(struct xs *x, struct xs_bytes b) {
    char *s = malloc(b.n + 1);
    memcpy(s, b.p, b.n);
    s[b.n] = 0;
    return xs_hold(x, s);
}

static inline const char *xs_name(const struct xs_names *t, int64_t id) {
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->v[mid].id < id) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->n && t->v[lo].id == id ? t->v[lo].s : NULL;
}

static inline int xs_by_id(const void *a, const void *b) {
    int64_t x = ((const struct xs_text *)a)->id;
    int64_t y = ((const struct xs_text *)b)->id;
    return x < y ? -1 : x > y;
}

/* Reads {1: id, 2: {1: id, 2: name}}. */
static inline void xs_add_name(struct xs_names *t, struct xs_bytes entry) {
    struct xs_field f, g;
    if (t->n == t->cap) {
        t->cap = t->cap * 2 + 64;
        t->v = realloc(t->v, t->cap * sizeof *t->v);
    }
    struct xs_text *e = &t->v[t->n++];
    *e = (struct xs_text){0, NULL};
    while (xs_next(&entry, &f)) {
        if (f.number == 1) e->id = (int64_t)f.v;
        if (f.number != 2) continue;
        struct xs_bytes m = f.b;
        while (xs_next(&m, &g)) {
            if (g.number != 2) continue;
            char *s = malloc(g.b.n + 1);
            memcpy(s, g.b.p, g.b.n);
            s[g.b.n] = 0;
            e->s = s;
        }
    }
}

/* --- events ------------------------------------------------------------- */

static inline void xs_event(struct xs *x, struct xs_bytes body,
                            const struct xs_event *line, int64_t ns) {
    struct xs_field f;
    if (x->n == x->cap) {
        x->cap = x->cap * 2 + 1024;
        x->v = realloc(x->v, x->cap * sizeof *x->v);
    }
    struct xs_event *e = &x->v[x->n++];
    *e = *line;
    e->body = body;
    uint64_t id = 0, offset = 0, dur = 0;
    while (xs_next(&body, &f)) {
        if (f.number == 1) id = f.v;
        if (f.number == 2) offset = f.v;
        if (f.number == 3) dur = f.v;
    }
    e->start = (uint64_t)ns * 1000 + offset;
    e->end = e->start + dur;
    e->name = xs_name(&x->plane[e->plane].events, (int64_t)id);
    if (e->name == NULL) xs_die("an event without a name");
}

static inline void xs_line(struct xs *x, struct xs_bytes body, uint32_t plane) {
    struct xs_bytes all = body;
    struct xs_event line = {.plane = plane, .file = x->files};
    struct xs_field f;
    int64_t ns = 0;
    while (xs_next(&body, &f)) {
        if (f.number == 1) line.line = (int64_t)f.v;
        if (f.number == 2) line.line_name = xs_keep(x, f.b);
        if (f.number == 3) ns = (int64_t)f.v;
    }
    while (xs_next(&all, &f))
        if (f.number == 4) xs_event(x, f.b, &line, ns);
}

static inline void xs_add_plane(struct xs *x, struct xs_bytes body) {
    struct xs_field f;
    struct xs_bytes b = body;
    uint32_t i = x->planes;
    if (i == x->planes_cap) {
        x->planes_cap = i * 2 + 16;
        x->plane = realloc(x->plane, x->planes_cap * sizeof *x->plane);
    }
    struct xs_plane *p = &x->plane[x->planes++];
    memset(p, 0, sizeof *p);
    p->body = body;
    while (xs_next(&b, &f)) {
        if (f.number == 2) p->name = xs_keep(x, f.b);
        if (f.number == 4) xs_add_name(&p->events, f.b);
        if (f.number == 5) xs_add_name(&p->stats, f.b);
    }
    if (p->name == NULL) xs_die("a plane without a name");
    if (p->events.n > 0)
        qsort(p->events.v, p->events.n, sizeof *p->events.v, xs_by_id);
    if (p->stats.n > 0)
        qsort(p->stats.v, p->stats.n, sizeof *p->stats.v, xs_by_id);
    while (xs_next(&body, &f))
        if (f.number == 3) xs_line(x, f.b, i);
}

/* The bytes stay the caller's, and must live as long as x. */
static inline void xs_read(struct xs *x, const void *p, size_t n) {
    struct xs_bytes b = {p, n};
    struct xs_field f;
    while (xs_next(&b, &f))
        if (f.number == 1) xs_add_plane(x, f.b);
    x->files++;
}

/* Returns false if there is no such file. */
static inline bool xs_load(struct xs *x, const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *p = malloc((size_t)n + 1);
    if (fread(p, 1, (size_t)n, f) != (size_t)n) xs_die("cannot be read");
    fclose(f);
    xs_hold(x, p);
    xs_read(x, p, (size_t)n);
    return true;
}

static inline void xs_free(struct xs *x) {
    for (uint32_t i = 0; i < x->planes; i++) {
        struct xs_names *t[] = {&x->plane[i].events, &x->plane[i].stats};
        for (int k = 0; k < 2; k++) {
            for (size_t j = 0; j < t[k]->n; j++) free((char *)t[k]->v[j].s);
            free(t[k]->v);
        }
    }
    for (size_t i = 0; i < x->nkept; i++) free(x->kept[i]);
    free(x->plane);
    free(x->kept);
    free(x->v);
    memset(x, 0, sizeof *x);
}

/* --- stats -------------------------------------------------------------- */

/* Finds a stat among the fields `number` of a message; the last of that
 * name. */
static inline bool xs_find(const struct xs_plane *p, struct xs_bytes body,
                           uint32_t number, const char *key,
                           struct xs_field *out) {
    struct xs_field f, g;
    bool found = false;
    while (xs_next(&body, &f)) {
        if (f.number != number) continue;
        struct xs_bytes m = f.b;
        const char *name = NULL;
        struct xs_field value = {0};
        while (xs_next(&m, &g)) {
            if (g.number == 1) name = xs_name(&p->stats, (int64_t)g.v);
            else value = g;
        }
        if (name == NULL) xs_die("a stat without a name");
        if (strcmp(name, key) == 0) {
            *out = value;
            found = true;
        }
    }
    return found;
}

/* Returns a whole number of an event, or `none`. */
static inline int64_t xs_int(const struct xs *x, const struct xs_event *e,
                             const char *key, int64_t none) {
    struct xs_field f;
    return xs_find(&x->plane[e->plane], e->body, 4, key, &f) ? (int64_t)f.v
                                                             : none;
}

static inline double xs_num(const struct xs *x, const struct xs_event *e,
                            const char *key) {
    struct xs_field f;
    double v = 0;
    if (!xs_find(&x->plane[e->plane], e->body, 4, key, &f)) return 0;
    memcpy(&v, &f.v, sizeof v);
    return v;
}

/* Is the event's stat this text? */
static inline bool xs_is(const struct xs *x, const struct xs_event *e,
                         const char *key, const char *text) {
    struct xs_field f;
    return xs_find(&x->plane[e->plane], e->body, 4, key, &f) &&
           f.b.n == strlen(text) && memcmp(f.b.p, text, f.b.n) == 0;
}

/* Returns a number that is a fact of the host's plane of a file, or `none`. */
static inline int64_t xs_fact(const struct xs *x, const char *key,
                              int64_t none) {
    struct xs_field f;
    for (uint32_t i = 0; i < x->planes; i++)
        if (strcmp(x->plane[i].name, "/host:CPU") == 0 &&
            xs_find(&x->plane[i], x->plane[i].body, 6, key, &f))
            return (int64_t)f.v;
    return none;
}

/* The sum of a fact of the hosts' planes of all files. */
static inline int64_t xs_fact_sum(const struct xs *x, const char *key) {
    struct xs_field f;
    int64_t sum = 0;
    for (uint32_t i = 0; i < x->planes; i++)
        if (strcmp(x->plane[i].name, "/host:CPU") == 0 &&
            xs_find(&x->plane[i], x->plane[i].body, 6, key, &f))
            sum += (int64_t)f.v;
    return sum;
}

static inline bool xs_own(const struct xs_event *e) {
    return strcmp(e->name, "opscope: dropped") == 0;
}

/* Returns how many events were counted as dropped, on all lines. */
static inline uint64_t xs_dropped(const struct xs *x) {
    uint64_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (xs_own(&x->v[i])) n += (uint64_t)xs_int(x, &x->v[i], "count", 0);
    return n;
}

/* Returns how many events of this name are not cut. */
static inline size_t xs_count(const struct xs *x, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->v[i].name, name) == 0 &&
            xs_int(x, &x->v[i], "unfinished", 0) == 0)
            n++;
    return n;
}

#endif
