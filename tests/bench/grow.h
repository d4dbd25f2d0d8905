/* SPDX-License-Identifier: Apache-2.0
 * Growing real profiles to any size: the same window again and again, later in
 * time, under new ids. Output streams through one buffer. */
#ifndef BENCH_GROW_H
#define BENCH_GROW_H

#include "base/bytes.h"
#include <stdint.h>

/* Buffered output that knows how much went through it. Exits on failure:
 * this is a bench tool. */
struct pour {
    int fd;
    uint64_t total; /* bytes, those still in buf included */
    size_t n;
    uint8_t buf[1 << 20];
};

void pour_bytes(struct pour *o, const void *p, size_t n);
void pour_flush(struct pour *o);
/* Overwrites n bytes at an offset that was poured before. */
void pour_patch(struct pour *o, uint64_t at, const void *p, size_t n);
/* Takes back everything from an offset on. */
void pour_rewind(struct pour *o, uint64_t at);

static inline void pour_byte(struct pour *o, uint8_t b) {
    if (o->n == sizeof o->buf) pour_flush(o);
    o->buf[o->n++] = b;
    o->total++;
}

void grow_kineto(struct bytes in, struct pour *out, uint64_t size);
void grow_xspace(struct bytes in, struct pour *out, uint64_t size);

#endif
