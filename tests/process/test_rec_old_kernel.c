/* SPDX-License-Identifier: Apache-2.0
 * Kernels and sandboxes that know less: without the calls of the last years the
 * recorder goes other ways, and where there is none it says so and leaves the
 * program alone. */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"
#include "rec/syscalls.h"

/* What is missing. */
static bool no_populate, no_close_range, no_unshare, no_tmpfile;

static bool look_at_syscall(long number, const long arg[6], long *result) {
    bool refused = (no_close_range && number == SYS_close_range) ||
                   (no_tmpfile && number == SYS_openat &&
                    (arg[2] & O_TMPFILE) == O_TMPFILE);
    if (!refused) return false;
    errno = number == SYS_close_range ? ENOSYS : EOPNOTSUPP;
    *result = -1;
    return true;
}

int madvise(void *p, size_t n, int advice) {
    if (no_populate && advice == 23 /* MADV_POPULATE_WRITE */) {
        errno = EINVAL;
        return -1;
    }
    return (int)real_syscall(SYS_madvise, (long[6]){(long)p, (long)n, advice});
}

int unshare(int flags) {
    if (no_unshare) {
        errno = EPERM;
        return -1;
    }
    return (int)real_syscall(SYS_unshare, (long[6]){flags});
}

enum { SCOPES = 5000 };

static void record(void) {
    struct ops_options o = {.no_machine = false};
    if (ops_start(rig_dir, &o) != 0) {
        printf("%s\n", rig_problem());
        exit(3);
    }
    for (int i = 0; i < SCOPES; i++) {
        OPS_SCOPE_INT("work", "i", i);
    }
}

static void and_stop(void *arg) {
    int p[2];
    char c;
    (void)arg;
    if (pipe(p) != 0) exit(1);
    record();
    close(p[1]); /* a copy of it would keep the pipe open */
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    if (poll(&f, 1, 5000) != 1 || read(p[0], &c, 1) != 0) exit(2);
    exit(7);
}

static void and_die(void *arg) {
    (void)arg;
    record();
    kill(getpid(), SIGKILL);
}

static void expect_all(void) {
    struct xs x = {0};
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_count(&x, "work"), SCOPES);
    xs_free(&x);
    rig_remove_dir();
    rig_make_dir();
}

static void both_ways(void) {
    struct rig_end e = rig_run(and_stop, NULL);
    if (e.status != 7 << 8) fail_msg("%x: %s", e.status, e.out);
    expect_all();
    rig_run(and_die, NULL);
    assert_int_equal(rig_rescue(), 1);
    expect_all();
}

static void test_ways_around(void **state) {
    (void)state;
    no_populate = true;
    both_ways();
    no_close_range = true;
    both_ways();
    no_tmpfile = true;
    both_ways();
}

/* No table of its own: nothing is recorded, and that is said. */
static void test_no_way(void **state) {
    (void)state;
    no_close_range = no_unshare = true;
    struct rig_end e = rig_run(and_stop, NULL);
    assert_int_equal(e.status, 3 << 8);
    assert_non_null(strstr(e.out, "descriptors of its own"));
    assert_int_equal(rig_count(""), 0);
    assert_int_equal(rig_rings(e.pid), 0);
}

static void all_calls_work(void) {
    no_populate = no_close_range = no_unshare = no_tmpfile = false;
}

RIG_MAIN("rec_old_kernel", all_calls_work, CASE(test_ways_around),
         CASE(test_no_way))
