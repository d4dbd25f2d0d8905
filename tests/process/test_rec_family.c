/* SPDX-License-Identifier: Apache-2.0
 * A program and its children of fork(): however they end, what they recorded is
 * gathered while the parent lives, their memory is given back, and all of them
 * together have no more than they may. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

/* Bytes of memory that the ring files named by this run's pointers hold. */
static uint64_t rings_bytes(size_t *n) {
    glob_t g;
    uint64_t bytes = 0;
    *n = rig_files(".ring", &g);
    for (size_t i = 0; i < *n; i++) {
        char path[PATH_MAX] = "";
        struct stat st;
        FILE *f = fopen(g.gl_pathv[i], "r");
        if (f == NULL) continue;
        if (fgets(path, sizeof path, f) != NULL) {
            path[strcspn(path, "\n")] = 0;
            if (stat(path, &st) == 0) bytes += (uint64_t)st.st_blocks * 512;
        }
        fclose(f);
    }
    if (*n > 0) globfree(&g);
    return bytes;
}

static void scopes(int n, const char *name) {
    for (int i = 0; i < n; i++) {
        ops_begin(name);
        ops_arg_int("seq", i);
        ops_end();
    }
}

/* --- small programs take little ------------------------------------------ */

static void one_scope(void *arg) {
    size_t n;
    (void)arg;
    rig_begin();
    scopes(1, "one");
    uint64_t bytes = rings_bytes(&n);
    printf("%zu %llu", n, (unsigned long long)bytes);
    exit(0);
}

static void test_one_scope_takes_little(void **state) {
    size_t n;
    unsigned long long bytes;
    (void)state;
    struct rig_end e = rig_run(one_scope, NULL);
    assert_int_equal(sscanf(e.out, "%zu %llu", &n, &bytes), 2);
    assert_int_equal(n, 1);
    assert_in_range(bytes, 1, 160 << 10); /* pages of 64 KiB are a few more */
}

/* How often threads of the program, all of which wait, woke in a second. */
static void quiet_program(void *arg) {
    struct rusage before, after;
    (void)arg;
    rig_begin();
    scopes(1, "one");
    rig_sleep_us(300000);
    getrusage(RUSAGE_SELF, &before);
    rig_sleep_us(1000000);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld", after.ru_nvcsw - before.ru_nvcsw);
    exit(0);
}

/* A program may have hundreds of workers that wait: looks every 4 ms would be
 * 250. */
static void test_a_quiet_program_wakes_seldom(void **state) {
    long n;
    (void)state;
    if (rig_slow()) skip_because("under sanitizers or valgrind: too slow");
    struct rig_end e = rig_run(quiet_program, NULL);
    assert_int_equal(sscanf(e.out, "%ld", &n), 1);
    assert_in_range(n, 1, 150);
}

/* --- every end ------------------------------------------------------------ */

static void leave(int how) {
    switch (how) {
    case 0: _exit(0);
    case 1: exit(0);
    case 2: kill(getpid(), SIGKILL); break;
    case 3: signal(SIGABRT, SIG_DFL); abort();
    case 4: execl("/bin/true", "true", (char *)NULL); break;
    case 5: ops_stop(); _exit(0);
    case 6:
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        break;
    default: break;
    }
    _exit(98);
}

enum { CHILDREN = 140, ENDS = 7 };

static void many_children(void *arg) {
    (void)arg;
    prctl(PR_SET_DUMPABLE, 0); /* no core files */
    rig_begin();
    scopes(10, "parent");
    size_t most = 0, n;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            scopes(10, "child");
            leave(i % ENDS);
        }
        waitpid(pid, NULL, 0);
        if (i % 20 == 19) {
            rings_bytes(&n);
            if (n > most) most = n;
        }
    }
    /* while it lives, not only when it ends: one ring is its own */
    for (int i = 0; i < 500 && (rings_bytes(&n), n > 1); i++)
        rig_sleep_us(20000);
    printf("%zu", n);
    scopes(10, "parent");
    exit(0);
}

static void test_children_are_gathered(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_run(many_children, NULL);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.out, "1");
    assert_int_equal(rig_count(".ring") + rig_count(".part"), 0);
    assert_int_equal(rig_load(&x), 1 + CHILDREN);
    assert_int_equal(xs_count(&x, "child"), 10 * CHILDREN);
    assert_int_equal(xs_count(&x, "parent"), 20);
    assert_int_equal(xs_dropped(&x), 0);
    xs_free(&x);
}

/* The parent is gone, and another child looks after the dead. */
static void orphans(void *arg) {
    (void)arg;
    rig_begin();
    scopes(10, "parent");
    if (fork() == 0) { /* lives on */
        scopes(10, "elder");
        for (int i = 0; i < 10; i++) {
            pid_t pid = fork();
            if (pid == 0) {
                scopes(10, "child");
                _exit(0);
            }
            waitpid(pid, NULL, 0);
        }
        size_t n = 99;
        for (int i = 0; i < 500 && (rings_bytes(&n), n > 1); i++)
            rig_sleep_us(20000);
        printf("%zu", n);
        exit(0);
    }
    _exit(0);
}

static void test_an_elder_child_gathers(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct rig_end e = rig_run(orphans, NULL);
    while (wait(NULL) > 0) {
    }
    assert_int_equal(e.status, 0);
    assert_int_equal(rig_count(".ring") + rig_count(".part"), 0);
    assert_int_equal(rig_load(&x), 12);
    assert_int_equal(xs_count(&x, "child"), 100);
    assert_int_equal(xs_count(&x, "elder"), 10);
    assert_int_equal(xs_count(&x, "parent"), 10);
    xs_free(&x);
}

/* --- the limit ------------------------------------------------------------ */

enum { ALIVE = 24, LIMIT = 8 << 20 };

static uint64_t *most_bytes; /* shared */

/* Each of them wants all of it. */
static void greedy_children(void *arg) {
    pid_t pid[ALIVE];
    size_t n;
    int held[2];
    char c;
    (void)arg;
    if (pipe(held) != 0) exit(98);
    rig_options.memory_bytes = LIMIT;
    rig_options.ring_bytes = LIMIT / 4;
    rig_begin();
    scopes(10, "parent");
    for (int i = 0; i < ALIVE; i++) {
        pid[i] = fork();
        if (pid[i] != 0) continue;
        close(held[1]);
        scopes(100000, "child");
        exit(read(held[0], &c, 1) == 0 ? 0 : 97);
    }
    close(held[0]);
    for (int i = 0; i < 100; i++) {
        uint64_t bytes = rings_bytes(&n);
        if (bytes > *most_bytes) *most_bytes = bytes;
        rig_sleep_us(5000);
    }
    close(held[1]);
    for (int i = 0; i < ALIVE; i++) waitpid(pid[i], NULL, 0);
    exit(0);
}

static void test_all_of_them_have_one_limit(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || rig_slow())
        skip_because("under sanitizers or valgrind: too slow");
    most_bytes = mmap(NULL, sizeof *most_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct rig_end e = rig_run(greedy_children, NULL);
    assert_int_equal(e.status, 0);
    /* and a quarter more, and a MiB, for tables; and half a MiB, because the
     * rings are looked at one after another: one grows, one is given back */
    assert_in_range(*most_bytes, 1, LIMIT + LIMIT / 4 + (3 << 19));
    rig_rescue();
    rig_load(&x);
    assert_int_equal(xs_count(&x, "parent"), 10);
    /* what was not recorded was counted, or its process had no memory at all,
     * of which the parent tells */
    assert_true(xs_count(&x, "child") > 0);
    xs_free(&x);
    munmap(most_bytes, sizeof *most_bytes);
}

/* --- children that cannot be recorded -------------------------------------- */

/* A file may have no bytes there, also none in memory. */
static void refused_children(void *arg) {
    const struct rlimit none = {0, 0};
    (void)arg;
    rig_begin();
    scopes(10, "parent");
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i < 3) setrlimit(RLIMIT_FSIZE, &none);
            scopes(1, "child");
            _exit(ops_recording() == (i >= 3) ? 0 : 97);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status != 0) exit(98);
    }
    exit(0);
}

static void test_children_that_cannot_be_recorded_are_counted(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_run(refused_children, NULL);
    assert_int_equal(e.status, 0);
    rig_rescue();
    assert_int_equal(rig_load(&x), 3);
    assert_int_equal(xs_count(&x, "parent"), 10);
    assert_int_equal(xs_count(&x, "child"), 2);
    assert_int_equal(xs_fact_sum(&x, "unrecorded_processes"), 3);
    assert_int_equal(xs_fact_sum(&x, "dropped_traces"), 0);
    xs_free(&x);
}

/* How daemons are made: the child in between makes no call. */
static void daemon_like(void *arg) {
    (void)arg;
    rig_begin();
    scopes(10, "parent");
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            scopes(10, "grandchild");
            if (!ops_recording()) printf("it does not record");
            exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    exit(0);
}

static void test_grandchildren_record(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_run(daemon_like, NULL);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.out, "");
    assert_int_equal(rig_load(&x), 2);
    assert_int_equal(xs_count(&x, "grandchild"), 10);
    assert_int_equal(xs_count(&x, "parent"), 10);
    xs_free(&x);
}

/* The first call of a child starts a session; its time is none of the step's
 * that the child marks with it. Nor is the making of a thread's ring. */
static void stepping_children(void *arg) {
    (void)arg;
    rig_begin();
    ops_step(0);
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i == 1) ops_epoch(1);
            for (int64_t k = 1; k < 4; k++) ops_step(k);
            ops_epoch_end();
            exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    exit(0);
}

static void test_starting_is_no_part_of_a_step(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_run(stepping_children, NULL);
    assert_int_equal(e.status, 0);
    assert_int_equal(rig_load(&x), 3);
    assert_int_equal(xs_count(&x, "step"), 1 + 2 * 3);
    assert_int_equal(xs_count(&x, "epoch"), 1);
    /* times count from the moment when the session had its clock */
    for (size_t i = 0; i < x.n; i++)
        if (strcmp(x.v[i].name, "step") == 0 ||
            strcmp(x.v[i].name, "epoch") == 0)
            assert_true(x.v[i].start > 0);
    xs_free(&x);
}

RIG_MAIN("rec_family", NULL, CASE(test_starting_is_no_part_of_a_step),
         CASE(test_one_scope_takes_little),
         CASE(test_a_quiet_program_wakes_seldom),
         CASE(test_children_are_gathered), CASE(test_an_elder_child_gathers),
         CASE(test_grandchildren_record),
         CASE(test_children_that_cannot_be_recorded_are_counted),
         CASE(test_all_of_them_have_one_limit))
