/* SPDX-License-Identifier: Apache-2.0
 * The program's descriptors and the recorder's: neither has the other's. What
 * the program closes, opens and duplicates is its own, a pipe ends when it
 * closes it, its locks hold, and no child, however made, keeps anything of the
 * recorder alive. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static void expect_exit(void (*run)(void *), int code) {
    struct rig_end e = rig_run(run, NULL);
    if (!WIFEXITED(e.status) || WEXITSTATUS(e.status) != code)
        fail_msg("status %x: %s", e.status, e.out);
}

/* --- numbers ------------------------------------------------------------ */

/* The numbers that are open, and what they are. */
static size_t open_numbers(struct stat v[], size_t most) {
    size_t n = 0;
    for (int fd = 0; fd < 4096; fd++) {
        struct stat st;
        if (fstat(fd, &st) != 0) continue;
        if (n < most) v[n] = st;
        n++;
    }
    return n;
}

static void look_at_numbers(void *arg) {
    static struct stat before[64], during[64];
    (void)arg;
    size_t n = open_numbers(before, 64);
    int next = dup(0);
    close(next);
    rig_begin();
    for (int i = 0; i < 2000; i++) {
        OPS_SCOPE("work");
        ops_scalar("loss", i, 1);
    }
    ops_flush();
    if (ops_dump() != 0) exit(1);
    if (open_numbers(during, 64) != n) exit(2);
    for (size_t i = 0; i < n; i++)
        if (before[i].st_ino != during[i].st_ino) exit(3);
    /* the next one is the one that it would be without us */
    int fd = open("/dev/null", O_RDONLY);
    if (fd != next) exit(4);
    close(fd);
    ops_stop();
    exit(open_numbers(during, 64) == n ? 7 : 5);
}

static void test_no_number_is_taken(void **state) {
    (void)state;
    expect_exit(look_at_numbers, 7);
    assert_true(rig_count(".xplane.pb") >= 1);
}

/* --- files of its own --------------------------------------------------- */

static bool over;

static void *burn(void *arg) {
    for (int64_t i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        OPS_SCOPE_INT("burn", "i", i);
        ops_scalar("loss", i, 1.0);
        if (i % 64 == 0) rig_sleep_us(1);
    }
    return arg;
}

/* A program that closes all that it does not know, and opens files of its own
 * on every number there is: nobody writes into them or closes them. */
static void close_and_open(void *arg) {
    enum { MOST = 64, ROUNDS = 60 };
    struct rlimit l = {MOST, MOST};
    pthread_t t[2];
    (void)arg;
    setrlimit(RLIMIT_NOFILE, &l);
    rig_begin();
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, burn, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int fds[MOST], n = 0;
        syscall(SYS_close_range, 3u, ~0u, 0u);
        while (n < MOST && (fds[n] = memfd_create("own", 0)) >= 0) n++;
        rig_sleep_us(round % 2 ? 1000 : 12000);
        for (int i = 0; i < n; i++) {
            struct stat st;
            if (fstat(fds[i], &st) != 0) exit(1);
            if (st.st_size != 0) exit(2);
        }
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    ops_stop();
    exit(ops_problem(NULL, 0) == 0 ? 7 : 3);
}

static void test_files_are_its_own(void **state) {
    struct xs x = {0};
    (void)state;
    expect_exit(close_and_open, 7);
    assert_int_equal(rig_load(&x), 1);
    assert_true(xs_count(&x, "burn") > 0);
    xs_free(&x);
}

/* --- pipes and locks ---------------------------------------------------- */

static void end_a_pipe(void *arg) {
    int p[2];
    (void)arg;
    if (pipe(p) != 0) exit(1);
    rig_begin();
    rig_sleep_us(20000);
    close(p[1]);
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    char c;
    /* the end comes with the close, not with the recorder's */
    exit(poll(&f, 1, 5000) == 1 && read(p[0], &c, 1) == 0 ? 7 : 2);
}

static void test_a_pipe_ends(void **state) {
    (void)state;
    expect_exit(end_a_pipe, 7);
}

/* A program that leaves its table for one of its own: the old one, with all that
 * was open in it, must not live on in a thread of ours. */
static void leave_the_table(void *arg) {
    int p[2];
    (void)arg;
    if (pipe(p) != 0) exit(1);
    rig_begin();
    if (unshare(CLONE_FILES) != 0) exit(7); /* not allowed here */
    close(p[1]);
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    char c;
    exit(poll(&f, 1, 10000) == 1 && read(p[0], &c, 1) == 0 ? 7 : 2);
}

static void test_a_table_that_is_left(void **state) {
    (void)state;
    if (syscall(SYS_kcmp, getpid(), getpid(), 2, 0, 0) != 0)
        skip_because("the kernel has no kcmp here");
    if (RIG_TSAN)
        skip_because("under sanitizers: a thread of its own has the table");
    expect_exit(leave_the_table, 7);
}

static bool locked_by(int fd, pid_t pid) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_GETLK, &l) == 0 && l.l_type == F_WRLCK &&
                      l.l_pid == pid
                  ? 7
                  : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

/* A record lock goes when any descriptor of the file is closed: a recorder that
 * had a copy would take it away. */
static void hold_a_lock(void *arg) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = memfd_create("locked", 0);
    (void)arg;
    if (fcntl(fd, F_SETLK, &l) != 0) exit(1);
    rig_begin();
    ops_flush();
    if (!locked_by(fd, getpid())) exit(2);
    ops_stop();
    exit(locked_by(fd, getpid()) ? 7 : 3);
}

static void test_a_lock_holds(void **state) {
    (void)state;
    expect_exit(hold_a_lock, 7);
}

/* --- children ----------------------------------------------------------- */

/* The child lives on, and has nothing of the recorder's; its parent is seen to
 * be dead all the same. */
static void die_before_a_child(void *arg) {
    int raw = *(int *)arg;
    rig_begin();
    for (int i = 0; i < 100; i++) {
        OPS_SCOPE("parent");
    }
    pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        rig_sleep_us(3000000);
        _exit(0);
    }
    printf("%d\n", (int)child);
    fflush(stdout);
    kill(getpid(), SIGKILL);
}

static void dead_parent(int raw) {
    glob_t g;
    struct recover_look at;
    struct xs x = {0};
    struct rig_end e = rig_run(die_before_a_child, &raw);
    pid_t child = (pid_t)atoi(e.out);
    assert_true(WIFSIGNALED(e.status) && child > 0);
    assert_int_equal(rig_files(".ring", &g), 1);
    assert_true(recover_look_path(g.gl_pathv[0], &at));
    assert_int_equal(at.pid, e.pid);
    assert_false(at.alive);
    globfree(&g);
    assert_int_equal(kill(child, 0), 0); /* it was there all the time */
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_count(&x, "parent"), 100);
    xs_free(&x);
    kill(child, SIGKILL);
}

static void test_a_child_keeps_nothing_alive(void **state) {
    (void)state;
    dead_parent(0);
    rig_remove_dir();
    rig_make_dir();
    dead_parent(1);
}

static void list_after_exec(void *arg) {
    (void)arg;
    rig_begin();
    { OPS_SCOPE("before"); }
    execl("/bin/sh", "sh", "-c", "ls -l /proc/self/fd", (char *)NULL);
    exit(98);
}

static void test_exec_inherits_nothing(void **state) {
    (void)state;
    struct rig_end e = rig_run(list_after_exec, NULL);
    assert_int_equal(e.status, 0);
    assert_null(strstr(e.out, "xplane"));
    assert_null(strstr(e.out, "opscope-0"));
    assert_null(strstr(e.out, ".ring"));
    rig_rescue();
}

/* --- who may write, and where ------------------------------------------- */

static int none_may_write(const char *path, const struct stat *st, int type,
                          struct FTW *f) {
    (void)type;
    (void)f;
    if ((st->st_mode & 022) == 0) return 0;
    print_error("%s has mode %o\n", path, st->st_mode & 07777);
    return 1;
}

static void with_mask(void *arg) {
    umask(*(mode_t *)arg);
    rig_begin();
    for (int i = 0; i < 100; i++) {
        OPS_SCOPE("work");
        ops_scalar("loss", i, 1);
    }
    ops_flush();
    if (*(mode_t *)arg == 0) { /* as it stands while it is written */
        char logs[PATH_MAX + 16];
        snprintf(logs, sizeof logs, "%s/plugins", rig_dir);
        if (nftw(logs, none_may_write, 16, FTW_PHYS) != 0) exit(1);
    }
    exit(7);
}

static void test_modes(void **state) {
    mode_t masks[] = {0, 022, 0777};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig_end e = rig_run(with_mask, &masks[i]);
        if (WEXITSTATUS(e.status) != 7) fail_msg("umask %o", masks[i]);
        struct stat st;
        glob_t g;
        assert_int_equal(rig_files(".xplane.pb", &g), 1);
        assert_int_equal(stat(g.gl_pathv[0], &st), 0);
        assert_int_equal(st.st_mode & 0600, 0600);
        globfree(&g);
        assert_int_equal(nftw(rig_dir, none_may_write, 16, FTW_PHYS), 0);
        rig_remove_dir();
        rig_make_dir();
    }
}

/* The program's folder and root are not ours: what was opened stays open. */
static void move_away(void *arg) {
    char here[PATH_MAX + 16], there[PATH_MAX + 16];
    (void)arg;
    snprintf(here, sizeof here, "%s/logs", rig_dir);
    snprintf(there, sizeof there, "%s/moved", rig_dir);
    if (ops_start(here, &rig_options) != 0) exit(1);
    { OPS_SCOPE("work"); }
    if (rename(here, there) != 0 || chdir("/") != 0) exit(2);
    ops_stop();
    exit(ops_problem(NULL, 0) == 0 ? 7 : 3);
}

static void test_a_renamed_folder(void **state) {
    char pattern[PATH_MAX + 64];
    glob_t g;
    (void)state;
    expect_exit(move_away, 7);
    snprintf(pattern, sizeof pattern, "%s/moved/plugins/profile/*/*", rig_dir);
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    assert_non_null(strstr(g.gl_pathv[0], ".xplane.pb"));
    globfree(&g);
}

static void with_machine(void) { rig_options.no_machine = false; }

RIG_MAIN("rec_apart", with_machine, CASE(test_no_number_is_taken),
         CASE(test_files_are_its_own), CASE(test_a_pipe_ends),
         CASE(test_a_table_that_is_left), CASE(test_a_lock_holds),
         CASE(test_a_child_keeps_nothing_alive),
         CASE(test_exec_inherits_nothing), CASE(test_modes),
         CASE(test_a_renamed_folder))
