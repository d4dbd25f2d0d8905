/* SPDX-License-Identifier: Apache-2.0
 * Protobuf pull reader. Groups (wire types 3 and 4) are long dead and count
 * as damage. */
#include "base/pb.h"

/* Reads n bytes, little endian. */
static uint64_t fixed(const uint8_t *p, unsigned n) {
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static bool bad(struct pb *r, const uint8_t *at) {
    r->bad = true;
    r->p = at;
    return false;
}

bool pb_next(struct pb *r, struct pb_field *f) {
    const uint8_t *at = r->p, *p = at;
    f->num = 0;
    f->bytes = (struct bytes){at, 0};
    if (p >= r->end || r->bad) return false;
    uint64_t key;
    if ((p = pb_varint(p, r->end, &key)) == NULL) return bad(r, at);
    if (key >> 3 == 0 || key >> 3 > (1u << 29) - 1) return bad(r, at);
    f->wire = key & 7;
    size_t left;
    switch (f->wire) {
    case PB_VARINT:
        if ((p = pb_varint(p, r->end, &f->value)) == NULL) return bad(r, at);
        break;
    case PB_BYTES:
        if ((p = pb_varint(p, r->end, &f->value)) == NULL) return bad(r, at);
        left = (size_t)(r->end - p);
        f->bytes = (struct bytes){p, left};
        f->num = (uint32_t)(key >> 3);
        if (f->value > left) return bad(r, at);
        f->bytes.n = (size_t)f->value;
        p += f->value;
        break;
    case PB_FIXED64:
    case PB_FIXED32:
        left = f->wire == PB_FIXED64 ? 8 : 4;
        if ((size_t)(r->end - p) < left) return bad(r, at);
        f->value = fixed(p, (unsigned)left);
        p += left;
        break;
    default: return bad(r, at);
    }
    f->num = (uint32_t)(key >> 3);
    r->p = p;
    return true;
}

bool pb_next_cut(struct pb *r, struct pb_field *f) {
    if (pb_next(r, f)) return true;
    if (!r->bad || f->num == 0 || f->wire != PB_BYTES) return false;
    r->bad = false;
    r->p = r->end;
    return true;
}
