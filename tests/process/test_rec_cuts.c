/* SPDX-License-Identifier: Apache-2.0
 * Killed at every single operation on files: before the first, before the
 * second, ..., of a dump, of a stop, of a rescue; and in the middle of every
 * write. Afterwards a rescue finds everything once.
 *
 * The calls are our own here: they count, and end the process when it is time.
 * test_rec_kill has random moments, this has all of them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"
#include "rec/syscalls.h"

enum { FIRST = 50, SECOND = 50, MOST = 2000 };

/* --- the knife ---------------------------------------------------------- */

static bool armed;
static long die_at, operations;
static bool halves; /* a write gets half through */

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static bool is_time(void) {
    return __atomic_load_n(&armed, __ATOMIC_ACQUIRE) &&
           __atomic_add_fetch(&operations, 1, __ATOMIC_RELAXED) == die_at;
}

static bool look_at_syscall(long number, const long arg[6], long *result) {
    long a[6];
    (void)result;
    if (number != SYS_pwrite64 && number != SYS_openat) return false;
    if (!is_time()) return false;
    memcpy(a, arg, sizeof a);
    a[2] /= 2;
    if (number == SYS_pwrite64 && halves) real_syscall(number, a);
    die();
    return true;
}

int ftruncate(int fd, off_t n) {
    if (is_time()) die();
    return (int)real_syscall(SYS_ftruncate, (long[6]){fd, n});
}

int unlink(const char *path) {
    if (is_time()) die();
    return (int)real_syscall(SYS_unlinkat, (long[6]){AT_FDCWD, (long)path});
}

int unlinkat(int dir, const char *path, int flags) {
    if (is_time()) die();
    return (int)real_syscall(SYS_unlinkat, (long[6]){dir, (long)path, flags});
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    if (is_time()) die();
    return (int)real_syscall(SYS_linkat,
                             (long[6]){a, (long)from, b, (long)to, flags});
}

int mkdirat(int dir, const char *path, mode_t mode) {
    if (is_time()) die();
    return (int)real_syscall(SYS_mkdirat, (long[6]){dir, (long)path, mode});
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    if (is_time()) die();
    return (int)real_syscall(SYS_renameat2,
                             (long[6]){a, (long)from, b, (long)to, flags});
}

/* --- the program -------------------------------------------------------- */

static struct {
    int scopes, spans, points; /* whose calls have returned */
} * done;
enum when { NEVER, AT_START, AT_DUMP, AT_STOP };
static enum when when;

static void arm(enum when now) {
    if (now == when) __atomic_store_n(&armed, true, __ATOMIC_RELEASE);
}

static void record(uint32_t track, int from, int to) {
    for (int i = from; i < to; i++) {
        { OPS_SCOPE_INT("scope", "seq", i); }
        done->scopes = i + 1;
        uint64_t now = ops_now();
        ops_device_span(track, "span", now, now + 1, (uint64_t)i + 1);
        done->spans = i + 1;
        ops_scalar("point", i, 1);
        done->points = i + 1;
    }
}

static void program(void *arg) {
    (void)arg;
    arm(AT_START);
    if (ops_start(rig_dir, &rig_options) != 0) exit(99);
    if (when == AT_START) __atomic_store_n(&armed, false, __ATOMIC_RELEASE);
    uint32_t track = ops_device_track("npu", "queue");
    ops_begin("open");
    record(track, 0, FIRST);
    arm(AT_DUMP);
    if (when != AT_STOP && ops_dump() != 0) exit(98);
    record(track, FIRST, FIRST + SECOND);
    if (when == NEVER) die(); /* for the rescuer's own cuts */
    arm(AT_STOP);
    ops_stop();
    exit(0);
}

/* --- what is left ------------------------------------------------------- */

static void once(uint8_t seen[], int64_t number, const char *what) {
    if (number < 0 || number >= FIRST + SECOND)
        fail_msg("cut %ld: %s %lld", die_at, what, (long long)number);
    if (seen[number]++ != 0)
        fail_msg("cut %ld: %s %lld is there twice", die_at, what,
                 (long long)number);
}

static void all_of(const uint8_t seen[], int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (!seen[i]) fail_msg("cut %ld: %s %d is gone", die_at, what, i);
}

static void read_points(uint8_t seen[]) {
    char pattern[PATH_MAX + 32];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/events.out.*", rig_dir);
    if (glob(pattern, 0, NULL, &g) != 0) return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        uint8_t head[12], data[256], crc[4];
        FILE *in = fopen(g.gl_pathv[i], "rb");
        while (fread(head, sizeof head, 1, in) == 1) {
            struct xs_field f;
            uint64_t n, step = 0;
            bool value = false;
            memcpy(&n, head, 8);
            assert_true(n <= sizeof data);
            assert_int_equal(fread(data, n, 1, in), 1);
            assert_int_equal(fread(crc, sizeof crc, 1, in), 1);
            struct xs_bytes b = {data, n};
            while (xs_next(&b, &f)) {
                if (f.number == 2) step = f.v;
                if (f.number == 5) value = true;
            }
            if (value) once(seen, (int64_t)step, "point");
        }
        fclose(in);
    }
    globfree(&g);
}

/* Removes a pointer that names no file yet, of a program killed before it could
 * say anything: such a pointer stays for a minute, since its program might be
 * alive. */
static void drop_bare_pointer(void) {
    glob_t g;
    size_t n = rig_files(".ring", &g);
    for (size_t i = 0; i < n; i++) {
        char ring[PATH_MAX] = "", why[256];
        struct recover_closed saved;
        FILE *f = fopen(g.gl_pathv[i], "r");
        bool named = fgets(ring, sizeof ring, f) != NULL;
        fclose(f);
        ring[strcspn(ring, "\n")] = 0;
        if ((named && access(ring, F_OK) == 0) || rig_count(".xplane.pb") > 0)
            continue;
        struct timespec old[2] = {{1, 0}, {1, 0}};
        assert_int_not_equal(recover_close(g.gl_pathv[i], &saved, why,
                                           sizeof why),
                             0);
        utimensat(AT_FDCWD, g.gl_pathv[i], old, 0);
    }
    if (n > 0) globfree(&g);
}

static void check(bool closed) {
    uint8_t scopes[FIRST + SECOND] = {0}, spans[FIRST + SECOND] = {0},
                           points[FIRST + SECOND] = {0};
    struct xs x = {0};
    size_t open = 0, bare = 0;
    if (when == AT_START) drop_bare_pointer();
    rig_rescue();
    if (rig_count(".part") + rig_count(".ring") + rig_count(".rings") != 0)
        fail_msg("cut %ld leaves files behind", die_at);
    rig_load(&x);
    for (size_t i = 0; i < x.n; i++) {
        const struct xs_event *e = &x.v[i];
        if (strcmp(e->name, "scope") == 0) {
            int64_t seq = xs_int(&x, e, "seq", -1);
            if (seq >= 0) once(scopes, seq, "scope");
            else bare++;
        }
        if (strcmp(e->name, "span") == 0)
            once(spans, xs_int(&x, e, "correlation_id", 0) - 1, "span");
        open += strcmp(e->name, "open") == 0;
    }
    /* A scope and its argument are two calls; the flusher may be cut while the
     * program stands between them. */
    if (bare > (closed ? 0 : 1))
        fail_msg("cut %ld: %zu scopes without their number", die_at, bare);
    read_points(points);
    all_of(scopes, done->scopes, "scope");
    all_of(spans, done->spans, "span");
    all_of(points, done->points, "point");
    if (done->scopes > 0 || closed) assert_int_equal(open, 1);
    xs_free(&x);
}

/* --- every cut ---------------------------------------------------------- */

static bool cut_program(enum when moment, long k) {
    rig_make_dir();
    memset(done, 0, sizeof *done);
    when = moment;
    die_at = k;
    struct rig_end e = rig_run(program, NULL);
    bool ended = WIFEXITED(e.status);
    if (ended && e.status != 0) fail_msg("cut %ld: %x", k, e.status);
    return ended;
}

static long stride(void) { return rig_slow() ? 9 : 1; }

static void cut_everywhere(enum when moment) {
    long k = 1;
    for (bool ended = false; !ended; k += stride()) {
        ended = cut_program(moment, k);
        check(ended);
        rig_remove_dir();
        assert_true(k < MOST);
    }
    assert_true(k > 10); /* it did cut */
}

static void test_start(void **state) {
    (void)state;
    cut_everywhere(AT_START);
}

static void test_dump(void **state) {
    (void)state;
    cut_everywhere(AT_DUMP);
    halves = true;
    cut_everywhere(AT_DUMP);
    halves = false;
}

static void test_stop(void **state) {
    (void)state;
    cut_everywhere(AT_STOP);
}

static void rescuer(void *arg) {
    (void)arg;
    armed = true;
    rig_rescue();
    _exit(0);
}

static void test_rescue(void **state) {
    (void)state;
    long k = 1;
    for (bool ended = false; !ended; k += stride()) {
        cut_program(NEVER, 0);
        die_at = k;
        halves = k % 2;
        struct rig_end e = rig_run(rescuer, NULL);
        ended = WIFEXITED(e.status);
        if (ended) assert_int_equal(e.status, 0);
        check(true);
        rig_remove_dir();
        assert_true(k < MOST);
    }
    assert_true(k > 10);
}

static int set_up(void **state) {
    (void)state;
    rig_options = (struct ops_options){.no_machine = true,
                                       .no_tsc = true,
                                       .ring_bytes = 64 << 10};
    done = rig_shared(sizeof *done);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_rescue),
    };
    return cmocka_run_group_tests_name("rec_cuts", tests, set_up, NULL);
}
