/* SPDX-License-Identifier: Apache-2.0
 * Records, one after the other; over damage to the next one that is sound. */
#include "scalars/tfrecord.h"

#include "base/crc32c.h"

enum { HEAD = 12, TAIL = 4 };

static uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Is there a length at p whose checksum holds? HEAD bytes are there. */
static bool head_holds(const uint8_t *p, uint64_t *length) {
    memcpy(length, p, 8);
    return get32(p + 8) == crc32c_mask(crc32c(p, 8));
}

bool tfrecord_sniff(struct bytes all) {
    uint64_t length;
    return all.n >= HEAD && head_holds(all.p, &length);
}

/* The first place behind `at` where a whole record begins, or all.n. The
 * length is looked at before its checksum: almost no place has a possible
 * one. */
static uint64_t find_head(struct bytes all, uint64_t at) {
    for (at++; at + HEAD + TAIL <= all.n; at++) {
        uint64_t length;
        memcpy(&length, all.p + at, 8);
        if (length > all.n - at - HEAD - TAIL) continue;
        if (head_holds(all.p + at, &length)) return at;
    }
    return all.n;
}

enum tfrecord_state tfrecord_next(struct tfrecord *r) {
    uint64_t left = r->all.n - r->offset, length;
    const uint8_t *p = r->all.p + r->offset;
    if (left == 0) return TFRECORD_END;
    r->lost = left;
    if (left < HEAD) return TFRECORD_CUT;
    if (!head_holds(p, &length)) {
        uint64_t next = find_head(r->all, r->offset);
        if (next == r->all.n) return TFRECORD_CUT;
        r->lost = next - r->offset;
        r->offset = next;
        return TFRECORD_LOST;
    }
    if (left < HEAD + TAIL || length > left - HEAD - TAIL) return TFRECORD_CUT;
    r->data = (struct bytes){p + HEAD, (size_t)length};
    r->offset += HEAD + length + TAIL;
    bool holds = get32(p + HEAD + length) ==
                 crc32c_mask(crc32c(r->data.p, r->data.n));
    return holds ? TFRECORD_OK : TFRECORD_BAD;
}
