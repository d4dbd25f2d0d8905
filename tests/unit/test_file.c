/* SPDX-License-Identifier: Apache-2.0
 * Files as they come: of every awkward size, compressed, cut, damaged, huge
 * when inflated, shrinking, unreadable, and pipes. */
#include "base/io/file.h"
#include "base/io/inflate.h"
#include <fcntl.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

/* A growing buffer for making files. */
struct buf {
    uint8_t *p;
    size_t n, cap;
};

static void add(struct buf *b, const void *p, size_t n) {
    if (b->n + n >= b->cap) {
        b->cap = (b->n + n) * 2 + 64;
        b->p = realloc(b->p, b->cap);
        assert_non_null(b->p);
    }
    if (n != 0) memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void add_le32(struct buf *b, uint32_t v) {
    uint8_t le[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                     (uint8_t)(v >> 24)};
    add(b, le, 4);
}

/* Returns n bytes that compress well, and that no two places share. */
static struct buf text(size_t n) {
    struct buf b = {0};
    char line[64];
    for (unsigned i = 0; b.n < n; i++) {
        int k = snprintf(line, sizeof line, "{\"ev\": %u, \"ts\": %u},\n", i,
                         i * 37);
        add(&b, line, (size_t)k);
    }
    b.n = n;
    return b;
}

/* Appends src as raw deflate, or as a gzip member. */
static void deflate_to(struct buf *b, struct buf src, int gzip_flag) {
    struct isal_zstream z;
    isal_deflate_stateless_init(&z);
    uint32_t cap = (uint32_t)(src.n + src.n / 8 + 4096);
    uint8_t *out = malloc(cap), *level = malloc(ISAL_DEF_LVL1_DEFAULT);
    z.level = 1;
    z.level_buf = level;
    z.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    z.gzip_flag = (uint16_t)gzip_flag;
    z.end_of_stream = 1;
    z.next_in = src.p;
    z.avail_in = (uint32_t)src.n;
    z.next_out = out;
    z.avail_out = cap;
    assert_int_equal(isal_deflate_stateless(&z), COMP_OK);
    add(b, out, cap - z.avail_out);
    free(level);
    free(out);
}

static struct buf gzip(struct buf src) {
    struct buf b = {0};
    deflate_to(&b, src, IGZIP_GZIP);
    return b;
}

static struct buf zstd(struct buf src) {
    size_t cap = ZSTD_compressBound(src.n);
    struct buf b = {malloc(cap), 0, cap};
    b.n = ZSTD_compress(b.p, cap, src.p, src.n, 3);
    assert_false(ZSTD_isError(b.n));
    return b;
}

static const char *path_of(const char *name) {
    static char path[512];
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/opscope-test-%d-%s", dir ? dir : "/tmp",
             (int)getpid(), name);
    return path;
}

static const char *put(struct buf b) {
    const char *path = path_of("file");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (b.n > 0) assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
    fclose(f);
    return path;
}

/* Opens contents b; the result is checked by the caller. */
static int open_buf(struct buf b, struct file **f, struct ops_err *e) {
    const char *path = put(b);
    int rc = file_open(path, f, e);
    unlink(path);
    return rc;
}

/* Checks that opening b gives exactly want, undamaged, with zeros behind. */
static void holds(struct buf b, struct buf want, const char *packing) {
    struct file *f;
    struct ops_err e;
    if (open_buf(b, &f, &e) != 0) fail_msg("%s", e.text);
    assert_int_equal(f->bytes.n, want.n);
    if (want.n != 0) assert_memory_equal(f->bytes.p, want.p, want.n);
    for (int i = 0; i < 64; i++) assert_int_equal(f->bytes.p[want.n + i], 0);
    assert_string_equal(f->packing, packing);
    assert_int_equal(f->disk_bytes, b.n);
    assert_false(f->damaged);
    assert_false(file_shrank(f));
    file_close(f);
}

static void zeros_follow_any_size(void **state) {
    (void)state;
    static const size_t sizes[] = {0,    1,    63,   4031, 4032,  4033,
                                   4095, 4096, 4097, 8191, 12288, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buf b = text(sizes[i]);
        holds(b, b, "");
        struct buf z = gzip(b), s = zstd(b);
        holds(z, b, "gzip");
        holds(s, b, "zstd");
        free(z.p);
        free(s.p);
        free(b.p);
    }
}

static void zeros_stay_when_file_grows(void **state) {
    (void)state;
    struct buf b = text(5000);
    const char *path = put(b);
    struct file *f;
    struct ops_err e;
    assert_int_equal(file_open(path, &f, &e), 0);
    FILE *more = fopen(path, "ab");
    fwrite(b.p, 1, b.n, more);
    fclose(more);
    assert_int_equal(f->bytes.n, 5000);
    for (int i = 0; i < 64; i++) assert_int_equal(f->bytes.p[5000 + i], 0);
    assert_false(file_shrank(f));
    file_close(f);
    unlink(path);
    free(b.p);
}

static void large_gzip_inflates_whole(void **state) {
    (void)state;
    struct buf b = text(21 << 20), z = gzip(b); /* several pieces */
    holds(z, b, "gzip");
    struct buf s = zstd(b);
    holds(s, b, "zstd");
    free(s.p);
    free(z.p);
    free(b.p);
}

static void gzip_members_are_joined(void **state) {
    (void)state;
    struct buf b = text(300000), empty = {0}, z = {0}, want = {0};
    deflate_to(&z, b, IGZIP_GZIP);
    deflate_to(&z, empty, IGZIP_GZIP);
    deflate_to(&z, b, IGZIP_GZIP);
    add(&want, b.p, b.n);
    add(&want, b.p, b.n);
    holds(z, want, "gzip");
    add(&z, "\0\0\0\0\0\0\0\0\0\0\0", 11); /* padding */
    holds(z, want, "gzip");
    free(z.p);
    free(b.p);
    free(want.p);
}

/* Writes all optional header fields: extra, name, comment, header CRC. */
static struct buf gzip_full_header(struct buf src) {
    struct buf z = {0};
    add(&z, "\x1f\x8b\x08\x1e\1\2\3\4\0\3", 10);
    add(&z, "\6\0AB\2\0xy", 8);
    add(&z, "trace.json\0", 11);
    add(&z, "a comment\0", 10);
    uint32_t crc = crc32_gzip_refl(0, z.p, z.n);
    add(&z, (uint8_t[]){(uint8_t)crc, (uint8_t)(crc >> 8)}, 2);
    deflate_to(&z, src, IGZIP_DEFLATE);
    add_le32(&z, crc32_gzip_refl(0, src.p, src.n));
    add_le32(&z, (uint32_t)src.n);
    return z;
}

static void gzip_header_fields_are_skipped(void **state) {
    (void)state;
    struct buf b = text(70000), z = gzip_full_header(b);
    holds(z, b, "gzip");
    free(z.p);
    free(b.p);
}

static void zstd_frames_and_skippable(void **state) {
    (void)state;
    struct buf b = text(100000), z = {0}, one = zstd(b), want = {0};
    add(&z, "\x50\x2a\x4d\x18\5\0\0\0hello", 13);
    add(&z, one.p, one.n);
    add(&z, "\x5f\x2a\x4d\x18\0\0\0\0", 8);
    add(&z, one.p, one.n);
    add(&want, b.p, b.n);
    add(&want, b.p, b.n);
    holds(z, want, "zstd");
    free(one.p);
    free(z.p);
    free(b.p);
    free(want.p);
}

static void nested_packing_is_opened(void **state) {
    (void)state;
    struct buf b = text(100000), z = gzip(b), zz = gzip(z), sz = zstd(z);
    holds(zz, b, "gzip");
    holds(sz, b, "gzip");
    free(sz.p);
    free(zz.p);
    free(z.p);
    free(b.p);
}

/* Checks that every cut gives a prefix that never gets shorter, and says so;
 * cuts before the first inflated byte are errors. */
static void check_cuts(struct buf z, struct buf want, size_t first) {
    size_t last = 0;
    for (size_t n = first; n < z.n; n++) {
        struct file *f;
        struct ops_err e;
        int rc = open_buf((struct buf){z.p, n, 0}, &f, &e);
        if (rc != 0) {
            assert_int_equal(rc, OPS_EFORMAT);
            assert_int_equal(last, 0);
            assert_non_null(strstr(e.text, "damaged or cut"));
            continue;
        }
        assert_true(f->damaged);
        assert_true(f->bytes.n >= last);
        assert_true(f->bytes.n <= want.n);
        assert_memory_equal(f->bytes.p, want.p, f->bytes.n);
        last = f->bytes.n;
        file_close(f);
    }
    assert_true(last > want.n / 2); /* most is there near the end */
}

static void cut_keeps_what_came_before(void **state) {
    (void)state;
    struct buf b = text(3000), z = gzip_full_header(b), s = zstd(b);
    check_cuts(z, b, 3);
    struct buf two = {0};
    add(&two, s.p, s.n);
    add(&two, s.p, s.n);
    for (size_t n = s.n + 1; n < two.n; n++) {
        struct file *f;
        struct ops_err e;
        assert_int_equal(open_buf((struct buf){two.p, n, 0}, &f, &e), 0);
        assert_true(f->damaged);
        assert_in_range(f->bytes.n, b.n, 2 * b.n);
        file_close(f);
    }
    free(two.p);
    free(s.p);
    free(z.p);
    free(b.p);
}

static void bad_checksum_is_damage(void **state) {
    (void)state;
    struct buf b = text(50000), z = gzip(b);
    z.p[z.n - 8] ^= 1;
    struct file *f;
    struct ops_err e;
    assert_int_equal(open_buf(z, &f, &e), 0);
    assert_true(f->damaged);
    assert_int_equal(f->bytes.n, b.n);
    assert_memory_equal(f->bytes.p, b.p, b.n);
    file_close(f);
    free(z.p);
    free(b.p);
}

static void junk_behind_gzip_is_damage(void **state) {
    (void)state;
    struct buf b = text(5000), z = gzip(b);
    add(&z, "junk", 4);
    struct file *f;
    struct ops_err e;
    assert_int_equal(open_buf(z, &f, &e), 0);
    assert_true(f->damaged);
    assert_int_equal(f->bytes.n, b.n);
    file_close(f);
    free(z.p);
    free(b.p);
}

/* Any one byte changed: an error, damage, or the right contents (the header
 * has bytes that mean nothing); never a crash. */
static void one_wrong_byte_never_lies(void **state) {
    (void)state;
    struct buf b = text(2000), z = gzip(b);
    for (size_t i = 3; i < z.n; i++) {
        z.p[i] ^= 0x55;
        struct file *f;
        struct ops_err e;
        int rc = open_buf(z, &f, &e);
        z.p[i] ^= 0x55;
        if (rc != 0) continue;
        if (!f->damaged) {
            assert_int_equal(f->bytes.n, b.n);
            assert_memory_equal(f->bytes.p, b.p, b.n);
        }
        file_close(f);
    }
    free(z.p);
    free(b.p);
}

/* A copy of 258 bytes from before the beginning: isa-l takes them for written,
 * and leaves there what its state held before. What that was must not show.
 * By mallopt() malloc() fills all that it gives out. */
static void a_reach_before_the_beginning_is_always_the_same(void **state) {
    (void)state;
    static const uint8_t packed[64] = {0x1f, 0x8b, 8,    0,    0,    0,    0,
                                       0,    0,    0xff, 0x4b, 0x4a, 0x4d, 0xcf,
                                       0xcc, 0x1b, 0x4d, 0x00, 0xa9};
    struct buf z = {(uint8_t *)packed, sizeof packed, 0};
    uint8_t first[512], head[2][512 + 64];
    size_t n = 0, heads[2];
    for (int i = 0; i < 2; i++) {
        struct file *f;
        struct ops_err e;
        mallopt(M_PERTURB, i == 0 ? 'a' : 'b');
        heads[i] = file_head(put(z), head[i], 512);
        int rc = open_buf(z, &f, &e);
        mallopt(M_PERTURB, 0);
        assert_int_equal(rc, 0);
        assert_true(f->damaged);
        assert_in_range(f->bytes.n, 5, sizeof first);
        assert_memory_equal(f->bytes.p, "begin", 5);
        if (i > 0) assert_int_equal(f->bytes.n, n);
        if (i > 0) assert_memory_equal(f->bytes.p, first, n);
        n = f->bytes.n;
        memcpy(first, f->bytes.p, n);
        file_close(f);
    }
    assert_int_equal(heads[0], heads[1]);
    assert_memory_equal(head[0], head[1], heads[0]);
}

static void nothing_inflated_is_an_error(void **state) {
    (void)state;
    struct file *f;
    struct ops_err e;
    struct buf b = {(uint8_t *)"\x1f\x8b\x08 is how gzip starts", 22, 0};
    assert_int_equal(open_buf(b, &f, &e), OPS_EFORMAT);
    assert_non_null(strstr(e.text, "gzip"));
    b = (struct buf){(uint8_t *)"\x28\xb5\x2f\xfd zstd, no", 13, 0};
    assert_int_equal(open_buf(b, &f, &e), OPS_EFORMAT);
    assert_non_null(strstr(e.text, "zstd"));
}

static void bombs_hit_the_limit(void **state) {
    (void)state;
    struct buf zeros = {calloc(1, 128 << 20), 128 << 20, 0};
    struct buf z = gzip(zeros), zz = gzip(z), s = zstd(zeros);
    struct file *f;
    struct ops_err e;
    assert_true(s.n < 50000); /* else it would be allowed */
    assert_int_equal(open_buf(s, &f, &e), OPS_ELIMIT);
    assert_non_null(strstr(e.text, "inflates to more than"));
    assert_true(zz.n < 50000);
    assert_int_equal(open_buf(zz, &f, &e), OPS_ELIMIT);
    free(s.p);
    free(zz.p);
    free(z.p);
    free(zeros.p);
}

/* What is beyond the ratio is for all files together. */
static void many_small_bombs_are_one_large(void **state) {
    (void)state;
    struct buf zeros = {calloc(1, 48 << 20), 48 << 20, 0}, z = zstd(zeros);
    struct file *f, *g;
    struct ops_err e;
    assert_true(z.n < 10000); /* nearly all of it is beyond */
    assert_int_equal(open_buf(z, &f, &e), 0);
    assert_int_equal(f->bytes.n, 48 << 20);
    assert_int_equal(open_buf(z, &g, &e), OPS_ELIMIT);
    file_close(f);
    assert_int_equal(open_buf(z, &g, &e), 0);
    file_close(g);
    free(z.p);
    free(zeros.p);
}

/* Checks in a child that opening fails with OPS_EIO and a sentence with both
 * words. */
static int refused_naming(const char *path, const char *a, const char *b) {
    struct file *f;
    struct ops_err e = {0};
    int rc = file_open(path, &f, &e);
    return rc == OPS_EIO && strstr(e.text, a) && strstr(e.text, b) ? 0 : 1;
}

static void full_disk_names_tmpdir(void **state) {
    (void)state;
    struct buf b = text(1 << 20), z = gzip(b);
    const char *path = put(z);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            /* A limit on the size of files stands for the full disk. */
            struct rlimit most = {100000, 100000};
            signal(SIGXFSZ, SIG_DFL); /* which is not sent */
            if (i == 0) setrlimit(RLIMIT_FSIZE, &most);
            if (i == 1) setenv("TMPDIR", "/proc", 1);
            _exit(refused_naming(path, "set TMPDIR",
                                 i == 0 ? "cannot grow" : "/proc"));
        }
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    unlink(path);
    free(z.p);
    free(b.p);
}

static void shrunk_file_reads_zeros(void **state) {
    (void)state;
    struct buf b = text(100000);
    const char *path = put(b);
    struct file *f;
    struct ops_err e;
    file_guard(); /* here: the test runner sets handlers of its own */
    assert_int_equal(file_open(path, &f, &e), 0);
    assert_int_equal(truncate(path, 10000), 0);
    assert_true(file_shrank(f)); /* before any fault */
    size_t last_page = 100000 / 4096 * 4096;
    assert_memory_equal(f->bytes.p, b.p, 10000);
    for (size_t i = 10000; i < last_page; i++)
        assert_int_equal(f->bytes.p[i], 0);
    unlink(path); /* the guard remembers, the path is gone */
    assert_true(file_shrank(f));
    file_close(f);
    free(b.p);
}

/* A bus error in memory that no file_open mapped must still kill. */
static void foreign_bus_error_still_kills(void **state) {
    (void)state;
    struct buf b = text(8192);
    const char *path = put(b);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_RDWR);
        volatile uint8_t *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
        signal(SIGBUS, SIG_DFL);
        file_guard();
        alarm(10); /* were the fault to repeat for ever */
        if (ftruncate(fd, 0) != 0) _exit(2);
        _exit(p[4096] == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    unlink(path);
    free(b.p);
}

static void pipe_holds(struct buf sent, struct buf want, const char *packing) {
    const char *path = path_of("fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_WRONLY);
        for (size_t done = 0; done < sent.n;) {
            ssize_t k = write(fd, sent.p + done, sent.n - done);
            if (k <= 0) _exit(1);
            done += (size_t)k;
        }
        _exit(0);
    }
    struct file *f;
    struct ops_err e;
    if (file_open(path, &f, &e) != 0) fail_msg("%s", e.text);
    assert_int_equal(f->bytes.n, want.n);
    if (want.n != 0) assert_memory_equal(f->bytes.p, want.p, want.n);
    for (int i = 0; i < 64; i++) assert_int_equal(f->bytes.p[want.n + i], 0);
    assert_string_equal(f->packing, packing);
    assert_int_equal(f->disk_bytes, sent.n);
    assert_false(file_shrank(f));
    file_close(f);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    unlink(path);
}

static void pipes_are_read_to_their_end(void **state) {
    (void)state;
    struct buf b = text(5 << 20), z = gzip(b), empty = {0};
    pipe_holds(b, b, "");
    pipe_holds(z, b, "gzip");
    pipe_holds(empty, empty, "");
    free(z.p);
    free(b.p);
}

static void missing_and_odd_paths_say_why(void **state) {
    (void)state;
    struct file *f;
    struct ops_err e;
    assert_int_equal(file_open("/no/such/file", &f, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(file_open("/tmp", &f, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "is a folder"));
    assert_int_equal(file_open("/dev/zero", &f, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "neither a file nor a pipe"));
    assert_int_equal(file_open("", &f, &e), OPS_EIO);
}

static void unreadable_says_so(void **state) {
    (void)state;
    struct buf b = text(10);
    const char *path = put(b);
    chmod(path, 0);
    pid_t child = fork(); /* as nobody: root may read everything */
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        struct file *f;
        struct ops_err e;
        int rc = file_open(path, &f, &e);
        _exit(rc == OPS_EIO && strstr(e.text, "Permission denied") ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    unlink(path);
    free(b.p);
}

static void bytes_become_a_file(void **state) {
    (void)state;
    uint8_t b[3 + 64] = "abc";
    struct file *f;
    struct ops_err e;
    assert_int_equal(file_from_bytes((struct bytes){b, 3}, &f, &e), 0);
    assert_ptr_equal(f->bytes.p, b);
    assert_int_equal(f->bytes.n, 3);
    assert_false(file_shrank(f));
    file_close(f);
    file_close(NULL);
}

/* More mapped files at a time than any table of a fixed size would hold, all of
 * them cut while they are open. */
static void any_number_of_files_may_shrink(void **state) {
    (void)state;
    enum { FILES = 3000, SIZE = 80000 };
    struct buf b = text(SIZE);
    static struct file *f[FILES];
    struct ops_err e;
    file_guard();
    const char *path = put(b);
    for (int i = 0; i < FILES; i++)
        if (file_open(path, &f[i], &e) != 0) fail_msg("%s", e.text);
    assert_int_equal(truncate(path, 0), 0);
    size_t zeros = 0;
    for (int i = 0; i < FILES; i++)
        for (size_t at = 0; at < SIZE / 4096 * 4096; at += 4096)
            zeros += f[i]->bytes.p[at] == 0;
    assert_int_equal(zeros, FILES * (SIZE / 4096));
    for (int i = 0; i < FILES; i += 2) file_close(f[i]);
    assert_true(file_tripped(f[FILES - 1]));
    struct file *again;
    assert_int_equal(truncate(path, SIZE), 0);
    assert_int_equal(file_open(path, &again, &e), 0);
    assert_false(file_tripped(again)); /* its place is one that was used */
    file_close(again);
    for (int i = 1; i < FILES; i += 2) file_close(f[i]);
    unlink(path);
    free(b.p);
}

static void *open_and_cut(void *arg) {
    const char *path = arg;
    struct buf b = text(200000);
    for (int i = 0; i < 50; i++) {
        struct file *f;
        struct ops_err e;
        FILE *out = fopen(path, "w");
        if (out == NULL || fwrite(b.p, 1, b.n, out) != b.n ||
            fclose(out) != 0 || file_open(path, &f, &e) != 0 ||
            truncate(path, 0) != 0)
            abort();
        for (size_t at = 0; at < b.n / 4096 * 4096; at += 4096)
            if (f->bytes.p[at] != 0) abort();
        file_close(f);
    }
    unlink(path);
    free(b.p);
    return NULL;
}

static void threads_may_do_so_at_once(void **state) {
    (void)state;
    pthread_t threads[4];
    char *path[4], name[] = "cut0";
    file_guard();
    for (int i = 0; i < 4; i++, name[3]++) {
        path[i] = strdup(
            path_of(name)); /* not in the thread: it has one buffer */
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_cut,
                                        path[i]),
                         0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        free(path[i]);
    }
}

static sigjmp_buf out_of_fault;

static void own_handler(int sig) {
    (void)sig;
    siglongjmp(out_of_fault, 1);
}

/* A program that has a handler of its own keeps it for its own faults, and our
 * files are guarded all the same. */
static void the_programs_own_handler_is_called(void **state) {
    (void)state;
    struct buf b = text(100000);
    const char *path = put(b);
    pid_t child = fork();
    if (child == 0) {
        struct file *f;
        struct ops_err e;
        int fd = open(path, O_RDWR);
        volatile uint8_t *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
        alarm(20);
        signal(SIGBUS, own_handler);
        file_guard();
        if (file_open(path, &f, &e) != 0 || ftruncate(fd, 0) != 0) _exit(2);
        for (int i = 0; i < 3; i++) {
            if (sigsetjmp(out_of_fault, 1) == 0) _exit(p[4096] == 0 ? 3 : 4);
            if (f->bytes.p[4096 * i] != 0) _exit(5);
        }
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    unlink(path);
    free(b.p);
}

/* Where nobody asked for the guard, a file that shrinks ends nothing, and the
 * program's signals are as they were. */
static void without_the_guard_files_are_copied(void **state) {
    (void)state;
    struct buf b = text(300000);
    const char *path = put(b);
    pid_t child = fork();
    if (child == 0) {
        struct file *f;
        struct ops_err e;
        struct sigaction now;
        signal(SIGBUS, SIG_DFL);
        if (file_open(path, &f, &e) != 0 || truncate(path, 0) != 0) _exit(2);
        if (memcmp(f->bytes.p, b.p, b.n) != 0 || file_shrank(f)) _exit(3);
        if (sigaction(SIGBUS, NULL, &now) != 0 || now.sa_handler != SIG_DFL)
            _exit(4);
        file_close(f);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    unlink(path);
    free(b.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_follow_any_size),
        cmocka_unit_test(zeros_stay_when_file_grows),
        cmocka_unit_test(large_gzip_inflates_whole),
        cmocka_unit_test(gzip_members_are_joined),
        cmocka_unit_test(gzip_header_fields_are_skipped),
        cmocka_unit_test(zstd_frames_and_skippable),
        cmocka_unit_test(nested_packing_is_opened),
        cmocka_unit_test(cut_keeps_what_came_before),
        cmocka_unit_test(bad_checksum_is_damage),
        cmocka_unit_test(junk_behind_gzip_is_damage),
        cmocka_unit_test(one_wrong_byte_never_lies),
        cmocka_unit_test(a_reach_before_the_beginning_is_always_the_same),
        cmocka_unit_test(nothing_inflated_is_an_error),
        cmocka_unit_test(bombs_hit_the_limit),
        cmocka_unit_test(many_small_bombs_are_one_large),
        cmocka_unit_test(full_disk_names_tmpdir),
        cmocka_unit_test(shrunk_file_reads_zeros),
        cmocka_unit_test(foreign_bus_error_still_kills),
        cmocka_unit_test(pipes_are_read_to_their_end),
        cmocka_unit_test(missing_and_odd_paths_say_why),
        cmocka_unit_test(unreadable_says_so),
        cmocka_unit_test(bytes_become_a_file),
        cmocka_unit_test(any_number_of_files_may_shrink),
        cmocka_unit_test(threads_may_do_so_at_once),
        cmocka_unit_test(the_programs_own_handler_is_called),
        cmocka_unit_test(without_the_guard_files_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
