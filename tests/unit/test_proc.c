/* SPDX-License-Identifier: Apache-2.0
 * Files of /proc: what they say of ourselves against what the kernel says by
 * other ways; and texts that are not what they should be. */
#include "capture/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char whole[] =
    "4711 (tr) (a in) S 17 4711 17 0 -1 4194304 1234 56 7 8 91 92 93 94 20 0 "
    "5 0 123456 1000000 777 18446744073709551615 1 1 0 0 0\n";

static void a_stat_is_read_field_by_field(void **state) {
    (void)state;
    struct proc_stat st;
    assert_true(proc_stat_parse(whole, sizeof whole - 1, &st));
    assert_string_equal(st.name, "tr) (a in"); /* up to the last ')' */
    assert_int_equal(st.state, 'S');
    assert_false(st.leaves);
    assert_int_equal(st.ppid, 17);
    assert_int_equal(st.minor_faults, 1234);
    assert_int_equal(st.child_faults, 56 + 8);
    assert_int_equal(st.major_faults, 7);
    assert_int_equal(st.user_ticks, 91);
    assert_int_equal(st.sys_ticks, 92);
    assert_int_equal(st.child_user_ticks, 93);
    assert_int_equal(st.child_sys_ticks, 94);
    assert_int_equal(st.threads, 5);
    assert_int_equal(st.start_ticks, 123456);
    assert_int_equal(st.rss_pages, 777);
}

/* Every cut is refused or, once all fields are there, read; nothing behind the
 * cut is looked at (the sanitizer watches the copy's end). */
static void a_stat_cut_anywhere_does_no_harm(void **state) {
    (void)state;
    size_t need = (size_t)(strstr(whole, " 18446") - whole);
    for (size_t n = 0; n < sizeof whole; n++) {
        char *copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy, whole, n);
        struct proc_stat st;
        bool ok = proc_stat_parse(copy, n, &st);
        /* the last number may be cut and still be one */
        if (n < need - 2) assert_false(ok);
        if (n >= need) assert_true(ok && st.rss_pages == 777);
        free(copy);
    }
}

static void odd_stats_are_refused_or_bounded(void **state) {
    (void)state;
    struct proc_stat st;
    assert_false(proc_stat_parse("", 0, &st));
    assert_false(proc_stat_parse("()", 2, &st));
    assert_false(proc_stat_parse("1 (a) S x", 9, &st));
    char text[512];
    int n = snprintf(text, sizeof text,
                     "1 (%0200d\n\x7f) R 1 2 3 4 5 6 7 8 9 "
                     "10 11 12 13 14 15 16 17 18 "
                     "99999999999999999999999999999 20 21 22",
                     0);
    assert_true(proc_stat_parse(text, (size_t)n, &st));
    assert_int_equal(strlen(st.name), PROC_NAME - 1);
    assert_true(st.start_ticks > 0);
}

static void our_own_figures_are_the_kernels(void **state) {
    (void)state;
    struct proc_stat st;
    struct rusage a, b;
    int64_t run, wait, turns, cpu;
    struct timespec ts;
    prctl(PR_SET_NAME, "od) d", 0, 0, 0);
    getrusage(RUSAGE_SELF, &a);
    assert_true(proc_stat_read(getpid(), 0, &st));
    getrusage(RUSAGE_SELF, &b);
    assert_string_equal(st.name, "od) d");
    assert_false(st.leaves);
    assert_int_equal(st.ppid, getppid());
    assert_int_equal(st.threads, 1);
    assert_true(st.minor_faults >= a.ru_minflt &&
                st.minor_faults <= b.ru_minflt);
    assert_true(proc_stat_read(getpid(), getpid(), &st));
    assert_string_equal(st.name, "od) d");
    cpu = proc_cpu_ns(getpid());
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    assert_true(cpu > 0 && cpu <= (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
    if (proc_sched_read(getpid(), getpid(), &run, &wait, &turns)) {
        assert_true(run > 0 && wait >= 0 && turns > 0);
        assert_true(run <= proc_cpu_ns(getpid()));
    }
    /* the peak is at least what is resident now (counted in batches) */
    assert_true(proc_peak_rss(getpid()) + (1 << 20) >=
                st.rss_pages * sysconf(_SC_PAGESIZE));
}

static void what_is_gone_is_told_as_gone(void **state) {
    (void)state;
    struct proc_stat st;
    int64_t a, b, c;
    char text[64];
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    /* dead, not reaped: figures are there, the command line is not */
    assert_true(proc_stat_read(pid, 0, &st));
    assert_int_equal(st.state, 'Z');
    assert_true(st.leaves);
    assert_true(proc_cpu_ns(pid) >= 0);
    assert_int_equal(proc_command(pid, text, sizeof text), 0);
    assert_int_equal(proc_peak_rss(pid), UNKNOWN);
    waitpid(pid, NULL, 0);
    assert_false(proc_stat_read(pid, 0, &st));
    assert_false(proc_sched_read(pid, pid, &a, &b, &c));
    assert_false(proc_io_read(pid, &a, &b));
    assert_int_equal(proc_cpu_ns(pid), UNKNOWN);
    assert_false(proc_list(pid, NULL, NULL));
}

static void count(void *ctx, int32_t id) {
    int32_t *v = ctx;
    if (id == getpid()) v[0]++;
    v[1]++;
}

static void lists_have_us_once(void **state) {
    (void)state;
    int32_t seen[2] = {0, 0};
    assert_true(proc_list(0, count, seen));
    assert_int_equal(seen[0], 1);
    assert_true(seen[1] > 1);
    seen[0] = seen[1] = 0;
    assert_true(proc_list(getpid(), count, seen));
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 1);
}

static void a_command_line_is_cut_to_fit(void **state) {
    (void)state;
    char small[4], large[4096];
    assert_int_equal(proc_command(getpid(), small, sizeof small), 3);
    size_t n = proc_command(getpid(), large, sizeof large);
    assert_int_equal(n, strlen(large));
    assert_memory_equal(small, large, 3);
    assert_non_null(strstr(large, "test_proc"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stat_is_read_field_by_field),
        cmocka_unit_test(a_stat_cut_anywhere_does_no_harm),
        cmocka_unit_test(odd_stats_are_refused_or_bounded),
        cmocka_unit_test(our_own_figures_are_the_kernels),
        cmocka_unit_test(what_is_gone_is_told_as_gone),
        cmocka_unit_test(lists_have_us_once),
        cmocka_unit_test(a_command_line_is_cut_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
