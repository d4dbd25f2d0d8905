/* SPDX-License-Identifier: Apache-2.0
 * gzip is written by isa-l, at level 1 of its own scale: about the size that
 * zlib's level 2 to 3 gives, several times as fast. */
#include "base/io/gzip.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <limits.h>
#include <stdlib.h>

enum { OUT_BYTES = 1 << 16, LEVEL = 1 };

struct gzip {
    struct isal_zstream z;
    struct sink *to;
    uint8_t level_buf[ISAL_DEF_LVL1_DEFAULT];
    uint8_t out[OUT_BYTES];
};

static int gzip_put(void *ctx, const void *p, size_t n) {
    struct gzip *g = ctx;
    if (n > UINT_MAX) return EFBIG; /* one argument of 4 GiB */
    g->z.next_in = (uint8_t *)p;
    g->z.avail_in = (uint32_t)n;
    do {
        g->z.next_out = g->out;
        g->z.avail_out = sizeof g->out;
        if (isal_deflate(&g->z) != COMP_OK) return EIO;
        sink_write(g->to, g->out, sizeof g->out - g->z.avail_out);
    } while (g->z.avail_out == 0);
    return g->to->broken;
}

struct gzip *gzip_begin(struct sink *to, struct sink *s) {
    struct gzip *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    isal_deflate_init(&g->z);
    g->z.level = LEVEL;
    g->z.level_buf = g->level_buf;
    g->z.level_buf_size = sizeof g->level_buf;
    g->z.gzip_flag = IGZIP_GZIP;
    g->to = to;
    sink_over(s, gzip_put, g);
    return g;
}

int gzip_end(struct gzip *g, struct sink *s, struct ops_err *e) {
    int rc = sink_flush(s, e);
    if (rc == 0) {
        g->z.end_of_stream = 1;
        s->broken = gzip_put(g, "", 0);
        rc = sink_flush(s, e);
    }
    sink_free(s);
    free(g);
    return rc;
}
