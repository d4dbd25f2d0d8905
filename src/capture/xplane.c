/* SPDX-License-Identifier: Apache-2.0
 * Planes in memory: every message is finished before the one around it, whose
 * head needs its length. */
#include "capture/xplane.h"

#include "base/pbw.h"
#include <errno.h>

bool xplane_out_init(struct xplane_out *p) {
    *p = (struct xplane_out){0};
    sink_memory(&p->lines);
    sink_memory(&p->facts);
    sink_memory(&p->line);
    sink_memory(&p->event);
    return strs_init(&p->stats) && strs_init(&p->events) &&
           strs_init(&p->texts);
}

void xplane_out_free(struct xplane_out *p) {
    sink_free(&p->lines);
    sink_free(&p->facts);
    sink_free(&p->line);
    sink_free(&p->event);
    strs_free(&p->stats);
    strs_free(&p->texts);
    strs_free(&p->events);
}

/* A field of bytes. */
static void put_bytes(struct sink *s, uint32_t field, const void *b, size_t n) {
    uint8_t head[PBW_FIELD_ROOM], *end = pbw_len(head, field, n);
    sink_write(s, head, (size_t)(end - head));
    sink_write(s, b, n);
}

static void put_uint(struct sink *s, uint32_t field, uint64_t v) {
    uint8_t b[PBW_FIELD_ROOM];
    sink_write(s, b, (size_t)(pbw_uint(b, field, v) - b));
}

/* The number of a name in a table; 0 is no number of the format's. Without
 * memory the table's write tells it. */
static uint64_t number_of(struct strs *s, const char *text, struct sink *out) {
    str_id id = strs_intern(s, bytes_of(text));
    if (id == STR_NONE) out->broken = ENOMEM;
    return id;
}

/* A stat whose value is val[0..n), tag included, as that field of s. */
static void put_stat(struct xplane_out *p, struct sink *s, uint32_t field,
                     const char *key, const uint8_t *val, size_t n) {
    uint8_t head[2 * PBW_FIELD_ROOM], *at;
    uint64_t id = number_of(&p->stats, key, s);
    at = pbw_len(head, field, pbw_uint_size(1, id) + n);
    at = pbw_uint(at, 1, id);
    sink_write(s, head, (size_t)(at - head));
    sink_write(s, val, n);
}

/* What a process calls itself need not be UTF-8: interning mends it. */
static struct bytes valid(struct xplane_out *p, const char *text) {
    return strs_bytes(&p->texts, strs_intern(&p->texts, bytes_of(text)));
}

static void put_stat_text(struct xplane_out *p, struct sink *s, uint32_t field,
                          const char *key, const char *text) {
    struct bytes b = valid(p, text);
    uint8_t head[2 * PBW_FIELD_ROOM], *at;
    uint64_t id = number_of(&p->stats, key, s);
    at = pbw_len(head, field, pbw_uint_size(1, id) + pbw_bytes_size(5, b.n));
    at = pbw_uint(at, 1, id);
    at = pbw_len(at, 5, b.n);
    sink_write(s, head, (size_t)(at - head));
    sink_write(s, b.p, b.n);
}

void xplane_fact_int(struct xplane_out *p, const char *key, int64_t v) {
    uint8_t b[PBW_FIELD_ROOM];
    put_stat(p, &p->facts, 6, key, b, (size_t)(pbw_int(b, 4, v) - b));
}

void xplane_fact_uint(struct xplane_out *p, const char *key, uint64_t v) {
    uint8_t b[PBW_FIELD_ROOM];
    put_stat(p, &p->facts, 6, key, b, (size_t)(pbw_uint(b, 3, v) - b));
}

void xplane_fact_text(struct xplane_out *p, const char *key, const char *text) {
    put_stat_text(p, &p->facts, 6, key, text);
}

void xplane_stat_int(struct xplane_out *p, const char *key, int64_t v) {
    uint8_t b[PBW_FIELD_ROOM];
    put_stat(p, &p->event, 4, key, b, (size_t)(pbw_int(b, 4, v) - b));
}

void xplane_stat_num(struct xplane_out *p, const char *key, double v) {
    uint8_t b[PBW_FIELD_ROOM];
    put_stat(p, &p->event, 4, key, b, (size_t)(pbw_double(b, 2, v) - b));
}

void xplane_stat_text(struct xplane_out *p, const char *key, const char *text) {
    put_stat_text(p, &p->event, 4, key, text);
}

void xplane_event(struct xplane_out *p, const char *name, int64_t offset_ps,
                  int64_t dur_ps) {
    uint8_t b[3 * PBW_FIELD_ROOM], head[PBW_FIELD_ROOM], *at = b;
    uint64_t id = number_of(&p->events, *name ? name : "?", &p->line);
    at = pbw_uint(at, 1, id);
    at = pbw_int(at, 2, offset_ps);
    if (dur_ps > 0) at = pbw_int(at, 3, dur_ps);
    size_t n = (size_t)(at - b);
    uint8_t *end = pbw_len(head, 4, n + p->event.n);
    sink_write(&p->line, head, (size_t)(end - head));
    sink_write(&p->line, b, n);
    sink_write(&p->line, p->event.buf, p->event.n);
    if (p->event.broken) p->line.broken = p->event.broken;
    p->event.n = 0;
}

void xplane_line(struct xplane_out *p, int64_t id, const char *name,
                 int64_t ns) {
    struct sink s;
    sink_memory(&s);
    put_uint(&s, 1, (uint64_t)id);
    struct bytes b = valid(p, name);
    put_bytes(&s, 2, b.p, b.n);
    put_uint(&s, 3, (uint64_t)ns);
    sink_write(&s, p->line.buf, p->line.n);
    put_bytes(&p->lines, 3, s.buf, s.n);
    if (s.broken) p->lines.broken = s.broken;
    if (p->line.broken) p->lines.broken = p->line.broken;
    p->line.n = 0;
    sink_free(&s);
}

/* The names of a table as entries of a map<int64, metadata>:
 * {1: id, 2: {1: id, 2: name}}. 0 is nobody's. */
static void put_names(struct sink *s, uint32_t field,
                      const struct strs *names) {
    for (size_t i = 1; i < names->n; i++) {
        uint8_t head[6 * PBW_FIELD_ROOM], *at = head;
        struct bytes name = strs_bytes(names, (str_id)i);
        size_t body = pbw_uint_size(1, i) + pbw_bytes_size(2, name.n);
        at = pbw_len(at, field, pbw_uint_size(1, i) + pbw_bytes_size(2, body));
        at = pbw_uint(at, 1, i);
        at = pbw_len(at, 2, body);
        at = pbw_uint(at, 1, i);
        at = pbw_len(at, 2, name.n);
        sink_write(s, head, (size_t)(at - head));
        sink_write(s, name.p, name.n);
    }
}

int xplane_out_write(struct xplane_out *p, int64_t id, const char *name,
                     struct sink *to, struct ops_err *e) {
    struct sink s;
    sink_memory(&s);
    put_uint(&s, 1, (uint64_t)id);
    put_bytes(&s, 2, name, strlen(name));
    sink_write(&s, p->lines.buf, p->lines.n);
    put_names(&s, 4, &p->events);
    put_names(&s, 5, &p->stats);
    sink_write(&s, p->facts.buf, p->facts.n);
    put_bytes(to, 1, s.buf, s.n);
    bool broken = s.broken || p->lines.broken || p->facts.broken ||
                  p->event.broken;
    sink_free(&s);
    return broken ? fail_oom(e) : 0;
}
