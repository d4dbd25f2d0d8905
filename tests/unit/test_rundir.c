/* SPDX-License-Identifier: Apache-2.0
 * The run's folder: made whole, never another's, and gone again if unused. */
#include "capture/launch.h"
#include "rec/temp.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[TEMP_MAX];

static int unlink_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st, (void)type, (void)w;
    return remove(p);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(temp_name(root, "rundir")) ? 0 : -1;
}

static int drop_root(void **state) {
    (void)state;
    return nftw(root, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static bool is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static struct rundir make(const char *logdir, const char *name) {
    struct rundir d;
    struct ops_err e = {0};
    if (rundir_make(logdir, name, &d, &e) != 0) fail_msg("%s", e.text);
    assert_true(is_dir(d.path));
    assert_int_equal(d.path[0], '/');
    return d;
}

static void many_of_one_second_are_all_new(void **state) {
    (void)state;
    struct rundir d[40];
    for (int i = 0; i < 40; i++) d[i] = make(at("a/b/logs"), NULL);
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(d[i].path, d[k].path);
    /* 2026_11_15_03_29_38, by which readers know when it was */
    int part[6];
    assert_int_equal(sscanf(d[0].name, "%4d_%2d_%2d_%2d_%2d_%2d", part,
                            part + 1, part + 2, part + 3, part + 4, part + 5),
                     6);
    for (int i = 0; i < 40; i++) rundir_free(&d[i]);
}

static void a_given_name_may_be_there(void **state) {
    (void)state;
    struct rundir a = make(at("logs"), "job"), b = make(at("logs"), "job");
    assert_string_equal(a.path, b.path);
    assert_string_equal(a.name, "job");
    rundir_unmake(&b); /* nothing of it was b's */
    assert_true(is_dir(a.path));
    rundir_free(&a);
    rundir_free(&b);
}

static void unused_folders_go_away_again(void **state) {
    (void)state;
    mkdir(at("mine"), 0777);
    struct rundir d = make(at("mine/x/logs"), NULL);
    rundir_unmake(&d);
    assert_false(is_dir(at("mine/x")));
    assert_true(is_dir(at("mine")));
    rundir_free(&d);
    d = make(at("mine/x/logs"), NULL);
    FILE *f = fopen(at("mine/x/theirs"), "w");
    assert_non_null(f);
    fclose(f);
    rundir_unmake(&d);
    assert_false(is_dir(at("mine/x/logs")));
    assert_int_equal(access(at("mine/x/theirs"), F_OK), 0);
    rundir_free(&d);
}

static void names_that_lead_elsewhere_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"", ".", "..", "a/b", "/etc", ".hidden"};
    struct rundir d;
    struct ops_err e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rundir_make(at("logs"), bad[i], &d, &e), OPS_EUSAGE);
    assert_int_equal(rundir_make("", NULL, &d, &e), OPS_EUSAGE);
    assert_false(is_dir(at("logs")));
}

static void what_is_no_folder_is_an_error(void **state) {
    (void)state;
    struct rundir d;
    struct ops_err e;
    FILE *f = fopen(at("file"), "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(rundir_make(at("file"), NULL, &d, &e), OPS_EIO);
    assert_int_equal(rundir_make(at("file/logs"), NULL, &d, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "file"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
    const struct CMUnitTest tests[] = {
        T(many_of_one_second_are_all_new),
        T(a_given_name_may_be_there),
        T(unused_folders_go_away_again),
        T(names_that_lead_elsewhere_are_refused),
        T(what_is_no_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
