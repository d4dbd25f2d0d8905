/* SPDX-License-Identifier: Apache-2.0
 * Protobuf pull reader: walks the wire format in place, allocates nothing and
 * cannot read past the end.
 *
 *     struct pb r = pb_reader(bytes);
 *     struct pb_field f;
 *     while (pb_next(&r, &f))
 *         switch (f.num) { case 3: ... f.bytes ...; }
 *     if (r.bad) ... r.p is where it stopped
 */
#ifndef BASE_PB_H
#define BASE_PB_H

#include "base/bytes.h"
#include <stdbool.h>

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb {
    const uint8_t *p, *end;
    bool bad; /* the message is damaged; p is the offending field */
};

struct pb_field {
    uint32_t num;
    uint32_t wire;      /* enum pb_wire */
    uint64_t value;     /* varint and fixed; length of bytes otherwise */
    struct bytes bytes; /* PB_BYTES: the contents. When bad: what is there */
};

static inline struct pb pb_reader(struct bytes b) {
    return (struct pb){b.p, b.p + b.n, false};
}

/* Reads a varint of at most 10 bytes. Returns the place behind it; NULL if it
 * is cut or endless. */
static inline const uint8_t *pb_varint(const uint8_t *p, const uint8_t *end,
                                       uint64_t *out) {
    if (p < end && *p < 0x80) {
        *out = *p;
        return p + 1;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint64_t b = *p++;
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return p;
        }
    }
    return NULL;
}

/* Reads the next field. Returns false at the end, or at damage: r->bad is set
 * and r->p still points at the field. For a length that runs past the end
 * f->num is set and f->bytes is what there is, so that a cut file can be
 * used. */
bool pb_next(struct pb *r, struct pb_field *f);

/* Does the same for the last message of a cut file: a length that runs past the
 * end counts as up to the end. Other damage ends the message as above. */
bool pb_next_cut(struct pb *r, struct pb_field *f);

static inline double pb_double(uint64_t fixed) {
    double d;
    memcpy(&d, &fixed, sizeof d);
    return d;
}

#endif
