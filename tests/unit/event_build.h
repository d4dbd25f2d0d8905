/* SPDX-License-Identifier: Apache-2.0
 * Event files for tests, built by pbwrite.h: not by the writer under test. */
#ifndef TESTS_EVENT_BUILD_H
#define TESTS_EVENT_BUILD_H

#include "pbwrite.h"

static inline uint32_t event_crc(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* Puts msg as a record behind file; msg can be filled again. */
static inline void put_record(struct out *file, struct out *msg) {
    uint64_t length = msg->n;
    uint32_t crc = event_crc((const uint8_t *)&length, 8);
    out_raw(file, &length, 8);
    out_raw(file, &crc, 4);
    out_raw(file, msg->p, msg->n);
    crc = event_crc(msg->p, msg->n);
    out_raw(file, &crc, 4);
    msg->n = 0;
}

static inline void out_float(struct out *o, uint32_t num, float v) {
    out_varint(o, num << 3 | 5);
    out_raw(o, &v, 4);
}

/* Puts an Event with that field; what is freed. */
static inline void put_event(struct out *file, double wall, int64_t step,
                             uint32_t field, struct out *what) {
    struct out e = {0};
    out_double(&e, 1, wall);
    out_int(&e, 2, step);
    out_msg(&e, field, what);
    put_record(file, &e);
    free(e.p);
}

static inline void put_version(struct out *file) {
    struct out e = {0};
    out_double(&e, 1, 1000);
    out_text(&e, 3, "brain.Event:2");
    put_record(file, &e);
    free(e.p);
}

/* Puts a value (its fields but the tag) as a summary of its own; value is
 * freed. */
static inline void put_summary(struct out *file, const char *tag, int64_t step,
                               struct out *value) {
    struct out v = {0}, s = {0};
    out_text(&v, 1, tag);
    out_raw(&v, value->p, value->n);
    free(value->p);
    *value = (struct out){0};
    out_msg(&s, 1, &v);
    put_event(file, 1000 + (double)step, step, 5, &s);
    free(v.p);
    free(s.p);
}

static inline void put_simple(struct out *file, const char *tag, int64_t step,
                              float x) {
    struct out v = {0};
    out_float(&v, 2, x);
    put_summary(file, tag, step, &v);
}

/* Puts a session that starts at that step. */
static inline void put_start(struct out *file, int64_t step) {
    struct out s = {0};
    out_int(&s, 1, 1);
    put_event(file, 1000 + (double)step, step, 7, &s);
    free(s.p);
}

#endif
