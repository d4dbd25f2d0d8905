/* SPDX-License-Identifier: Apache-2.0
 * The frames of TensorFlow's record files, which event files are:
 *
 *     u64 length | u32 masked CRC32C of it | data | u32 masked CRC32C of it
 *
 * Every checksum is verified. A length that fails its own cannot be trusted:
 * the next place where one holds is searched for. */
#ifndef SCALARS_TFRECORD_H
#define SCALARS_TFRECORD_H

#include "base/bytes.h"
#include <stdbool.h>

enum tfrecord_state {
    TFRECORD_OK,   /* data is the record */
    TFRECORD_BAD,  /* the data failed its checksum; go on with the next */
    TFRECORD_LOST, /* so many bytes were no record; go on with the next */
    TFRECORD_CUT,  /* what is left is no whole record: cut, or not written
                      yet; offset still is where it begins */
    TFRECORD_END,
};

struct tfrecord {
    struct bytes all;
    uint64_t offset;   /* of the next record: set it to read on */
    struct bytes data; /* TFRECORD_OK: in all */
    uint64_t lost;     /* TFRECORD_LOST: bytes passed over; TFRECORD_CUT: that
                          are left */
};

/* The next record. A run over all of it is O(bytes), whatever is in it. */
enum tfrecord_state tfrecord_next(struct tfrecord *r);

/* Does it begin with a length whose checksum holds? */
bool tfrecord_sniff(struct bytes all);

#endif
