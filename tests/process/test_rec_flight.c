/* SPDX-License-Identifier: Apache-2.0
 * The flight recorder: a dump has the last records of each thread, without a
 * gap and without a torn one, while the threads overwrite them. Numbers in the
 * records tell. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

enum { THREADS = 4, RING = 64 << 10 };

static struct shared {
    uint64_t done[THREADS];        /* the last number each thread has written */
    uint64_t at_dump[16][THREADS]; /* and what it was before a dump began */
    int over;
} * shared;

/* Records of one to several slots, so that they lie anywhere in the ring. */
static void *writer(void *arg) {
    unsigned t = (unsigned)(uintptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "thread %u", t);
    for (uint64_t i = 1; !__atomic_load_n(&shared->over, __ATOMIC_RELAXED);
         i++) {
        {
            OPS_SCOPE_INT("numbered", "seq", (int64_t)i);
            ops_arg_int("check", (int64_t)(i * 7 + t));
            if (i % 3 == 0) ops_arg_text("text", "0123456789abcdef");
        }
        if (i % 5 == 0) ops_counter(name, (double)i);
        __atomic_store_n(&shared->done[t], i, __ATOMIC_RELEASE);
    }
    return arg;
}

static pthread_t threads[THREADS];

static void start_writers(void) {
    rig_options.flight = true;
    if (ops_start(rig_dir, &rig_options) != 0) {
        printf("%s\n", rig_problem());
        exit(99);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, writer, (void *)i);
}

static void end_writers(void) {
    __atomic_store_n(&shared->over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* A line's numbers in one file. */
struct run {
    int64_t line;
    uint64_t first, last;
    unsigned thread;
};

/* Each line of a file is a run of numbers without a gap, whole records all. */
static unsigned runs_of(const struct xs *x, uint32_t file,
                        struct run r[THREADS]) {
    unsigned n = 0;
    for (size_t i = 0; i < x->n; i++) {
        const struct xs_event *e = &x->v[i];
        if (e->file != file || strcmp(e->name, "numbered") != 0 ||
            xs_int(x, e, "unfinished", 0) != 0)
            continue;
        uint64_t seq = (uint64_t)xs_int(x, e, "seq", 0);
        uint64_t t = (uint64_t)xs_int(x, e, "check", 0) - seq * 7;
        assert_true(seq > 0 && t < THREADS);
        if (seq % 3 == 0) assert_true(xs_is(x, e, "text", "0123456789abcdef"));
        unsigned k = 0;
        while (k < n && r[k].line != e->line) k++;
        if (k == n) {
            assert_true(n < THREADS);
            r[n++] = (struct run){e->line, seq, seq, (unsigned)t};
            continue;
        }
        assert_int_equal(r[k].thread, t);
        assert_int_equal(seq, r[k].last + 1);
        r[k].last = seq;
    }
    return n;
}

/* --- dumps while they write --------------------------------------------- */

enum { DUMPS = 8 };

static void run_dumps(void *arg) {
    (void)arg;
    start_writers();
    for (int i = 0; i < DUMPS; i++) {
        rig_sleep_us(5000);
        for (int t = 0; t < THREADS; t++)
            shared->at_dump[i][t] = __atomic_load_n(&shared->done[t],
                                                    __ATOMIC_ACQUIRE);
        if (ops_dump() != 0) exit(98);
    }
    end_writers();
    ops_stop();
    exit(0);
}

static void test_dumps(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_dumps, NULL);
    if (e.status != 0) fail_msg("%x %s", e.status, e.out);
    assert_int_equal(rig_count(".xplane.pb"), DUMPS + 1);
    glob_t g;
    uint64_t before[THREADS] = {0};
    for (uint32_t part = 0; part <= DUMPS; part++) {
        struct xs x = {0};
        struct run r[THREADS];
        char end[32] = "[0-9].xplane.pb";
        if (part > 0) snprintf(end, sizeof end, "[0-9].%u.xplane.pb", part);
        size_t files = rig_files(end, &g), at = files;
        /* "host_123.xplane.pb" and "host_123.1.xplane.pb" both end so */
        for (size_t i = 0; i < files; i++)
            if (part > 0 || strchr(strrchr(g.gl_pathv[i], '_'), '.') ==
                                strstr(g.gl_pathv[i], ".xplane.pb"))
                at = i;
        assert_true(at < files);
        xs_load(&x, g.gl_pathv[at]);
        globfree(&g);
        unsigned n = runs_of(&x, 0, r);
        for (unsigned k = 0; k < n; k++) {
            unsigned t = r[k].thread;
            /* nothing twice, and what was there when the dump began is */
            assert_true(r[k].first > before[t]);
            if (part < DUMPS)
                assert_true(r[k].last >= shared->at_dump[part][t]);
            else assert_int_equal(r[k].last, shared->done[t]);
            before[t] = r[k].last;
        }
        xs_free(&x);
    }
}

/* --- by signal ---------------------------------------------------------- */

/* Every thread has written something. */
static void wait_for_writers(void) {
    for (unsigned t = 0; t < THREADS; t++)
        while (__atomic_load_n(&shared->done[t], __ATOMIC_ACQUIRE) == 0)
            rig_sleep_us(1000);
}

static void run_signal(void *arg) {
    (void)arg;
    rig_options.signal = SIGUSR2;
    start_writers();
    wait_for_writers();
    rig_sleep_us(10000);
    raise(SIGUSR2);
    for (int i = 0; i < 1000 && rig_count(".xplane.pb") == 0; i++)
        rig_sleep_us(10000);
    size_t n = rig_count(".xplane.pb");
    end_writers();
    kill(getpid(), SIGKILL); /* no stop: only the signal has written */
    exit((int)n);
}

static void test_signal(void **state) {
    struct xs x = {0};
    struct run r[THREADS];
    (void)state;
    rig_run(run_signal, NULL);
    assert_int_equal(rig_load(&x), 1);
    assert_true(runs_of(&x, 0, r) > 0);
    xs_free(&x);
    rig_rescue();
}

/* --- after a crash ------------------------------------------------------ */

static void run_crash(void *arg) {
    (void)arg;
    start_writers();
    wait_for_writers();
    rig_sleep_us(20000);
    kill(getpid(), SIGKILL);
}

static void test_crash(void **state) {
    (void)state;
    for (int i = 0; i < (rig_full() ? 30 : 5); i++) {
        struct xs x = {0};
        struct run r[THREADS];
        rig_remove_dir();
        rig_make_dir();
        memset(shared, 0, sizeof *shared);
        rig_run(run_crash, NULL);
        assert_int_equal(rig_rescue(), 1);
        assert_int_equal(rig_load(&x), 1);
        unsigned n = runs_of(&x, 0, r);
        assert_true(n > 0);
        for (unsigned k = 0; k < n; k++) {
            uint64_t done = shared->done[r[k].thread];
            assert_true(r[k].last == done || r[k].last == done + 1);
            /* a ring's worth of it, less the slots a writer may be at */
            if (r[k].first > 1)
                assert_true(r[k].last - r[k].first > RING / 16 / 10);
        }
        xs_free(&x);
    }
}

/* Threads that have ended are in the dump as well. */
static void *brief(void *arg) {
    OPS_SCOPE_INT("brief", "seq", (int64_t)(uintptr_t)arg);
    return arg;
}

static void run_ended(void *arg) {
    pthread_t t;
    (void)arg;
    rig_options.flight = true;
    if (ops_start(rig_dir, &rig_options) != 0) exit(99);
    for (uintptr_t i = 1; i <= 20; i++) {
        pthread_create(&t, NULL, brief, (void *)i);
        pthread_join(t, NULL);
    }
    if (ops_dump() != 0) exit(98);
    exit(0);
}

static void test_ended(void **state) {
    struct xs x = {0};
    (void)state;
    struct rig_end e = rig_run(run_ended, NULL);
    assert_int_equal(e.status, 0);
    rig_load(&x);
    assert_int_equal(xs_count(&x, "brief"), 20);
    xs_free(&x);
}

/* --- somebody reads while they write ------------------------------------ */

enum { READS = 40 };

static void run_forever(void *arg) {
    (void)arg;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
    start_writers();
    for (;;) pause();
}

/* What stands in the rings of a live program: whole records without a gap,
 * whatever the threads write over while we copy. */
static void test_read_alive(void **state) {
    char why[256] = "";
    glob_t g;
    unsigned seen = 0;
    (void)state;
    pid_t pid = rig_fork(run_forever, NULL, -1);
    while (__atomic_load_n(&shared->done[0], __ATOMIC_ACQUIRE) < 20000)
        rig_sleep_us(1000);
    assert_int_equal(rig_files(".ring", &g), 1);
    for (int i = 0; i < READS; i++) {
        struct recovered rest;
        struct xs x = {0};
        struct run r[THREADS];
        if (recover_read(g.gl_pathv[0], &rest, why, sizeof why) != 0)
            fail_msg("%s", why);
        assert_int_equal(rest.state, RECOVER_ALIVE);
        xs_read(&x, rest.p, rest.n);
        seen += runs_of(&x, 0, r);
        xs_free(&x);
        recover_free(&rest);
    }
    globfree(&g);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(seen > 0);
    rig_rescue();
}

/* --- the harness -------------------------------------------------------- */

static void empty_diary(void) {
    rig_options.ring_bytes = RING;
    shared = rig_shared(sizeof *shared);
}

RIG_MAIN("rec_flight", empty_diary, CASE(test_dumps), CASE(test_signal),
         CASE(test_crash), CASE(test_ended), CASE(test_read_alive))
