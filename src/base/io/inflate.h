/* SPDX-License-Identifier: Apache-2.0
 * gzip and zstd: compressed bytes into a scratch file, straight into its
 * mapping. The contents decide, never a name. */
#ifndef BASE_IO_INFLATE_H
#define BASE_IO_INFLATE_H

#include "base/io/scratch.h"
#include <stdbool.h>

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

enum packing inflate_sniff(struct bytes b);

/* Inflates in into s (opened), at most limit bytes. *n is how many there are.
 * A cut or wrong checksum keeps what came before it: *damaged. Errors:
 * OPS_ELIMIT (more than limit), OPS_EFORMAT (damaged before the first byte),
 * OPS_EIO (disk full). */
int inflate_into(struct bytes in, enum packing packing, size_t limit,
                 struct scratch *s, size_t *n, bool *damaged,
                 struct ops_err *e);

/* Reads the first bytes of a file, inflated if it is compressed: enough to tell
 * what it is. Returns how many of at most cap there are; 0 when there are none
 * or the file cannot be read. buf must have room for 64 more, which become
 * zero. */
size_t file_head(const char *path, uint8_t *buf, size_t cap);

#endif
