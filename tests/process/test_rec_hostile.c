/* SPDX-License-Identifier: Apache-2.0
 * Pointers and ring files that somebody made up: a pointer leads to ring files
 * only, nothing is opened before it is known to be a file, and a file costs
 * what it holds and not what it says. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"
#include "rec/syscalls.h"
#include "ring/ring.h"

/* --- what is opened ----------------------------------------------------- */

static char opened[1 << 14]; /* paths that were really opened, a line each */

static void note(int dir, const char *path, int flags) {
    char line[PATH_MAX], self[64];
    size_t n = strlen(opened);
    if (flags & O_PATH) return;
    if (sscanf(path, "/proc/thread-self/fd/%d", &dir) == 1) {
        snprintf(self, sizeof self, "/proc/self/fd/%d", dir);
        ssize_t k = readlink(self, line, sizeof line - 1);
        line[k > 0 ? k : 0] = 0;
        path = line;
    }
    snprintf(opened + n, sizeof opened - n, "%s\n", path);
}

static bool look_at_syscall(long number, const long arg[6], long *result) {
    (void)result;
    if (number == SYS_openat)
        note((int)arg[0], (const char *)arg[1], (int)arg[2]);
    return false;
}

/* --- a folder with a pointer ------------------------------------------------ */

static char pointer[PATH_MAX + 64];

static void point_to(const char *path) {
    char folder[PATH_MAX + 32];
    FILE *f;
    static const char *const above[] = {"", "/plugins", "/plugins/profile",
                                        "/plugins/profile/r"};
    for (size_t i = 0; i < sizeof above / sizeof *above; i++) {
        snprintf(folder, sizeof folder, "%s%s", rig_dir, above[i]);
        mkdir(folder, 0755);
    }
    snprintf(pointer, sizeof pointer, "%s/box_1.ring", folder);
    f = fopen(pointer, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", path);
    fclose(f);
    opened[0] = 0;
}

/* Checks that neither reading nor finishing touches it. */
static void expect_untouched(const char *path) {
    struct recovered rest;
    struct recovered_scalars scalars;
    struct recover_closed saved;
    char why[256];
    struct recover_look at;
    point_to(path);
    recover_look_path(pointer, &at);
    assert_int_equal(at.pid, 0);
    assert_int_not_equal(recover_read(pointer, &rest, why, sizeof why), 0);
    assert_int_not_equal(recover_scalars(pointer, &scalars), 0);
    assert_int_not_equal(recover_close(pointer, &saved, why, sizeof why), 0);
    const char *base = strrchr(path, '/') + 1;
    if (strstr(opened, base) != NULL) fail_msg("opened: %s", opened);
}

static void test_only_ring_files_are_followed(void **state) {
    char path[PATH_MAX + 32];
    (void)state;
    expect_untouched("/dev/watchdog");
    expect_untouched("/etc/passwd");
    expect_untouched("/dev/../etc/hostname");
    snprintf(path, sizeof path, "%s/other_1.rings", rig_dir);
    expect_untouched(path);
    snprintf(path, sizeof path, "%s/opscope-\033x", rig_dir);
    expect_untouched(path);
}

static void test_only_files_are_opened(void **state) {
    char path[PATH_MAX + 32], target[PATH_MAX + 32];
    (void)state;
    snprintf(path, sizeof path, "%s/opscope-fifo", rig_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_untouched(path);
    snprintf(target, sizeof target, "%s/secret", rig_dir);
    close(open(target, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/opscope-link", rig_dir);
    assert_int_equal(symlink(target, path), 0);
    expect_untouched(path);
    if (getuid() == 0) {
        snprintf(path, sizeof path, "%s/opscope-device", rig_dir);
        if (mknod(path, S_IFCHR | 0600, 1 << 8 | 3) == 0)
            expect_untouched(path);
    }
}

static void test_a_pointer_that_is_none(void **state) {
    struct recovered rest;
    char why[256];
    struct recover_look at;
    (void)state;
    point_to("/dev/shm/opscope-none");
    unlink(pointer);
    assert_int_equal(mkfifo(pointer, 0600), 0);
    opened[0] = 0;
    recover_look_path(pointer, &at);
    assert_int_equal(at.pid, 0);
    assert_int_not_equal(recover_read(pointer, &rest, why, sizeof why), 0);
    assert_string_equal(opened, "");
}

/* --- what it costs ----------------------------------------------------------- */

static void killed(void *arg) {
    struct ops_options o = {.no_machine = true};
    (void)arg;
    if (ops_start(rig_dir, &o) != 0) exit(99);
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE("work");
    }
    kill(getpid(), SIGKILL);
}

/* Opens the ring file of a program that was killed; path becomes its path. */
static int ring_of_killed(char path[PATH_MAX]) {
    glob_t g;
    rig_run(killed, NULL);
    assert_int_equal(rig_files(".ring", &g), 1);
    FILE *f = fopen(g.gl_pathv[0], "r");
    assert_non_null(fgets(path, PATH_MAX, f));
    fclose(f);
    path[strcspn(path, "\n")] = 0;
    snprintf(pointer, sizeof pointer, "%s", g.gl_pathv[0]);
    globfree(&g);
    return open(path, O_RDWR);
}

/* Adds n more rings, each of so many slots, of which the file has none. */
static void add_hollow_rings(int fd, uint32_t n, uint64_t slots) {
    struct rec_head *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0);
    uint64_t at = (uint64_t)lseek(fd, 0, SEEK_END);
    assert_ptr_not_equal(h, MAP_FAILED);
    for (uint32_t i = 0; i < n; i++) {
        struct rec_ring r = {.head = slots,
                             .slots = slots,
                             .backed_slots = slots,
                             .state = REC_RING_LIVE,
                             .tid = 4242 + i};
        at = (at + REC_PAGE - 1) / REC_PAGE * REC_PAGE;
        assert_int_equal(pwrite(fd, &r, sizeof r, (off_t)at), sizeof r);
        h->rings[h->nrings].at = at;
        h->rings[h->nrings].bytes = REC_RING_HEAD + slots * 16;
        at += REC_RING_HEAD + slots * 16;
        h->nrings++;
    }
    assert_int_equal(ftruncate(fd, (off_t)at), 0);
    munmap(h, sizeof *h);
}

static long peak_kib(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void read_hollow(void *arg) {
    struct recovered rest;
    char why[256];
    (void)arg;
    long before = peak_kib();
    if (recover_read(pointer, &rest, why, sizeof why) != 0) exit(1);
    if (rest.damaged != 64 || rest.ring_events < 1000) exit(2);
    exit(peak_kib() - before < 64 << 10 ? 7 : 3);
}

/* 64 rings of a GiB each on a few pages: read, they would be 64 GiB. */
static void test_a_ring_costs_what_it_holds(void **state) {
    char path[PATH_MAX];
    (void)state;
    int fd = ring_of_killed(path);
    assert_true(fd >= 0);
    add_hollow_rings(fd, 64, 1 << 26);
    close(fd);
    struct rig_end e = rig_run(read_hollow, NULL);
    assert_int_equal(WEXITSTATUS(e.status), 7);
    assert_int_equal(rig_rescue(), 1); /* the rest is good */
    struct xs x = {0};
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_count(&x, "work"), 1000);
    xs_free(&x);
}

RIG_MAIN("rec_hostile", NULL, CASE(test_only_ring_files_are_followed),
         CASE(test_only_files_are_opened), CASE(test_a_pointer_that_is_none),
         CASE(test_a_ring_costs_what_it_holds))
