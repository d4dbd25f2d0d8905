/* SPDX-License-Identifier: Apache-2.0
 * Many processes, one folder: every one has a profile of its own, nothing that
 * exists is written to, and who it was stands in it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static void record_one(void *arg) {
    if (ops_start(rig_dir, &rig_options) != 0) exit(99);
    { OPS_SCOPE_INT("one", "who", (int64_t)(uintptr_t)arg); }
    ops_scalar("loss", (int64_t)(uintptr_t)arg, 1);
    exit(0);
}

static void wait_all(int n) {
    for (int i = 0; i < n; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

/* Checks that each of n is in one of the files, and each file has one. */
static void expect_each_once(size_t n) {
    struct xs x = {0};
    uint8_t seen[256] = {0}, files[256] = {0};
    assert_int_equal(rig_load(&x), n);
    for (size_t i = 0; i < x.n; i++) {
        if (strcmp(x.v[i].name, "one") != 0) continue;
        int64_t who = xs_int(&x, &x.v[i], "who", -1);
        assert_true(who >= 0 && (size_t)who < n);
        assert_int_equal(seen[who]++, 0);
        assert_int_equal(files[x.v[i].file]++, 0);
    }
    for (size_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(rig_count(".ring"), 0);
    assert_int_equal(rig_count(".part"), 0);
    xs_free(&x);
}

static size_t event_files(void) {
    char pattern[PATH_MAX + 32];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/events.out.*", rig_dir);
    if (glob(pattern, 0, NULL, &g) != 0) return 0;
    size_t n = g.gl_pathc;
    globfree(&g);
    return n;
}

enum { PARALLEL = 50 };

static void test_parallel(void **state) {
    (void)state;
    rig_options.run = "one";
    for (uintptr_t i = 0; i < PARALLEL; i++)
        rig_fork(record_one, (void *)i, -1);
    wait_all(PARALLEL);
    expect_each_once(PARALLEL);
    assert_int_equal(event_files(), PARALLEL);
}

/* The same rank again and again, also at once: as when a job restarts. */
static void test_same_rank(void **state) {
    (void)state;
    rig_options.run = "one";
    rig_options.rank = 3;
    rig_options.world = 8;
    for (uintptr_t i = 0; i < PARALLEL; i++) {
        rig_fork(record_one, (void *)i, -1);
        if (i % 2 == 0) wait_all(1);
    }
    wait_all(PARALLEL / 2);
    expect_each_once(PARALLEL);
}

/* Two hosts with one disk; pids there are the same, ranks are not known. */
static void test_hosts(void **state) {
    glob_t g;
    (void)state;
    rig_options.run = "one";
    for (uintptr_t i = 0; i < 2; i++) {
        setenv("OPSCOPE_HOST", i == 0 ? "alpha" : "beta", 1);
        rig_fork(record_one, (void *)i, -1);
    }
    unsetenv("OPSCOPE_HOST");
    wait_all(2);
    expect_each_once(2);
    size_t n = rig_files(".xplane.pb", &g);
    assert_int_equal(n, 2);
    assert_non_null(strstr(g.gl_pathv[0], "/alpha_"));
    assert_non_null(strstr(g.gl_pathv[1], "/beta_"));
    globfree(&g);
}

enum { NOT_ALLOWED = 77 };

/* The first process of a namespace of its own: its pid is 1. */
static void record_namespaced(void *arg) {
    if (unshare(CLONE_NEWPID) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        _exit(NOT_ALLOWED);
    int status = 0;
    pid_t pid = rig_fork(record_one, arg, -1);
    waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static void test_same_pid(void **state) {
    (void)state;
    if (RIG_TSAN || RIG_ASAN)
        skip_because("under sanitizers: forks of a threaded program");
    rig_options.run = "one";
    for (uintptr_t i = 0; i < 6; i++)
        rig_fork(record_namespaced, (void *)i, -1);
    for (int i = 0; i < 6; i++) {
        int status;
        wait(&status);
        if (status == NOT_ALLOWED << 8) {
            while (wait(&status) > 0) {
            }
            skip_because("namespaces are not allowed here");
        }
        assert_int_equal(status, 0);
    }
    expect_each_once(6);
}

/* Returns how many runs there are. */
static size_t count_runs(void) {
    char pattern[PATH_MAX + 32];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*", rig_dir);
    if (glob(pattern, 0, NULL, &g) != 0) return 0;
    size_t n = g.gl_pathc;
    globfree(&g);
    return n;
}

/* Programs that start in the same second and say no name are runs of their own:
 * somebody wants to compare them. */
static void test_same_second(void **state) {
    (void)state;
    for (uintptr_t i = 0; i < 4; i++) {
        rig_fork(record_one, (void *)i, -1);
        wait_all(1);
    }
    expect_each_once(4);
    assert_int_equal(count_runs(), 4);
}

/* Ranks of one job are one run. */
static void test_ranks_share_a_run(void **state) {
    (void)state;
    setenv("WORLD_SIZE", "4", 1);
    for (int tries = 0; tries < 5; tries++) { /* a second may end meanwhile */
        for (uintptr_t i = 0; i < 4; i++) {
            char rank[8];
            snprintf(rank, sizeof rank, "%d", (int)i);
            setenv("RANK", rank, 1);
            rig_fork(record_one, (void *)i, -1);
        }
        wait_all(4);
        if (count_runs() == 1) break;
        rig_remove_dir();
        rig_make_dir();
        setenv("WORLD_SIZE", "4", 1);
    }
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    assert_int_equal(count_runs(), 1);
    expect_each_once(4);
}

/* A file that is there stays as it is, byte for byte. */
static void test_in_the_way(void **state) {
    char path[PATH_MAX + 64], back[16] = "";
    (void)state;
    rig_options.run = "one";
    rig_options.rank = 0;
    rig_options.world = 1;
    rig_options.host = "h";
    const char *const ends[] = {".xplane.pb", ".xplane.pb.part", ".ring",
                                "-2.1.xplane.pb"};
    snprintf(path, sizeof path, "%s/plugins", rig_dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/plugins/profile", rig_dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/plugins/profile/one", rig_dir);
    mkdir(path, 0777);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/plugins/profile/one/h_0%s", rig_dir,
                 ends[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        assert_int_equal(write(fd, "mine", 4), 4);
        close(fd);
    }
    rig_fork(record_one, NULL, -1);
    wait_all(1);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/plugins/profile/one/h_0%s", rig_dir,
                 ends[i]);
        int fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, back, sizeof back), 4);
        assert_memory_equal(back, "mine", 4);
        close(fd);
        unlink(path);
    }
    struct xs x = {0};
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(xs_count(&x, "one"), 1);
    xs_free(&x);
}

static void test_ranks(void **state) {
    static const struct {
        const char *set[6];
        int rank, world;
    } cases[] = {
        {{"RANK", "5", "WORLD_SIZE", "8"}, 5, 8},
        {{"SLURM_PROCID", "2", "SLURM_NTASKS", "4", "SLURM_STEP_ID", "0"},
         2,
         4},
        {{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "3"}, 1, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xs x = {0};
        char name[32];
        rig_remove_dir();
        rig_make_dir();
        for (int k = 0; k < 6 && cases[i].set[k] != NULL; k += 2)
            setenv(cases[i].set[k], cases[i].set[k + 1], 1);
        rig_fork(record_one, NULL, -1);
        wait_all(1);
        for (int k = 0; k < 6 && cases[i].set[k] != NULL; k += 2)
            unsetenv(cases[i].set[k]);
        assert_int_equal(rig_load(&x), 1);
        assert_int_equal(xs_fact(&x, "rank", -1), cases[i].rank);
        assert_int_equal(xs_fact(&x, "world_size", -1), cases[i].world);
        xs_free(&x);
        snprintf(name, sizeof name, "_%d.xplane.pb", cases[i].rank);
        assert_int_equal(rig_count(name), 1);
    }
}

static void run_set_rank(void *arg) {
    (void)arg;
    if (ops_start(rig_dir, &rig_options) != 0) exit(99);
    pid_t pid = fork();
    if (pid == 0) {
        ops_set_rank(1, 2); /* the child's first call */
        { OPS_SCOPE("one"); }
        exit(0);
    }
    ops_set_rank(0, 2);
    { OPS_SCOPE("one"); }
    int status;
    waitpid(pid, &status, 0);
    exit(status != 0);
}

static void test_set_rank(void **state) {
    glob_t g;
    int seen = 0;
    (void)state;
    /* fork() of a program with threads: the allocators of gcc 12's sanitizers
     * may be locked in the child for ever */
    if (RIG_TSAN || RIG_ASAN)
        skip_because("under sanitizers: forks of a threaded program");
    rig_fork(run_set_rank, NULL, -1);
    wait_all(1);
    size_t n = rig_files(".xplane.pb", &g);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        struct xs x = {0};
        xs_load(&x, g.gl_pathv[i]);
        assert_int_equal(xs_fact(&x, "world_size", -1), 2);
        seen |= 1 << xs_fact(&x, "rank", 7);
        xs_free(&x);
    }
    assert_int_equal(seen, 3);
    globfree(&g);
}

/* --- the harness -------------------------------------------------------- */

static void small_rings(void) { rig_options.ring_bytes = 64 << 10; }

RIG_MAIN("rec_runs", small_rings, CASE(test_parallel), CASE(test_same_rank),
         CASE(test_hosts), CASE(test_same_pid), CASE(test_same_second),
         CASE(test_in_the_way), CASE(test_ranks_share_a_run), CASE(test_ranks),
         CASE(test_set_rank))
