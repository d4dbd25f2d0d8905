/* SPDX-License-Identifier: Apache-2.0
 * A log folder that changes while it is read: files grow, appear, are replaced,
 * vanish, cannot be read. */
#include "rec/temp.h"
#include "scalars/logdir.h"

#include "event_build.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char dir[TEMP_MAX];
    struct logdir l;
    struct out f; /* six points of "loss" */
};

static void path_in(const struct fixture *x, const char *name, char *buf) {
    snprintf(buf, 256, "%s/%s", x->dir, name);
}

static void save(const struct fixture *x, const char *name, size_t n) {
    char path[256];
    path_in(x, name, path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(x->f.p, 1, n, f), n);
    fclose(f);
}

static int set_up(void **state) {
    struct fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    assert_non_null(mkdtemp(temp_name(x->dir, "logdir")));
    put_version(&x->f);
    for (int i = 0; i < 6; i++) put_simple(&x->f, "loss", i, (float)i);
    *state = x;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *x = *state;
    char command[256];
    static const char *const names[] = {"a.tfevents", "b.tfevents",
                                        "sub/c.tfevents", "other", "sub"};
    logdir_free(&x->l);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_in(x, names[i], command);
        if (unlink(command) != 0) rmdir(command);
    }
    rmdir(x->dir);
    out_free(&x->f);
    free(x);
    return 0;
}

static void look(struct fixture *x) {
    struct ops_err e = {0};
    if (x->l.root == NULL) assert_int_equal(logdir_open(&x->l, x->dir, &e), 0);
    else assert_int_equal(logdir_refresh(&x->l, &e), 0);
}

static void growth_is_read_on(void **state) {
    struct fixture *x = *state;
    for (size_t n = 0; n <= x->f.n; n += 7) {
        save(x, "a.tfevents", n); /* written anew, but the same so far */
        look(x);
        assert_int_equal(x->l.nfiles, 1);
    }
    save(x, "a.tfevents", x->f.n);
    look(x);
    assert_int_equal(x->l.scalars.points, 6);
    assert_int_equal(x->l.scalars.series[0].n, 6);
    assert_int_equal(x->l.scalars.files[0].records, 7);
    look(x);
    assert_int_equal(x->l.scalars.points, 6);
}

static void runs_are_folders(void **state) {
    struct fixture *x = *state;
    char path[256];
    save(x, "a.tfevents", x->f.n);
    save(x, "other", x->f.n); /* TensorBoard would not read it either */
    look(x);
    path_in(x, "sub", path);
    assert_int_equal(mkdir(path, 0700), 0);
    save(x, "sub/c.tfevents", x->f.n);
    look(x);
    assert_int_equal(x->l.nfiles, 2);
    const struct scalars *s = &x->l.scalars;
    assert_string_equal(strs_text(&s->strs, s->files[0].run), ".");
    assert_string_equal(strs_text(&s->strs, s->files[1].run), "sub");
}

static void a_shorter_file_is_read_anew(void **state) {
    struct fixture *x = *state;
    save(x, "a.tfevents", x->f.n);
    look(x);
    struct out shorter = {0}, all = x->f;
    put_version(&shorter);
    put_simple(&shorter, "loss", 77, 7);
    x->f = shorter;
    save(x, "a.tfevents", shorter.n);
    look(x);
    assert_int_equal(x->l.scalars.series[0].n, 1);
    assert_int_equal(x->l.scalars.series[0].step[0], 77);
    x->f = all;
    out_free(&shorter);
}

static void a_file_that_vanished_keeps_what_it_gave(void **state) {
    struct fixture *x = *state;
    char path[256];
    save(x, "a.tfevents", x->f.n);
    look(x);
    path_in(x, "a.tfevents", path);
    unlink(path);
    look(x);
    assert_int_equal(x->l.scalars.series[0].n, 6);
}

static void a_folder_that_vanished_is_an_error(void **state) {
    struct fixture *x = *state;
    struct ops_err e = {0};
    look(x);
    assert_int_equal(rmdir(x->dir), 0);
    assert_int_equal(logdir_refresh(&x->l, &e), OPS_EIO);
    assert_non_null(strstr(e.text, "cannot open"));
}

static void what_is_wrong_is_told(void **state) {
    struct fixture *x = *state;
    struct result r;
    x->f.p[x->f.n - 60] ^= 1;
    save(x, "a.tfevents", x->f.n - 5);
    look(x);
    result_init(&r, "t", "t");
    logdir_describe(&x->l, false, &r);
    assert_int_equal(r.nsources, 1);
    assert_int_equal(r.nnotes, 2); /* a record, and the cut */
    result_free(&r);
    result_init(&r, "t", "t");
    logdir_describe(&x->l, true, &r);
    assert_int_equal(r.nnotes, 1); /* it may still be written */
    result_free(&r);
}

static void files_without_a_scalar_are_told(void **state) {
    struct fixture *x = *state;
    struct result r;
    save(x, "a.tfevents", 0);
    look(x);
    result_init(&r, "t", "t");
    logdir_describe(&x->l, false, &r);
    assert_int_equal(r.nremarks, 1);
    assert_non_null(strstr(r.remarks[0], "hold no scalar"));
    result_free(&r);
    result_init(&r, "t", "t");
    logdir_describe(&x->l, true, &r);
    assert_int_equal(r.nremarks, 0); /* they may still come */
    result_free(&r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(growth_is_read_on),
        CASE(runs_are_folders),
        CASE(a_shorter_file_is_read_anew),
        CASE(a_file_that_vanished_keeps_what_it_gave),
        CASE(a_folder_that_vanished_is_an_error),
        CASE(what_is_wrong_is_told),
        CASE(files_without_a_scalar_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
