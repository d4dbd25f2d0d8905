/* SPDX-License-Identifier: Apache-2.0
 * Compressing while writing: what is written into one sink comes out of another
 * sink as one gzip member. */
#ifndef BASE_IO_GZIP_H
#define BASE_IO_GZIP_H

#include "base/err.h"
#include "base/io/sink.h"

struct gzip;

/* Sets up *s, whose bytes go compressed into `to`, which is borrowed. Returns
 * the compressor, which gzip_end frees; NULL if out of memory. */
struct gzip *gzip_begin(struct sink *to, struct sink *s);

/* Writes what is left into `to` (which the caller flushes), frees g and what *s
 * holds. Returns 0 or the first error of s. */
int gzip_end(struct gzip *g, struct sink *s, struct ops_err *e);

#endif
