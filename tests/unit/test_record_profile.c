/* SPDX-License-Identifier: Apache-2.0
 * What record saw, written and read back: every figure of a tree that is made
 * here by hand; and how it joins what the program recorded itself. */
#include "rec/temp.h"
#include "tiny.h"

#include "capture/launch.h"
#include "capture/tree.h"
#include "import/import.h"
#include "load/runs.h"
#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[TEMP_MAX];

static int unlink_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st, (void)type, (void)w;
    return remove(p);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(temp_name(root, "record")) ? 0 : -1;
}

static int drop_root(void **state) {
    (void)state;
    return nftw(root, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

enum { MS = 1000000 };
static const int64_t unix0 = INT64_C(1794741802503755646);

/* A process with two threads that was reaped, and its child, still alive, of
 * which the kernel told nothing but that it is there. */
struct made {
    struct tree tree;
    struct seen_proc procs[2];
    struct seen_thread threads[2];
    struct tree_sample samples[3];
    struct run_spec launch;
    struct launch_end end;
    struct rundir dir;
};

static char *argv_made[] = {(char *)"./train", (char *)"--lr", NULL};

static void make(struct made *m) {
    *m = (struct made){0};
    m->threads[0] = (struct seen_thread){.tid = 100,
                                         .main = true,
                                         .name = "train",
                                         .t0 = 5 * MS,
                                         .t1 = 95 * MS,
                                         .run_ns = 20 * MS,
                                         .wait_ns = 3 * MS,
                                         .turns = 7,
                                         .user_ticks = 2};
    m->threads[1] = (struct seen_thread){.tid = 101,
                                         .name = "load\xff",
                                         .t0 = 15 * MS,
                                         .t1 = 80 * MS,
                                         .run_ns = 30 * MS,
                                         .wait_ns = 4 * MS,
                                         .turns = 8,
                                         .sys_ticks = 3};
    m->procs[0] = (struct seen_proc){.pid = 100,
                                     .ppid = 9,
                                     .exact = true,
                                     .reaped = true,
                                     .status = 3 << 8,
                                     .name = "train",
                                     .command = (char *)"./train --lr",
                                     .t0 = 5 * MS,
                                     .t1 = 105 * MS,
                                     .cpu_ns = 55 * MS,
                                     .user_ticks = 2,
                                     .sys_ticks = 3,
                                     .minor_faults = 40,
                                     .major_faults = 2,
                                     .peak_rss = 8 << 20,
                                     .read_bytes = 4096,
                                     .write_bytes = UNKNOWN,
                                     .looks = 3,
                                     .threads = m->threads,
                                     .nthreads = 2,
                                     .usage = {.ru_utime = {0, 70000},
                                               .ru_maxrss = 9 << 10}};
    m->procs[1] = (struct seen_proc){.pid = 102,
                                     .ppid = 100,
                                     .alive = true,
                                     .name = "",
                                     .t0 = 50 * MS,
                                     .t1 = 100 * MS,
                                     .cpu_ns = UNKNOWN,
                                     .peak_rss = UNKNOWN,
                                     .read_bytes = UNKNOWN,
                                     .write_bytes = UNKNOWN,
                                     .rss = UNKNOWN};
    for (int i = 0; i < 3; i++)
        m->samples[i] = (struct tree_sample){.at = (10 + 30 * i) * MS,
                                             .cpu_ns = 15 * i * MS,
                                             .rss = (i + 1) << 20,
                                             .procs = i,
                                             .threads = 2 * i};
    m->tree = (struct tree){.procs = m->procs,
                            .nprocs = 2,
                            .look = 3,
                            .total = {.v = m->samples, .n = 3},
                            .last = 110 * MS};
    m->launch = (struct run_spec){.argv = argv_made, .host = "node/7"};
    m->end =
        (struct launch_end){.t0 = 5 * MS, .t1 = 105 * MS, .unix_ns = unix0};
    m->dir = (struct rundir){.path = root};
}

static struct trace *load(const char *path) {
    struct trace *t = trace_new();
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_non_null(t);
    if (import_file(path, t, &o, &e) != 0) fail_msg("%s", e.text);
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

static char *write_made(const struct made *m) {
    struct ops_err e = {0};
    char *path;
    if (profile_write(&m->tree, &m->launch, &m->end, &m->dir, &path, &e) != 0)
        fail_msg("%s", e.text);
    return path;
}

static struct result run_on(const struct trace *t, const char *name,
                            const char *by) {
    const struct analysis *a = analysis_find(name);
    struct opts o;
    struct result r;
    struct ops_err e = {0};
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (by != NULL) assert_int_equal(opts_set(&o, "by", by, &e), 0);
    assert_int_equal(analysis_run(a, t, &o, 0, &r, &e), 0);
    return r;
}

/* Returns the cell of the row of that name; NULL if it is null. */
static const struct cell *cell_of(const struct result *r, const char *name,
                                  const char *col) {
    int n = result_find_col(r, "name"), c = result_find_col(r, col);
    assert_true(n >= 0 && c >= 0);
    for (size_t i = 0; i < r->nrows; i++) {
        if (strcmp(result_cell(r, i, (size_t)n).s, name) != 0) continue;
        const struct cell *v = tiny_keep(result_cell(r, i, (size_t)c));
        return v->null ? NULL : v;
    }
    fail_msg("no row '%s'", name);
    return NULL;
}

static int64_t int_of(const struct result *r, const char *name,
                      const char *col) {
    const struct cell *c = cell_of(r, name, col);
    assert_non_null(c);
    return c->i;
}

static void figures_come_back_and_unknown_is_null(void **state) {
    (void)state;
    struct made m;
    make(&m);
    char *path = write_made(&m);
    assert_non_null(strstr(path, "/node_7_record.xplane.pb"));
    struct trace *t = load(path);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 0);
    assert_true(t->sources[0].process_view);
    assert_int_equal(t->nsteps, 0); /* lifetimes are no steps */
    assert_string_equal(strs_text(&t->strs, t->sources[0].host), "node_7");
    assert_int_equal(t->epoch_ns, unix0);
    struct result r = run_on(t, "processes", NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(int_of(&r, "train", "pid"), 100);
    assert_int_equal(int_of(&r, "train", "parent"), 9);
    assert_int_equal(int_of(&r, "train", "start_us"), 0);
    assert_int_equal(int_of(&r, "train", "dur_us"), 100 * PS_PER_MS);
    assert_int_equal(int_of(&r, "train", "cpu_us"), 55 * PS_PER_MS);
    assert_int_equal(int_of(&r, "train", "cpu_wait_us"), 7 * PS_PER_MS);
    assert_int_equal(int_of(&r, "train", "switches"), 15);
    assert_int_equal(int_of(&r, "train", "page_faults"), 42);
    assert_int_equal(int_of(&r, "train", "major_faults"), 2);
    /* it had no children that it waited for: the kernel's peak is its own */
    assert_int_equal(int_of(&r, "train", "peak_rss_bytes"), 9 << 20);
    assert_int_equal(int_of(&r, "train", "disk_read_bytes"), 4096);
    assert_null(cell_of(&r, "train", "disk_write_bytes"));
    assert_string_equal(cell_of(&r, "train", "end")->s, "exit 3");
    assert_string_equal(cell_of(&r, "train", "command")->s, "./train --lr");
    assert_true(cell_of(&r, "train", "cores")->f == 0.55);
    static const char *const unknown[] = {"cpu_us",      "cores",
                                          "cpu_wait_us", "peak_rss_bytes",
                                          "threads",     "disk_read_bytes",
                                          "command"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(cell_of(&r, "?", unknown[i]));
    assert_string_equal(cell_of(&r, "?", "end")->s, "alive");
    result_free(&r);
    trace_free(t);
    free(path);
}

static void threads_have_rows_of_their_own(void **state) {
    (void)state;
    struct made m;
    make(&m);
    char *path = write_made(&m);
    struct trace *t = load(path);
    struct result r = run_on(t, "processes", "thread");
    assert_int_equal(r.nrows, 2);
    /* bytes that are no UTF-8 were mended on the way */
    assert_int_equal(int_of(&r, "load\xef\xbf\xbd", "tid"), 101);
    assert_int_equal(int_of(&r, "load\xef\xbf\xbd", "start_us"),
                     10 * PS_PER_MS);
    assert_int_equal(int_of(&r, "load\xef\xbf\xbd", "dur_us"), 65 * PS_PER_MS);
    assert_int_equal(int_of(&r, "load\xef\xbf\xbd", "cpu_us"), 30 * PS_PER_MS);
    assert_int_equal(int_of(&r, "train", "cpu_us"), 20 * PS_PER_MS);
    result_free(&r);
    trace_free(t);
    free(path);
}

static void a_rate_holds_until_the_next_look(void **state) {
    (void)state;
    struct made m;
    make(&m);
    char *path = write_made(&m);
    struct trace *t = load(path);
    struct result r = run_on(t, "counters", NULL);
    assert_true(cell_of(&r, "rss_bytes", "max")->f == 3 << 20);
    assert_true(cell_of(&r, "rss_bytes", "mean")->f == 1.5 * (1 << 20));
    assert_int_equal(int_of(&r, "rss_bytes", "samples"), 3);
    assert_int_equal(int_of(&r, "cpu_cores", "samples"), 2);
    assert_true(cell_of(&r, "cpu_cores", "mean")->f == 0.5);
    result_free(&r);
    r = run_on(t, "overview", NULL);
    bool told = false;
    for (size_t i = 0; i < r.nmissing; i++)
        told |= strstr(r.missing[i].fix, "-lopscope-record") != NULL;
    assert_true(told);
    result_free(&r);
    trace_free(t);
    free(path);
}

/* The last look comes as soon as the program has ended, and by then we had
 * waited for a CPU for a while: over so short a time no rate is told. */
static void a_rate_needs_a_time_that_is_known(void **state) {
    (void)state;
    struct made m;
    make(&m);
    m.samples[0].off = m.samples[1].off = 1000;
    m.samples[2].at = m.samples[1].at + MS / 10;
    m.samples[2].off = MS;
    m.samples[2].cpu_ns = m.samples[1].cpu_ns + 2 * MS;
    char *path = write_made(&m);
    struct trace *t = load(path);
    struct result r = run_on(t, "counters", NULL);
    assert_int_equal(int_of(&r, "rss_bytes", "samples"), 3);
    assert_int_equal(int_of(&r, "cpu_cores", "samples"), 1);
    double all = (15 + 2) / 30.1;
    assert_true(fabs(cell_of(&r, "cpu_cores", "max")->f - all) < 1e-6);
    result_free(&r);
    trace_free(t);
    free(path);
}

/* Nothing runs on more CPUs than there are. */
static void a_rate_is_at_most_all_cpus(void **state) {
    (void)state;
    struct made m;
    make(&m);
    double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    m.samples[1].cpu_ns = (int64_t)(30.5 * cpus) * MS;
    m.samples[2].cpu_ns = 2 * m.samples[1].cpu_ns;
    m.samples[1].off = MS;
    char *path = write_made(&m);
    struct trace *t = load(path);
    struct result r = run_on(t, "counters", NULL);
    assert_true(cell_of(&r, "cpu_cores", "max")->f == cpus);
    result_free(&r);
    trace_free(t);
    free(path);
}

static void a_second_profile_gets_a_name_of_its_own(void **state) {
    (void)state;
    struct made m;
    make(&m);
    char *a = write_made(&m), *b = write_made(&m);
    assert_string_not_equal(a, b);
    assert_non_null(strstr(b, "_record_2.xplane.pb"));
    int files = 0; /* and nothing else is left in the folder */
    DIR *d = opendir(root);
    assert_non_null(d);
    for (struct dirent *x; (x = readdir(d)) != NULL;)
        files += strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0;
    closedir(d);
    assert_int_equal(files, 2);
    free(a);
    free(b);
}

/* Writes a profile of the same time, with three steps. Returns its path. */
static const char *write_own(void) {
    static char own[TEMP_MAX + 16];
    snprintf(own, sizeof own, "%s/own.json", root);
    FILE *f = fopen(own, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"schemaVersion\":1,\"baseTimeNanoseconds\":%lld,"
            "\"traceEvents\":[",
            (long long)unix0);
    for (int i = 0; i < 3; i++)
        fprintf(f,
                "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                "\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":"
                "10000},",
                i, 20000 + 10000 * i);
    fprintf(f, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,"
               "\"tid\":1,\"ts\":21000,\"dur\":100}]}");
    fclose(f);
    return own;
}

/* Loads the made profile together with that one. */
static struct loaded load_both(const struct made *m) {
    char *path = write_made(m);
    struct run_file files[] = {{path, NULL}, {(char *)write_own(), NULL}};
    struct loaded l;
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    if (runs_load(files, 2, &o, &l, &e) != 0) fail_msg("%s", e.text);
    free(path);
    return l;
}

/* A process with the name of a collective is none. */
static void a_process_is_no_collective(void **state) {
    (void)state;
    struct made m;
    make(&m);
    strcpy(m.procs[0].name, "nccl_perf");
    struct loaded l = load_both(&m);
    assert_int_equal(l.n, 1);
    struct result r = run_on(l.v[0], "comm", NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    r = run_on(l.v[0], "ranks", NULL);
    assert_int_equal(r.nrows, 1);
    result_free(&r);
    loaded_free(&l);
    char *path = write_made(&m);
    struct trace *t = load(path);
    r = run_on(t, "comm", NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
    free(path);
}

/* Beside a profile of the same time it adds no process, no step and no op. */
static void it_joins_what_the_program_recorded(void **state) {
    (void)state;
    struct made m;
    make(&m);
    struct loaded l = load_both(&m);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0]->nsources, 2);
    assert_int_equal(l.v[0]->nprocesses, 1);
    assert_int_equal(l.v[0]->nsteps, 3);
    struct result r = run_on(l.v[0], "processes", NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(int_of(&r, "train", "cpu_us"), 55 * PS_PER_MS);
    result_free(&r);
    r = run_on(l.v[0], "ops", NULL);
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(result_cell(&r, i, 0).s, "train");
    result_free(&r);
    r = run_on(l.v[0], "steps", NULL);
    assert_int_equal(r.nrows, 3);
    result_free(&r);
    r = run_on(l.v[0], "ranks", NULL);
    assert_int_equal(r.nrows, 1);
    result_free(&r);
    loaded_free(&l);
}

/* Milliseconds of CPU time in a run that is said to have taken 5 ns:
 * that is no share of anything. */
static void more_than_the_cpus_can_give_is_no_share(void **state) {
    (void)state;
    struct made m;
    make(&m);
    m.end.t1 = m.end.t0 + 5;
    char *path = write_made(&m);
    struct trace *t = load(path);
    struct result r = run_on(t, "overview", NULL);
    int share = result_find_col(&r, "share_pct");
    bool seen = false;
    for (size_t i = 0; i < r.nrows; i++) {
        struct cell c = result_cell(&r, i, (size_t)share);
        seen |= strcmp(result_cell(&r, i, 0).s, "CPU time") == 0 && c.null;
        assert_true(c.null || c.f <= 100);
    }
    assert_true(seen);
    result_free(&r);
    trace_free(t);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_than_the_cpus_can_give_is_no_share,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(figures_come_back_and_unknown_is_null,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(threads_have_rows_of_their_own,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(a_rate_needs_a_time_that_is_known,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(a_rate_is_at_most_all_cpus, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(a_rate_holds_until_the_next_look,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(a_second_profile_gets_a_name_of_its_own,
                                        make_root, drop_root),
        cmocka_unit_test_setup_teardown(a_process_is_no_collective, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(it_joins_what_the_program_recorded,
                                        make_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
