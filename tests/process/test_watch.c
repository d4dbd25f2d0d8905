/* SPDX-License-Identifier: Apache-2.0
 * What `opscope watch` shows, and what it learns of processes: of this one and
 * of children made for the purpose, against what the kernel says elsewhere. */
#include "cmd/watch_target.h"
#include "model/result.h"
#include "rec/temp.h"
#include "scalars/scalar_table.h"
#include "scalars/watch_table.h"
#include <string.h>

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void fill(struct scalars *s, size_t n, double pace) {
    assert_true(scalars_init(s));
    scalars_file(s, "a", "run");
    for (size_t i = 0; i < n; i++) {
        struct series *v = scalars_series(s, 0, bytes_of("loss"),
                                          SERIES_SCALAR);
        scalars_point(s, v, (int64_t)(2 * i), 1000 + pace * (double)i,
                      1 / (double)(i + 1));
    }
}

static double value_of(const struct result *r, const char *metric, bool *null) {
    for (size_t i = 0; i < r->nrows; i++) {
        if (strcmp(result_cell(r, i, 0).s, metric) != 0) continue;
        *null = result_cell(r, i, 3).null;
        return result_cell(r, i, 3).f;
    }
    fail_msg("no row %s", metric);
    return 0;
}

static void step_time_comes_from_the_scalars(void **state) {
    (void)state;
    struct scalars s;
    struct result r;
    struct ops_err e;
    struct watch_facts f = {.cpu_pct = NAN};
    struct scalar_view v = {0};
    bool null;
    fill(&s, 50, 0.5); /* two steps every half second */
    assert_int_equal(watch_table(&f, &s, &v, &r, &e), 0);
    assert_true(value_of(&r, "step", &null) == 98);
    assert_true(fabs(value_of(&r, "step time", &null) - 250) < 1e-6);
    assert_true(fabs(value_of(&r, "throughput", &null) - 4) < 1e-9);
    assert_true(value_of(&r, "loss", &null) == 1 / 50.0);
    result_free(&r);
    v.tag = "acc*";
    assert_int_equal(watch_table(&f, &s, &v, &r, &e), 0);
    assert_int_equal(r.nrows, 3); /* no process, no such scalar */
    result_free(&r);
    scalars_free(&s);
}

static void a_pause_is_not_what_a_step_takes(void **state) {
    (void)state;
    struct scalars s;
    struct curves c;
    struct ops_err e;
    fill(&s, 10, 0.5);
    struct series *v = scalars_series(&s, 0, bytes_of("loss"), SERIES_SCALAR);
    scalars_point(&s, v, 20, 2000, 0);
    assert_int_equal(scalars_curves(&s, &c, &e), 0);
    struct watch_steps w = watch_scalar_steps(&c);
    assert_true(w.have && fabs(w.step_s - 0.25) < 1e-9);
    curves_free(&c);
    scalars_free(&s);
}

static void what_is_not_known_is_null(void **state) {
    (void)state;
    struct scalars s;
    struct result r;
    struct ops_err e;
    struct watch_facts f = {.cpu_pct = NAN,
                            .processes = 1,
                            .threads = 3,
                            .rss_bytes = 5 << 20};
    struct scalar_view v = {0};
    bool null;
    assert_true(scalars_init(&s));
    assert_int_equal(watch_table(&f, &s, &v, &r, &e), 0);
    value_of(&r, "step", &null);
    assert_true(null);
    value_of(&r, "processor", &null);
    assert_true(null);
    assert_true(value_of(&r, "memory", &null) == 5 && !null);
    assert_int_equal(r.nmissing, 1);
    result_free(&r);
    scalars_free(&s);
}

/* A tag that was logged late, and a restart from before it: the curve is
 * there and has no point. */
static void a_curve_without_a_point_is_no_row(void **state) {
    (void)state;
    struct scalars s;
    struct result r;
    struct ops_err e = {0};
    struct scalar_view v = {0};
    struct watch_facts f = {.cpu_pct = NAN};
    fill(&s, 4, 1);
    struct series *late = scalars_series(&s, 0, bytes_of("late"),
                                         SERIES_SCALAR);
    scalars_point(&s, late, 50, 9, 0.5);
    scalars_restart(&s, 0, 2);
    assert_int_equal(watch_table(&f, &s, &v, &r, &e), 0);
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(result_cell(&r, i, 0).s, "late");
    result_free(&r);
    scalars_free(&s);
}

static void a_line_keeps_the_newest(void **state) {
    (void)state;
    struct watch_line l = {0};
    for (int i = 0; i < WATCH_LINE + 10; i++) watch_line_add(&l, i);
    assert_int_equal(l.n, WATCH_LINE);
    assert_true(l.v[0] == 10 && l.v[WATCH_LINE - 1] == WATCH_LINE + 9);
}

/* Against getrusage and /proc/self/statm. */
static void a_process_is_seen_as_it_is(void **state) {
    (void)state;
    struct proc_stat p;
    assert_true(proc_stat_read(getpid(), 0, &p));
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    double used = (double)(p.user_ticks + p.sys_ticks) /
                  (double)sysconf(_SC_CLK_TCK);
    int64_t rss = p.rss_pages * sysconf(_SC_PAGESIZE);
    assert_true(used <= cpu + 0.02); /* it counts in ticks */
    assert_true(rss > 0 && rss <= u.ru_maxrss * 1024);
    assert_true(p.threads >= 1);
    assert_non_null(strstr("test_watch", p.name));
    assert_false(proc_stat_read(0x7ffffff0, 0, &p));
}

/* A child that has a name of any kind, ends, and is not buried yet. */
static void a_zombie_has_ended(void **state) {
    (void)state;
    struct watch_target w;
    struct ops_err e;
    char number[32];
    siginfo_t info;
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    snprintf(number, sizeof number, "%d", (int)child);
    assert_int_not_equal(watch_target_open(&w, number, &e), 0);
    waitpid(child, NULL, 0);
}

/* A child with OPSCOPE_LOGDIR in its environment and an event file open, which
 * says so through a pipe and waits to be killed. */
static pid_t start_child(const char *event, const char *env) {
    int fds[2];
    char c;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        char fd[16];
        snprintf(fd, sizeof fd, "%d", fds[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (event) open(event, O_WRONLY | O_CREAT, 0600);
        /* it stays the program that it is: while exec() is at work, /proc shows
         * no environment */
        char *const argv[] = {"sh", "-c", "eval \"echo >&$0\"; kill -STOP $$",
                              fd, NULL};
        char *const envp[] = {(char *)env, NULL};
        execve("/bin/sh", argv, envp);
        _exit(1);
    }
    assert_int_equal(read(fds[0], &c, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return child;
}

static void end_child(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void folders_and_processes_find_each_other(void **state) {
    (void)state;
    char dir[TEMP_MAX], event[TEMP_MAX + 64], env[TEMP_MAX + 64], number[32];
    struct watch_target w;
    struct ops_err e;
    assert_non_null(mkdtemp(temp_name(dir, "watch")));
    char *real = realpath(dir, NULL);
    snprintf(event, sizeof event, "%s/events.out.tfevents.1.h.2.0", dir);
    snprintf(env, sizeof env, "OPSCOPE_LOGDIR=%s", dir);

    pid_t child = start_child(event, "A=b");
    assert_int_equal(watch_target_open(&w, dir, &e), 0);
    assert_int_equal(w.nprocs, 1);
    assert_int_equal(w.procs[0].pid, child);
    watch_target_look(&w);
    assert_false(w.ended);
    end_child(child);
    watch_target_look(&w);
    assert_true(w.ended);
    watch_target_free(&w);

    child = start_child(event, "A=b");
    snprintf(number, sizeof number, "%d", (int)child);
    assert_int_equal(watch_target_open(&w, number, &e), 0);
    assert_string_equal(w.logdir, real);
    watch_target_free(&w);
    end_child(child);

    child = start_child(NULL, env);
    snprintf(number, sizeof number, "%d", (int)child);
    assert_int_equal(watch_target_open(&w, number, &e), 0);
    assert_string_equal(w.logdir, dir);
    watch_target_free(&w);
    end_child(child);
    unlink(event);
    rmdir(dir);
    free(real);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_time_comes_from_the_scalars),
        cmocka_unit_test(a_pause_is_not_what_a_step_takes),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(a_curve_without_a_point_is_no_row),
        cmocka_unit_test(a_line_keeps_the_newest),
        cmocka_unit_test(a_process_is_seen_as_it_is),
        cmocka_unit_test(a_zombie_has_ended),
        cmocka_unit_test(folders_and_processes_find_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
