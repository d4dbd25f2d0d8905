/* SPDX-License-Identifier: Apache-2.0
 * Pickles written by hand, instruction by instruction: what the tests of the
 * reader and of the importer share. */
#ifndef UNIT_PICKLES_H
#define UNIT_PICKLES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pk {
    uint8_t *p;
    size_t n, cap;
};

static inline void pk_bytes(struct pk *o, const void *p, size_t n) {
    if (o->n + n + 64 > o->cap) {
        o->cap = 2 * (o->n + n) + 256;
        o->p = realloc(o->p, o->cap);
    }
    if (n > 0) memcpy(o->p + o->n, p, n);
    o->n += n;
    memset(o->p + o->n, 0, 64);
}

static inline void pk_op(struct pk *o, char op) { pk_bytes(o, &op, 1); }

static inline void pk_num(struct pk *o, uint64_t v, size_t width) {
    for (size_t i = 0; i < width; i++) pk_op(o, (char)(v >> 8 * i));
}

static inline void pk_text(struct pk *o, const char *s) {
    pk_op(o, 'X');
    pk_num(o, strlen(s), 4);
    pk_bytes(o, s, strlen(s));
}

/* Writes a LONG1 of eight bytes. */
static inline void pk_int(struct pk *o, int64_t v) {
    pk_bytes(o, "\x8a\x08", 2);
    pk_num(o, (uint64_t)v, 8);
}

static inline void pk_key_int(struct pk *o, const char *key, int64_t v) {
    pk_text(o, key);
    pk_int(o, v);
}

static inline void pk_key_text(struct pk *o, const char *key, const char *v) {
    pk_text(o, key);
    pk_text(o, v);
}

/* Open a dict or list: entries or items follow, then pk_close(). */
static inline void pk_dict(struct pk *o) { pk_bytes(o, "}(", 2); }
static inline void pk_list(struct pk *o) { pk_bytes(o, "](", 2); }
static inline void pk_end_dict(struct pk *o) { pk_op(o, 'u'); }
static inline void pk_end_list(struct pk *o) { pk_op(o, 'e'); }

static inline void pk_start(struct pk *o) { pk_bytes(o, "\x80\x02", 2); }
static inline void pk_stop(struct pk *o) { pk_op(o, '.'); }

#endif
