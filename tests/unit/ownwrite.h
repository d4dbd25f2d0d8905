/* SPDX-License-Identifier: Apache-2.0
 * Profiles as opscope's recorder writes them (docs/recorder/format.md), made
 * by hand: planes with names, lines and facts. Times are ps from OWN_START. */
#ifndef TESTS_OWNWRITE_H
#define TESTS_OWNWRITE_H

#include "unit/pbwrite.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OWN_START INT64_C(1790000000000000000)
#define OWN_ROOM  6 /* tag and padded length of a plane */

struct own_plane {
    struct out body;
    struct out line; /* the line at hand; n is 0: none */
    int64_t names, stats;
    struct {
        char text[64];
        int64_t id;
    } known[256]; /* stat names so far */
    size_t nknown;
};

/* Adds a map entry with a message {1 id, 2 name, more}. */
static inline void own_entry(struct own_plane *p, uint32_t field, int64_t id,
                             const char *name, struct out *more) {
    struct out m = {0}, e = {0};
    out_int(&m, 1, id);
    out_text(&m, 2, name);
    if (more != NULL && more->n > 0) out_raw(&m, more->p, more->n);
    out_int(&e, 1, id);
    out_msg(&e, 2, &m);
    out_msg(&p->body, field, &e);
}

/* Returns the id of a stat name, made when new. */
static inline int64_t own_stat(struct own_plane *p, const char *name) {
    for (size_t i = 0; i < p->nknown; i++)
        if (strcmp(p->known[i].text, name) == 0) return p->known[i].id;
    assert(p->nknown < 256 && strlen(name) < 64);
    int64_t id = ++p->stats;
    own_entry(p, 5, id, name, NULL);
    strcpy(p->known[p->nknown].text, name);
    p->known[p->nknown++].id = id;
    return id;
}

/* Returns the id of a new event name; kind may be NULL. */
static inline int64_t own_name(struct own_plane *p, const char *name,
                               const char *kind) {
    struct out more = {0}, s = {0};
    if (kind != NULL) {
        out_int(&s, 1, own_stat(p, "opscope_kind"));
        out_text(&s, 5, kind);
        out_msg(&more, 5, &s);
    }
    own_entry(p, 4, ++p->names, name, &more);
    out_free(&more);
    return p->names;
}

static inline void own_plane(struct own_plane *p, int64_t id,
                             const char *name) {
    *p = (struct own_plane){0};
    out_int(&p->body, 1, id);
    out_text(&p->body, 2, name);
    own_stat(p, "opscope_kind");
}

static inline void own_fact(struct own_plane *p, const char *key,
                            const char *value) {
    struct out s = {0};
    /* each fact has an id of its own, be the name known or not */
    int64_t id = ++p->stats;
    own_entry(p, 5, id, key, NULL);
    out_int(&s, 1, id);
    out_text(&s, 5, value);
    out_msg(&p->body, 6, &s);
}

static inline void own_fact_int(struct own_plane *p, const char *key,
                                int64_t value) {
    struct out s = {0};
    int64_t id = ++p->stats;
    own_entry(p, 5, id, key, NULL);
    out_int(&s, 1, id);
    out_int(&s, 4, value);
    out_msg(&p->body, 6, &s);
}

/* Begins the host's plane with the facts that every recording has. */
static inline void own_host(struct own_plane *p) {
    own_plane(p, 0, "/host:CPU");
    own_fact(p, "opscope_version", "0.1.0");
    own_fact_int(p, "process_id", 4711);
    own_fact(p, "host_name", "box");
    own_fact_int(p, "start_unix_ns", OWN_START);
}

static inline void own_line_end(struct own_plane *p) {
    if (p->line.n > 0) out_msg(&p->body, 3, &p->line);
}

/* Begins a line; base is in ns from OWN_START. */
static inline void own_line(struct own_plane *p, int64_t id, const char *name,
                            int64_t base_ns) {
    own_line_end(p);
    out_int(&p->line, 1, id);
    out_text(&p->line, 2, name);
    out_int(&p->line, 3, base_ns);
}

static inline void own_counters(struct own_plane *p) {
    own_line_end(p);
    out_int(&p->line, 1, INT64_MAX);
    out_text(&p->line, 2, "_counters_");
    out_int(&p->line, 3, 0);
}

/* Add stats to the event that comes next. */
static inline void arg_int(struct own_plane *p, struct out *s, const char *key,
                           int64_t v) {
    struct out m = {0};
    out_int(&m, 1, own_stat(p, key));
    out_int(&m, 4, v);
    out_msg(s, 4, &m);
}
static inline void arg_uint(struct own_plane *p, struct out *s, const char *key,
                            uint64_t v) {
    struct out m = {0};
    out_int(&m, 1, own_stat(p, key));
    out_int(&m, 3, (int64_t)v);
    out_msg(s, 4, &m);
}
static inline void arg_num(struct own_plane *p, struct out *s, const char *key,
                           double v) {
    struct out m = {0};
    out_int(&m, 1, own_stat(p, key));
    out_double(&m, 2, v);
    out_msg(s, 4, &m);
}
static inline void arg_text(struct own_plane *p, struct out *s, const char *key,
                            const char *v) {
    struct out m = {0};
    out_int(&m, 1, own_stat(p, key));
    out_text(&m, 5, v);
    out_msg(s, 4, &m);
}
/* Adds a text as a reference to a stat name. */
static inline void arg_ref(struct own_plane *p, struct out *s, const char *key,
                           const char *v) {
    struct out m = {0};
    out_int(&m, 1, own_stat(p, key));
    out_int(&m, 7, own_stat(p, v));
    out_msg(s, 4, &m);
}

/* Adds an event to the open line; dur < 0: none. Takes the stats (or NULL). */
static inline void own_event(struct own_plane *p, int64_t name, int64_t offset,
                             int64_t dur, struct out *stats) {
    struct out e = {0};
    out_int(&e, 1, name);
    out_int(&e, 2, offset);
    if (dur >= 0) out_int(&e, 3, dur);
    if (stats != NULL && stats->n > 0) out_raw(&e, stats->p, stats->n);
    if (stats != NULL) out_free(stats);
    out_msg(&p->line, 4, &e);
}

static inline void own_step(struct own_plane *p, int64_t name, int64_t number,
                            int64_t offset, int64_t dur) {
    struct out s = {0};
    arg_int(p, &s, "step_num", number);
    arg_int(p, &s, "_r", 1);
    own_event(p, name, offset, dur, &s);
}

/* Adds a memory event; bytes < 0 is a free. */
static inline void own_mem(struct own_plane *p, int64_t name, int64_t at,
                           uint64_t addr, int64_t bytes, const char *tag) {
    struct out s = {0};
    arg_uint(p, &s, "addr", addr);
    if (bytes >= 0) {
        arg_int(p, &s, "allocation_bytes", bytes);
        arg_int(p, &s, "requested_bytes", bytes);
    }
    arg_ref(p, &s, "allocator_name", "program");
    if (tag != NULL) arg_ref(p, &s, "tf_op", tag);
    own_event(p, name, at, -1, &s);
}

/* Makes the plane a field of the file, its length padded as the recorder does
 * it; the plane is freed. */
static inline void own_close(struct out *file, struct own_plane *p) {
    own_line_end(p);
    uint8_t head[OWN_ROOM] = {1 << 3 | 2};
    for (int i = 1; i < OWN_ROOM; i++)
        head[i] = (uint8_t)((p->body.n >> 7 * (i - 1)) & 0x7f) |
                  (i + 1 < OWN_ROOM ? 0x80 : 0);
    out_raw(file, head, sizeof head);
    out_raw(file, p->body.p, p->body.n);
    out_free(&p->body);
}

/* Writes what stop writes behind the planes of a recording that began then, ns
 * since 1970. */
static inline void own_environment_at(struct out *file, int64_t start) {
    static const char *const keys[] = {"profile_start_time",
                                       "profile_stop_time"};
    struct out p = {0};
    out_text(&p, 2, "Task Environment");
    for (int i = 0; i < 2; i++) {
        struct out m = {0}, e = {0}, s = {0};
        out_int(&m, 1, i + 1);
        out_text(&m, 2, keys[i]);
        out_int(&e, 1, i + 1);
        out_msg(&e, 2, &m);
        out_msg(&p, 5, &e);
        out_int(&s, 1, i + 1);
        out_int(&s, 3, start + i * 1000000000);
        out_msg(&p, 6, &s);
    }
    out_msg(file, 1, &p);
}

static inline void own_environment(struct out *file) {
    own_environment_at(file, OWN_START);
}

#endif
