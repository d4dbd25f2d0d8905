/* SPDX-License-Identifier: Apache-2.0
 * How far the reading interface reaches: several paths and runs, progress and
 * cancelling, sources, and the list of what can be asked for. */
#include "opscope/opscope.h"
#include "rec/temp.h"
#include "ring/sanitized.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char cpu[] = "tests/data/torch_cpu/torch_cpu.pt.trace.json.gz";
static const char cnn[] = "tests/data/torch_cnn/torch_cnn.pt.trace.json.gz";
static const char box0[] = "tests/data/record/box_0.xplane.pb";
static const char box1[] = "tests/data/record/box_1.xplane.pb";
static char dir[TEMP_MAX];

/* --- files -------------------------------------------------------------- */

static const char *in_dir(const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* Appends a file n times to another. */
static void copy_to(const char *from, const char *to, int n) {
    char buf[1 << 16];
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    for (int i = 0; i < n; i++) {
        FILE *in = fopen(from, "rb");
        assert_non_null(in);
        for (size_t k; (k = fread(buf, 1, sizeof buf, in)) > 0;)
            assert_int_equal(fwrite(buf, 1, k, out), k);
        fclose(in);
    }
    assert_int_equal(fclose(out), 0);
}

static void make_run(const char *run, const char *from) {
    char path[400], part[][32] = {"plugins", "plugins/profile", ""};
    snprintf(part[2], sizeof part[2], "plugins/profile/%s", run);
    for (int i = 0; i < 3; i++) mkdir(in_dir(part[i]), 0700);
    snprintf(path, sizeof path, "%s/%s/box.xplane.pb", dir, part[2]);
    copy_to(from, path, 1);
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *f) {
    (void)st, (void)flag, (void)f;
    return remove(path);
}

static int set_up(void **state) {
    (void)state;
    if (mkdtemp(temp_name(dir, "reach")) == NULL) return -1;
    return setenv("TMPDIR", dir, 1);
}

static int tear_down(void **state) {
    (void)state;
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns the number of entries of a folder: descriptors, threads, files. */
static int entries(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

/* --- what is asked ------------------------------------------------------ */

static char *csv_of(struct ops_profile *p, const char *analysis) {
    struct ops_result *r;
    assert_non_null(p);
    assert_int_equal(ops_run(p, analysis, NULL, &r, NULL), 0);
    char *text = ops_result_csv(r, NULL);
    assert_non_null(text);
    ops_result_free(r);
    ops_close(p);
    return text;
}

static char *csv_of_paths(const char *const *paths, size_t n,
                          const struct ops_open_options *o) {
    struct ops_profile *p;
    struct ops_err e;
    if (ops_open_with(&p, paths, n, o, &e) != 0) fail_msg("%s", e.text);
    return csv_of(p, "ops");
}

static void assert_command(const char *args, const char *want) {
    char self[300], line[1200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(line, sizeof line, "%s/../opscope ops --format csv %s", self,
             args);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    size_t cap = 1 << 22;
    char *out = malloc(cap);
    assert_non_null(out);
    out[fread(out, 1, cap - 1, f)] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_string_equal(out, want);
    free(out);
}

static void several_paths_as_on_the_command_line(void **state) {
    (void)state;
    const char *both[] = {cpu, cnn}, *ranks[] = {box0, box1};
    char line[300];
    char *got = csv_of_paths(both, 2, NULL);
    assert_memory_equal(got, "profile,", 8);
    snprintf(line, sizeof line, "%s %s", cpu, cnn);
    assert_command(line, got);
    ops_text_free(got);
    got = csv_of_paths(ranks, 2, &(struct ops_open_options){.threads = 1});
    snprintf(line, sizeof line, "%s %s --threads 1", box0, box1);
    assert_command(line, got);
    ops_text_free(got);
}

static void a_run_is_picked_by_its_name(void **state) {
    (void)state;
    const char *paths[] = {dir};
    struct ops_open_options o = {.run = "2026_01_01"};
    struct ops_profile *p;
    struct ops_err e;
    char line[300];
    make_run("2026_01_01", box0);
    make_run("2026_01_02", box1);
    char *old = csv_of_paths(paths, 1, &o), *new = csv_of_paths(paths, 1, NULL);
    assert_string_not_equal(old, new);
    snprintf(line, sizeof line, "%s --run 2026_01_01", dir);
    assert_command(line, old);
    assert_command(dir, new);
    /* a struct from before there was `run` */
    char *short_ = NULL;
    assert_int_equal(ops_open_sized(&p, paths, 1, &o, 0, &e), 0);
    short_ = csv_of(p, "ops");
    assert_string_equal(short_, new);
    ops_text_free(short_);
    /* of a size that no struct ever had, half a pointer is not followed */
    for (size_t size = 1; size < sizeof o.run; size++) {
        assert_int_equal(ops_open_sized(&p, paths, 1, &o, size, &e), 0);
        short_ = csv_of(p, "ops");
        assert_string_equal(short_, new);
        ops_text_free(short_);
    }
    o.run = "nothing";
    assert_int_equal(ops_open_with(&p, paths, 1, &o, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "2026_01_02"));
    ops_text_free(old);
    ops_text_free(new);
}

static void what_is_no_path_is_refused(void **state) {
    (void)state;
    const char *paths[] = {cpu, NULL};
    struct ops_profile *p = (void *)1;
    struct ops_err e;
    assert_int_equal(ops_open_with(&p, paths, 2, NULL, &e), OPS_EUSAGE);
    assert_null(p);
    assert_int_equal(ops_open_with(&p, paths, 0, NULL, &e), OPS_EUSAGE);
    assert_int_equal(ops_open_with(&p, NULL, 1, NULL, NULL), OPS_EUSAGE);
    assert_int_equal(ops_open_with(NULL, paths, 1, NULL, &e), OPS_EUSAGE);
}

/* --- progress ----------------------------------------------------------- */

struct watcher {
    int calls, inside; /* inside: of a file, neither its begin nor its end */
    int stop_at;       /* the call that says no; 0: none */
    int stop_inside;   /* the same among those inside */
    double share;
    bool bad;
};

static bool watch(void *self, uint64_t done, uint64_t all) {
    struct watcher *w = self;
    double share = all > 0 ? (double)done / (double)all : 0;
    w->calls++;
    w->bad |= done > all || (all > 0 && share < w->share);
    w->share = all > 0 ? share : 0;
    w->inside += done > 0 && done < all;
    return w->calls != w->stop_at &&
           (w->stop_inside == 0 || w->inside < w->stop_inside);
}

static double cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6;
}

/* Opens under a watcher that says no; nothing may be left of it. Returns the
 * time that it took. */
static double cancelled(const char *path, struct watcher *w, int threads) {
    struct ops_open_options o = {.threads = threads,
                                 .progress = watch,
                                 .self = w};
    struct ops_profile *p = (void *)1;
    struct ops_err e;
    int fds = entries("/proc/self/fd"), files = entries(dir);
    int threads_before = entries("/proc/self/task");
    double t = cpu_s();
    assert_int_equal(ops_open_with(&p, &path, 1, &o, &e), OPS_ECANCEL);
    t = cpu_s() - t;
    assert_null(p);
    assert_int_equal(e.code, OPS_ECANCEL);
    assert_non_null(strstr(e.text, "cancelled"));
    assert_int_equal(entries("/proc/self/fd"), fds);
    assert_int_equal(entries("/proc/self/task"), threads_before);
    assert_int_equal(entries(dir), files);
    return t;
}

/* Opens a file whole, and cancelled at its first looks inside. With one thread
 * that is much less work; others may have read their piece before the first one
 * looks. (Searches cost TSan the whole file each: its times tell nothing.) */
static void check_file(const char *path, int threads) {
    struct watcher all = {0};
    struct ops_open_options o = {.threads = threads,
                                 .progress = watch,
                                 .self = &all};
    struct ops_profile *p;
    struct ops_err e;
    double t = cpu_s(), least = 1e9;
    if (ops_open_with(&p, &path, 1, &o, &e) != 0) fail_msg("%s", e.text);
    t = cpu_s() - t;
    ops_close(p);
    assert_false(all.bad);
    assert_true(all.inside >= 3);
    assert_true(all.share == 1);
    for (int i = 1; i <= 3; i++) {
        struct watcher w = {.stop_inside = i};
        double took = cancelled(path, &w, threads);
        assert_int_equal(w.inside, i);
        /* nobody is asked again */
        assert_int_equal(w.calls, i + 2);
        if (took < least) least = took;
    }
    if (threads == 1 && !SANITIZED_THREAD && least > t * 2 / 3)
        fail_msg("cancelled %f s, whole %f s", least, t);
}

static void a_long_json_is_cancelled(void **state) {
    (void)state;
    enum { EVENTS = 400000 };
    const char *path = in_dir("long.json");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"traceEvents\": [");
    for (int i = 0; i < EVENTS; i++)
        fprintf(f,
                "%s{\"ph\": \"X\", \"name\": \"op %d\", \"pid\": 1, "
                "\"tid\": 1, \"ts\": %d, \"dur\": 5, \"args\": {\"i\": %d}}\n",
                i > 0 ? "," : "", i % 100, i * 10, i);
    fprintf(f, "]}");
    assert_int_equal(fclose(f), 0);
    check_file(path, 1);
    check_file(path, 4);
    remove(path);
}

/* Planes one after the other are a file, too. */
static void a_long_xspace_is_cancelled(void **state) {
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s", in_dir("long.xplane.pb"));
    copy_to("tests/data/tf_keras/vm.xplane.pb", path, 160);
    check_file(path, 1);
    check_file(path, 2);
    remove(path);
}

static void cancelling_at_any_call_leaves_nothing(void **state) {
    (void)state;
    static const char *const paths[] = {cpu, box0, "tests/data/tf_v1",
                                        "tests/data/torch_ddp"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct watcher all = {0};
        struct ops_open_options o = {.progress = watch, .self = &all};
        struct ops_profile *p;
        assert_int_equal(ops_open_with(&p, &paths[i], 1, &o, NULL), 0);
        ops_close(p);
        assert_true(all.calls >= 3 && !all.bad);
        for (int k = 1; k <= all.calls; k++) {
            struct watcher w = {.stop_at = k};
            cancelled(paths[i], &w, 0);
            assert_int_equal(w.calls, k);
        }
    }
}

/* --- sources, analyses, options ------------------------------------------- */

static void a_result_names_its_files(void **state) {
    (void)state;
    const char *ranks[] = {box0, box1};
    struct ops_profile *p;
    struct ops_result *r;
    assert_int_equal(ops_open_with(&p, ranks, 2, NULL, NULL), 0);
    assert_int_equal(ops_run(p, "ops", NULL, &r, NULL), 0);
    ops_close(p);
    assert_int_equal(ops_result_source_count(r), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(ops_result_source_path(r, i), ranks[i]);
        assert_string_equal(ops_result_source_format(r, i), "xspace");
        assert_non_null(ops_result_source_host(r, i));
        assert_int_equal(ops_result_source_rank(r, i), i);
    }
    assert_null(ops_result_source_path(r, 2));
    assert_null(ops_result_source_format(r, 2));
    assert_null(ops_result_source_host(r, 2));
    assert_int_equal(ops_result_source_rank(r, 2), -1);
    assert_int_equal(ops_result_source_count(NULL), 0);
    assert_null(ops_result_source_path(NULL, 0));
    ops_result_free(r);
}

/* Every option of every analysis, as the list describes it, is taken. */
static void the_list_of_options_is_what_ops_run_takes(void **state) {
    (void)state;
    static const char *const value[] = {
        [OPS_OPTION_FLAG] = "1",    [OPS_OPTION_INT] = "7",
        [OPS_OPTION_FLOAT] = "1.5", [OPS_OPTION_TEXT] = NULL,
        [OPS_OPTION_CHOICE] = NULL, [OPS_OPTION_BYTES] = "1M",
        [OPS_OPTION_US] = "1.5",    [OPS_OPTION_RANGE] = "0..3"};
    struct ops_profile *p;
    size_t tried = 0;
    assert_int_equal(ops_open(&p, cpu, NULL), 0);
    for (size_t i = 0; i < ops_analysis_count(); i++) {
        const char *name = ops_analysis_name(i);
        assert_int_equal(ops_analysis_find(name), i);
        assert_true(strlen(ops_analysis_help(i)) > 5);
        assert_non_null(ops_analysis_row(i));
        size_t n = ops_analysis_option_count(i);
        for (size_t k = 0; k < n; k++) {
            const char *o = ops_analysis_option_name(i, k);
            enum ops_option_type type = ops_analysis_option_type(i, k);
            const char *arg = ops_analysis_option_arg(i, k);
            char text[200];
            assert_true(strlen(ops_analysis_option_help(i, k)) > 5);
            assert_true(arg != NULL || type == OPS_OPTION_FLAG);
            if (type == OPS_OPTION_CHOICE)
                snprintf(text, sizeof text, "%s=%.*s", o,
                         (int)strcspn(arg, "|"), arg);
            else if (value[type] != NULL)
                snprintf(text, sizeof text, "%s=%s", o, value[type]);
            else if (ops_analysis_option_default(i, k) != NULL)
                snprintf(text, sizeof text, "%s=%s", o,
                         ops_analysis_option_default(i, k));
            else continue;
            struct ops_result *r;
            struct ops_err e;
            int rc = ops_run(p, name, text, &r, &e);
            /* what it asks for may not be there */
            if (rc != 0 && strstr(e.text, "unknown option") != NULL)
                fail_msg("%s %s: %s", name, text, e.text);
            ops_result_free(r);
            tried += rc == 0;
        }
        assert_null(ops_analysis_option_name(i, n));
        assert_null(ops_analysis_option_help(i, n));
    }
    assert_true(tried > 3 * ops_analysis_count());
    ops_close(p);
    size_t past = ops_analysis_count();
    assert_null(ops_analysis_help(past));
    assert_null(ops_analysis_row(past));
    assert_int_equal(ops_analysis_option_count(past), 0);
    assert_null(ops_analysis_option_name(past, 0));
    assert_null(ops_analysis_option_arg(past, 0));
    assert_null(ops_analysis_option_default(past, 0));
    assert_int_equal(ops_analysis_find("nothing"), -1);
    assert_int_equal(ops_analysis_find(NULL), -1);
}

/* --- raw spans ---------------------------------------------------------- */

enum { SPANS = 40000 }; /* more than are made at a time */

static void write_spans(const char *path, const char *name, int n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"traceEvents\":[", f);
    for (int i = 0; i < n; i++)
        fprintf(f,
                "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\","
                "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"args\":{\"i\":%d}}",
                i > 0 ? ",\n" : "", name, 10 * i, i);
    fputs("]}", f);
    assert_int_equal(fclose(f), 0);
}

static struct ops_result *run_trace(const struct ops_profile *p,
                                    const char *options) {
    struct ops_result *r = NULL;
    struct ops_err err;
    assert_int_equal(ops_run(p, "trace", options, &r, &err), 0);
    return r;
}

/* Row `row` is span number i of that profile. */
static void check_span(const struct ops_result *r, size_t row,
                       const char *profile, int i) {
    char args[32];
    int col = ops_result_find_col(r, "start_us");
    snprintf(args, sizeof args, "{\"i\": %d}", i);
    assert_string_equal(ops_result_cell_text(r, row, 0), profile);
    assert_int_equal(ops_result_cell_int(r, row, (size_t)col), 10 * i);
    col = ops_result_find_col(r, "args");
    assert_string_equal(ops_result_cell_text(r, row, (size_t)col), args);
}

/* All of them, though the command makes them part by part. */
static void raw_spans_are_an_analysis(void **state) {
    (void)state;
    char a[300], b[300];
    struct ops_profile *p;
    struct ops_err err;
    snprintf(a, sizeof a, "%s", in_dir("a.json"));
    snprintf(b, sizeof b, "%s", in_dir("b.json"));
    write_spans(a, "one", SPANS);
    write_spans(b, "two", SPANS);
    const char *const paths[] = {a, b};
    assert_int_equal(ops_open_with(&p, paths, 2, NULL, &err), 0);
    struct ops_result *r = run_trace(p, "");
    assert_int_equal(ops_result_rows(r), 2 * SPANS);
    assert_int_equal(ops_result_total_rows(r), 2 * SPANS);
    for (int i = 0; i < SPANS; i += 4999) {
        check_span(r, (size_t)i, "a", i);
        check_span(r, (size_t)i + SPANS, "b", i);
    }
    ops_result_free(r);
    r = run_trace(p, "top=3&from=100");
    assert_int_equal(ops_result_rows(r), 6);
    assert_int_equal(ops_result_total_rows(r), 2 * (SPANS - 10));
    check_span(r, 0, "a", 10);
    check_span(r, 3, "b", 10);
    ops_close(p);
    check_span(r, 5, "b", 12); /* a result outlives its profile */
    ops_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_paths_as_on_the_command_line),
        cmocka_unit_test(a_run_is_picked_by_its_name),
        cmocka_unit_test(what_is_no_path_is_refused),
        cmocka_unit_test(a_long_json_is_cancelled),
        cmocka_unit_test(a_long_xspace_is_cancelled),
        cmocka_unit_test(cancelling_at_any_call_leaves_nothing),
        cmocka_unit_test(a_result_names_its_files),
        cmocka_unit_test(the_list_of_options_is_what_ops_run_takes),
        cmocka_unit_test(raw_spans_are_an_analysis),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
