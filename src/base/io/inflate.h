/* SPDX-License-Identifier: Apache-2.0
 * gzip and zstd. Compressed bytes are inflated straight into the mapping of a
 * scratch file. The contents decide what a file is, never its name. */
#ifndef BASE_IO_INFLATE_H
#define BASE_IO_INFLATE_H

#include "base/io/scratch.h"
#include "base/io/sink.h"
#include <stdbool.h>

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

enum packing inflate_sniff(struct bytes b);

/* Inflates in into s (opened), at most limit bytes; *n becomes their number. At
 * a cut or a wrong checksum what came before is kept and *damaged is set.
 * Returns OPS_ELIMIT (more than limit), OPS_EFORMAT (damaged before the first
 * byte) or OPS_EIO (disk full). */
int inflate_into(struct bytes in, enum packing packing, size_t limit,
                 struct scratch *s, size_t *n, bool *damaged,
                 struct ops_err *e);

/* Reads the first bytes of a file, inflated if it is compressed: enough to tell
 * what it is. Returns how many of at most cap there are; 0 when there are none
 * or the file cannot be read. buf must have room for 64 more, which become
 * zero. */
size_t file_head(const char *path, uint8_t *buf, size_t cap);

/* Compressing while writing: what is written into one sink comes out of another
 * sink as one gzip member. */
struct gzip;

/* Sets up *s, whose bytes go compressed into `to`, which is borrowed. Returns
 * the compressor, which gzip_end frees; NULL if out of memory. */
struct gzip *gzip_begin(struct sink *to, struct sink *s);

/* Writes what is left into `to` (which the caller flushes), frees g and what *s
 * holds. Returns 0 or the first error of s. */
int gzip_end(struct gzip *g, struct sink *s, struct ops_err *e);

#endif
