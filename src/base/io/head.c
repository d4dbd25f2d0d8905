/* SPDX-License-Identifier: Apache-2.0
 * A file's first bytes. At most 64 KiB of it are read from disk. */
#include "base/io/head.h"

#include "base/io/inflate.h"
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { RAW_BYTES = 1 << 16, PADDING = 64 };

/* Reads from a regular file; 0: nothing to be had. */
static size_t read_raw(const char *path, uint8_t *buf, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    struct stat st;
    size_t n = 0;
    ssize_t k = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 1 : 0;
    while (k > 0 && n < cap) {
        k = read(fd, buf + n, cap - n);
        if (k > 0) n += (size_t)k;
    }
    close(fd);
    return n;
}

static size_t head_gzip(struct bytes in, uint8_t *buf, size_t cap) {
    struct inflate_state *s = malloc(sizeof *s);
    if (s == NULL) return 0;
    isal_inflate_init(s);
    s->crc_flag = ISAL_GZIP;
    s->next_in = (uint8_t *)in.p;
    s->avail_in = (uint32_t)in.n;
    s->next_out = buf;
    s->avail_out = (uint32_t)cap;
    isal_inflate(s); /* a cut or damage leaves what came before it */
    size_t n = cap - s->avail_out;
    free(s);
    return n;
}

static size_t head_zstd(struct bytes in, uint8_t *buf, size_t cap) {
    ZSTD_DCtx *ctx = ZSTD_createDCtx();
    if (ctx == NULL) return 0;
    ZSTD_inBuffer from = {in.p, in.n, 0};
    ZSTD_outBuffer to = {buf, cap, 0};
    size_t before;
    do {
        before = from.pos + to.pos;
        if (ZSTD_isError(ZSTD_decompressStream(ctx, &to, &from))) break;
    } while (to.pos < cap && from.pos < from.size &&
             from.pos + to.pos > before);
    ZSTD_freeDCtx(ctx);
    return to.pos;
}

size_t file_head(const char *path, uint8_t *buf, size_t cap) {
    uint8_t *raw = malloc(RAW_BYTES);
    if (raw == NULL) return 0;
    struct bytes in = {raw, read_raw(path, raw, RAW_BYTES)};
    size_t n;
    switch (inflate_sniff(in)) {
    case PACKING_GZIP: n = head_gzip(in, buf, cap); break;
    case PACKING_ZSTD: n = head_zstd(in, buf, cap); break;
    default: n = in.n < cap ? in.n : cap; memcpy(buf, raw, n);
    }
    free(raw);
    memset(buf + n, 0, PADDING);
    return n;
}
