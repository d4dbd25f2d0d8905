/* SPDX-License-Identifier: Apache-2.0
 * Inside of the encoder: numbers of metadata, and how stats are written. */
#ifndef RING_ENCODE_IMPL_H
#define RING_ENCODE_IMPL_H

#include "base/pbw.h"
#include "ring/encode.h"
#include "ring/text.h"
#include "ring/view.h"

/* Ids of event metadata: names of the program have their own numbers, below
 * REC_NAMES; these stand above. */
enum {
    ENC_META_STEP = REC_NAMES,
    ENC_META_EPOCH,
    ENC_META_ALLOC,
    ENC_META_FREE,
    ENC_META_DROPPED,
    ENC_META_NO_NAME,
};

/* Ids of stat metadata: one byte each for those in many events. */
enum {
    ENC_STAT_STEP = 1,
    ENC_STAT_ROOT,
    ENC_STAT_EPOCH,
    ENC_STAT_UNFINISHED,
    ENC_STAT_ADDR,
    ENC_STAT_ALLOCATION,
    ENC_STAT_REQUESTED,
    ENC_STAT_ALLOCATOR,
    ENC_STAT_TF_OP,
    ENC_STAT_PROGRAM,
    ENC_STAT_COUNTER,
    ENC_STAT_CORRELATION,
    ENC_STAT_FLOW,
    ENC_STAT_ASYNC,
    ENC_STAT_BYTES,
    ENC_STAT_KIND,
    ENC_STAT_COUNT,
    ENC_STAT_WHY,
    ENC_STAT_UNKNOWN,
    ENC_STATS,
    ENC_STAT_KEYS = 32,       /* + the number of a key or tag */
    ENC_STAT_FACTS = 1 << 20, /* + the number of a fact */
};

#define ENC_POINT     UINT64_MAX
#define ENC_FLOW_MASK (((uint64_t)1 << 56) - 1)
/* Ids beside the tids, which end at 2^22; 32 bits, for XProf. */
enum { ENC_THREAD_ROW = 1 << 23, ENC_ASYNC_LINE = 1 << 30 };

/* A stat of an event: field 4, {1: id, then the value}. Room: 64. */
static inline uint8_t *enc_stat_uint(uint8_t *p, uint32_t id, uint64_t v) {
    p = pbw_len(p, 4, pbw_uint_size(1, id) + pbw_uint_size(3, v));
    return pbw_uint(pbw_uint(p, 1, id), 3, v);
}
static inline uint8_t *enc_stat_int(uint8_t *p, uint32_t id, int64_t v) {
    p = pbw_len(p, 4, pbw_uint_size(1, id) + pbw_uint_size(4, (uint64_t)v));
    return pbw_int(pbw_uint(p, 1, id), 4, v);
}
static inline uint8_t *enc_stat_num(uint8_t *p, uint32_t id, double v) {
    p = pbw_len(p, 4, pbw_uint_size(1, id) + 9);
    return pbw_double(pbw_uint(p, 1, id), 2, v);
}
static inline uint8_t *enc_stat_ref(uint8_t *p, uint32_t id, uint32_t ref) {
    p = pbw_len(p, 4, pbw_uint_size(1, id) + pbw_uint_size(7, ref));
    return pbw_uint(pbw_uint(p, 1, id), 7, ref);
}
/* Room: 64 + n. */
static inline uint8_t *enc_stat_text(uint8_t *p, uint32_t id, const char *s,
                                     size_t n) {
    p = pbw_len(p, 4, pbw_uint_size(1, id) + pbw_bytes_size(5, n));
    return text_field(pbw_uint(p, 1, id), 5, s, n);
}

const char *enc_device_kind(uint32_t kind);

void enc_write(struct encoder *e, unsigned file, const void *p, size_t n);
void enc_line_out(struct encoder *e, struct enc_line *l);
void enc_event(struct encoder *e, struct enc_line *l, uint32_t meta,
               uint64_t ps, uint64_t dur, const uint8_t *stats, size_t n);
static inline uint32_t enc_meta(const struct encoder *e, uint32_t name) {
    return name == 0 || name >= e->nnames ? ENC_META_NO_NAME : name;
}
uint64_t enc_ps(struct encoder *e, uint64_t tick);

#endif
