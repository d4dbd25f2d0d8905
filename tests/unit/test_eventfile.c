/* SPDX-License-Identifier: Apache-2.0
 * The writer of event files, read back here by hand: frame by frame, every
 * checksum by division. The disk's misfortunes are played by a pwrite of our
 * own. tests/live reads the same files with TensorBoard. */
#include "rec/temp.h"
#include "ring/eventfile.h"

#include "base/pb.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rec/syscalls.h"

/* The disk: so many bytes fit (-1: no end), in pieces of at most so many. */
static long disk_left = -1, disk_piece = -1;

static bool look_at_syscall(long number, const long arg[6], long *result) {
    long a[6];
    memcpy(a, arg, sizeof a);
    if (number != SYS_pwrite64) return false;
    if (disk_left == 0) {
        errno = ENOSPC;
        *result = -1;
        return true;
    }
    if (disk_piece > 0 && a[2] > disk_piece) a[2] = disk_piece;
    if (disk_left > 0 && a[2] > disk_left) a[2] = disk_left;
    *result = real_syscall(number, a);
    if (disk_left > 0 && *result > 0) disk_left -= *result;
    return true;
}

struct fixture {
    char dir[TEMP_MAX];
    int fd; /* of it */
    struct eventfile f;
};

static int set_up(void **state) {
    struct fixture *x = malloc(sizeof *x);
    assert_non_null(x);
    assert_non_null(mkdtemp(temp_name(x->dir, "events")));
    disk_left = disk_piece = -1;
    x->fd = open(x->dir, O_PATH | O_DIRECTORY);
    assert_true(x->fd >= 0);
    assert_int_equal(eventfile_init(&x->f, x->fd, x->dir, "a host/1"), 0);
    *state = x;
    return 0;
}

static int count_files(const char *dir, char *last, bool unlink_them) {
    DIR *d = opendir(dir);
    int n = 0;
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.250s", dir, e->d_name);
        if (last != NULL) strcpy(last, path);
        if (unlink_them) unlink(path);
        n++;
    }
    closedir(d);
    return n;
}

static int tear_down(void **state) {
    struct fixture *x = *state;
    eventfile_close(&x->f);
    count_files(x->dir, NULL, true);
    rmdir(x->dir);
    close(x->fd);
    free(x);
    return 0;
}

static uint32_t masked_crc(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

struct got {
    double wall;
    int64_t step;
    char tag[1100];
    size_t tag_n;
    float value;
    bool version;
};

static void read_value(struct bytes b, struct got *g) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    assert_true(pb_next(&r, &f) && f.num == 1);
    r = pb_reader(f.bytes);
    while (pb_next(&r, &f)) {
        if (f.num == 1) {
            memcpy(g->tag, f.bytes.p, f.bytes.n);
            g->tag[g->tag_n = f.bytes.n] = '\0';
        } else {
            assert_int_equal(f.num, 2);
            uint32_t bits = (uint32_t)f.value;
            memcpy(&g->value, &bits, 4);
        }
    }
    assert_false(r.bad);
}

static struct got read_event(struct bytes b) {
    struct got g = {0};
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.num == 1) g.wall = pb_double(f.value);
        else if (f.num == 2) g.step = (int64_t)f.value;
        else if (f.num == 3) g.version = BYTES_IS(f.bytes, "brain.Event:2");
        else if (f.num == 5) read_value(f.bytes, &g);
    }
    assert_false(r.bad);
    return g;
}

/* All records of a file; fails on a torn one. The first must be the version. */
static size_t read_all(const char *path, struct got *out, size_t cap) {
    static uint8_t b[1 << 20];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t size = read(fd, b, sizeof b);
    close(fd);
    size_t n = 0;
    for (size_t at = 0; at < (size_t)size; n++) {
        uint64_t length;
        uint32_t crc;
        assert_true(at + 12 <= (size_t)size);
        memcpy(&length, b + at, 8);
        memcpy(&crc, b + at + 8, 4);
        assert_int_equal(crc, masked_crc(b + at, 8));
        assert_true(length < sizeof b && at + 16 + length <= (size_t)size);
        memcpy(&crc, b + at + 12 + length, 4);
        assert_int_equal(crc, masked_crc(b + at + 12, length));
        struct got g = read_event((struct bytes){b + at + 12, length});
        assert_int_equal(g.version, n == 0);
        if (n > 0 && n - 1 < cap) out[n - 1] = g;
        at += 16 + length;
    }
    return n > 0 ? n - 1 : 0;
}

static void put(struct eventfile *f, const char *tag, int64_t step, float v) {
    eventfile_scalar(f, tag, strlen(tag), step, v,
                     1790857026.25 + (double)step);
}

static void scalars_come_back_as_they_went_in(void **state) {
    struct fixture *x = *state;
    struct got g[8];
    put(&x->f, "loss", 0, 2.5f);
    put(&x->f, "acc/train", INT64_MAX, NAN);
    put(&x->f, "", -3, -INFINITY);
    put(&x->f, "gr\303\266\303\237e", 1LL << 40, 1e-45f);
    assert_int_equal(count_files(x->dir, NULL, false), 0);
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_int_equal(read_all(x->f.path, g, 8), 4);
    assert_string_equal(g[0].tag, "loss");
    assert_true(g[0].wall == 1790857026.25 && g[0].value == 2.5f);
    assert_true(g[1].step == INT64_MAX && isnan(g[1].value));
    assert_true(g[2].step == -3 && g[2].value == -INFINITY);
    assert_string_equal(g[3].tag, "gr\303\266\303\237e");
    assert_true(g[3].step == 1LL << 40 && g[3].value == 1e-45f);
    assert_int_equal(x->f.written, 4);
    assert_int_equal(x->f.lost + x->f.cut_tags, 0);
}

static void the_name_is_tensorboards_and_fits_any_host(void **state) {
    struct fixture *x = *state;
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    const char *base = strrchr(x->f.path, '/') + 1;
    long long seconds, pid;
    int n, end = 0;
    assert_int_equal(sscanf(base,
                            "events.out.tfevents.%10lld.a_host_1.%lld.%d"
                            "%n",
                            &seconds, &pid, &n, &end),
                     3);
    assert_int_equal(end, strlen(base));
    assert_int_equal(pid, getpid());
    assert_int_equal(n, 0);
}

static void no_file_is_ever_overwritten(void **state) {
    struct fixture *x = *state;
    static struct eventfile other[20];
    for (int i = 0; i < 20; i++) {
        assert_int_equal(eventfile_init(&other[i], x->fd, x->dir, "h"), 0);
        put(&other[i], "a", i, (float)i);
        assert_int_equal(eventfile_flush(&other[i]), 0);
    }
    assert_int_equal(count_files(x->dir, NULL, false), 20);
    for (int i = 0; i < 20; i++) {
        struct got g;
        assert_int_equal(read_all(other[i].path, &g, 1), 1);
        assert_int_equal(g.step, i);
        eventfile_close(&other[i]);
    }
}

static void a_full_disk_tears_no_record(void **state) {
    struct fixture *x = *state;
    struct got g[64];
    for (int i = 0; i < 6; i++) put(&x->f, "a tag", i, (float)i);
    assert_int_equal(eventfile_flush(&x->f), 0);
    long all = (long)x->f.size;
    eventfile_close(&x->f);
    disk_piece = 7;
    for (long room = 1; room < all; room++) {
        char path[EVENTFILE_PATH_MAX];
        disk_left = room;
        for (int i = 0; i < 6; i++) put(&x->f, "a tag", i, (float)i);
        assert_int_equal(eventfile_flush(&x->f), -ENOSPC);
        assert_int_equal(x->f.error, ENOSPC);
        strcpy(path, x->f.path);
        size_t there = read_all(path, g, 64);
        assert_int_equal(there + x->f.waiting, 6);
        disk_left = -1;
        assert_int_equal(eventfile_flush(&x->f), 0);
        assert_int_equal(read_all(path, g, 64), 6);
        for (int i = 0; i < 6; i++) assert_int_equal(g[i].step, i);
        eventfile_close(&x->f);
    }
    assert_int_equal(x->f.lost, 0);
}

static void what_the_buffer_cannot_hold_is_counted(void **state) {
    struct fixture *x = *state;
    enum { MANY = 10000 };
    static struct got g[MANY];
    disk_left = 0;
    for (int i = 0; i < MANY; i++) put(&x->f, "some tag", i, (float)i);
    assert_true(x->f.lost > 0);
    assert_int_equal(x->f.waiting + x->f.lost, MANY);
    size_t waiting = x->f.waiting;
    disk_left = -1;
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_int_equal(read_all(x->f.path, g, MANY), waiting);
    assert_int_equal(g[waiting - 1].step, waiting - 1);
    disk_left = 0;
    put(&x->f, "some tag", MANY, 0);
    uint64_t lost = x->f.lost;
    assert_int_equal(eventfile_close(&x->f), -ENOSPC);
    assert_int_equal(x->f.lost, lost + 1);
}

static void a_removed_file_is_made_again(void **state) {
    struct fixture *x = *state;
    struct got g;
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    count_files(x->dir, NULL, true);
    put(&x->f, "a", 2, 2);
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_int_equal(x->f.lost, 1);
    assert_int_equal(x->f.written, 1);
    assert_int_equal(read_all(x->f.path, &g, 1), 1);
    assert_int_equal(g.step, 2);
}

static void a_removed_folder_stays_removed(void **state) {
    struct fixture *x = *state;
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    count_files(x->dir, NULL, true);
    assert_int_equal(rmdir(x->dir), 0);
    put(&x->f, "a", 2, 2);
    assert_int_equal(eventfile_flush(&x->f), -ENOENT);
    assert_int_not_equal(access(x->dir, F_OK), 0);
    assert_int_equal(x->f.lost, 1);
    assert_int_equal(x->f.waiting, 1);
    assert_int_equal(eventfile_close(&x->f), -ENOENT);
    assert_int_equal(x->f.lost, 2);
    assert_int_equal(mkdir(x->dir, 0700), 0); /* for tear_down */
}

static void nobody_else_may_write_to_it(void **state) {
    struct fixture *x = *state;
    struct stat st;
    mode_t before = umask(0);
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_int_equal(stat(x->f.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    eventfile_close(&x->f);
    umask(0777);
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    umask(before);
    assert_int_equal(stat(x->f.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_file_that_somebody_cut_is_left_alone(void **state) {
    struct fixture *x = *state;
    char first[EVENTFILE_PATH_MAX];
    struct got g;
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    strcpy(first, x->f.path);
    assert_int_equal(truncate(first, 10), 0);
    put(&x->f, "a", 2, 2);
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_string_not_equal(first, x->f.path);
    assert_int_equal(read_all(x->f.path, &g, 1), 1);
    assert_int_equal(x->f.lost, 1);
}

static void a_size_limit_fails_and_does_not_kill(void **state) {
    struct fixture *x = *state;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit small = {100, 100};
        setrlimit(RLIMIT_FSIZE, &small);
        for (int i = 0; i < 9; i++) put(&x->f, "a", i, 1);
        _exit(eventfile_flush(&x->f) == -EFBIG && x->f.waiting == 9 ? 7 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void tags_are_cut_and_mended_never_refused(void **state) {
    struct fixture *x = *state;
    struct got g[4];
    char tag[1500];
    memset(tag, 'x', sizeof tag);
    /* a two-byte character over the place of the cut */
    memcpy(tag + EVENTFILE_TAG_MAX - 1, "\303\266", 2);
    eventfile_scalar(&x->f, tag, sizeof tag, 1, 1, 1);
    eventfile_scalar(&x->f, "a\377b\355\240\200c", 7, 2, 1, 1);
    memset(tag, 0x80, sizeof tag);
    eventfile_scalar(&x->f, tag, sizeof tag, 3, 1, 1);
    assert_int_equal(eventfile_flush(&x->f), 0);
    assert_int_equal(read_all(x->f.path, g, 4), 3);
    assert_int_equal(g[0].tag_n, EVENTFILE_TAG_MAX - 1);
    assert_string_equal(g[1].tag, "a?b???c");
    assert_int_equal(g[2].tag_n, EVENTFILE_TAG_MAX);
    assert_int_equal(x->f.cut_tags, 3);
}

static void a_path_that_is_too_long_loses_and_counts(void **state) {
    struct fixture *x = *state;
    static char dir[5000];
    memset(dir, 'd', sizeof dir - 1);
    assert_int_equal(eventfile_init(&x->f, x->fd, dir, NULL), -ENAMETOOLONG);
    put(&x->f, "a", 1, 1);
    assert_int_equal(eventfile_close(&x->f), -ENAMETOOLONG);
    assert_int_equal(x->f.lost, 1);
}

/* Some points wait for room at a mark, more come behind it, and the disk takes
 * so many bytes before all behind the mark is given again, twice: at the end
 * each point is there once, in one file. */
static void a_rollback_loses_and_doubles_nothing(void **state) {
    struct fixture *x = *state;
    enum { BEFORE = 5, BEHIND = 4 };
    struct got g[2 * (BEFORE + BEHIND)];
    struct eventfile_mark m;
    for (long room = 1; room < 600; room += 7) {
        put(&x->f, "a", 0, 1);
        disk_left = room % 2 == 0 ? 0 : -1; /* the file has begun, or not */
        eventfile_flush(&x->f);
        disk_left = 0;
        for (int i = 1; i < BEFORE; i++) put(&x->f, "a", i, 1);
        eventfile_flush(&x->f);
        eventfile_mark(&x->f, &m);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < BEHIND; i++) put(&x->f, "a", BEFORE + i, 1);
            disk_left = room;
            eventfile_flush(&x->f);
            eventfile_give_up(&x->f);
            eventfile_rollback(&x->f, &m);
        }
        disk_left = -1;
        for (int i = 0; i < BEHIND; i++) put(&x->f, "a", BEFORE + i, 1);
        assert_int_equal(eventfile_flush(&x->f), 0);
        size_t n = read_all(x->f.path, g, sizeof g / sizeof *g);
        assert_int_equal(n, BEFORE + BEHIND);
        for (size_t i = 0; i < n; i++) assert_int_equal(g[i].step, i);
        assert_int_equal(x->f.in_file, n);
        assert_int_equal(x->f.lost + x->f.waiting, 0);
        eventfile_close(&x->f);
    }
}

static void what_is_given_up_is_counted(void **state) {
    struct fixture *x = *state;
    disk_left = 0;
    put(&x->f, "a", 1, 1);
    put(&x->f, "a", 2, 1);
    assert_int_equal(eventfile_flush(&x->f), -ENOSPC);
    eventfile_give_up(&x->f);
    disk_left = -1;
    assert_int_equal(eventfile_close(&x->f), 0);
    assert_int_equal(x->f.lost, 2);
    assert_int_equal(x->f.written, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(scalars_come_back_as_they_went_in),
        CASE(the_name_is_tensorboards_and_fits_any_host),
        CASE(no_file_is_ever_overwritten),
        CASE(a_full_disk_tears_no_record),
        CASE(what_the_buffer_cannot_hold_is_counted),
        CASE(a_removed_file_is_made_again),
        CASE(a_removed_folder_stays_removed),
        CASE(nobody_else_may_write_to_it),
        CASE(a_file_that_somebody_cut_is_left_alone),
        CASE(a_size_limit_fails_and_does_not_kill),
        CASE(tags_are_cut_and_mended_never_refused),
        CASE(a_path_that_is_too_long_loses_and_counts),
        CASE(a_rollback_loses_and_doubles_nothing),
        CASE(what_is_given_up_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
