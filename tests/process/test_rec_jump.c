/* SPDX-License-Identifier: Apache-2.0
 * Ways out of a call, a scope or a handler that are no return: a thread is
 * recorded as before when it has come back, nothing stands there twice, and
 * what was left open is closed when its place in the program comes again. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static struct xs profile_of(void (*run)(void *)) {
    struct xs x = {0};
    struct rig_end e = rig_run(run, NULL);
    if (e.status != 0) fail_msg("status %x: %s", e.status, e.out);
    assert_int_equal(rig_load(&x), 1);
    return x;
}

static sigjmp_buf back;
static int *jumps; /* shared */

static void jump(int sig) {
    (void)sig;
    siglongjmp(back, 1);
}

static void every_us(long us) {
    struct itimerval t = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* Scopes of one block and of nested ones, which a handler leaves wherever it
 * finds them: in the program, in a call, in the kernel for a call. */
static void jump_out(void *arg) {
    enum { MOST = 400 };
    struct sigaction a = {.sa_handler = jump};
    sigaction(SIGALRM, &a, NULL);
    rig_begin();
    if (sigsetjmp(back, 1) != 0) ++*jumps;
    if (*jumps < MOST) {
        every_us(300);
        for (int64_t i = 0;; i++) {
            OPS_SCOPE("outer");
            if (arg != NULL) continue;
            OPS_SCOPE_INT("inner", "i", i);
            ops_step(i);
            ops_counter("count", (double)i);
        }
    }
    every_us(0);
    ops_step_end();
    ops_flush(); /* so that there is room */
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE_INT("after", "i", i);
    }
    ops_stop();
    exit(0);
}

static void check_after(const struct xs *x) {
    uint8_t seen[1000] = {0};
    for (size_t i = 0; i < x->n; i++) {
        const struct xs_event *e = &x->v[i];
        if (strcmp(e->name, "after") != 0) continue;
        int64_t k = xs_int(x, e, "i", -1);
        assert_in_range(k, 0, 999);
        assert_int_equal(seen[k]++, 0);
    }
    assert_int_equal(xs_count(x, "after"), 1000);
}

static void jump_out_of_one(void *arg) {
    (void)arg;
    jump_out((void *)jumps);
}

static void test_a_handler_jumps(void **state) {
    (void)state;
    jumps = mmap(NULL, sizeof *jumps, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct xs x = profile_of(jump_out);
    assert_int_equal(*jumps, 400);
    check_after(&x);
    /* no scope lasts from one jump to the end of the program: that many would
     * have been left open */
    uint64_t last = 0;
    size_t longer = 0;
    for (size_t i = 0; i < x.n; i++)
        if (x.v[i].end > last) last = x.v[i].end;
    for (size_t i = 0; i < x.n; i++)
        longer += x.v[i].end - x.v[i].start > last / 2 &&
                  strcmp(x.v[i].name, "outer") == 0;
    assert_true(longer <= 2);
    xs_free(&x);
    rig_remove_dir();
    rig_make_dir();
    *jumps = 0;
    x = profile_of(jump_out_of_one);
    check_after(&x);
    xs_free(&x);
}

/* --- exact: the jump is where the program says ---------------------------- */

static jmp_buf here;

static void left(int64_t i) {
    OPS_SCOPE_INT("left", "i", i);
    OPS_SCOPE("deeper");
    ops_begin("by hand");
    longjmp(here, 1);
}

static __attribute__((noinline)) void come_back(int64_t i) {
    if (setjmp(here) == 0) left(i);
}

static void leave_scopes(void *arg) {
    (void)arg;
    rig_begin();
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE_INT("loop", "i", i);
        come_back(i);
    }
    for (int i = 0; i < 1000; i++) come_back(i); /* with nothing around it */
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE_INT("after", "i", i);
    }
    exit(0);
}

static void test_longjmp_out_of_scopes(void **state) {
    (void)state;
    struct xs x = profile_of(leave_scopes);
    check_after(&x);
    assert_int_equal(xs_count(&x, "loop"), 1000);
    /* of the last one nobody can know that it was left: it is open */
    static const char *const names[] = {"left", "deeper", "by hand"};
    for (size_t i = 0; i < 3; i++) {
        size_t open = 0;
        for (size_t k = 0; k < x.n; k++)
            open += strcmp(x.v[k].name, names[i]) == 0 &&
                    xs_int(&x, &x.v[k], "unfinished", 0) != 0;
        assert_int_equal(xs_count(&x, names[i]), 1999);
        assert_int_equal(open, 1);
    }
    assert_int_equal(xs_dropped(&x), 0);
    xs_free(&x);
}

/* A scope begun by hand ends by hand, whatever blocks were left inside of it. */
static __attribute__((noinline)) void leave_block(jmp_buf to) {
    OPS_SCOPE("a block that was left");
    longjmp(to, 1);
}

static void hand_around_jumps(void *arg) {
    jmp_buf mine;
    (void)arg;
    rig_begin();
    for (volatile int i = 0; i < 100; i++) {
        ops_begin("around");
        if (setjmp(mine) == 0) leave_block(mine);
        ops_end();
        ops_instant("after");
    }
    {
        OPS_SCOPE("block");
        ops_end(); /* one too many: the block is not its */
        ops_instant("in the block");
    }
    exit(0);
}

static void test_ends_by_hand(void **state) {
    (void)state;
    struct xs x = profile_of(hand_around_jumps);
    assert_int_equal(xs_count(&x, "around"), 100);
    assert_int_equal(xs_count(&x, "a block that was left"), 100);
    assert_int_equal(xs_count(&x, "after"), 100);
    assert_int_equal(xs_count(&x, "block"), 1);
    assert_int_equal(xs_dropped(&x), 1);
    xs_free(&x);
}

/* The same scope in the same function, twice at once, is no jump: it is a call
 * of itself, which the compiler may unroll. */
static __attribute__((noinline)) int itself(int n) {
    OPS_SCOPE("itself");
    return n == 0 ? 0 : itself(n - 1) + 1;
}

static inline __attribute__((always_inline)) void twice(int n) {
    OPS_SCOPE("twice");
    if (n > 0) {
        OPS_SCOPE("twice");
        ops_instant("in it");
    }
}

static void nest(void *arg) {
    (void)arg;
    rig_begin();
    for (int i = 0; i < 100; i++) {
        if (itself(i % 200) < 0) exit(1);
        twice(1);
    }
    for (int i = 0; i < 40; i++) ops_begin("many");
    for (int i = 0; i < 40; i++) ops_end();
    exit(0);
}

static void test_recursion_is_no_jump(void **state) {
    (void)state;
    struct xs x = profile_of(nest);
    assert_int_equal(xs_count(&x, "itself"), 100 * 101 / 2);
    assert_int_equal(xs_count(&x, "twice"), 200);
    assert_int_equal(xs_count(&x, "in it"), 100);
    assert_int_equal(xs_count(&x, "many"), 40);
    assert_int_equal(xs_dropped(&x), 0);
    assert_int_equal(xs_count(&x, "abandoned"), 0);
    xs_free(&x);
}

/* --- handlers that stay --------------------------------------------------- */

static long from_handlers, from_main;

static void record_in_handler(int sig) {
    OPS_SCOPE("handler");
    (void)sig;
    from_handlers++;
}

/* On a stack of its own, which lies above or below that of the thread: it is a
 * handler all the same. */
static void other_stack(void *arg) {
    enum { BYTES = 256 << 10 };
    struct sigaction a = {.sa_handler = record_in_handler,
                          .sa_flags = SA_ONSTACK | SA_RESTART};
    stack_t s = {.ss_size = BYTES};
    (void)arg;
    s.ss_sp = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&s, NULL);
    sigaction(SIGALRM, &a, NULL);
    rig_begin();
    every_us(200);
    while (from_handlers < 500) {
        OPS_SCOPE("main");
        from_main++;
    }
    every_us(0);
    ops_stop();
    printf("%ld %ld", from_main, from_handlers);
    exit(0);
}

static void test_handlers_on_another_stack(void **state) {
    struct xs x = {0};
    long main_scopes, handlers;
    (void)state;
    struct rig_end e = rig_run(other_stack, NULL);
    assert_int_equal(sscanf(e.out, "%ld %ld", &main_scopes, &handlers), 2);
    assert_int_equal(rig_load(&x), 1);
    /* every scope is there or was counted */
    assert_int_equal(xs_count(&x, "main") + xs_count(&x, "handler") +
                         xs_dropped(&x),
                     main_scopes + handlers);
    assert_true(xs_count(&x, "handler") > 0);
    xs_free(&x);
}

/* --- cancelled ------------------------------------------------------------ */

static void *cancelled(void *arg) {
    for (int64_t i = 0;; i++) {
        OPS_SCOPE_INT("cancelled", "i", i);
        ops_thread_name("to be cancelled");
        if (i % 16 == 0) pthread_testcancel();
    }
    return arg;
}

static void cancel_threads(void *arg) {
    (void)arg;
    rig_begin();
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        pthread_create(&t, NULL, cancelled, NULL);
        rig_sleep_us(200);
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE_INT("after", "i", i);
    }
    exit(0);
}

static void test_cancelled_threads(void **state) {
    (void)state;
    if (RIG_ASAN)
        skip_because(
            "under sanitizers: its own handlers run while a thread unwinds");
    struct xs x = profile_of(cancel_threads);
    check_after(&x);
    xs_free(&x);
}

RIG_MAIN("rec_jump", NULL, CASE(test_a_handler_jumps),
         CASE(test_longjmp_out_of_scopes), CASE(test_ends_by_hand),
         CASE(test_recursion_is_no_jump), CASE(test_handlers_on_another_stack),
         CASE(test_cancelled_threads))
