/* SPDX-License-Identifier: Apache-2.0
 * Watching real processes: children of this test that do known things and wait
 * at a pipe, so that nothing depends on how fast anything is. */
#include "capture/tree.h"
#include "ring/sanitized.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A child that says a byte when it is set up, and ends when it and its children
 * are told one each. (A closed pipe would not do: a child that is made later
 * holds it open.) */
struct child {
    pid_t pid;
    int go, family;
};

static void spin(int ms) {
    struct timespec ts;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < ms);
}

static struct child start(int spin_ms, int grandchildren, int status) {
    int go[2], ready[2];
    char c;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_NAME, "the child", 0, 0, 0);
        close(go[1]);
        for (int i = 0; i < grandchildren; i++)
            if (fork() == 0) {
                read(go[0], &c, 1);
                _exit(0);
            }
        spin(spin_ms);
        if (write(ready[1], "x", 1) != 1) _exit(99);
        read(go[0], &c, 1);
        while (wait(NULL) > 0) continue;
        _exit(status);
    }
    close(go[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return (struct child){pid, go[1], 1 + grandchildren};
}

/* Ends the child, with its last figures, as launch.c does. */
static void finish(struct tree *t, struct child *c) {
    siginfo_t info;
    struct rusage usage;
    int status;
    for (int i = 0; i < c->family; i++)
        assert_int_equal(write(c->go, "x", 1), 1);
    while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) != 0)
        assert_int_equal(errno, EINTR);
    tree_last_look(t, c->pid, mono_now());
    close(c->go);
    assert_int_equal(wait4(c->pid, &status, 0, &usage), c->pid);
    tree_reaped(t, c->pid, status, &usage, mono_now());
}

static void a_process_and_its_children_are_found(void **state) {
    (void)state;
    struct tree t = {0};
    tree_prepare(&t, getpid());
    int64_t t0 = mono_now();
    struct child c = start(0, 5, 7);
    tree_begin(&t, c.pid, t0);
    tree_look(&t, mono_now());
    assert_int_equal(t.nprocs, 6);
    for (size_t i = 1; i < t.nprocs; i++) {
        assert_int_equal(t.procs[i].ppid, c.pid);
        assert_true(t.procs[i].alive && t.procs[i].t0 >= t0);
    }
    tree_look(&t, mono_now()); /* nobody is found twice */
    assert_int_equal(t.nprocs, 6);
    assert_int_equal(t.total.n, 2);
    assert_int_equal(t.total.v[1].procs, 6);
    finish(&t, &c);
    tree_look(&t, mono_now());
    const struct seen_proc *p = tree_find(&t, c.pid);
    assert_true(p->reaped && p->exact && !p->alive);
    assert_int_equal(WEXITSTATUS(p->status), 7);
    assert_string_equal(p->name, "the child");
    assert_int_equal(p->t0, t0);
    for (size_t i = 0; i < t.nprocs; i++) assert_false(t.procs[i].alive);
    tree_free(&t);
}

static void cpu_time_at_the_end_is_the_kernels(void **state) {
    (void)state;
    struct tree t = {0};
    tree_prepare(&t, getpid());
    struct child c = start(120, 0, 0);
    tree_begin(&t, c.pid, mono_now());
    tree_look(&t, mono_now());
    assert_true(t.procs[0].cpu_ns >= 120 * INT64_C(1000000));
    /* and one of the sanitizer's own */
    assert_int_equal(t.procs[0].nthreads, 1 + SANITIZED_THREAD);
    assert_true(t.procs[0].threads[0].main);
    int64_t before = t.procs[0].cpu_ns;
    finish(&t, &c);
    const struct seen_proc *p = &t.procs[0];
    /* rusage rounds to microseconds, user and system apart */
    int64_t us = (p->usage.ru_utime.tv_sec + p->usage.ru_stime.tv_sec) *
                     INT64_C(1000000) +
                 p->usage.ru_utime.tv_usec + p->usage.ru_stime.tv_usec;
    assert_true(p->cpu_ns >= before);
    assert_true(llabs(p->cpu_ns / 1000 - us) <= 1000);
    tree_free(&t);
}

static void one_that_was_never_looked_at_is_taken_at_its_end(void **state) {
    (void)state;
    struct tree t = {0};
    tree_prepare(&t, getpid());
    int64_t t0 = mono_now();
    struct child first = start(0, 0, 0), late = start(0, 0, 9);
    tree_begin(&t, first.pid, t0);
    finish(&t, &late);
    const struct seen_proc *p = tree_find(&t, late.pid);
    assert_non_null(p);
    assert_int_equal(WEXITSTATUS(p->status), 9);
    assert_true(p->exact && p->cpu_ns > 0);
    assert_int_equal(p->peak_rss, UNKNOWN); /* it has none any more */
    finish(&t, &first);
    tree_free(&t);
}

static void strangers_are_not_taken_in(void **state) {
    (void)state;
    struct tree t = {0};
    struct child before = start(0, 2, 0); /* ours, but older */
    tree_prepare(&t, getpid());
    struct child mine = start(0, 0, 0);
    tree_begin(&t, mine.pid, mono_now());
    tree_look(&t, mono_now());
    assert_int_equal(t.nprocs, 1);
    finish(&t, &before);
    assert_null(tree_find(&t, before.pid));
    assert_non_null(tree_find(&t, mine.pid));
    finish(&t, &mine);
    tree_free(&t);
    /* watched for a parent that nobody has: a child of ours is none of its */
    tree_prepare(&t, INT32_MAX);
    int64_t t0 = mono_now();
    mine = start(0, 0, 0);
    struct child other = start(0, 2, 0);
    tree_begin(&t, mine.pid, t0);
    tree_look(&t, mono_now());
    assert_int_equal(t.nprocs, 1);
    finish(&t, &mine);
    finish(&t, &other);
    tree_free(&t);
}

/* However long it runs, so many samples are kept; first and peak stay in
 * place, and time goes on rising. */
static void samples_are_thinned_not_lost(void **state) {
    (void)state;
    struct tree t = {0};
    int64_t now = 1000;
    for (int i = 0; i < 5 * TREE_SAMPLES_MAX; i++, now += 1000000)
        tree_sample_total(&t, now);
    assert_true(t.total.n <= TREE_SAMPLES_MAX);
    assert_true(t.total.n >= TREE_SAMPLES_MAX / 4);
    assert_int_equal(t.total.v[0].at, 1000);
    for (size_t i = 1; i < t.total.n; i++)
        assert_true(t.total.v[i].at > t.total.v[i - 1].at);
    assert_true(now - t.total.v[t.total.n - 1].at <= 16 * 1000000);
    tree_free(&t);
}

static void looks_slow_down_with_time_and_cost(void **state) {
    (void)state;
    struct tree t = {0};
    tree_prepare(&t, getpid());
    int64_t t0 = mono_now();
    struct child c = start(0, 0, 0);
    tree_begin(&t, c.pid, t0);
    assert_int_equal(tree_look(&t, t0), t0 + 2000000);
    int64_t later = t0 + INT64_C(60000000000);
    assert_true(tree_look(&t, later) >= later + 100000000);
    int64_t spent = t.spent_ns;
    t.spent_ns = INT64_C(1000000000); /* the credit is used up */
    int64_t next = tree_look(&t, t0 + 1);
    int64_t cost = t.spent_ns - INT64_C(1000000000);
    assert_true(spent > 0 && cost > 0 && next > t0 + 1);
    finish(&t, &c);
    tree_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_and_its_children_are_found),
        cmocka_unit_test(cpu_time_at_the_end_is_the_kernels),
        cmocka_unit_test(one_that_was_never_looked_at_is_taken_at_its_end),
        cmocka_unit_test(strangers_are_not_taken_in),
        cmocka_unit_test(samples_are_thinned_not_lost),
        cmocka_unit_test(looks_slow_down_with_time_and_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
