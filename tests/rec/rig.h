/* SPDX-License-Identifier: Apache-2.0
 * What the recorder's tests share: a folder of their own, a child to do the
 * dangerous part in, and the files that are left behind. */
#ifndef TESTS_REC_RIG_H
#define TESTS_REC_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "opscope/record.h"
#include "rec/temp.h"
#include "rec/xs.h"
#include "ring/recover.h"
#include "ring/sanitized.h"

#define RIG_TSAN SANITIZED_THREAD
#define RIG_ASAN SANITIZED_ADDRESS

#if RIG_ASAN
/* Children end in the middle of things: what they had is no leak, and looking
 * for leaks stops their threads and prints. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
#endif

static inline bool rig_valgrind(void) {
    const char *p = getenv("LD_PRELOAD");
    return p != NULL && strstr(p, "vgpreload") != NULL;
}

/* Is this build slower by an order of magnitude? Then fewer rounds are
 * enough. */
static inline bool rig_slow(void) { return RIG_TSAN || rig_valgrind(); }

/* Returns why nothing is recorded, or "". */
static inline const char *rig_problem(void) {
    static char why[OPS_PROBLEM_MAX];
    ops_problem(why, sizeof why);
    return why;
}

/* Is this the long form: REC_FULL=1, as `./dev test --full` has it? */
static inline bool rig_full(void) {
    const char *t = getenv("REC_FULL");
    return t != NULL && strcmp(t, "1") == 0 && !rig_slow();
}

static inline uint64_t rig_now_ns(clockid_t clock) {
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void rig_sleep_us(long us) {
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

/* --- folders ------------------------------------------------------------ */

static char rig_dir[PATH_MAX];
static uint64_t rig_made_ns; /* when, by CLOCK_MONOTONIC */

/* Takes the recorder's variables out of the environment, too. */
static inline void rig_make_dir(void) {
    /* clang-format off */
    static const char *const vars[] = {
        "OPSCOPE_LOGDIR", "OPSCOPE_RUN", "OPSCOPE_STEPS", "OPSCOPE_FLIGHT",
        "OPSCOPE_SIGNAL", "OPSCOPE_RING_BYTES", "OPSCOPE_MEMORY_BYTES",
        "OPSCOPE_MACHINE", "OPSCOPE_TSC", "OPSCOPE_FORK", "OPSCOPE_SHM",
        "OPSCOPE_DEMAND",
        "OPSCOPE_HOST", "RANK", "WORLD_SIZE", "OPSCOPE",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) unsetenv(vars[i]);
    if (mkdtemp(temp_name(rig_dir, "rec")) == NULL) abort();
    rig_made_ns = rig_now_ns(CLOCK_MONOTONIC);
}

/* Removes a pointer's ring, too, which a program that was ended may have left:
 * without its pointer nobody would find it. */
static inline void rig_remove_ring(const char *pointer) {
    char ring[PATH_MAX];
    struct stat st;
    /* some tests make pointers that are pipes, or links to devices */
    int fd = open(pointer, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? read(fd, ring, sizeof ring - 1)
                    : 0;
    close(fd);
    ring[n > 0 ? n : 0] = '\0';
    ring[strcspn(ring, "\n")] = '\0';
    if (strncmp(ring, "/dev/shm/opscope-", 17) == 0) unlink(ring);
}

static inline int rig_remove_one(const char *path, const struct stat *st,
                                 int type, struct FTW *f) {
    (void)st;
    (void)type;
    (void)f;
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".ring") == 0) rig_remove_ring(path);
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static inline void rig_remove_dir(void) {
    nftw(rig_dir, rig_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns how many files under every run's folder have names that end like
 * this. */
static inline size_t rig_files(const char *end, glob_t *g) {
    char pattern[PATH_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*%s", rig_dir, end);
    int rc = glob(pattern, 0, NULL, g);
    if (rc == GLOB_NOMATCH) memset(g, 0, sizeof *g);
    return rc == 0 ? g->gl_pathc : 0;
}

static inline size_t rig_count(const char *end) {
    glob_t g;
    size_t n = rig_files(end, &g);
    if (n > 0) globfree(&g);
    return n;
}

/* Loads all profiles that are closed. Returns how many. */
static inline size_t rig_load(struct xs *x) {
    glob_t g;
    size_t n = rig_files(".xplane.pb", &g);
    for (size_t i = 0; i < n; i++) xs_load(x, g.gl_pathv[i]);
    if (n > 0) globfree(&g);
    return n;
}

/* Does for the dead what ops_stop would have done. Returns how many there were.
 * A problem ends the test. */
static inline size_t rig_rescue(void) {
    glob_t g;
    char why[512];
    size_t n = rig_files(".ring", &g);
    for (size_t i = 0; i < n; i++) {
        struct recover_closed saved;
        if (recover_close(g.gl_pathv[i], &saved, why, sizeof why) == 0)
            continue;
        printf("rescue of %s: %s\n", g.gl_pathv[i], why);
        fflush(stdout);
        abort();
    }
    if (n > 0) globfree(&g);
    return n;
}

/* Returns how many ring files of a process are still in the memory file
 * system. Process numbers come again: a ring that is older than the folder is
 * of another test's dead program, and its name says when it was made. */
static inline size_t rig_rings(pid_t pid) {
    char pattern[128];
    glob_t g;
    size_t n = 0;
    snprintf(pattern, sizeof pattern, "/dev/shm/opscope-%u-%d-*",
             (unsigned)getuid(), (int)pid);
    if (glob(pattern, 0, NULL, &g) != 0) return 0;
    for (size_t i = 0; i < g.gl_pathc; i++)
        n += strtoull(strrchr(g.gl_pathv[i], '-') + 1, NULL, 16) >= rig_made_ns;
    globfree(&g);
    return n;
}

/* --- children ----------------------------------------------------------- */

/* What a program did, as seen from outside. */
struct rig_end {
    pid_t pid;
    int status;
    char out[8192]; /* its stdout and stderr */
};

static inline pid_t rig_fork(void (*run)(void *), void *arg, int out) {
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid != 0) return pid;
    if (out >= 0) {
        dup2(out, 1);
        dup2(out, 2);
    }
    run(arg);
    exit(0);
}

static inline struct rig_end rig_run(void (*run)(void *), void *arg) {
    struct rig_end e = {0};
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/output", rig_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    e.pid = rig_fork(run, arg, fd);
    while (waitpid(e.pid, &e.status, 0) < 0 && errno == EINTR) {
    }
    ssize_t n = pread(fd, e.out, sizeof e.out - 1, 0);
    e.out[n > 0 ? n : 0] = 0;
    close(fd);
    unlink(path);
    return e;
}

/* Returns memory that children share with the test, all 0. A program has one
 * block: the next case gets the same again. */
static inline void *rig_shared(size_t n) {
    static void *block;
    if (block == NULL)
        block = mmap(NULL, n, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) abort();
    return memset(block, 0, n);
}

/* --- recording ---------------------------------------------------------- */

static struct ops_options rig_options; /* of rig_begin(); set anew by CASE */
static bool rig_on = true;             /* does rig_begin() start anything? */

/* Starts the recorder in a child, or says why it cannot and ends. */
static inline void rig_begin(void) {
    if (rig_on && ops_start(rig_dir, &rig_options) != 0) {
        printf("start: %s\n", rig_problem());
        exit(99);
    }
}

/* Runs a program without the recorder, then with it: from outside both must
 * look the same. */
static inline struct rig_end rig_both(void (*run)(void *)) {
    size_t files = rig_count(".xplane.pb");
    rig_on = false;
    struct rig_end off = rig_run(run, NULL);
    assert_int_equal(rig_count(".xplane.pb"), files);
    rig_on = true;
    struct rig_end e = rig_run(run, NULL);
    if (e.status != off.status || strcmp(e.out, off.out) != 0)
        fail_msg("status %x and %x\nwithout: %s\nwith: %s", off.status,
                 e.status, off.out, e.out);
    return e;
}

/* --- cases -------------------------------------------------------------- */

static void (*rig_before)(void);

static inline int rig_set_up(void **state) {
    (void)state;
    rig_options = (struct ops_options){.no_machine = true};
    if (rig_before != NULL) rig_before();
    rig_make_dir();
    return 0;
}

static inline int rig_tear_down(void **state) {
    (void)state;
    rig_remove_dir();
    return 0;
}

/* A case with a folder of its own, and options that no other case has set. */
#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

/* Runs cases, a list of CASE(f); gives main()'s result. `before` (or NULL) is
 * called in front of each. */
#define RIG_CASES(name, before, ...)                                           \
    ({                                                                         \
        const struct CMUnitTest cases_[] = {__VA_ARGS__};                      \
        rig_before = (before);                                                 \
        cmocka_run_group_tests_name(name, cases_, NULL, NULL);                 \
    })

/* A program of nothing but cases. */
#define RIG_MAIN(name, before, ...)                                            \
    int main(void) { return RIG_CASES(name, before, __VA_ARGS__); }

#endif
