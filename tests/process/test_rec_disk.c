/* SPDX-License-Identifier: Apache-2.0
 * Disks that are full, gone, read-only or small: the program goes on, what did
 * not get through is counted, and nothing that is there is harmed. Cases that
 * need a file system of their own mount one in a namespace, where that is
 * allowed. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

static void record(int from, int to) {
    for (int i = from; i < to; i++) {
        OPS_SCOPE_INT("work", "seq", i);
        if (i % 100 == 0) ops_scalar("loss", i, 1);
    }
}

/* Every number once, in any order; how many there are. */
static size_t check_once(const struct xs *x, int64_t n) {
    uint8_t *seen = calloc((size_t)n, 1);
    size_t found = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->v[i].name, "work") != 0) continue;
        int64_t k = xs_int(x, &x->v[i], "seq", -1);
        assert_true(k >= 0 && k < n);
        assert_int_equal(seen[k]++, 0);
        found++;
    }
    free(seen);
    return found;
}

/* The steps of all scalars in the event files, none twice. */
static size_t check_scalars(void) {
    char pattern[PATH_MAX + 32];
    uint8_t seen[4096] = {0};
    size_t found = 0;
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/events.out.*", rig_dir);
    if (glob(pattern, 0, NULL, &g) != 0) return 0;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        uint8_t head[12], data[256], crc[4];
        uint64_t n, step = 0;
        FILE *in = fopen(g.gl_pathv[i], "rb");
        while (fread(head, sizeof head, 1, in) == 1) {
            bool value = false;
            struct xs_field f;
            memcpy(&n, head, 8);
            assert_true(n <= sizeof data);
            assert_int_equal(fread(data, n, 1, in), 1);
            assert_int_equal(fread(crc, sizeof crc, 1, in), 1);
            struct xs_bytes b = {data, n};
            step = 0;
            while (xs_next(&b, &f)) {
                if (f.number == 2) step = f.v;
                if (f.number == 5) value = true;
            }
            if (!value) continue;
            assert_true(step / 100 < sizeof seen);
            assert_int_equal(seen[step / 100]++, 0);
            found++;
        }
        fclose(in);
    }
    globfree(&g);
    return found;
}

static struct rig_end run_well(void (*run)(void *)) {
    struct rig_end e = rig_run(run, NULL);
    if (e.status != 0) fail_msg("status %x: %s", e.status, e.out);
    return e;
}

/* --- a limit on files --------------------------------------------------- */

enum { FIRST = 1000, PASSES = 40, MANY = 400 };

static void limit_files(rlim_t bytes) {
    struct rlimit l;
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &l);
}

/* The disk is full for a while. */
static void run_full(void *arg) {
    int n = 0;
    (void)arg;
    signal(SIGXFSZ, SIG_DFL); /* it would kill */
    rig_begin();
    record(n, n + FIRST);
    n += FIRST;
    ops_flush();
    limit_files(64 << 10);
    for (int i = 0; i < PASSES; i++, n += MANY) {
        record(n, n + MANY);
        ops_flush();
    }
    if (ops_problem(NULL, 0) == 0) exit(90);
    limit_files(RLIM_INFINITY);
    record(n, n + FIRST);
    ops_flush();
    record(n + FIRST, n + 2 * FIRST);
    if (ops_problem(NULL, 0) != 0) exit(91);
    exit(0);
}

static void test_full(void **state) {
    struct xs x = {0};
    enum { ALL = 3 * FIRST + PASSES * MANY };
    (void)state;
    rig_options.ring_bytes = 64 << 10; /* it fills, and drops */
    run_well(run_full);
    assert_int_equal(rig_load(&x), 1);
    size_t found = check_once(&x, ALL), points = check_scalars();
    assert_true(xs_dropped(&x) > 0);
    assert_int_equal(found + points + xs_dropped(&x), ALL + ALL / 100);
    assert_int_equal(rig_count(".ring"), 0);
    xs_free(&x);
}

/* It stays full: what is in the rings stays there for a rescue. */
static void run_full_to_the_end(void *arg) {
    (void)arg;
    rig_begin();
    record(0, FIRST);
    ops_flush();
    limit_files(16 << 10);
    record(FIRST, 2 * FIRST);
    exit(0);
}

static void test_full_to_the_end(void **state) {
    struct xs x = {0};
    (void)state;
    rig_options.ring_bytes = 1 << 20;
    run_well(run_full_to_the_end);
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_load(&x), 1);
    assert_int_equal(check_once(&x, 2 * FIRST), 2 * FIRST);
    assert_int_equal(check_scalars(), 2 * FIRST / 100);
    xs_free(&x);
}

/* No ring fits, or not even the tables before them. */
static void run_no_room(void *arg) {
    (void)arg;
    for (rlim_t kb = 1024; kb >= 976; kb -= 48) {
        limit_files(kb << 10);
        if (ops_start(rig_dir, &rig_options) != -1) exit(92);
        if (strstr(rig_problem(), "(ulimit -f)") == NULL) exit(91);
        record(0, 10);
        ops_stop();
    }
    exit(0);
}

static void test_no_room(void **state) {
    (void)state;
    struct rig_end e = run_well(run_no_room);
    assert_string_equal(e.out, "");
    assert_int_equal(rig_count(""), 0); /* nothing is left behind */
    assert_int_equal(rig_rings(e.pid), 0);
}

/* --- folders ------------------------------------------------------------ */

static void run_removed(void *arg) {
    (void)arg;
    rig_begin();
    record(0, FIRST);
    ops_flush();
    rig_remove_dir();
    record(FIRST, 2 * FIRST);
    ops_flush();
    ops_dump();
    record(2 * FIRST, 3 * FIRST);
    ops_stop();
    exit(0);
}

static void test_removed(void **state) {
    (void)state;
    struct rig_end e = run_well(run_removed);
    assert_string_equal(e.out, "");
    assert_int_equal(rig_rings(e.pid), 0);
}

/* It is told while the program runs, and the folder does not come back: whoever
 * removed it meant it. */
static void run_told(void *arg) {
    (void)arg;
    rig_begin();
    record(0, FIRST);
    ops_scalar("loss", 1, 1);
    ops_flush();
    rig_remove_dir();
    for (int i = 0; i < 500 && ops_problem(NULL, 0) == 0; i++)
        rig_sleep_us(10000);
    printf("%s\n", rig_problem());
    ops_scalar("loss", 2, 1);
    ops_flush();
    ops_stop();
    exit(access(rig_dir, F_OK) == 0 ? 96 : 0);
}

static void test_removed_is_told(void **state) {
    (void)state;
    char dir[PATH_MAX];
    memcpy(dir, rig_dir, sizeof dir);
    rig_options.no_machine = true;
    int fd = memfd_create("output", 0); /* the other one would be removed */
    pid_t pid = rig_fork(run_told, NULL, fd);
    int status = -1;
    char out[256] = "";
    waitpid(pid, &status, 0);
    assert_true(pread(fd, out, sizeof out - 1, 0) > 0);
    close(fd);
    assert_int_equal(status, 0);
    assert_non_null(strstr(out, "the log folder was removed"));
    assert_int_equal(rig_rings(pid), 0);
}

static void run_not_a_folder(void *arg) {
    char path[PATH_MAX + 16];
    (void)arg;
    snprintf(path, sizeof path, "%s/file", rig_dir);
    close(open(path, O_WRONLY | O_CREAT, 0666));
    if (ops_start(path, &rig_options) != -1 || ops_problem(NULL, 0) == 0)
        exit(93);
    record(0, 10);
    snprintf(path, sizeof path, "%s/file/below", rig_dir);
    if (ops_start(path, &rig_options) != -1) exit(94);
    if (ops_start("/proc/nothing/here", &rig_options) != -1) exit(95);
    record(0, 10);
    exit(0);
}

/* Starts in the folder `below` rig_dir, which must fail. Returns the problem
 * behind the path of rig_dir. */
static const char *problem_of(const char *below) {
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", rig_dir, below);
    if (ops_start(path, &rig_options) != -1) exit(90);
    const char *why = rig_problem();
    size_t n = strlen(rig_dir);
    return strncmp(why, rig_dir, n) == 0 ? why + n : why;
}

static void make_file(const char *below) {
    char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%.280s", rig_dir, below);
    close(open(path, O_WRONLY | O_CREAT, 0666));
}

/* What is no folder is named, and nothing above or below it. */
static void run_whose_fault(void *arg) {
    char path[PATH_MAX + 32];
    (void)arg;
    make_file("file");
    printf("%s\n", problem_of("file/a/b/c"));
    for (const char *const *p = (const char *const[]){"l", "l/plugins", NULL};
         *p != NULL; p++) {
        snprintf(path, sizeof path, "%s/%s", rig_dir, *p);
        mkdir(path, 0777);
    }
    make_file("l/plugins/profile");
    printf("%s\n", problem_of("l"));
    snprintf(path, sizeof path, "%s/m", rig_dir);
    mkdir(path, 0777);
    make_file("m/plugins");
    printf("%s\n", problem_of("m"));
    exit(0);
}

static void test_whose_fault_it_is(void **state) {
    (void)state;
    struct rig_end e = run_well(run_whose_fault);
    assert_string_equal(e.out, "/file: Not a directory\n"
                               "/l/plugins/profile: Not a directory\n"
                               "/m/plugins: Not a directory\n");
}

/* Of a path that is too long to be told its middle is left out. */
static void run_long_path(void *arg) {
    char name[241];
    (void)arg;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    make_file(name);
    problem_of(name);
    printf("%s\n", rig_problem());
    exit(0);
}

static void test_long_path_leaves_room_for_the_reason(void **state) {
    (void)state;
    struct rig_end e = run_well(run_long_path);
    assert_in_range(strlen(e.out), OPS_PROBLEM_MAX - 2, OPS_PROBLEM_MAX);
    assert_non_null(strstr(e.out, "nnn...nnn"));
    assert_non_null(strstr(e.out, "nnn: Not a directory\n"));
}

/* A path in which nothing can be recorded is refused before any of it is
 * made. */
static void run_too_long_path(void *arg) {
    static char path[4300];
    static const size_t lengths[] = {700, 3000, 4200};
    (void)arg;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t k = 0; k < lengths[i]; k++) path[k] = k % 2 ? '/' : 'd';
        path[lengths[i] - 1] = 0;
        if (strstr(problem_of(path), "too long") == NULL) exit(89);
    }
    memset(path, 'd', NAME_MAX + 3);
    path[1] = '/';
    path[NAME_MAX + 3] = 0;
    if (strstr(problem_of(path), "too long") == NULL) exit(88);
    snprintf(path, sizeof path, "%s/d", rig_dir);
    exit(access(path, F_OK) == 0 ? 87 : 0);
}

static void test_too_long_path_makes_nothing(void **state) {
    (void)state;
    run_well(run_too_long_path);
}

static void test_not_a_folder(void **state) {
    (void)state;
    struct rig_end e = run_well(run_not_a_folder);
    assert_string_equal(e.out, "");
    assert_int_equal(rig_rings(e.pid), 0);
}

/* --- where the rings are ------------------------------------------------ */

static void run_and_die(void *arg) {
    (void)arg;
    rig_begin();
    record(0, FIRST);
    kill(getpid(), SIGKILL);
}

/* The pointer must lead there from anywhere. */
static void test_relative_shm(void **state) {
    char folder[PATH_MAX + 16], here[PATH_MAX];
    struct xs x = {0};
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(rig_dir), 0);
    assert_int_equal(mkdir("rings", 0700), 0);
    setenv("OPSCOPE_SHM", "rings", 1);
    struct rig_end e = rig_run(run_and_die, NULL);
    unsetenv("OPSCOPE_SHM");
    assert_int_equal(chdir(here), 0);
    assert_true(WIFSIGNALED(e.status));
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_count(".ring"), 0);
    rig_load(&x);
    assert_int_equal(check_once(&x, FIRST), FIRST);
    xs_free(&x);
    snprintf(folder, sizeof folder, "%s/rings", rig_dir);
    assert_int_equal(rmdir(folder), 0); /* it is empty */
}

static void run_little_memory(void *arg) {
    struct ops_options o = {.memory_bytes = 4096};
    (void)arg;
    if (ops_start(rig_dir, &o) != -1) exit(95);
    printf("%s\n", rig_problem());
    exit(0);
}

static void test_little_memory_is_told(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_little_memory, NULL);
    assert_int_equal(e.status, 0);
    assert_string_equal(e.out, "memory_bytes is too small: 262144 are the "
                               "least\n");
    assert_int_equal(rig_count(""), 0);
}

static void test_no_shm(void **state) {
    struct xs x = {0};
    (void)state;
    setenv("OPSCOPE_SHM", "/nonexistent", 1);
    struct rig_end e = rig_run(run_and_die, NULL);
    unsetenv("OPSCOPE_SHM");
    assert_true(WIFSIGNALED(e.status));
    assert_int_equal(rig_rings(e.pid), 0);
    assert_int_equal(rig_count(".rings"), 1); /* beside the profile */
    assert_int_equal(rig_rescue(), 1);
    assert_int_equal(rig_count(".rings"), 0);
    rig_load(&x);
    assert_int_equal(check_once(&x, FIRST), FIRST);
    xs_free(&x);
}

/* A file system of `size` at path, only for this process; false: we may not. */
static bool mount_small(const char *path, const char *size, bool read_only) {
    char how[64];
    uid_t uid = getuid();
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
        snprintf(how, sizeof how, "0 %u 1", (unsigned)uid);
        int fd = open("/proc/self/uid_map", O_WRONLY);
        bool ok = fd >= 0 && write(fd, how, strlen(how)) > 0;
        close(fd);
        if (!ok) return false;
    }
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    snprintf(how, sizeof how, "size=%s", size);
    return mount("tmpfs", path, "tmpfs", read_only ? MS_RDONLY : 0, how) == 0;
}

enum { NOT_ALLOWED = 77 };

/* /dev/shm is tiny: smaller rings, or beside the profile. */
static void run_small_shm(void *arg) {
    if (!mount_small("/dev/shm", arg, false)) exit(NOT_ALLOWED);
    rig_begin();
    for (int i = 0; i < 10; i++) {
        record(i * 100, i * 100 + 100);
        ops_flush();
    }
    exit(0);
}

static void test_small_shm(void **state) {
    static char *const sizes[] = {"64k", "24m", "40m"};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct xs x = {0};
        rig_remove_dir();
        rig_make_dir();
        struct rig_end e = rig_run(run_small_shm, sizes[i]);
        if (e.status == NOT_ALLOWED << 8)
            skip_because("mounts are not allowed here");
        if (e.status != 0) fail_msg("%s: %x %s", sizes[i], e.status, e.out);
        assert_int_equal(rig_load(&x), 1);
        assert_int_equal(check_once(&x, 1000), 1000);
        xs_free(&x);
    }
}

/* The memory for rings is taken by somebody else, after the start. */
enum { SHM_SCOPES = 300000, SHM_NAMES = 20000, SHM_STEPS = 300 };

static void fill_folder(const char *folder) {
    static char page[4096];
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/fill", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    while (write(fd, page, sizeof page) == (ssize_t)sizeof page) {
    }
    close(fd);
}

static void run_shm_filled(void *arg) {
    char name[32];
    if (!mount_small(arg, "2m", false)) exit(NOT_ALLOWED);
    setenv("OPSCOPE_SHM", arg, 1);
    rig_begin();
    fill_folder(arg);
    for (int i = 0; i < SHM_SCOPES; i++) {
        if (i % (SHM_SCOPES / SHM_STEPS) == 0) ops_step(i);
        OPS_SCOPE("work");
    }
    ops_step_end();
    for (int i = 0; i < SHM_NAMES; i++) {
        snprintf(name, sizeof name, "name %d", i);
        OPS_SCOPE(name);
    }
    ops_stop();
    printf("%s\n", rig_problem());
    exit(0);
}

static void test_shm_filled(void **state) {
    char folder[PATH_MAX + 16];
    struct xs x = {0};
    (void)state;
    snprintf(folder, sizeof folder, "%s/shm", rig_dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    rig_options.no_machine = true;
    struct rig_end e = rig_run(run_shm_filled, folder);
    if (e.status == NOT_ALLOWED << 8)
        skip_because("mounts are not allowed here");
    if (e.status != 0) fail_msg("%x %s", e.status, e.out);
    assert_string_equal(e.out, "no more memory for the rings: calls are lost: "
                               "No space left on device\n");
    assert_int_equal(rig_load(&x), 1);
    size_t there = 0;
    for (size_t i = 0; i < x.n; i++) there += !xs_own(&x.v[i]);
    /* each call once, whether its name is lost or not */
    uint64_t lost = xs_dropped(&x) + (uint64_t)xs_fact(&x, "dropped_traces", 0);
    assert_true(lost > 0);
    assert_int_equal(there + lost, SHM_SCOPES + SHM_NAMES + SHM_STEPS);
    xs_free(&x);
}

/* The log folder's disk is full. The result is seen from inside: outside there
 * is nothing. */
static void run_small_disk(void *arg) {
    char why[256], big[PATH_MAX + 16];
    glob_t g;
    struct recover_closed saved;
    (void)arg;
    if (!mount_small(rig_dir, "512k", false)) exit(NOT_ALLOWED);
    rig_begin();
    for (int i = 0; i < 40; i++) {
        record(i * 1000, i * 1000 + 1000);
        ops_flush();
    }
    if (strstr(rig_problem(), "No space") == NULL) {
        printf("problem: %s\n", rig_problem());
        exit(96);
    }
    ops_stop();
    /* what is left waits for room: a rescue says so and changes nothing */
    if (rig_files(".ring", &g) != 1) exit(97);
    if (recover_close(g.gl_pathv[0], &saved, why, sizeof why) == 0) exit(89);
    snprintf(big, sizeof big, "%s", rig_dir);
    if (mount("tmpfs", big, "tmpfs", MS_REMOUNT, "size=16m") != 0) exit(88);
    struct xs x = {0};
    rig_rescue();
    if (rig_load(&x) != 1) exit(87);
    size_t found = check_once(&x, 40000);
    if (found + check_scalars() + xs_dropped(&x) != 40000 + 400) {
        printf("%zu there, %zu points, %zu dropped\n", found, check_scalars(),
               (size_t)xs_dropped(&x));
        exit(86);
    }
    exit(0);
}

static void test_small_disk(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_small_disk, NULL);
    if (e.status == NOT_ALLOWED << 8)
        skip_because("mounts are not allowed here");
    if (e.status != 0) fail_msg("%x %s", e.status, e.out);
}

static void run_read_only(void *arg) {
    (void)arg;
    if (!mount_small(rig_dir, "512k", true)) exit(NOT_ALLOWED);
    if (ops_start(rig_dir, &rig_options) != -1 || ops_problem(NULL, 0) == 0)
        exit(98);
    record(0, 10);
    exit(0);
}

static void test_read_only(void **state) {
    (void)state;
    struct rig_end e = rig_run(run_read_only, NULL);
    if (e.status == NOT_ALLOWED << 8)
        skip_because("mounts are not allowed here");
    if (e.status != 0) fail_msg("%x %s", e.status, e.out);
    assert_string_equal(e.out, "");
    assert_int_equal(rig_rings(e.pid), 0);
}

/* Killed while it was started: a pointer, and a ring file without its magic.
 * There is nothing to save, and nothing stays. */
static void test_never_begun(void **state) {
    char run[PATH_MAX + 32], ring[PATH_MAX + 64], pointer[PATH_MAX + 64];
    char why[256] = "";
    struct recovered rest;
    (void)state;
    for (int bytes = 0; bytes <= 1 << 20; bytes += 1 << 20) {
        snprintf(run, sizeof run, "%s/plugins", rig_dir);
        mkdir(run, 0777);
        snprintf(run, sizeof run, "%s/plugins/profile", rig_dir);
        mkdir(run, 0777);
        snprintf(run, sizeof run, "%s/plugins/profile/run", rig_dir);
        mkdir(run, 0777);
        snprintf(ring, sizeof ring, "%s/box_1.rings", run);
        snprintf(pointer, sizeof pointer, "%s/box_1.ring", run);
        int fd = open(ring, O_RDWR | O_CREAT, 0600);
        assert_int_equal(ftruncate(fd, bytes), 0);
        close(fd);
        FILE *f = fopen(pointer, "w");
        fprintf(f, "%s\n", ring);
        fclose(f);
        assert_int_equal(recover_read(pointer, &rest, why, sizeof why), 0);
        assert_int_equal(rest.state, RECOVER_CLOSED);
        assert_null(rest.p);
        assert_int_equal(rig_rescue(), 1);
        assert_int_equal(access(ring, F_OK), -1);
        assert_int_equal(access(pointer, F_OK), -1);
    }
}

/* --- the harness -------------------------------------------------------- */

RIG_MAIN("rec_disk", NULL, CASE(test_full), CASE(test_full_to_the_end),
         CASE(test_no_room), CASE(test_removed), CASE(test_not_a_folder),
         CASE(test_whose_fault_it_is),
         CASE(test_long_path_leaves_room_for_the_reason),
         CASE(test_too_long_path_makes_nothing), CASE(test_no_shm),
         CASE(test_small_shm), CASE(test_shm_filled), CASE(test_small_disk),
         CASE(test_read_only), CASE(test_never_begun),
         CASE(test_removed_is_told), CASE(test_relative_shm),
         CASE(test_little_memory_is_told))
