/* SPDX-License-Identifier: Apache-2.0
 * A program ends when its last thread does, as it would without the recorder:
 * with the same status, after its handlers ran and its output was written, and
 * signals reach it until then. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static void *work(void *arg) {
    for (int i = 0; i < 10; i++) {
        OPS_SCOPE("work");
        rig_sleep_us(2000);
    }
    printf("worker done, and this stands in a buffer\n");
    return arg;
}

static void at_exit(void) {
    OPS_SCOPE("in a handler");
    printf("handler\n");
}

static void main_leaves(void *arg) {
    pthread_t t;
    (void)arg;
    atexit(at_exit);
    rig_begin();
    pthread_create(&t, NULL, work, NULL);
    pthread_detach(t);
    OPS_SCOPE("main");
    printf("main\n");
    pthread_exit(NULL);
}

static void test_main_leaves(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    struct rig_end e = rig_both(main_leaves);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.out, "main\nworker done, and this stands in a "
                               "buffer\nhandler\n");
    assert_int_equal(rig_count(".ring") + rig_count(".part"), 0);
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_count(&x, "work"), 10);
    assert_int_equal(xs_count(&x, "in a handler"), 1);
    assert_int_equal(xs_count(&x, "main"), 1);
    xs_free(&x);
}

/* The handlers run in a thread of ours then, which has to hand over what
 * tracers of devices have: not while it waits in one of them. */
static int starts(void *self) {
    (void)self;
    return 0;
}

static void stops(void *self) { (void)self; }

static uint64_t gives(void *self,
                      void (*give)(void *to, const struct ops_device_record *r,
                                   size_t size),
                      void *to) {
    uint64_t now = ops_now();
    struct ops_device_record r = {.t0 = now - 1000,
                                  .t1 = now,
                                  .name = "kernel",
                                  .queue = "q"};
    (void)self;
    give(to, &r, sizeof r);
    return 0;
}

static void flushes(void) {
    ops_instant("before the flush");
    ops_flush();
    ops_dump();
    printf("handler\n");
}

static void handler_flushes(void *arg) {
    static struct ops_device_tracer tracer = {.device = "npu 0",
                                              .start = starts,
                                              .stop = stops,
                                              .collect = gives};
    (void)arg;
    atexit(flushes);
    if (rig_on) ops_device_tracer_add(&tracer);
    rig_begin();
    ops_instant("main");
    pthread_exit(NULL);
}

static void test_a_handler_flushes(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    struct rig_end e = rig_both(handler_flushes);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.out, "handler\n");
    assert_int_equal(rig_count(".ring") + rig_count(".part"), 0);
    assert_true(rig_load(&x) >= 1);
    assert_int_equal(xs_count(&x, "before the flush"), 1);
    assert_true(xs_count(&x, "kernel") > 0);
    xs_free(&x);
}

/* Nothing but main and what the recorder has. */
static void main_alone_leaves(void *arg) {
    (void)arg;
    rig_begin();
    { OPS_SCOPE("main"); }
    printf("main\n");
    pthread_exit(NULL);
}

static void test_main_alone_leaves(void **state) {
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    struct rig_end e = rig_both(main_alone_leaves);
    assert_string_equal(e.out, "main\n");
    assert_int_equal(rig_count(".xplane.pb"), 1);
}

/* The system takes main's table of descriptors first, and shows main dead a
 * moment later: looked at in between, main had seemed to have left that table,
 * and the buffered text did not find its file any more. It is a long moment
 * where rings lie on a disk: some 1 in 30 met it. */
static void main_dumps_and_leaves(void *arg) {
    (void)arg;
    rig_begin();
    ops_step(1);
    ops_dump();
    printf("main\n");
    pthread_exit(NULL);
}

static void test_main_leaves_while_we_look(void **state) {
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    rig_on = true;
    setenv("OPSCOPE_SHM", rig_dir, 1);
    for (int i = 0; i < 80; i++)
        assert_string_equal(rig_run(main_dumps_and_leaves, NULL).out, "main\n");
    unsetenv("OPSCOPE_SHM");
}

/* A thread other than main starts the recorder, and main has left by then. */
static void *start_and_work(void *arg) {
    rig_sleep_us(20000);
    rig_begin();
    work(NULL);
    return arg;
}

static void others_start(void *arg) {
    pthread_t t;
    (void)arg;
    pthread_create(&t, NULL, start_and_work, NULL);
    pthread_exit(NULL);
}

static void test_another_thread_starts_it(void **state) {
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    rig_both(others_start);
    assert_int_equal(rig_count(".xplane.pb"), 1);
}

/* A child of fork() whose only thread leaves. */
static void child_leaves(void *arg) {
    int status = 0;
    (void)arg;
    rig_begin();
    { OPS_SCOPE("parent"); }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        { OPS_SCOPE("child"); }
        printf("child\n");
        pthread_exit(NULL);
    }
    waitpid(child, &status, 0);
    printf("status %x\n", status);
    exit(3);
}

static void test_a_child_leaves(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    if (RIG_ASAN) skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_both(child_leaves);
    assert_string_equal(e.out, "child\nstatus 0\n");
    assert_int_equal(rig_load(&x), 2);
    assert_int_equal(xs_count(&x, "child"), 1);
    xs_free(&x);
}

/* Main has left, a worker waits: a signal ends the program, as always. */
static void *wait_for_ever(void *arg) {
    OPS_SCOPE("waits");
    for (;;) pause();
    return arg;
}

static void killed_later(void *arg) {
    pthread_t t;
    (void)arg;
    rig_begin();
    if (fork() == 0) {
        rig_sleep_us(150000);
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    pthread_create(&t, NULL, wait_for_ever, NULL);
    pthread_exit(NULL);
}

static void test_signals_still_end_it(void **state) {
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    struct rig_end e = rig_both(killed_later);
    assert_true(WIFSIGNALED(e.status));
    assert_int_equal(WTERMSIG(e.status), SIGTERM);
    assert_int_equal(rig_rescue(), 1);
}

static void with_machine(void) { rig_options.no_machine = false; }

RIG_MAIN("rec_last", with_machine, CASE(test_main_leaves),
         CASE(test_main_alone_leaves), CASE(test_main_leaves_while_we_look),
         CASE(test_a_handler_flushes), CASE(test_another_thread_starts_it),
         CASE(test_a_child_leaves), CASE(test_signals_still_end_it))
