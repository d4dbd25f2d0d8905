/* SPDX-License-Identifier: Apache-2.0
 * Threads by the thousand, storms of signals, and everything that a program
 * may do wrong with the calls. The program must not notice; the profile has
 * what can be had, and counts the rest. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

/* Runs it in a child, which must end well and say nothing; then reads. */
static struct xs profile_of(void (*run)(void *), void *arg) {
    struct xs x = {0};
    struct rig_end e = rig_run(run, arg);
    if (e.status != 0 || e.out[0] != 0)
        fail_msg("status %x: %s", e.status, e.out);
    assert_int_equal(rig_count(".ring"), 0);
    assert_int_equal(rig_count(".part"), 0);
    assert_int_equal(rig_rings(e.pid), 0);
    rig_load(&x);
    return x;
}

/* --- threads ------------------------------------------------------------ */

enum { AT_ONCE = 64 };
static int short_threads, short_count;

static void *short_thread(void *arg) {
    (void)arg;
    for (;;) {
        int k = __atomic_fetch_add(&short_count, 1, __ATOMIC_RELAXED);
        if (k >= short_threads) return NULL;
        pthread_t t;
        int rc = pthread_create(&t, NULL, (void *(*)(void *))arg,
                                (void *)(uintptr_t)k);
        if (rc != 0) exit(90);
        pthread_join(t, NULL);
    }
}

static void *two_scopes(void *arg) {
    OPS_SCOPE_INT("outer", "thread", (int64_t)(uintptr_t)arg);
    OPS_SCOPE_INT("inner", "thread", (int64_t)(uintptr_t)arg);
    ops_instant("mark");
    return NULL;
}

static void run_threads(void *arg) {
    pthread_t t[AT_ONCE];
    rig_begin();
    for (int i = 0; i < AT_ONCE; i++)
        pthread_create(&t[i], NULL, short_thread, arg);
    for (int i = 0; i < AT_ONCE; i++) pthread_join(t[i], NULL);
    ops_stop();
    exit(0);
}

static int by_line(const void *a, const void *b) {
    const struct xs_event *x = a, *y = b;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void test_short_threads(void **state) {
    (void)state;
    short_threads = rig_slow() ? 500 : RIG_ASAN ? 2000 : 20000;
    struct xs x = profile_of(run_threads, (void *)two_scopes);
    /* On a busy machine there may be threads for which no ring is free: their
     * three calls are counted. (A scope that was not begun takes no
     * argument.) */
    size_t seen = xs_count(&x, "outer");
    assert_int_equal(xs_count(&x, "inner"), seen);
    assert_int_equal(xs_count(&x, "mark"), seen);
    int64_t lost = xs_fact(&x, "dropped_traces", 0);
    assert_true(seen > 0);
    assert_int_equal(3 * seen + (uint64_t)lost, 3 * short_threads);
    assert_int_equal(xs_dropped(&x), 0);
    /* a line is one thread, all of it and nobody else */
    qsort(x.v, x.n, sizeof *x.v, by_line);
    for (size_t i = 0; i < x.n; i += 3) {
        int64_t who = -1;
        assert_true(i + 3 <= x.n);
        for (size_t k = i; k < i + 3; k++) {
            int64_t t = xs_int(&x, &x.v[k], "thread", -1);
            assert_int_equal(x.v[k].line, x.v[i].line);
            if (t >= 0 && who >= 0) assert_int_equal(t, who);
            if (t >= 0) who = t;
        }
        if (i > 0) assert_int_not_equal(x.v[i].line, x.v[i - 1].line);
    }
    xs_free(&x);
}

/* A thread that ends with scopes and a step open: they end with it. */
static void *leave_open(void *arg) {
    ops_step((int64_t)(uintptr_t)arg);
    ops_begin("left open");
    ops_begin("left too");
    pthread_exit(NULL);
}

static void test_ends_open(void **state) {
    (void)state;
    short_threads = 100;
    struct xs x = profile_of(run_threads, (void *)leave_open);
    assert_int_equal(xs_count(&x, "left open"), short_threads);
    assert_int_equal(xs_count(&x, "left too"), short_threads);
    assert_int_equal(xs_count(&x, "step"), short_threads);
    xs_free(&x);
}

static pthread_barrier_t all_here;
enum { CROWD = 300, CROWD_SCOPES = 50 };

static void *crowd_thread(void *arg) {
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < CROWD_SCOPES; i++) {
        OPS_SCOPE("crowd");
    }
    pthread_barrier_wait(&all_here);
    return arg;
}

static void run_crowd(void *arg) {
    pthread_t t[CROWD];
    (void)arg;
    rig_begin();
    pthread_barrier_init(&all_here, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        pthread_create(&t[i], NULL, crowd_thread, NULL);
    for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
    exit(0);
}

static void crowd_is_accounted_for(struct xs *x) {
    uint64_t there = xs_count(x, "crowd");
    uint64_t lost = (uint64_t)xs_fact(x, "dropped_traces", 0);
    assert_true(there > 0 && lost > 0);
    assert_int_equal(there + lost, CROWD * CROWD_SCOPES);
    xs_free(x);
}

/* More threads at once than there is memory for: all of it is accounted for.
 * A scope without a ring is one call: its end is not made. */
static void test_crowd(void **state) {
    (void)state;
    rig_options.memory_bytes = 1 << 20;
    struct xs x = profile_of(run_crowd, NULL);
    crowd_is_accounted_for(&x);
}

/* The same, and then a kill at once: what was counted is as safe as what is in
 * the rings. */
static void run_crowd_and_die(void *arg) {
    pthread_t t[CROWD];
    (void)arg;
    rig_begin();
    ops_flush();
    pthread_barrier_init(&all_here, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        pthread_create(&t[i], NULL, crowd_thread, NULL);
    for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
    kill(getpid(), SIGKILL);
}

static void test_crowd_killed(void **state) {
    struct xs before = {0}, after = {0};
    struct recovered rest;
    char why[256];
    glob_t g;
    (void)state;
    rig_options.memory_bytes = 1 << 20;
    struct rig_end e = rig_run(run_crowd_and_die, NULL);
    assert_int_equal(e.status, SIGKILL);
    /* read as it is, and closed */
    assert_int_equal(rig_files(".ring", &g), 1);
    assert_int_equal(recover_read(g.gl_pathv[0], &rest, why, sizeof why), 0);
    globfree(&g);
    xs_read(&before, rest.p, rest.n);
    crowd_is_accounted_for(&before);
    recover_free(&rest);
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_load(&after), 1);
    crowd_is_accounted_for(&after);
}

/* Destructors of a thread's own data record, too. */
static pthread_key_t first_key, second_key;

static void in_destructor(void *arg) {
    OPS_SCOPE("in a destructor");
    if (arg == &first_key) pthread_setspecific(second_key, &second_key);
}

static void *thread_with_data(void *arg) {
    pthread_setspecific(first_key, &first_key);
    OPS_SCOPE("thread");
    return arg;
}

static void *thread_that_begins_late(void *arg) {
    pthread_setspecific(first_key, &first_key);
    return arg;
}

/* Leaves without any destructor: nobody tells the recorder. */
static void *thread_without_a_word(void *arg) {
    { OPS_SCOPE("without a word"); }
    syscall(SYS_exit, 0);
    return arg;
}

static void run_destructors(void *arg) {
    void *(*const threads[])(void *) = {thread_with_data,
                                        thread_that_begins_late};
    pthread_t t;
    (void)arg;
    rig_begin();
    { OPS_SCOPE("main"); }
    pthread_key_create(&first_key, in_destructor);
    pthread_key_create(&second_key, in_destructor);
    for (int i = 0; i < 40; i++) {
        pthread_create(&t, NULL, threads[i % 2], NULL);
        pthread_join(t, NULL);
    }
    if (!RIG_TSAN && !RIG_ASAN) { /* their threads may not leave so */
        pthread_create(&t, NULL, thread_without_a_word, NULL);
        while (pthread_tryjoin_np(t, NULL) == EBUSY) rig_sleep_us(1000);
        rig_sleep_us(1200000); /* the flusher looks once in a second */
    }
    exit(0);
}

static void test_destructors(void **state) {
    (void)state;
    struct xs x = profile_of(run_destructors, NULL);
    assert_int_equal(xs_count(&x, "thread"), 20);
    assert_int_equal(xs_count(&x, "in a destructor") +
                         (uint64_t)xs_fact(&x, "dropped_traces", 0),
                     80);
    assert_true(xs_count(&x, "in a destructor") >= 60);
    if (!RIG_TSAN && !RIG_ASAN)
        assert_int_equal(xs_count(&x, "without a word"), 1);
    xs_free(&x);
}

/* Every call, on the smallest stack that a thread may have. */
static void *on_a_small_stack(void *arg) {
    rig_options.steps = "1..5"; /* there is more to be done then */
    if (ops_start(rig_dir, &rig_options) != 0) exit(90); /* as if at load */
    if (ops_start(rig_dir, &rig_options) != 0) exit(91);
    ops_step(1);
    {
        OPS_SCOPE_TEXT("small", "text", "of an argument");
        ops_counter("counter", 1);
        ops_scalar("scalar", 1, 1);
    }
    ops_thread_name("a name");
    ops_set_rank(0, 2);
    ops_flush();
    if (ops_dump() != 0) exit(92);
    if (fork() == 0) {
        ops_step(2);
        { OPS_SCOPE("small"); }
        ops_stop();
        _exit(0);
    }
    wait(NULL);
    ops_stop();
    return arg;
}

static void run_small_stack(void *arg) {
    pthread_attr_t a;
    pthread_t t;
    (void)arg;
    setenv("OPSCOPE", "1", 1);
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    if (pthread_create(&t, &a, on_a_small_stack, NULL) != 0) exit(93);
    pthread_join(t, NULL);
    exit(0);
}

static void test_small_stack(void **state) {
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: they need more memory themselves");
    struct xs x = profile_of(run_small_stack, NULL);
    assert_int_equal(xs_count(&x, "small"), 2);
    xs_free(&x);
}

/* --- signals ------------------------------------------------------------ */

static uint64_t *handled; /* shared with the child */
enum { HANDLER_CALLS = 2 };

static void handler(int sig) {
    (void)sig;
    int e = errno;
    __atomic_fetch_add(handled, 1, __ATOMIC_RELAXED);
    OPS_SCOPE("in handler");
    ops_counter("handled", 1);
    ops_thread_name("interrupted");
    errno = e;
}

static void *storm_thread(void *arg) {
    char name[32];
    uint64_t until = rig_now_ns(CLOCK_MONOTONIC) + 300000000;
    for (int i = 0; rig_now_ns(CLOCK_MONOTONIC) < until; i++) {
        snprintf(name, sizeof name, "storm %d", i % 3000);
        OPS_SCOPE("scope");
        ops_begin(name);
        ops_arg_text("name", name);
        ops_end();
        if (i % 500 == 0) ops_flush();
    }
    return arg;
}

static void run_storm(void *arg) {
    struct itimerval every = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    (void)arg;
    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &every, NULL); /* the start is in it as well */
    rig_begin();
    /* each new thread is interrupted while it gets its ring */
    for (int i = 0; i < 4; i++) {
        pthread_t t[2];
        for (int k = 0; k < 2; k++)
            pthread_create(&t[k], NULL, storm_thread, NULL);
        for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
        ops_dump();
    }
    ops_stop();
    setitimer(ITIMER_REAL, &none, NULL);
    if (*handled < 10) exit(89);
    exit(0);
}

static void test_storm(void **state) {
    (void)state;
    rig_options.ring_bytes = 8 << 20;
    struct xs x = profile_of(run_storm, NULL);
    size_t scopes = 0;
    for (size_t i = 0; i < x.n; i++) {
        if (xs_own(&x.v[i]))
            assert_false(
                xs_is(&x, &x.v[i], "why", "ops_end() without a begin"));
        scopes += strcmp(x.v[i].name, "scope") == 0;
    }
    assert_true(scopes > 0);
    /* Only what handlers did in a thread that had just given its ring back: it
     * must not take another, which nobody would give back. */
    uint64_t lost = (uint64_t)xs_fact(&x, "dropped_traces", 0);
    assert_true(lost <= *handled * HANDLER_CALLS);
    xs_free(&x);
}

/* A destructor of the program's own, behind ours and up to the last round. */
static pthread_key_t late_key;

static void late(void *arg) {
    OPS_SCOPE("late");
    pthread_setspecific(late_key, arg);
}

static void *late_thread(void *arg) {
    OPS_SCOPE("early");
    pthread_setspecific(late_key, arg);
    return NULL;
}

static void run_late(void *arg) {
    (void)arg;
    rig_begin();
    { OPS_SCOPE("early"); } /* our key first */
    pthread_key_create(&late_key, late);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        pthread_create(&t, NULL, late_thread, &late_key);
        pthread_join(t, NULL);
    }
    ops_stop(); /* looks at the threads that have rings: none has gone */
    exit(0);
}

static void test_late(void **state) {
    (void)state;
    struct xs x = profile_of(run_late, NULL);
    assert_int_equal(xs_count(&x, "early"), 51);
    /* ours ends in the second round of destructors */
    assert_int_equal(xs_count(&x, "late"), 50);
    assert_int_equal(xs_fact(&x, "dropped_traces", 0),
                     50 * (PTHREAD_DESTRUCTOR_ITERATIONS - 1));
    xs_free(&x);
}

/* A child made without the handlers of pthread_atfork: it is off, and may start
 * a recording of its own. */
static void run_bare_fork(void *arg) {
    int status;
    (void)arg;
    rig_begin();
    { OPS_SCOPE("parent's"); }
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        { OPS_SCOPE("nobody's"); }
        ops_set_rank(0, 1);
        rig_begin();
        { OPS_SCOPE("child's"); }
        ops_stop();
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) exit(97);
    { OPS_SCOPE("parent's"); }
    ops_stop();
    exit(0);
}

static void test_bare_fork(void **state) {
    (void)state;
    if (RIG_ASAN || RIG_TSAN || sysconf(_SC_PAGESIZE) != 4096)
        skip_because("under sanitizers, or pages are not 4 KiB");
    struct xs x = profile_of(run_bare_fork, NULL);
    assert_int_equal(xs_count(&x, "parent's"), 2);
    assert_int_equal(xs_count(&x, "child's"), 1);
    assert_int_equal(xs_count(&x, "nobody's"), 0);
    xs_free(&x);
}

static void *cancelled(void *arg) {
    for (;;) {
        OPS_SCOPE("c");
        ops_flush();
        pthread_testcancel();
    }
    return arg;
}

/* A thread that is cancelled in a call leaves no lock behind. */
static void run_cancel(void *arg) {
    (void)arg;
    rig_begin();
    for (int i = 0; i < 30; i++) {
        pthread_t t;
        pthread_create(&t, NULL, cancelled, NULL);
        rig_sleep_us(1000 + i * 37);
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    ops_flush();
    exit(0);
}

static void test_cancel(void **state) {
    (void)state;
    struct xs x = profile_of(run_cancel, NULL);
    assert_true(xs_count(&x, "c") > 0);
    xs_free(&x);
}

/* --- misuse ------------------------------------------------------------- */

static size_t open_fds(void) {
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

static size_t mapped_kb(void) {
    char line[256] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fgets(line, sizeof line, f) == NULL) return 0;
    fclose(f);
    return strtoul(line, NULL, 10) * 4;
}

static void *stop_it(void *arg) {
    ops_stop();
    return arg;
}

static void run_start_stop(void *arg) {
    int times = *(int *)arg;
    pthread_t t;
    size_t fds = 0, kb = 0;
    ops_stop();
    ops_flush();
    if (ops_dump() != -1) exit(88);
    rig_options.run = "one";
    for (int i = 0; i < times; i++) {
        rig_begin();
        rig_begin(); /* twice: the first stays */
        ops_step(i);
        OPS_SCOPE("across"); /* ends after the stop: nothing happens */
        { OPS_SCOPE("scope"); }
        if (i % 10 == 0) {
            pthread_create(&t, NULL, stop_it, NULL);
            pthread_join(t, NULL);
        } else {
            ops_stop();
        }
        ops_stop();
        if (i == times / 2) fds = open_fds(), kb = mapped_kb();
    }
    if (open_fds() != fds) exit(87);
    if (!RIG_ASAN && mapped_kb() > kb + 1024) exit(86);
    exit(0);
}

static void test_start_stop(void **state) {
    int times = rig_full() && !RIG_ASAN ? 1000 : 40;
    (void)state;
    struct xs x = profile_of(run_start_stop, &times);
    assert_int_equal(rig_count(".xplane.pb"), times);
    assert_int_equal(xs_count(&x, "scope"), times);
    xs_free(&x);
}

static void run_garbage(void *arg) {
    struct ops_options o;
    (void)arg;
    memset(&o, 0, sizeof o);
    o.ring_bytes = SIZE_MAX;
    o.memory_bytes = SIZE_MAX;
    o.rank = -7;
    o.world = -1;
    o.demand_ms = -5;
    o.host = "../../x/y\n\xff";
    ops_start(rig_dir, &o);
    { OPS_SCOPE("scope"); }
    ops_stop();
    o.steps = "these are no steps";
    if (ops_start(rig_dir, &o) != -1 || ops_problem(NULL, 0) == 0) exit(85);
    o.steps = NULL;
    o.run = "../elsewhere";
    if (ops_start(rig_dir, &o) != -1 || ops_problem(NULL, 0) == 0) exit(84);
    exit(0);
}

static void test_garbage(void **state) {
    (void)state;
    struct xs x = profile_of(run_garbage, NULL);
    assert_int_equal(xs_count(&x, "scope"), 1);
    xs_free(&x);
}

/* What cannot be is refused, and said. */
static void run_impossible(void *arg) {
    static const int signals[] = {SIGKILL, SIGSTOP, 32, 65, 999, -1};
    static const int ranks[][2] = {{5, 2}, {2, 2}, {-1, 2}};
    char options[64];
    (void)arg;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        snprintf(options, sizeof options, "flight=1&signal=%d", signals[i]);
        if (ops_fn_start(rig_dir, options) != -1) exit(59);
        if (strstr(rig_problem(), "signal") == NULL) exit(58);
    }
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct ops_options o = {.rank = ranks[i][0], .world = ranks[i][1]};
        if (ops_start(rig_dir, &o) != -1) exit(57);
        if (strstr(rig_problem(), "rank") == NULL) exit(56);
    }
    exit(0);
}

static void test_impossible(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_impossible, NULL);
    if (e.status != 0) fail_msg("status %x: %s", e.status, e.out);
    assert_int_equal(rig_count(""), 0);
}

/* --- what went wrong ---------------------------------------------------- */

static const char *const wrong_steps[] = {"no steps", "every never",
                                          "these are no steps at all"};
static int telling;

/* What is read is one of the texts that were told, whole. */
static void *read_problems(void *arg) {
    char text[OPS_PROBLEM_MAX];
    (void)arg;
    while (__atomic_load_n(&telling, __ATOMIC_RELAXED)) {
        size_t n = ops_problem(text, sizeof text);
        if (strlen(text) != n) exit(79);
        bool known = n == 0;
        for (size_t i = 0; i < 3; i++)
            known |= strstr(text, wrong_steps[i]) != NULL;
        if (!known) exit(78);
    }
    return NULL;
}

static void run_problems(void *arg) {
    enum { READERS = 3, TIMES = 300 };
    char text[OPS_PROBLEM_MAX], small[5] = "xxxx";
    pthread_t t[READERS];
    (void)arg;
    /* none yet */
    if (ops_problem(small, sizeof small) != 0 || small[0] != 0) exit(77);
    if (ops_problem(NULL, 0) != 0 || ops_problem(NULL, 9) != 0) exit(76);
    telling = 1;
    for (int i = 0; i < READERS; i++)
        pthread_create(&t[i], NULL, read_problems, NULL);
    for (int i = 0; i < TIMES; i++) {
        struct ops_options o = {.steps = wrong_steps[i % 3]};
        if (ops_start(rig_dir, &o) != -1) exit(75);
    }
    __atomic_store_n(&telling, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < READERS; i++) pthread_join(t[i], NULL);
    /* the length of all of it, however little there is room for */
    size_t n = ops_problem(text, sizeof text);
    if (n == 0 || strlen(text) != n) exit(74);
    if (ops_problem(small, sizeof small) != n) exit(73);
    if (memcmp(small, text, 4) != 0 || small[4] != 0) exit(72);
    if (ops_problem(small, 1) != n || small[0] != 0) exit(71);
    small[0] = 'x';
    if (ops_problem(small, 0) != n || small[0] != 'x') exit(70);
    rig_begin();
    if (ops_problem(NULL, 0) != 0) exit(69);
    ops_async_end(NULL);
    exit(0);
}

static void test_problems(void **state) {
    (void)state;
    struct xs x = profile_of(run_problems, NULL);
    xs_free(&x);
}

static int never_starts(void *self) {
    (void)self;
    return 1;
}

static void does_nothing(void *self) { (void)self; }

static uint64_t gives_nothing(void *self,
                              void (*give)(void *to,
                                           const struct ops_device_record *r,
                                           size_t size),
                              void *to) {
    (void)self;
    (void)give;
    (void)to;
    return 0;
}

/* Devices without a name, tracers that are none. */
static void run_no_device(void *arg) {
    struct ops_device_tracer nameless = {.start = never_starts,
                                         .stop = does_nothing,
                                         .collect = gives_nothing};
    struct ops_device_tracer empty = {.device = "npu 0"};
    (void)arg;
    if (ops_device_tracer_add(NULL) == 0 || ops_device_tracer_add(&empty) == 0)
        exit(83);
    if (ops_device_tracer_add(&nameless) != 0) exit(82);
    rig_begin();
    uint32_t track = ops_device_track(NULL, NULL);
    if (track == 0 || track != ops_device_track("(null)", "(null)")) exit(81);
    ops_device_span(track, "span", ops_now(), ops_now() + 1, 0);
    ops_flush();
    ops_device_tracer_remove(&nameless);
    ops_device_tracer_remove(NULL);
    exit(0);
}

static void test_no_device(void **state) {
    (void)state;
    struct xs x = profile_of(run_no_device, NULL);
    assert_int_equal(xs_count(&x, "span"), 1);
    xs_free(&x);
}

/* --- programs and libraries of different versions ------------------------- */

/* A copy of n bytes that ends where memory ends. */
static void *at_the_edge(const void *from, size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE) != 0) exit(68);
    return memcpy(p + page - n, from, n);
}

static int does_start(void *self) {
    (void)self;
    return 0;
}

/* Once: a record without its last member, one with more members than ours, and
 * none at all. */
static uint64_t gives_all_sizes(void *self,
                                void (*give)(void *to,
                                             const struct ops_device_record *r,
                                             size_t size),
                                void *to) {
    struct {
        struct ops_device_record r;
        uint64_t more[4];
    } longer = {{.queue = "q", .name = "longer", .t0 = ops_now()},
                {1, 2, 3, 4}};
    struct ops_device_record r = {.queue = "q",
                                  .name = "shorter",
                                  .t0 = ops_now()};
    size_t n = offsetof(struct ops_device_record, value);
    if ((*(int *)self)++ > 0) return 0;
    give(to, at_the_edge(&r, n), n);
    give(to, &longer.r, sizeof longer);
    give(to, NULL, 0);
    return 0;
}

static void run_sizes(void *arg) {
    static int asked;
    struct {
        struct ops_options o;
        uint64_t more[4];
    } newer = {{.run = "newer"}, {1, 2, 3, 4}};
    struct ops_device_tracer t = {.device = "npu 0",
                                  .self = &asked,
                                  .start = does_start,
                                  .stop = does_nothing,
                                  .collect = gives_all_sizes};
    size_t n = offsetof(struct ops_device_tracer, clock);
    const struct ops_device_tracer *old = at_the_edge(&t, n);
    (void)arg;
    if (ops_device_tracer_add_(old, offsetof(struct ops_device_tracer, stop)) !=
        -1)
        exit(67);
    if (ops_device_tracer_add_(old, n) != 0) exit(66);
    if (ops_start_(OPS_RECORD_ABI, rig_dir, &newer.o, sizeof newer) != 0)
        exit(65);
    ops_flush();
    ops_stop();
    ops_device_tracer_remove(old);
    /* sizes that no struct ever had: half a pointer is not followed */
    struct ops_options all = rig_options;
    all.steps = "1..2";
    all.host = all.run = "r";
    for (size_t size = 0; size <= sizeof all; size++) {
        if (ops_start_(OPS_RECORD_ABI, rig_dir, &all, size) != 0) exit(63);
        ops_stop();
        if (ops_device_tracer_add_(&t, size) == 0) ops_device_tracer_remove(&t);
    }
    /* one that knows of `steps` alone */
    struct ops_options o = {.steps = "3..4"};
    n = offsetof(struct ops_options, flight);
    if (ops_start_(OPS_RECORD_ABI, rig_dir, at_the_edge(&o, n), n) != 0)
        exit(64);
    for (int i = 0; i < 10; i++) {
        ops_step(i);
        ops_instant("in a step");
    }
    exit(0);
}

static void test_sizes(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_sizes, NULL);
    if (e.status != 0 || e.out[0] != 0)
        fail_msg("status %x: %s", e.status, e.out);
    struct xs x = {0};
    rig_load(&x);
    assert_int_equal(xs_count(&x, "shorter"), 1);
    assert_int_equal(xs_count(&x, "longer"), 1);
    assert_int_equal(xs_count(&x, "in a step"), 2);
    xs_free(&x);
}

static void run_abi(void *arg) {
    (void)arg;
    rig_begin();
    { OPS_SCOPE("before"); }
    if (ops_start_(OPS_RECORD_ABI + 1, rig_dir, NULL, 0) != -1) exit(63);
    if (ops_recording() || strstr(rig_problem(), "ABI 2") == NULL) exit(62);
    { OPS_SCOPE("after"); }
    /* a header from before there was a number handed over the folder first */
    if (ops_start_((uint32_t)(uintptr_t)rig_dir, NULL, NULL, 0) != -1) exit(61);
    if (strcmp(ops_record_version(), OPS_VERSION) != 0) exit(60);
    exit(0);
}

/* What was recorded before it was noticed is kept. */
static void test_abi(void **state) {
    (void)state;
    struct xs x = profile_of(run_abi, NULL);
    assert_int_equal(xs_count(&x, "before"), 1);
    assert_int_equal(xs_count(&x, "after"), 0);
    xs_free(&x);
}

static void run_names(void *arg) {
    static char longest[10001];
    char name[32];
    const char *null = NULL;
    int n = *(int *)arg;
    memset(longest, 'x', sizeof longest - 1);
    rig_begin();
    ops_begin(null);
    ops_arg_text(null, null);
    ops_arg_text(longest, longest);
    ops_end();
    ops_instant(longest);
    ops_counter(null, 1);
    ops_alloc(&name, 1, null);
    ops_thread_name(null);
    ops_thread_name(longest);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "name %d", i);
        ops_begin(name);
        ops_arg_int("i", i);
        ops_end();
    }
    exit(0);
}

static void test_names(void **state) {
    enum { MOST = 262144 };
    int n = rig_slow() ? 3000 : 300000;
    (void)state;
    struct xs x = profile_of(run_names, &n);
    size_t named = 0, beyond = 0, wrong = 0;
    int64_t last_named = -1, first_beyond = n;
    char name[32];
    for (size_t i = 0; i < x.n; i++) {
        int64_t k = xs_int(&x, &x.v[i], "i", -1);
        if (k < 0) continue;
        snprintf(name, sizeof name, "name %lld", (long long)k);
        if (strcmp(x.v[i].name, name) == 0) {
            named++;
            if (k > last_named) last_named = k;
        } else if (strcmp(x.v[i].name, "(names beyond the limit)") == 0) {
            beyond++;
            if (k < first_beyond) first_beyond = k;
        } else {
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    /* on a busy machine the flusher may not have kept up: what it dropped is
     * counted, and the rest is named up to the limit and no further */
    assert_int_equal(named + beyond + xs_dropped(&x), n);
    assert_true(last_named < first_beyond);
    assert_true(last_named < MOST);
    assert_true(first_beyond == n || first_beyond > MOST - 100);
    assert_int_equal(xs_count(&x, "(null)"), 2);
    xs_free(&x);
}

static void deep(int n) {
    OPS_SCOPE("deep");
    ops_arg_int("n", n);
    if (n > 1) deep(n - 1);
}

static sigjmp_buf out;

static void jump_out(int n) {
    OPS_SCOPE("jumped");
    if (n == 0) siglongjmp(out, 1);
    jump_out(n - 1);
}

static void jump(void) {
    if (sigsetjmp(out, 0) == 0) jump_out(5);
}

static void run_unbalanced(void *arg) {
    (void)arg;
    rig_begin();
    deep(1000);
    { OPS_SCOPE("after deep"); }
    for (int i = 0; i < 10; i++) ops_end();
    { OPS_SCOPE("after ends"); }
    {
        OPS_SCOPE("around");
        jump();
    }
    { OPS_SCOPE("after jump"); }
    {
        OPS_SCOPE("robbed");
        ops_end(); /* ends it too early */
    }
    { OPS_SCOPE("after robbed"); }
    for (int i = 0; i < 300; i++) {
        ops_begin("never ended");
        ops_arg_text("text", "some text of some length, more and more of it");
    }
    exit(0);
}

static uint64_t lost_for(const struct xs *x, const char *why) {
    uint64_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (xs_own(&x->v[i]) && xs_is(x, &x->v[i], "why", why))
            n += (uint64_t)xs_int(x, &x->v[i], "count", 0);
    return n;
}

static void test_unbalanced(void **state) {
    (void)state;
    struct xs x = profile_of(run_unbalanced, NULL);
    assert_int_equal(xs_count(&x, "deep"), 256);
    assert_int_equal(lost_for(&x, "scopes nested too deep"), 744 + 44);
    assert_int_equal(xs_count(&x, "after deep"), 1);
    assert_int_equal(xs_count(&x, "after ends"), 1);
    assert_int_equal(xs_count(&x, "around"), 1);
    assert_int_equal(xs_count(&x, "jumped"), 6);
    assert_int_equal(xs_count(&x, "after jump"), 1);
    assert_int_equal(xs_count(&x, "robbed"), 1);
    assert_int_equal(xs_count(&x, "after robbed"), 1);
    assert_int_equal(lost_for(&x, "ops_end() without a begin"), 11);
    assert_true(lost_for(&x, "arguments that did not fit") > 0);
    size_t open = 0;
    for (size_t i = 0; i < x.n; i++)
        open += strcmp(x.v[i].name, "never ended") == 0;
    assert_int_equal(open, 256);
    xs_free(&x);
}

/* --- descriptors -------------------------------------------------------- */

static void run_no_standard(void *arg) {
    (void)arg;
    for (int i = 0; i < 3; i++) close(i);
    rig_begin();
    { OPS_SCOPE("scope"); }
    ops_scalar("loss", 1, 1);
    rig_sleep_us(20000);
    for (int i = 0; i < 3; i++)
        if (fcntl(i, F_GETFD) >= 0) _exit(83); /* one of ours is there */
    printf("into nothing\n");
    fflush(stdout);
    exit(0);
}

static void test_no_standard(void **state) {
    (void)state;
    rig_options.no_machine = false;
    struct xs x = profile_of(run_no_standard, NULL);
    assert_int_equal(xs_count(&x, "scope"), 1);
    xs_free(&x);
}

/* A daemon closes all that it does not know, and opens files of its own. */
static void run_close_all(void *arg) {
    char path[PATH_MAX + 16], back[16] = "";
    int fds[1100], n = 0;
    (void)arg;
    rig_begin();
    { OPS_SCOPE("scope"); }
    ops_flush();
    for (int i = 3; i < 1100; i++) close(i);
    snprintf(path, sizeof path, "%s/own", rig_dir);
    while (n < 1100) {
        int fd = open(path, O_RDWR | O_CREAT, 0666);
        if (fd < 0) break;
        fds[n++] = fd;
    }
    if (pwrite(fds[0], "own data", 8, 0) != 8) _exit(82);
    for (int i = 0; i < 20; i++) {
        { OPS_SCOPE("scope"); }
        ops_flush();
        rig_sleep_us(2000);
    }
    for (int i = 0; i < n; i++) close(fds[i]);
    rig_sleep_us(100000);
    { OPS_SCOPE("scope"); }
    ops_stop();
    int fd = open(path, O_RDONLY);
    if (read(fd, back, sizeof back) != 8 || memcmp(back, "own data", 8) != 0)
        _exit(81);
    _exit(0);
}

static void test_close_all(void **state) {
    (void)state;
    if (RIG_ASAN || rig_slow())
        skip_because("under sanitizers or valgrind: too slow");
    struct xs x = profile_of(run_close_all, NULL);
    assert_int_equal(xs_count(&x, "scope"), 22);
    xs_free(&x);
}

static void run_errno(void *arg) {
    pthread_t t;
    (void)arg;
    errno = 77;
    rig_begin();
    OPS_SCOPE("scope");
    ops_instant("another name");
    ops_flush();
    ops_dump();
    ops_thread_name("name");
    ops_stop();
    if (errno != 77) exit(80);
    pthread_create(&t, NULL, stop_it, NULL);
    pthread_join(t, NULL);
    exit(0);
}

static void test_errno(void **state) {
    (void)state;
    struct xs x = profile_of(run_errno, NULL);
    xs_free(&x);
}

/* --- the harness -------------------------------------------------------- */

static void none_handled(void) { handled = rig_shared(sizeof *handled); }

RIG_MAIN("rec_misuse", none_handled, CASE(test_short_threads),
         CASE(test_ends_open), CASE(test_crowd), CASE(test_crowd_killed),
         CASE(test_destructors), CASE(test_small_stack), CASE(test_storm),
         CASE(test_cancel), CASE(test_start_stop), CASE(test_garbage),
         CASE(test_impossible), CASE(test_sizes), CASE(test_abi),
         CASE(test_problems), CASE(test_names), CASE(test_no_device),
         CASE(test_unbalanced), CASE(test_no_standard), CASE(test_close_all),
         CASE(test_errno), CASE(test_late), CASE(test_bare_fork))
