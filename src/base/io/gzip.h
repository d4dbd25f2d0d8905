/* SPDX-License-Identifier: Apache-2.0
 * Compressing while writing: a sink whose bytes come out of another sink as
 * one gzip member. */
#ifndef BASE_IO_GZIP_H
#define BASE_IO_GZIP_H

#include "base/err.h"
#include "base/io/sink.h"

struct gzip;

/* A compressor in front of `to` (borrowed), and *s, the sink to write into.
 * NULL: out of memory. gzip_end pairs with it. */
struct gzip *gzip_begin(struct sink *to, struct sink *s);

/* Writes what is left into `to` (which the caller flushes), frees g and what
 * *s holds. 0, or the first error of s. */
int gzip_end(struct gzip *g, struct sink *s, struct ops_err *e);

#endif
