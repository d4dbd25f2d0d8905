/* SPDX-License-Identifier: Apache-2.0
 * Columns by name and by heading, and results of some of their columns. */
#include "model/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void columns(struct result *r) {
    static const struct column v[] = {
        {"name", "operation", NULL, NULL, COL_TEXT, COL_KEY},
        {"host", NULL, NULL, NULL, COL_TEXT, 0},
        {"host_us", "host", "us", NULL, COL_TIME, 0},
        {"total_us", "total", "us", NULL, COL_TIME, COL_MAIN},
        {"late_us", "late", "us", NULL, COL_TIME, 0},
        {"late_pct", "late", "%", NULL, COL_PERCENT, COL_DETAIL},
        {"bytes", NULL, "bytes", NULL, COL_BYTES, COL_SIZE},
        {"flops", NULL, "FLOP", NULL, COL_INT, 0},
        {"gb_per_s", "rate", "GB/s", NULL, COL_FLOAT, 0},
    };
    result_init(r, "ops", "Operations");
    result_cols(r, v, sizeof v / sizeof *v);
}

static void row(struct result *r, const char *name, int64_t total) {
    result_row(r);
    cell_text(r, "name", name);
    cell_int(r, "total_us", total);
}

static void a_column_goes_by_name_and_by_heading(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
    } v[] = {
        {"name", "name"},
        {"operation", "name"},
        {"host", "host"},
        {"host_us", "host_us"},
        {"host ms", "host_us"},
        {"total", "total_us"},
        {"total ms", "total_us"},
        {"total µs", "total_us"},
        {"Total S", "total_us"},
        {"late", "late_us"},
        {"late ms", "late_us"},
        {"late %", "late_pct"},
        {"size", "bytes"},
        {"size MiB", "bytes"},
        {"bytes", "bytes"},
        {"flops GFLOP", "flops"},
        {"flops FLOP", "flops"},
        {"rate GB/s", "gb_per_s"},
        {"total MiB", NULL},
        {"total of all", NULL},
        {"", NULL},
        {"rate ms", NULL},
    };
    struct result r;
    columns(&r);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        int c = result_match_col(&r, v[i].text, strlen(v[i].text));
        const char *got = c < 0 ? "none" : r.cols[c].name;
        assert_string_equal(got, v[i].name ? v[i].name : "none");
    }
    result_free(&r);
}

static void the_columns_asked_for_stand_in_their_order(void **state) {
    (void)state;
    struct result r;
    struct ops_err e;
    columns(&r);
    row(&r, "a", 5);
    row(&r, "b", 0);
    assert_int_equal(result_choose(&r, "total ms, flops,name,total_us", &e), 0);
    assert_int_equal(r.ncols, 3);
    assert_string_equal(r.cols[0].name, "total_us");
    assert_string_equal(r.cols[2].name, "name");
    assert_true(r.cols[0].flags & COL_ASKED);
    assert_int_equal(result_cell(&r, 0, 0).i, 5);
    assert_true(result_cell(&r, 0, 1).null);
    assert_string_equal(result_cell(&r, 1, 2).s, "b");
    assert_false(result_cell(&r, 1, 0).null); /* 0, not nothing */
    result_free(&r);
}

static void what_is_no_column_is_told_with_those_there_are(void **state) {
    (void)state;
    struct result r;
    struct ops_err e;
    columns(&r);
    assert_int_equal(result_choose(&r, "name,totl_us", &e), OPS_EUSAGE);
    assert_string_equal(e.text,
                        "'ops' has no column 'totl_us'; did you mean "
                        "'total_us'? it has name, host, host_us, total_us, "
                        "late_us, late_pct, bytes, flops, gb_per_s");
    assert_int_equal(result_choose(&r, "", &e), OPS_EUSAGE);
    assert_int_equal(result_choose(&r, "name,", &e), OPS_EUSAGE);
    result_free(&r);
}

static void whose_rows_they_are_stays(void **state) {
    (void)state;
    struct result r;
    struct ops_err e;
    columns(&r);
    row(&r, "a", 5);
    const struct column whose = {.name = "profile", .type = COL_TEXT};
    assert_int_equal(result_prefix(&r, whose, "run 1", &e), 0);
    assert_int_equal(result_choose(&r, "total_us", &e), 0);
    assert_int_equal(r.ncols, 2);
    assert_string_equal(result_cell(&r, 0, 0).s, "run 1");
    result_free(&r);
}

/* Rows 0, 1, 2, ...: "row" and the double of its number. */
static void put_later(struct result_more *m, struct result *r) {
    result_row(r);
    cell_text(r, "name", "row");
    cell_int(r, "total_us", (int64_t)m->at * 2);
}

static void free_later(struct result_more *m) { free(m); }

/* Makes a result of n rows, of which the first ten are there. */
static void later(struct result *r, size_t n) {
    columns(r);
    struct result_more *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m = (struct result_more){.end = 10, .put = put_later, .free = free_later};
    result_fill(r, m);
    m->end = n;
    r->more = m;
    r->total_rows = n;
}

static void rows_that_come_later_have_them_too(void **state) {
    (void)state;
    enum { ROWS = 40000 };
    struct result r;
    struct ops_err e;
    size_t rows = 0;
    later(&r, ROWS);
    assert_int_equal(result_choose(&r, "total_us,name", &e), 0);
    for (const struct result *p = &r; p != NULL; p = result_next(&r))
        for (size_t i = 0; i < p->nrows; i++, rows++) {
            assert_int_equal(result_cell(p, i, 0).i, rows * 2);
            assert_string_equal(result_cell(p, i, 1).s, "row");
        }
    assert_int_equal(rows, ROWS);
    result_free(&r);
    later(&r, ROWS);
    assert_int_equal(result_choose(&r, "total_us", &e), 0);
    assert_int_equal(result_gather(&r, &e), 0);
    assert_int_equal(r.nrows, ROWS);
    assert_int_equal(r.total_rows, ROWS);
    assert_int_equal(result_cell(&r, ROWS - 1, 0).i, (ROWS - 1) * 2);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_goes_by_name_and_by_heading),
        cmocka_unit_test(the_columns_asked_for_stand_in_their_order),
        cmocka_unit_test(what_is_no_column_is_told_with_those_there_are),
        cmocka_unit_test(whose_rows_they_are_stays),
        cmocka_unit_test(rows_that_come_later_have_them_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
