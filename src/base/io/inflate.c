/* SPDX-License-Identifier: Apache-2.0
 * Inflating. gzip is read by isa-l: of three libraries measured on a torch
 * trace of 10.8 MB that holds 172 MB, into memory, it was the fastest (isa-l
 * 4.2 GB/s of output, libdeflate 3.5, zlib 1.4; tests/bench prints the first
 * again); it also streams, where libdeflate wants the final size beforehand.
 * Output goes into the mapped scratch file in large pieces: one page fault a
 * page and no copy. */
#include "base/io/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    PIECE = 4 << 20, /* room made before each call */
    STEP = 256 << 20 /* the most that is reserved ahead */
};

/* Where the output goes, and how far it is. */
struct out {
    struct scratch *s;
    size_t n, limit;
};

/* Does zstd data begin here, behind its skippable frames, if any? The magic of
 * those alone proves little. */
static bool is_zstd(struct bytes b) {
    static const uint8_t frame[4] = {0x28, 0xb5, 0x2f, 0xfd};
    static const uint8_t magic[3] = {0x2a, 0x4d, 0x18};
    for (int i = 0; i < 16 && b.n >= 8; i++) {
        if ((b.p[0] & 0xf0) != 0x50 || memcmp(b.p + 1, magic, 3) != 0) break;
        size_t len = (size_t)b.p[4] | (size_t)b.p[5] << 8 |
                     (size_t)b.p[6] << 16 | (size_t)b.p[7] << 24;
        if (len > b.n - 8) break;
        b.p += 8 + len;
        b.n -= 8 + len;
    }
    return b.n >= 4 && memcmp(b.p, frame, 4) == 0;
}

enum packing inflate_sniff(struct bytes b) {
    if (b.n >= 3 && b.p[0] == 0x1f && b.p[1] == 0x8b && b.p[2] == 8)
        return PACKING_GZIP;
    return is_zstd(b) ? PACKING_ZSTD : PACKING_NONE;
}

/* Makes room for another piece; first is the likely size of the whole. */
static int make_room(struct out *o, size_t first, struct ops_err *e) {
    size_t ahead = o->n / 2 < STEP ? o->n / 2 : STEP;
    size_t want = o->s->p == NULL ? first : o->n + PIECE + ahead;
    if (want > o->limit) want = o->limit;
    return scratch_room(o->s, o->n + PIECE, want, e);
}

/* Takes n more bytes as written. */
static int took(struct out *o, size_t n, struct ops_err *e) {
    o->n += n;
    if (o->n <= o->limit) return 0;
    return fail(e, OPS_ELIMIT,
                "inflates to more than %zu bytes, which no real profile does; "
                "unpack it by hand if you trust it",
                o->limit);
}

/* Returns the size that the trailer claims, if believable; else a guess. */
static size_t gzip_guess(struct bytes in) {
    size_t usual = in.n * 16;
    if (in.n < 18) return usual;
    const uint8_t *t = in.p + in.n - 4;
    size_t claim = (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 |
                   (size_t)t[3] << 24;
    return (claim >= in.n && claim / 64 <= in.n ? claim : usual) + PIECE;
}

/* Returns a state of zeros, too large for the stack; NULL if there is no
 * memory. isal_inflate_init() leaves most of it as it is. Where damaged data
 * refer to bytes before the beginning, isa-l (2.30) counts them as written and
 * hands out what stood in its buffer, which malloc() had from anywhere. */
static struct inflate_state *new_state(void) {
    struct inflate_state *z = calloc(1, sizeof *z);
    if (z != NULL) isal_inflate_init(z);
    return z;
}

/* Hands input over in parts, because isa-l counts it in 32 bits. */
static void feed(struct inflate_state *z, struct bytes *in) {
    if (z->avail_in != 0) return;
    size_t n = in->n < (1u << 30) ? in->n : 1u << 30;
    z->next_in = (uint8_t *)in->p;
    z->avail_in = (uint32_t)n;
    in->p += n;
    in->n -= n;
}

/* Inflates one member; z is reset. Sets *damaged at a cut or bad data. */
static int gzip_member(struct inflate_state *z, struct bytes *in, size_t guess,
                       struct out *o, bool *damaged, struct ops_err *e) {
    while (z->block_state != ISAL_BLOCK_FINISH) {
        TRY(make_room(o, guess, e));
        feed(z, in);
        z->next_out = o->s->p + o->n;
        z->avail_out = PIECE;
        int rc = isal_inflate(z);
        TRY(took(o, PIECE - z->avail_out, e));
        bool starved = z->avail_out != 0 && z->avail_in == 0 && in->n == 0 &&
                       z->block_state != ISAL_BLOCK_FINISH;
        if (rc < 0 || starved) {
            *damaged = true;
            return 0;
        }
    }
    return 0;
}

/* Is all the rest padding? Tapes and block devices add zeros. */
static bool only_zeros(struct bytes b) {
    for (size_t i = 0; i < b.n; i++)
        if (b.p[i] != 0) return false;
    return true;
}

static int gunzip(struct bytes in, struct inflate_state *z, struct out *o,
                  bool *damaged, struct ops_err *e) {
    size_t guess = gzip_guess(in);
    while (!*damaged) {
        z->crc_flag = ISAL_GZIP;
        TRY(gzip_member(z, &in, guess, o, damaged, e));
        if (*damaged) break;
        in.p -= z->avail_in; /* what is fed but not used */
        in.n += z->avail_in;
        if (in.n == 0) break;
        if (inflate_sniff(in) != PACKING_GZIP) {
            *damaged = !only_zeros(in);
            break;
        }
        isal_inflate_reset(z);
        z->avail_in = 0;
    }
    return 0;
}

static int unzstd(struct bytes in, ZSTD_DStream *z, struct out *o,
                  bool *damaged, struct ops_err *e) {
    ZSTD_inBuffer from = {in.p, in.n, 0};
    size_t rc = ZSTD_initDStream(z);
    bool full = false;
    while (from.pos < from.size || full) {
        TRY(make_room(o, in.n * 16 + PIECE, e));
        ZSTD_outBuffer to = {o->s->p + o->n, PIECE, 0};
        rc = ZSTD_decompressStream(z, &to, &from);
        TRY(took(o, to.pos, e));
        if (ZSTD_isError(rc)) break;
        full = to.pos == to.size;
    }
    *damaged = rc != 0; /* an error, or bytes of a frame still to come */
    return 0;
}

int inflate_into(struct bytes in, enum packing packing, size_t limit,
                 struct scratch *s, size_t *n, bool *damaged,
                 struct ops_err *e) {
    struct out o = {s, 0, limit};
    int rc;
    *damaged = false;
    if (packing == PACKING_ZSTD) {
        ZSTD_DStream *z = ZSTD_createDStream();
        rc = z != NULL ? unzstd(in, z, &o, damaged, e) : fail_oom(e);
        ZSTD_freeDStream(z);
    } else {
        struct inflate_state *z = new_state();
        rc = z != NULL ? gunzip(in, z, &o, damaged, e) : fail_oom(e);
        free(z);
    }
    if (rc != 0) return rc;
    *n = o.n;
    if (*damaged && o.n == 0)
        return fail(e, OPS_EFORMAT,
                    "is %s data, damaged or cut before anything could be "
                    "inflated; copy it again",
                    packing == PACKING_ZSTD ? "zstd" : "gzip");
    return 0;
}

/* ---- the first bytes of a file, of which at most 64 KiB are read ---- */

enum { RAW_BYTES = 1 << 16, PADDING = 64 };

/* Reads from a regular file. Returns how many bytes; 0 if there are none. */
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
    struct inflate_state *s = new_state();
    if (s == NULL) return 0;
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

/* gzip is written by isa-l, at level 1 of its own scale: about the size that
 * zlib's level 2 to 3 gives, several times as fast. */
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
