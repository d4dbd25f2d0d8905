/* SPDX-License-Identifier: Apache-2.0
 * The reading interface against the command: the same text, the same cells. */
#include "opscope/opscope.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char cpu[] = "tests/data/torch_cpu/torch_cpu.pt.trace.json.gz";
static const char cnn[] = "tests/data/torch_cnn/torch_cnn.pt.trace.json.gz";

/* Returns what the command of this build prints: ../opscope beside this
 * program. */
static char *command_output(const char *args) {
    char self[512], line[1200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(line, sizeof line, "LC_ALL=C %s/../opscope %s", self, args);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    size_t cap = 1 << 22, len;
    char *out = malloc(cap);
    assert_non_null(out);
    len = fread(out, 1, cap - 1, f);
    out[len] = '\0';
    assert_int_equal(pclose(f), 0);
    return out;
}

static struct ops_profile *open_it(const char *path) {
    struct ops_profile *p;
    struct ops_err e;
    if (ops_open(&p, path, &e) != 0) print_error("%s\n", e.text);
    assert_non_null(p);
    return p;
}

static struct ops_result *run_it(const struct ops_profile *p, const char *name,
                                 const char *options) {
    struct ops_result *r;
    struct ops_err e;
    if (ops_run(p, name, options, &r, &e) != 0)
        print_error("%s: %s\n", name, e.text);
    assert_non_null(r);
    return r;
}

static void a_region_is_asked_for_by_name_and_instance(void **state) {
    (void)state;
    struct ops_profile *p = open_it(cnn);
    struct ops_result *r = run_it(p, "steps", "region=forward%2A&instance=1");
    char *out = command_output("steps tests/data/torch_cnn/"
                               "torch_cnn.pt.trace.json.gz --format json "
                               "--region 'forward*' --instance 1");
    size_t len;
    char *json = ops_result_json(r, &len);
    assert_string_equal(json, out);
    assert_int_equal(ops_result_rows(r), 1);
    ops_text_free(json);
    free(out);
    ops_result_free(r);
    struct ops_err e;
    assert_int_equal(ops_run(p, "ops", "region=nobody", &r, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "no region matches 'nobody'"));
    ops_close(p);
}

static void every_analysis_prints_what_the_command_prints(void **state) {
    (void)state;
    struct ops_profile *p = open_it(cnn);
    for (size_t i = 0; i < ops_analysis_count(); i++) {
        const char *name = ops_analysis_name(i);
        char line[300];
        snprintf(line, sizeof line, "%s %s --format json", name, cnn);
        struct ops_result *r = run_it(p, name, NULL);
        size_t len;
        char *want = command_output(line), *got = ops_result_json(r, &len);
        assert_non_null(got);
        assert_int_equal(len, strlen(got));
        assert_string_equal(got, want);
        free(want);
        ops_text_free(got);
        ops_result_free(r);
    }
    assert_true(ops_analysis_count() >= 5);
    assert_null(ops_analysis_name(ops_analysis_count()));
    assert_null(ops_analysis_name(SIZE_MAX));
    ops_close(p);
}

static void options_are_the_command_lines(void **state) {
    (void)state;
    struct ops_profile *p = open_it(cpu);
    struct ops_result *r = run_it(p, "ops",
                                  "top=3&sort=calls&name=aten%3A%3A%2A");
    char line[300];
    snprintf(line, sizeof line,
             "ops %s --format csv --top 3 --sort calls --name 'aten::*'", cpu);
    char *want = command_output(line), *got = ops_result_csv(r, NULL);
    assert_string_equal(got, want);
    assert_int_equal(ops_result_rows(r), 3);
    assert_true(ops_result_total_rows(r) > 3);
    free(want);
    ops_text_free(got);
    ops_result_free(r);
    ops_close(p);
}

static void profiles_side_by_side_have_a_column(void **state) {
    (void)state;
    struct ops_profile *p = open_it("tests/data/tf_v1");
    struct ops_result *r = run_it(p, "ops", NULL);
    assert_string_equal(ops_result_col_name(r, 0), "profile");
    char *want = command_output("ops tests/data/tf_v1 --format csv");
    char *got = ops_result_csv(r, NULL);
    assert_string_equal(got, want);
    free(want);
    ops_text_free(got);
    ops_result_free(r);
    ops_close(p);
}

static void cells_read_by_type_and_null_is_no_zero(void **state) {
    (void)state;
    struct ops_profile *p = open_it(cpu);
    struct ops_result *r = run_it(p, "ops", "sort=calls");
    ops_close(p); /* a result outlives its profile */
    int name = ops_result_find_col(r, "name");
    int calls = ops_result_find_col(r, "calls");
    int host = ops_result_find_col(r, "host_us");
    int device = ops_result_find_col(r, "device_us");
    assert_true(name >= 0 && calls >= 0 && host >= 0 && device >= 0);
    assert_int_equal(ops_result_find_col(r, "no such"), -1);
    assert_int_equal(ops_result_col_type(r, (size_t)name), OPS_COL_TEXT);
    assert_int_equal(ops_result_col_type(r, (size_t)host), OPS_COL_TIME);
    assert_string_equal(ops_result_col_unit(r, (size_t)host), "us");
    assert_non_null(ops_result_col_help(r, (size_t)host));
    assert_string_equal(ops_result_col_name(r, (size_t)calls), "calls");
    assert_non_null(ops_result_cell_text(r, 0, (size_t)name));
    assert_true(ops_result_cell_int(r, 0, (size_t)calls) > 0);
    /* one unit for a column; picoseconds are asked for by name */
    double us = ops_result_cell_double(r, 0, (size_t)host);
    int64_t ps = ops_result_cell_ps(r, 0, (size_t)host);
    assert_true(us > 1 && ps > 1000000);
    assert_true(us * 1e6 - (double)ps < 1.0 && (double)ps - us * 1e6 < 1.0);
    assert_int_equal(ops_result_cell_int(r, 0, (size_t)host), ps / 1000000);
    assert_int_equal(ops_result_cell_ps(r, 0, (size_t)calls), 0);
    assert_true(ops_result_cell_is_null(r, 0, (size_t)device));
    assert_false(ops_result_cell_is_null(r, 0, (size_t)host));
    assert_null(ops_result_cell_text(r, 0, (size_t)host));
    /* past the end */
    size_t rows = ops_result_rows(r), cols = ops_result_cols(r);
    assert_true(ops_result_cell_is_null(r, rows, 0));
    assert_null(ops_result_cell_text(r, 0, cols));
    assert_int_equal(ops_result_cell_int(r, rows, (size_t)calls), 0);
    assert_null(ops_result_col_name(r, cols));
    ops_result_free(r);
}

static void what_is_missing_has_words(void **state) {
    (void)state;
    struct ops_profile *p = open_it(cpu);
    struct ops_result *r = run_it(p, "kernels", NULL);
    assert_true(ops_result_missing_count(r) > 0);
    assert_non_null(ops_result_missing_what(r, 0));
    assert_non_null(ops_result_missing_why(r, 0));
    assert_null(ops_result_missing_what(r, ops_result_missing_count(r)));
    assert_null(ops_result_missing_fix(r, ops_result_missing_count(r)));
    assert_null(ops_result_remark_text(r, ops_result_remark_count(r)));
    assert_null(ops_result_note_text(r, ops_result_note_count(r)));
    assert_int_equal(ops_result_note_times(r, ops_result_note_count(r)), 0);
    for (size_t i = 0; i < ops_result_note_count(r); i++) {
        assert_non_null(ops_result_note_id(r, i));
        assert_true(ops_result_note_times(r, i) > 0);
    }
    char *text = ops_result_text(r, NULL);
    assert_non_null(strstr(text, ops_result_missing_why(r, 0)));
    ops_text_free(text);
    ops_result_free(r);
    ops_close(p);
}

static void errors_are_sentences_and_give_nothing(void **state) {
    (void)state;
    struct ops_err e;
    struct ops_profile *p = (void *)1;
    struct ops_result *r = (void *)1;
    assert_int_equal(ops_open(&p, "/nonexistent", &e), OPS_EIO);
    assert_null(p);
    assert_non_null(strstr(e.text, "/nonexistent"));
    assert_int_equal(ops_open(&p, NULL, NULL), OPS_EUSAGE);
    char path[700];
    memset(path, '/', sizeof path);
    strcpy(path + sizeof path - 8, "no-such");
    assert_int_equal(ops_open(&p, path, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "no-such: cannot open: No such file"));
    ops_close(NULL);
    ops_result_free(NULL);
    p = open_it(cpu);
    assert_int_equal(ops_run(p, "nothing", NULL, &r, &e), OPS_EUSAGE);
    assert_null(r);
    assert_int_equal(ops_run(p, "ops", "tpo=3", &r, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "top"));
    assert_int_equal(ops_run(p, "ops", "top=x", &r, &e), OPS_EUSAGE);
    assert_int_equal(ops_run(p, "ops", "name=%", &r, NULL), OPS_EUSAGE);
    ops_close(p);
}

static void null_in_place_of_anything_crashes_nothing(void **state) {
    (void)state;
    struct ops_err e = {0};
    struct ops_profile *p = open_it(cpu);
    struct ops_result *r = (void *)1;
    size_t len = 1;
    assert_int_equal(ops_run(NULL, "ops", NULL, &r, &e), OPS_EUSAGE);
    assert_null(r);
    assert_int_equal(e.code, OPS_EUSAGE);
    assert_non_null(strstr(e.text, "no profile"));
    assert_int_equal(ops_run(NULL, NULL, NULL, NULL, NULL), OPS_EUSAGE);
    assert_int_equal(ops_run(p, NULL, NULL, &r, &e), OPS_EUSAGE);
    assert_int_equal(ops_run(p, "ops", NULL, NULL, &e), OPS_EUSAGE);
    assert_int_equal(ops_open(NULL, cpu, &e), OPS_EUSAGE);
    ops_close(p);
    assert_int_equal(ops_result_rows(NULL), 0);
    assert_int_equal(ops_result_total_rows(NULL), 0);
    assert_int_equal(ops_result_cols(NULL), 0);
    assert_null(ops_result_col_name(NULL, 0));
    assert_int_equal(ops_result_col_type(NULL, 0), OPS_COL_TEXT);
    assert_null(ops_result_col_unit(NULL, 0));
    assert_null(ops_result_col_help(NULL, 0));
    assert_int_equal(ops_result_find_col(NULL, "name"), -1);
    assert_true(ops_result_cell_is_null(NULL, 0, 0));
    assert_null(ops_result_cell_text(NULL, 0, 0));
    assert_int_equal(ops_result_cell_int(NULL, 0, 0), 0);
    assert_int_equal(ops_result_cell_ps(NULL, 0, 0), 0);
    assert_true(ops_result_cell_double(NULL, 0, 0) == 0);
    assert_int_equal(ops_result_remark_count(NULL), 0);
    assert_null(ops_result_remark_text(NULL, 0));
    assert_int_equal(ops_result_missing_count(NULL), 0);
    assert_null(ops_result_missing_what(NULL, 0));
    assert_null(ops_result_missing_why(NULL, 0));
    assert_null(ops_result_missing_fix(NULL, 0));
    assert_int_equal(ops_result_note_count(NULL), 0);
    assert_null(ops_result_note_id(NULL, 0));
    assert_int_equal(ops_result_note_times(NULL, 0), 0);
    assert_null(ops_result_note_text(NULL, 0));
    assert_null(ops_result_json(NULL, &len));
    assert_int_equal(len, 0);
    assert_null(ops_result_csv(NULL, NULL));
    assert_null(ops_result_text(NULL, NULL));
    ops_text_free(NULL);
}

static void the_headers_have_the_librarys_version(void **state) {
    char version[32];
    (void)state;
    snprintf(version, sizeof version, "%d.%d.%d", OPS_VERSION_MAJOR,
             OPS_VERSION_MINOR, OPS_VERSION_PATCH);
    assert_string_equal(version, ops_version());
    assert_true(OPS_VERSION_NUMBER >= 100);
}

/* Opens and runs on its own. */
static void *worker(void *path) {
    struct ops_profile *p;
    struct ops_result *r = NULL;
    if (ops_open(&p, path, NULL) != 0) return NULL;
    if (ops_run(p, "steps", NULL, &r, NULL) != 0) r = NULL;
    ops_close(p);
    return r;
}

static void profiles_open_in_several_threads(void **state) {
    (void)state;
    pthread_t t[4];
    const char *paths[] = {cpu, cnn, cpu, cnn};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, worker, (void *)paths[i]),
                         0);
    struct ops_result *r[4];
    for (int i = 0; i < 4; i++) pthread_join(t[i], (void **)&r[i]);
    for (int i = 0; i < 2; i++) {
        assert_non_null(r[i]);
        char *a = ops_result_csv(r[i], NULL),
             *b = ops_result_csv(r[i + 2], NULL);
        assert_string_equal(a, b);
        ops_text_free(a);
        ops_text_free(b);
    }
    for (int i = 0; i < 4; i++) ops_result_free(r[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_asked_for_by_name_and_instance),
        cmocka_unit_test(every_analysis_prints_what_the_command_prints),
        cmocka_unit_test(options_are_the_command_lines),
        cmocka_unit_test(profiles_side_by_side_have_a_column),
        cmocka_unit_test(cells_read_by_type_and_null_is_no_zero),
        cmocka_unit_test(what_is_missing_has_words),
        cmocka_unit_test(errors_are_sentences_and_give_nothing),
        cmocka_unit_test(null_in_place_of_anything_crashes_nothing),
        cmocka_unit_test(the_headers_have_the_librarys_version),
        cmocka_unit_test(profiles_open_in_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
