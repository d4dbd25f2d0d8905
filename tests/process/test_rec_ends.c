/* SPDX-License-Identifier: Apache-2.0
 * Every way in which a program may end or multiply. Each case runs twice, with
 * the recorder and without: status, signals and output must be the same. Then
 * the profile is read: everything that was recorded before the end is in it. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static void record(int n, const char *name) {
    for (int i = 1; i <= n; i++) {
        ops_begin(name);
        ops_arg_int("seq", i);
        ops_end();
    }
}

/* The case without the recorder and with it: the same from outside. */
static void expect(const struct xs *x, const char *name, size_t n) {
    if (xs_count(x, name) != n)
        fail_msg("%zu of %zu %s", xs_count(x, name), n, name);
}

/* After a death: one rescue, n events of this name, no loss. */
static void expect_rescued(const char *name, size_t n) {
    struct xs x = {0};
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_load(&x), 1);
    expect(&x, name, n);
    assert_int_equal(xs_dropped(&x), 0);
    xs_free(&x);
}

static void expect_closed(size_t files, const char *name, size_t n) {
    struct xs x = {0};
    assert_int_equal(rig_count(".ring"), 0);
    assert_int_equal(rig_count(".part"), 0);
    assert_int_equal(rig_load(&x), files);
    expect(&x, name, n);
    xs_free(&x);
}

/* --- ends --------------------------------------------------------------- */

enum { N = 1000 };

static void by_return(void *arg) {
    rig_begin();
    record(N, "work");
    printf("done\n");
    exit(3);
    (void)arg;
}

static void test_exit(void **state) {
    (void)state;
    struct rig_end e = rig_both(by_return);
    assert_true(WIFEXITED(e.status) && WEXITSTATUS(e.status) == 3);
    assert_string_equal(e.out, "done\n");
    expect_closed(1, "work", N);
    assert_int_equal(rig_rings(e.pid), 0);
}

/* Ends in the middle of a step, with a thread beside it that never stops. */
static void *endless(void *arg);

static void in_the_middle(void *arg) {
    pthread_t t;
    (void)arg;
    rig_begin();
    pthread_create(&t, NULL, endless, NULL);
    ops_epoch(1);
    for (int i = 0; i < 3; i++) {
        ops_step(i);
        OPS_SCOPE("outer");
        rig_sleep_us(1000);
        ops_begin("inner");
        if (i == 2) exit(8);
        ops_end();
    }
}

static void test_exit_in_the_middle(void **state) {
    static const char *const order[] = {"epoch", "step", "outer", "inner"};
    struct xs x = {0};
    (void)state;
    struct rig_end e = rig_both(in_the_middle);
    assert_int_equal(WEXITSTATUS(e.status), 8);
    assert_int_equal(rig_load(&x), 1);
    uint64_t start = 0, end = 0;
    for (size_t k = 0; k < 4; k++) {
        size_t open = 0;
        for (size_t i = 0; i < x.n; i++) {
            const struct xs_event *v = &x.v[i];
            if (strcmp(v->name, order[k]) != 0 ||
                xs_int(&x, v, "unfinished", 0) == 0)
                continue;
            open++;
            if (end == 0) end = v->end;
            assert_int_equal(v->end, end);
            assert_true(v->start >= start);
            start = v->start;
        }
        if (open != 1) fail_msg("%zu %s are open", open, order[k]);
    }
    for (size_t i = 0; i < x.n; i++) assert_true(x.v[i].end <= end);
    expect(&x, "step", 2);
    xs_free(&x);
}

/* A step ends as any other where nothing is open in it, also if something is
 * open around it. */
static void between_scopes(void *arg) {
    (void)arg;
    rig_begin();
    OPS_SCOPE("around");
    ops_epoch(1);
    ops_step(1);
    record(N, "work");
    ops_stop();
    exit(0);
}

static void test_stop_between_scopes(void **state) {
    struct xs x = {0};
    (void)state;
    rig_run(between_scopes, NULL);
    assert_int_equal(rig_load(&x), 1);
    expect(&x, "step", 1);
    expect(&x, "epoch", 1);
    expect(&x, "around", 0);
    xs_free(&x);
}

static int the_signal;

static void by_signal(void *arg) {
    struct rlimit none = {0, 0};
    (void)arg;
    setrlimit(RLIMIT_CORE, &none);
    signal(the_signal, SIG_DFL); /* a sanitizer has one of its own */
    rig_begin();
    record(N, "work");
    OPS_SCOPE("the last");
    if (the_signal == SIGABRT) abort();
    raise(the_signal);
}

static void test_signals(void **state) {
    static const int signals[] = {SIGTERM, SIGSEGV, SIGABRT, SIGKILL, SIGBUS};
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct xs x = {0};
        rig_remove_dir();
        rig_make_dir();
        the_signal = signals[i];
        struct rig_end e = rig_both(by_signal);
        assert_true(WIFSIGNALED(e.status));
        assert_int_equal(WTERMSIG(e.status), the_signal);
        assert_int_equal(rig_rescue(), 1);
        rig_load(&x);
        expect(&x, "work", N);
        expect(&x, "the last", 0); /* it is there, but cut */
        size_t cut = 0;
        for (size_t k = 0; k < x.n; k++)
            cut += strcmp(x.v[k].name, "the last") == 0;
        assert_int_equal(cut, 1);
        xs_free(&x);
        assert_int_equal(rig_rings(e.pid), 0);
    }
}

static void by_exit_now(void *arg) {
    (void)arg;
    rig_begin();
    record(N, "work");
    _exit(4);
}

static void by_quick_exit(void *arg) {
    (void)arg;
    rig_begin();
    record(N, "work");
    quick_exit(5);
}

static void test_exit_now(void **state) {
    (void)state;
    struct rig_end e = rig_both(by_exit_now);
    assert_int_equal(WEXITSTATUS(e.status), 4);
    expect_rescued("work", N);
}

static void test_quick_exit(void **state) {
    (void)state;
    struct rig_end e = rig_both(by_quick_exit);
    assert_int_equal(WEXITSTATUS(e.status), 5);
    expect_rescued("work", N);
}

static void *exiting(void *arg) {
    record(N, "work");
    exit(6);
    return arg;
}

static void *endless(void *arg) {
    for (;;) {
        OPS_SCOPE("noise");
        OPS_SCOPE("inside");
    }
    return arg;
}

static void by_thread(void *arg) {
    pthread_t t;
    (void)arg;
    rig_begin();
    pthread_create(&t, NULL, endless, NULL);
    pthread_create(&t, NULL, exiting, NULL);
    for (;;) pause();
}

static void test_exit_thread(void **state) {
    (void)state;
    struct rig_end e = rig_both(by_thread);
    assert_int_equal(WEXITSTATUS(e.status), 6);
    expect_closed(1, "work", N);
}

static void exit_handler(int sig) {
    (void)sig;
    exit(7); /* not allowed there, and often done */
}

/* Whatever the handler interrupts, a call or a lock of ours: it ends. */
static void by_handler(void *arg) {
    char name[32];
    (void)arg;
    signal(SIGALRM, exit_handler);
    rig_begin();
    record(N, "work");
    ualarm(3000, 0);
    for (int i = 0;; i++) {
        snprintf(name, sizeof name, "name %d", i % 5000);
        OPS_SCOPE("noise");
        ops_begin(name);
        ops_end();
        ops_thread_name(name);
    }
}

static void test_exit_handler(void **state) {
    (void)state;
    for (int i = 0; i < (rig_slow() ? 2 : 10); i++) {
        struct rig_end e = rig_run(by_handler, NULL);
        assert_true(WIFEXITED(e.status));
        assert_int_equal(WEXITSTATUS(e.status), 7);
    }
}

static void out_of_memory(void *arg) {
    struct rlimit most;
    char line[256];
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    (void)arg;
    if (f == NULL || fgets(line, sizeof line, f) == NULL) exit(98);
    fclose(f);
    pages = strtoul(line, NULL, 10);
    /* malloc() may take 128 MiB of addresses for a thread's heap */
    most.rlim_cur = most.rlim_max = (pages << 12) + (300u << 20);
    setrlimit(RLIMIT_AS, &most);
    rig_begin();
    record(N, "work");
    size_t got = 0;
    void *volatile p; /* a compiler leaves out what nobody looks at */
    while ((p = malloc(1 << 20)) != NULL) got++;
    while ((p = malloc(1 << 12)) != NULL) {
    }
    record(N, "more");
    printf("%s\n", got > 0 ? "full" : "none");
    exit(0);
}

static void *more_work(void *arg) {
    record(10, "late");
    return arg;
}

/* The limit leaves nothing for rings of new threads. */
static void out_of_memory_threads(void *arg) {
    struct rlimit most = {0, 0};
    pthread_t t;
    (void)arg;
    rig_begin();
    record(N, "work");
    rig_sleep_us(80000); /* the spare ring is there */
    getrlimit(RLIMIT_AS, &most);
    most.rlim_cur = 1 << 20; /* below what is mapped: nothing more is */
    void *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, stack, 1 << 20);
    for (int i = 0; i < 3; i++) {
        setrlimit(RLIMIT_AS, &most);
        if (pthread_create(&t, &a, more_work, NULL) == 0) pthread_join(t, NULL);
        record(10, "work");
    }
    exit(0);
}

static void test_memory(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || rig_slow())
        skip_because("under sanitizers or valgrind: too slow");
    struct rig_end e = rig_both(out_of_memory);
    assert_string_equal(e.out, "full\n");
    assert_int_equal(e.status, 0);
    rig_rescue(); /* the stop may have had no memory */
    assert_int_equal(rig_load(&x), 1);
    expect(&x, "work", N);
    expect(&x, "more", N);
    xs_free(&x);
    rig_remove_dir();
    rig_make_dir();
    rig_both(out_of_memory_threads);
    rig_rescue();
}

/* --- processes ---------------------------------------------------------- */

static void by_exec(void *arg) {
    (void)arg;
    rig_begin();
    record(N, "work");
    execl("/proc/self/exe", "test", rig_on ? "record" : "idle", rig_dir,
          (char *)NULL);
    exit(97);
}

/* What the new image does. */
static int image(const char *what, const char *dir) {
    rig_on = strcmp(what, "record") == 0;
    snprintf(rig_dir, sizeof rig_dir, "%s", dir);
    rig_begin();
    record(N, "after");
    printf("new image\n");
    return 8;
}

static void test_exec(void **state) {
    struct xs x = {0};
    (void)state;
    if (rig_valgrind()) skip_because("/proc/self/exe is valgrind's");
    struct rig_end e = rig_both(by_exec);
    assert_int_equal(WEXITSTATUS(e.status), 8);
    assert_string_equal(e.out, "new image\n");
    rig_rescue(); /* the old image's, if the new one has not done it yet */
    assert_int_equal(rig_load(&x), 2);
    expect(&x, "work", N);
    expect(&x, "after", N);
    xs_free(&x);
}

static int wait_for(pid_t pid) {
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static void by_fork(void *arg) {
    (void)arg;
    rig_begin();
    record(N, "work");
    OPS_SCOPE("parent");
    pid_t pid = fork();
    if (pid == 0) {
        /* 0, 1 and 2 are still the program's */
        if (fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0) exit(96);
        ops_thread_name("child");
        record(N, "child");
        exit(9);
    }
    record(N, "work");
    printf("%x\n", wait_for(pid));
    exit(0);
}

static void test_fork(void **state) {
    (void)state;
    if (RIG_TSAN || RIG_ASAN)
        skip_because("under sanitizers: locked allocators");
    rig_options.no_machine = false;
    struct rig_end e = rig_both(by_fork);
    assert_string_equal(e.out, "900\n");
    expect_closed(2, "work", 2 * N);
    struct xs x = {0};
    rig_load(&x);
    expect(&x, "child", N);
    expect(&x, "parent", 0);
    for (size_t i = 0; i < x.n; i++) /* each in a file of its own */
        for (size_t k = 0; k < x.n; k++)
            if (strcmp(x.v[i].name, "work") == 0 &&
                strcmp(x.v[k].name, "child") == 0)
                assert_int_not_equal(x.v[i].file, x.v[k].file);
    xs_free(&x);
}

static void test_fork_no_machine(void **state) {
    (void)state;
    if (RIG_TSAN || RIG_ASAN)
        skip_because("under sanitizers: locked allocators");
    rig_options.no_machine = true;
    struct rig_end e = rig_both(by_fork);
    assert_string_equal(e.out, "900\n");
    expect_closed(2, "child", N);
}

static void *fork_many(void *arg) {
    for (int i = 0; i < 25; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            record(5, "child");
            exit(0);
        }
        record(5, "forker");
        if (wait_for(pid) != 0) exit(95);
    }
    return arg;
}

static int over;

static void *noise(void *arg) {
    char name[32];
    for (int i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        snprintf(name, sizeof name, "noise %d", i % 1000);
        record(1, name);
    }
    return arg;
}

/* From two threads at once, while others record and intern. */
static void by_many_forks(void *arg) {
    pthread_t t[4];
    (void)arg;
    rig_begin();
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, i < 2 ? fork_many : noise, NULL);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(t[2], NULL);
    pthread_join(t[3], NULL);
    exit(0);
}

static void test_many_forks(void **state) {
    (void)state;
    if (RIG_TSAN || RIG_ASAN)
        skip_because("under sanitizers: their allocators' locks stay held");
    struct rig_end e = rig_both(by_many_forks);
    assert_int_equal(e.status, 0);
    expect_closed(51, "child", 50 * 5);
}

/* Children that no handler of ours sees, and that do not record. */
static void by_others(void *arg) {
    extern char **environ;
    char *const argv[] = {"true", NULL};
    pid_t pid;
    (void)arg;
    rig_begin();
    record(N, "work");
    if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0) exit(94);
    printf("spawn %x\n", wait_for(pid));
    pid = vfork();
    if (pid == 0) {
        execvp("true", argv);
        _exit(93);
    }
    printf("vfork %x\n", wait_for(pid));
    pid = fork();
    if (pid == 0) {
        execvp("true", argv);
        _exit(93);
    }
    printf("fork, exec %x\n", wait_for(pid));
    fflush(stdout);
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        record(5, "clone"); /* off: its state was wiped */
        _exit(ops_recording() ? 92 : 11);
    }
    printf("clone %x\n", wait_for(pid));
    record(N, "work");
    exit(0);
}

static void test_other_children(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_TSAN) skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_both(by_others);
    assert_string_equal(e.out, "spawn 0\nvfork 0\nfork, exec 0\nclone b00\n");
    assert_int_equal(rig_count(".ring"), 0);
    assert_int_equal(rig_load(&x), 1);
    expect(&x, "work", 2 * N);
    expect(&x, "clone", 0);
    xs_free(&x);
}

/* --- the harness -------------------------------------------------------- */

int main(int argc, char **argv) {
    if (argc == 3) return image(argv[1], argv[2]);
    return RIG_CASES("rec_ends", NULL, CASE(test_exit),
                     CASE(test_exit_in_the_middle),
                     CASE(test_stop_between_scopes), CASE(test_signals),
                     CASE(test_exit_now), CASE(test_quick_exit),
                     CASE(test_exit_thread), CASE(test_exit_handler),
                     CASE(test_memory), CASE(test_exec), CASE(test_fork),
                     CASE(test_fork_no_machine), CASE(test_many_forks),
                     CASE(test_other_children));
}
