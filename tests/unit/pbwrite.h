/* SPDX-License-Identifier: Apache-2.0
 * A protobuf writer for tests: a growing buffer, one call per field. Messages
 * are built inside out. 64 zero bytes always stand behind the contents, as
 * importers may expect. */
#ifndef TESTS_PBWRITE_H
#define TESTS_PBWRITE_H

#include "base/bytes.h"
#include <assert.h>
#include <stdlib.h>

struct out {
    uint8_t *p;
    size_t n, cap;
};

static inline void out_raw(struct out *o, const void *p, size_t n) {
    if (o->n + n + 64 > o->cap) {
        o->cap = (o->n + n + 64) * 2;
        o->p = realloc(o->p, o->cap);
        assert(o->p != NULL);
    }
    if (n > 0) memcpy(o->p + o->n, p, n);
    o->n += n;
    memset(o->p + o->n, 0, 64);
}

static inline void out_varint(struct out *o, uint64_t v) {
    uint8_t b[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) b[n++] = (uint8_t)(v | 0x80);
    b[n++] = (uint8_t)v;
    out_raw(o, b, n);
}

/* Writes a field with a number. */
static inline void out_int(struct out *o, uint32_t num, int64_t v) {
    out_varint(o, num << 3);
    out_varint(o, (uint64_t)v);
}

static inline void out_double(struct out *o, uint32_t num, double v) {
    out_varint(o, num << 3 | 1);
    out_raw(o, &v, 8);
}

/* Writes a field with bytes. */
static inline void out_bytes(struct out *o, uint32_t num, const void *p,
                             size_t n) {
    out_varint(o, num << 3 | 2);
    out_varint(o, n);
    out_raw(o, p, n);
}

static inline void out_text(struct out *o, uint32_t num, const char *s) {
    out_bytes(o, num, s, strlen(s));
}

/* Writes a message as a field; it is freed and can be filled again. */
static inline void out_msg(struct out *o, uint32_t num, struct out *msg) {
    out_bytes(o, num, msg->p, msg->n);
    free(msg->p);
    *msg = (struct out){0};
}

static inline struct bytes out_all(const struct out *o) {
    return (struct bytes){o->p, o->n};
}

static inline void out_free(struct out *o) {
    free(o->p);
    *o = (struct out){0};
}

#endif
