/* SPDX-License-Identifier: Apache-2.0
 * Protobuf, written onto a buffer that the caller has. Every function takes
 * the place to write at and returns the place behind what it wrote; none
 * fails, allocates or looks at a limit: the caller guarantees the room that the
 * contract names.
 *
 * The surprise: the room is not only for what is written. A varint is stored
 * eight bytes at a time, so up to 10 bytes at p may change whatever the length
 * is, and bytes behind the returned end are scratch. Write front to back; a
 * field in the middle of finished bytes is patched with pbw_padded, which
 * touches exactly its width.
 *
 * libc only (the recorder uses it inside other people's programs). */
#ifndef BASE_PBW_H
#define BASE_PBW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "protobuf's fixed fields are stored as they lie in memory");

enum { PBW_VARINT = 0, PBW_FIXED64 = 1, PBW_BYTES = 2, PBW_FIXED32 = 5 };

/* The room that a varint, and a field of a number (tag and value), need. */
enum { PBW_VARINT_ROOM = 10, PBW_FIELD_ROOM = 20 };

/* Returns the bytes that v takes as a varint: 1 to 10. */
static inline size_t pbw_varint_size(uint64_t v) {
    unsigned top = 63 - (unsigned)__builtin_clzll(v | 1);
    return (top * 9 + 73) / 64; /* top / 7 + 1, without dividing */
}

/* Returns the groups of seven bits of v (below 2^56), one in each byte. */
static inline uint64_t pbw_spread(uint64_t v) {
    v = (v & 0x000000000fffffff) | (v & 0x00fffffff0000000) << 4;
    v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
    return (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
}

/* Room: 10 bytes. There is one branch for small values and none among lengths 2
 * to 8: lengths of times vary from event to event, and a branch on them would
 * be mispredicted. */
static inline uint8_t *pbw_varint(uint8_t *p, uint64_t v) {
    if (v < 0x80) {
        *p = (uint8_t)v;
        return p + 1;
    }
    if (v < (uint64_t)1 << 56) {
        size_t n = pbw_varint_size(v);
        uint64_t more = 0x8080808080808080 & (((uint64_t)1 << (8 * n - 8)) - 1);
        uint64_t x = pbw_spread(v) | more;
        memcpy(p, &x, 8);
        return p + n;
    }
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p = (uint8_t)v;
    return p + 1;
}

/* Writes v in exactly width bytes (1 to 10), padded with continuation bits: a
 * place that can be patched later. v must fit, v < 2^(7 width); room: width,
 * and not a byte beside it changes. */
static inline uint8_t *pbw_padded(uint8_t *p, uint64_t v, size_t width) {
    for (size_t i = 0; i + 1 < width; i++, v >>= 7) p[i] = (uint8_t)(v | 0x80);
    p[width - 1] = (uint8_t)(v & 0x7f);
    return p + width;
}

/* Writes the key of a field. Room: 10 (it takes 1 to 5). */
static inline uint8_t *pbw_tag(uint8_t *p, uint32_t field, unsigned wire) {
    return pbw_varint(p, (uint64_t)field << 3 | wire);
}

/* Writes a uint32, uint64, bool or enum field. Room: 20. */
static inline uint8_t *pbw_uint(uint8_t *p, uint32_t field, uint64_t v) {
    return pbw_varint(pbw_tag(p, field, PBW_VARINT), v);
}

/* Writes an int32 or int64 field: a negative one takes 10 bytes. Room: 20. */
static inline uint8_t *pbw_int(uint8_t *p, uint32_t field, int64_t v) {
    return pbw_uint(p, field, (uint64_t)v);
}

/* Room: 10 + 8. */
static inline uint8_t *pbw_fixed64(uint8_t *p, uint32_t field, uint64_t v) {
    p = pbw_tag(p, field, PBW_FIXED64);
    memcpy(p, &v, 8);
    return p + 8;
}

/* Room: 10 + 4. */
static inline uint8_t *pbw_fixed32(uint8_t *p, uint32_t field, uint32_t v) {
    p = pbw_tag(p, field, PBW_FIXED32);
    memcpy(p, &v, 4);
    return p + 4;
}

/* Room: 10 + 8. */
static inline uint8_t *pbw_double(uint8_t *p, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    return pbw_fixed64(p, field, bits);
}

/* Room: 10 + 4. */
static inline uint8_t *pbw_float(uint8_t *p, uint32_t field, float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return pbw_fixed32(p, field, bits);
}

/* Writes the head of a nested message, string or packed list of len bytes,
 * which the caller writes next. Room: 20. */
static inline uint8_t *pbw_len(uint8_t *p, uint32_t field, uint64_t len) {
    return pbw_varint(pbw_tag(p, field, PBW_BYTES), len);
}

/* Writes the same with a length that is not known yet, in width bytes: *at
 * becomes its place, for pbw_padded(*at, len, width). Room: 10 + width. */
static inline uint8_t *pbw_len_later(uint8_t *p, uint32_t field, size_t width,
                                     uint8_t **at) {
    *at = pbw_tag(p, field, PBW_BYTES);
    return pbw_padded(*at, 0, width);
}

/* Writes a string or bytes field; data may be NULL if len is 0. Room: 20 +
 * len. */
static inline uint8_t *pbw_bytes(uint8_t *p, uint32_t field, const void *data,
                                 size_t len) {
    p = pbw_len(p, field, len);
    if (len != 0) memcpy(p, data, len);
    return p + len;
}

/* Return how long a field comes out: tag and number; tag, length and bytes. The
 * lengths of nested messages, which stand before them, need this. */
static inline size_t pbw_uint_size(uint32_t field, uint64_t v) {
    return pbw_varint_size((uint64_t)field << 3) + pbw_varint_size(v);
}
static inline size_t pbw_bytes_size(uint32_t field, size_t len) {
    return pbw_uint_size(field, len) + len;
}

#endif
