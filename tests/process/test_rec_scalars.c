/* SPDX-License-Identifier: Apache-2.0
 * Curves of a program that was killed: every point whose call had returned is
 * read, once, whether it is in the event file, in the program's memory or half
 * in both; and also when the folder is looked at again after a rescue. */
#include "scalars/logdir.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

enum { THREADS = 3 };

static struct {
    int64_t published[THREADS];
    bool go;
} * shared;

static void *write_points(void *arg) {
    int k = (int)(uintptr_t)arg;
    char tag[16];
    snprintf(tag, sizeof tag, "curve %d", k);
    for (int64_t i = 0;; i++) {
        ops_scalar(tag, i, (double)i);
        shared->published[k] = i + 1;
        if (i % 64 == 0) rig_sleep_us(100);
    }
    return arg;
}

static void program(void *arg) {
    pthread_t t;
    (void)arg;
    if (ops_start(rig_dir, NULL) != 0) exit(99);
    for (uintptr_t k = 0; k < THREADS; k++)
        pthread_create(&t, NULL, write_points, (void *)k);
    for (;;) pause();
}

/* Checks the points of a curve, which must be 0, 1, 2, ... */
static void check_curves(const struct logdir *l) {
    struct curves c;
    struct ops_err e = {0};
    size_t found = 0;
    assert_int_equal(scalars_curves(&l->scalars, &c, &e), 0);
    for (size_t i = 0; i < c.n; i++) {
        int k;
        if (sscanf(c.v[i].tag, "curve %d", &k) != 1) continue;
        found++;
        assert_string_equal(c.v[i].run, ".");
        assert_in_range(c.v[i].n, shared->published[k],
                        shared->published[k] + 1);
        assert_int_equal(c.v[i].replaced, 0);
        for (size_t j = 0; j < c.v[i].n; j++) {
            assert_int_equal(c.v[i].step[j], j);
            assert_true(c.v[i].value[j] == (double)j);
        }
    }
    assert_int_equal(found, THREADS);
    curves_free(&c);
}

static void kill_after(long us) {
    memset(shared, 0, sizeof *shared);
    pid_t pid = rig_fork(program, NULL, -1);
    while (shared->published[0] == 0 || shared->published[1] == 0 ||
           shared->published[2] == 0)
        rig_sleep_us(100);
    rig_sleep_us(us);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_killed(void **state) {
    (void)state;
    for (int i = 0; i < (rig_slow() ? 3 : 12); i++) {
        struct logdir l;
        struct ops_err e = {0};
        kill_after(i * 23000L);
        assert_int_equal(logdir_open(&l, rig_dir, &e), 0);
        check_curves(&l);
        /* nothing has changed: nothing is read twice */
        assert_int_equal(logdir_refresh(&l, &e), 0);
        check_curves(&l);
        /* somebody writes the rest into the file */
        assert_int_equal(rig_rescue(), 1);
        assert_int_equal(logdir_refresh(&l, &e), 0);
        check_curves(&l);
        logdir_free(&l);
        /* and to somebody who comes only now */
        assert_int_equal(logdir_open(&l, rig_dir, &e), 0);
        check_curves(&l);
        logdir_free(&l);
        rig_remove_dir();
        rig_make_dir();
    }
}

/* The user names the event file, not the folder. */
static void test_one_file(void **state) {
    char pattern[PATH_MAX + 32];
    struct logdir l;
    struct ops_err e = {0};
    glob_t g;
    (void)state;
    kill_after(250000);
    snprintf(pattern, sizeof pattern, "%s/events.out.*", rig_dir);
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    assert_int_equal(logdir_open(&l, g.gl_pathv[0], &e), 0);
    check_curves(&l);
    logdir_free(&l);
    globfree(&g);
    rig_rescue();
}

/* --- the event file cannot grow any more --------------------------------- */

enum { POINTS = 9000 };

/* Writes more points than the limit lets into the file, and than wait for room
 * there. */
static void beyond_the_limit(void) {
    struct rlimit l;
    rig_options.no_machine = true;
    if (ops_start(rig_dir, &rig_options) != 0) exit(99);
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = 16 << 10;
    setrlimit(RLIMIT_FSIZE, &l);
    for (int i = 0; i < POINTS; i++) {
        ops_scalar("curve", i, 1);
        if (i % 1000 == 0) ops_flush();
    }
    ops_flush();
    if (strstr(rig_problem(), "scalars cannot be written") == NULL) exit(98);
}

static void stop_beyond_the_limit(void *arg) {
    (void)arg;
    beyond_the_limit();
    ops_stop();
    exit(strstr(rig_problem(), "scalars were lost: File too large") ? 0 : 97);
}

static void die_beyond_the_limit(void *arg) {
    (void)arg;
    beyond_the_limit();
    kill(getpid(), SIGKILL);
}

/* Checks that each point is in the curve or told as lost. */
static void check_told(const struct logdir *l) {
    struct curves c;
    struct result r;
    struct ops_err e = {0};
    assert_int_equal(scalars_curves(&l->scalars, &c, &e), 0);
    assert_int_equal(c.n, 1);
    assert_true(l->lost > 0);
    assert_int_equal(c.v[0].n + l->lost, POINTS);
    result_init(&r, "scalars", "Scalars");
    logdir_describe(l, false, &r);
    assert_int_equal(r.nnotes, 1);
    assert_string_equal(r.notes[0].id, "scalars-lost");
    assert_int_equal(r.notes[0].count, l->lost);
    result_free(&r);
    curves_free(&c);
}

static void test_lost_points_are_told(void **state) {
    struct logdir l;
    struct ops_err e = {0};
    struct xs x = {0};
    (void)state;
    struct rig_end end = rig_run(stop_beyond_the_limit, NULL);
    if (end.status != 0) fail_msg("status %x: %s", end.status, end.out);
    assert_int_equal(logdir_open(&l, rig_dir, &e), 0);
    check_told(&l);
    assert_int_equal(logdir_refresh(&l, &e), 0);
    check_told(&l);
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_fact(&x, "scalars_lost", 0), l.lost);
    xs_free(&x);
    logdir_free(&l);
}

/* Points that wait for room are gone with the program, and only the rings know
 * how many there were. */
static void test_lost_points_of_the_dead_are_told(void **state) {
    struct logdir l;
    struct ops_err e = {0};
    (void)state;
    struct rig_end end = rig_run(die_beyond_the_limit, NULL);
    assert_true(WIFSIGNALED(end.status));
    assert_int_equal(logdir_open(&l, rig_dir, &e), 0);
    check_told(&l);
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(logdir_refresh(&l, &e), 0);
    check_told(&l);
    logdir_free(&l);
}

static void empty_diary(void) { shared = rig_shared(sizeof *shared); }

RIG_MAIN("rec_scalars", empty_diary, CASE(test_killed), CASE(test_one_file),
         CASE(test_lost_points_are_told),
         CASE(test_lost_points_of_the_dead_are_told))
