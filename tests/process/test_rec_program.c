/* SPDX-License-Identifier: Apache-2.0
 * What programs do with their threads, memory, signals and folders, and how they
 * end: with the recorder as without it. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

/* Taken out of every thread's stack, also of those of the recorder. */
static __thread char large[460 << 10];

static void begin(void) {
    large[0] = 1;
    rig_begin();
    OPS_SCOPE("main");
}

/* Runs it without the recorder and with it: both must look the same from
 * outside. */
static void run_both(void (*run)(void *)) {
    if (RIG_TSAN)
        skip_because("under sanitizers: its own thread keeps the process");
    rig_both(run);
}

/* --- ends ---------------------------------------------------------------- */

/* Each thread begins the next one and ends: a list of them may miss one. */
static int left;
static pthread_attr_t detached;

static void *next_in_chain(void *arg) {
    pthread_t t;
    if (--left == 0) {
        printf("the end of the chain\n");
        exit(3);
    }
    while (pthread_create(&t, &detached, next_in_chain, arg) != 0)
        rig_sleep_us(100);
    return NULL;
}

static void chain(void *arg) {
    pthread_t t;
    begin();
    left = RIG_ASAN ? 2000 : 20000;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_create(&t, &detached, next_in_chain, arg);
    pthread_exit(NULL);
}

static void test_a_chain_of_threads(void **state) {
    (void)state;
    run_both(chain);
}

static void at_exit(void) { printf("a handler ran\n"); }

static void leave_by_the_system_call(void *arg) {
    (void)arg;
    atexit(at_exit);
    begin();
    syscall(SYS_exit, 7);
}

static void test_the_system_call(void **state) {
    (void)state;
    if (RIG_ASAN)
        skip_because("under sanitizers: they change how a program ends");
    run_both(leave_by_the_system_call);
}

static void *named_as_ours(void *arg) {
    rig_sleep_us(300000);
    printf("worker done\n");
    return arg;
}

static void our_names(void *arg) {
    pthread_t t;
    (void)arg;
    begin();
    prctl(PR_SET_NAME,
          "opscope"); /* threads have it from whoever starts them */
    pthread_create(&t, NULL, named_as_ours, NULL);
    pthread_detach(t);
    pthread_exit(NULL);
}

static void test_threads_with_our_names(void **state) {
    (void)state;
    run_both(our_names);
}

/* No descriptor is left, and no /proc to open one in. */
static void nothing_to_open(void *arg) {
    struct rlimit none = {0, 0};
    (void)arg;
    begin();
    setrlimit(RLIMIT_NOFILE, &none);
    if (chroot(rig_dir) != 0) (void)arg;
    pthread_exit(NULL);
}

static void test_nothing_can_be_opened(void **state) {
    (void)state;
    if (RIG_ASAN)
        skip_because("under sanitizers: they change how a program ends");
    run_both(nothing_to_open);
}

/* --- children that no handler runs for ------------------------------------- */

static void *leave_child(void *arg) {
    ops_instant("thread");
    int status = 0;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) pthread_exit(arg);
    waitpid(child, &status, 0);
    printf("child %x\n", status);
    return arg;
}

static void raw_children(void *arg) {
    pthread_t t;
    (void)arg;
    begin();
    pthread_create(&t, NULL, leave_child, NULL);
    pthread_join(t, NULL);
    exit(0);
}

static void test_raw_children_end(void **state) {
    (void)state;
    if (RIG_ASAN)
        skip_because("under sanitizers: they change how a program ends");
    run_both(raw_children);
}

/* What the parent has and the child has not is the child's to use. */
enum { PAGES = 4000 };
static char *pages[PAGES];

static void take_pages(void) {
    for (int i = 0; i < 100; i++)
        mmap(NULL, 4 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++) {
        pages[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pages[i][0] = 77;
    }
}

static void memory_of_a_child(void *arg) {
    (void)arg;
    pthread_atfork(NULL, NULL, take_pages);
    begin();
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        ops_instant("child");
        int bad = 0;
        for (int i = 0; i < PAGES; i++) bad += pages[i][0] != 77;
        _exit(bad != 0);
    }
    waitpid(child, &status, 0);
    printf("child %x\n", status);
    exit(0);
}

static void test_memory_of_a_child(void **state) {
    (void)state;
    if (RIG_ASAN)
        skip_because("under sanitizers: they change how a program ends");
    run_both(memory_of_a_child);
}

/* --- signals --------------------------------------------------------------- */

static volatile int handled;

static void dump_in_handler(int sig) {
    (void)sig;
    ops_dump();
    handled++;
}

static void dump_without_a_start(void *arg) {
    struct itimerval often = {{0, 100}, {0, 100}};
    (void)arg;
    signal(SIGALRM, dump_in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < 500) ops_dump();
    exit(0);
}

static void test_problems_in_handlers(void **state) {
    (void)state;
    run_both(dump_without_a_start);
}

static void ignored_with_flags(void *arg) {
    struct sigaction sa = {.sa_handler = SIG_IGN, .sa_flags = SA_SIGINFO};
    (void)arg;
    sigaction(SIGUSR2, &sa, NULL);
    rig_options.signal = SIGUSR2;
    begin();
    raise(SIGUSR2);
    printf("alive\n");
    exit(0);
}

static void test_ignored_with_flags(void **state) {
    (void)state;
    run_both(ignored_with_flags);
}

static volatile int xfsz;
static void on_xfsz(int sig) {
    (void)sig;
    xfsz++;
}

/* Sent by another, while calls of ours have signals blocked. */
static void foreign_xfsz(void *arg) {
    (void)arg;
    struct sigaction sa = {.sa_handler = on_xfsz};
    sigaction(SIGXFSZ, &sa, NULL);
    begin();
    int ask[2], lost = 0;
    if (pipe(ask) != 0) exit(1);
    pid_t me = getpid(), child = fork();
    if (child == 0) {
        char c;
        close(ask[1]);
        while (read(ask[0], &c, 1) == 1) {
            rig_sleep_us(200);
            kill(me, SIGXFSZ);
        }
        _exit(0);
    }
    for (int i = 0; i < 50; i++) {
        if (write(ask[1], "x", 1) != 1) exit(2);
        for (int k = 0; k < 3000 && xfsz <= i - lost; k++) {
            if (rig_on) ops_flush();
            rig_sleep_us(k < 100 ? 0 : 1000);
        }
        lost += xfsz <= i - lost;
    }
    printf("%d were lost\n", lost);
    kill(child, SIGKILL);
    exit(0);
}

static void test_signals_of_others(void **state) {
    (void)state;
    run_both(foreign_xfsz);
}

/* --- folders --------------------------------------------------------------- */

static void through_a_link(void *arg) {
    char path[PATH_MAX + 32];
    (void)arg;
    snprintf(path, sizeof path, "%s/victim", rig_dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/plugins", rig_dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/plugins/profile", rig_dir);
    if (symlink("../victim", path) != 0) exit(1);
    if (ops_start(rig_dir, NULL) == 0 || ops_problem(NULL, 0) == 0) exit(2);
    unlink(path);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/plugins/profile/r", rig_dir);
    if (symlink("../../victim", path) != 0) exit(3);
    rig_options.run = "r";
    if (ops_start(rig_dir, &rig_options) == 0) exit(4);
    exit(0);
}

static void test_links_in_the_log_folder(void **state) {
    char path[PATH_MAX + 32];
    int n = 0;
    (void)state;
    struct rig_end e = rig_run(through_a_link, NULL);
    assert_int_equal(e.status, 0);
    snprintf(path, sizeof path, "%s/victim", rig_dir);
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    closedir(d);
    assert_int_equal(n, 2);
}

static void *remove_and_fork(void *arg) {
    char logs[PATH_MAX + 32];
    snprintf(logs, sizeof logs, "%s/logs", rig_dir);
    if (ops_start(logs, NULL) != 0) exit(1);
    ops_instant("parent");
    nftw(logs, rig_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (fork() == 0) {
        ops_instant("child");
        ops_stop();
        _exit(0);
    }
    wait(NULL);
    if (access(logs, F_OK) == 0) exit(2);
    return arg;
}

static void removed(void *arg) {
    remove_and_fork(arg);
    exit(0);
}

static void test_a_removed_folder_stays_so(void **state) {
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    struct rig_end e = rig_run(removed, NULL);
    assert_int_equal(e.status, 0);
}

/* --- scheduling -------------------------------------------------------------- */

static void real_time(void *arg) {
    struct sched_param p = {.sched_priority = 1};
    (void)arg;
    if (sched_setscheduler(0, SCHED_FIFO, &p) != 0) exit(77);
    if (ops_start(rig_dir, NULL) != 0) exit(1);
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *x; (x = readdir(d)) != NULL;) {
        int tid = atoi(x->d_name);
        if (tid > 0 && tid != getpid() &&
            sched_getscheduler(tid) != SCHED_OTHER)
            exit(2);
    }
    exit(0);
}

static void test_threads_of_ours_are_ordinary(void **state) {
    (void)state;
    if (RIG_TSAN)
        skip_because("under sanitizers: they change how a program ends");
    struct rig_end e = rig_run(real_time, NULL);
    if (e.status == 77 << 8)
        skip_because("real-time threads are not allowed here");
    assert_int_equal(e.status, 0);
}

static void with_machine(void) { rig_options.no_machine = false; }

RIG_MAIN("rec_program", with_machine, CASE(test_a_chain_of_threads),
         CASE(test_the_system_call), CASE(test_threads_with_our_names),
         CASE(test_nothing_can_be_opened), CASE(test_raw_children_end),
         CASE(test_memory_of_a_child), CASE(test_problems_in_handlers),
         CASE(test_ignored_with_flags), CASE(test_signals_of_others),
         CASE(test_links_in_the_log_folder),
         CASE(test_a_removed_folder_stays_so),
         CASE(test_threads_of_ours_are_ordinary))
