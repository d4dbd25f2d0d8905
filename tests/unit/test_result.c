/* SPDX-License-Identifier: Apache-2.0
 * Results: filling, order, filters, the cut, and joining. */
#include "model/result.h"
#include "model/trace_fill.h"
#include "unit/formats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* name, us: b 2, a null, d 5, c 2 */
static void fill(struct result *r) {
    static const char *const names[] = {"b", "a", "d", "c"};
    static const int64_t us[] = {2, 0, 5, 2};
    result_init(r, "ops", "Operations");
    result_col(r, (struct column){.name = "name", .type = COL_TEXT});
    result_col(r, (struct column){.name = "us", .type = COL_TIME});
    for (size_t i = 0; i < 4; i++) {
        result_row(r);
        cell_text(r, "name", names[i]);
        if (us[i] != 0) cell_int(r, "us", us[i]);
    }
}

/* Returns the names in order, as one string. */
static const char *order_of(const struct result *r, char buf[16]) {
    size_t n = 0;
    for (size_t i = 0; i < r->nrows; i++) buf[n++] = result_cell(r, i, 0).s[0];
    buf[n] = '\0';
    return buf;
}

static void copies_what_it_is_given(void **state) {
    (void)state;
    struct result r;
    char name[] = "before";
    result_init(&r, "x", "X");
    result_col(&r, (struct column){.name = "t", .type = COL_TEXT});
    result_row(&r);
    cell_text(&r, "t", name);
    memcpy(name, "after!", 6);
    assert_string_equal(result_cell(&r, 0, 0).s, "before");
    result_free(&r);
}

static void not_recorded_is_null(void **state) {
    (void)state;
    struct result r;
    result_init(&r, "x", "X");
    result_col(&r, (struct column){.name = "f", .type = COL_FLOAT});
    result_col(&r, (struct column){.name = "t", .type = COL_TEXT});
    for (int i = 0; i < 2; i++) {
        result_row(&r);
        cell_float(&r, "f", i ? NAN : INFINITY);
        cell_text(&r, "t", NULL);
        assert_true(result_cell(&r, (size_t)i, 0).null);
        assert_true(result_cell(&r, (size_t)i, 1).null);
    }
    assert_int_equal(result_done(&r, NULL), 0);
    result_free(&r);
}

static void cells_go_by_name(void **state) {
    (void)state;
    static const struct column cols[] = {{.name = "t", .type = COL_TEXT},
                                         {.name = "i", .type = COL_INT},
                                         {.name = "f", .type = COL_FLOAT},
                                         {.name = "b", .type = COL_BOOL}};
    struct result r;
    result_init(&r, "x", "X");
    result_cols(&r, cols, 4);
    result_row(&r);
    cell_bool(&r, "b", true); /* not in the columns' order */
    cell_int(&r, "i", 7);
    result_row(&r); /* the same text twice, a row without it between */
    cell_text(&r, "t", "same");
    cell_float(&r, "f", 0.5);
    result_row(&r);
    result_row(&r);
    cell_str(&r, "t", bytes_of("same"));
    assert_int_equal(result_done(&r, NULL), 0);
    assert_int_equal(r.nrows, 4);
    assert_true(result_cell(&r, 0, 0).null && result_cell(&r, 0, 2).null);
    assert_int_equal(result_cell(&r, 0, 1).i, 7);
    assert_int_equal(result_cell(&r, 0, 3).i, 1);
    assert_string_equal(result_cell(&r, 1, 0).s, "same");
    assert_true(result_cell(&r, 1, 2).f == 0.5);
    assert_true(result_cell(&r, 1, 1).null && result_cell(&r, 1, 3).null);
    for (size_t c = 0; c < 4; c++) assert_true(result_cell(&r, 2, c).null);
    assert_ptr_equal(result_cell(&r, 3, 0).s, result_cell(&r, 1, 0).s);
    result_row(&r);
    result_free(&r);
}

/* An argument of an event is what stood in the file: any bytes. */
static void texts_are_utf8(void **state) {
    (void)state;
    static const struct column cols[] = {{.name = "t", .type = COL_TEXT}};
    struct result r;
    result_init(&r, "x", "X");
    result_cols(&r, cols, 1);
    result_row(&r);
    cell_str(&r, "t", (struct bytes){(const uint8_t *)"wr\xe1pped\0.1", 10});
    result_row(&r);
    cell_text(&r, "t", "caf\xc3\xa9");
    assert_int_equal(result_done(&r, NULL), 0);
    assert_string_equal(result_cell(&r, 0, 0).s, "wr\xef\xbf\xbdpped .1");
    assert_string_equal(result_cell(&r, 1, 0).s, "caf\xc3\xa9");
    result_free(&r);
}

static void a_sum_that_stopped_is_said(void **state) {
    (void)state;
    static const int64_t v[] = {INT64_MAX - 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 3; i++) {
        struct result r;
        struct ops_err e;
        result_init(&r, "x", "X");
        result_col(&r, (struct column){.name = "bytes", .type = COL_BYTES});
        result_row(&r);
        cell_int(&r, "bytes", v[i]);
        assert_int_equal(result_done(&r, &e), 0);
        assert_int_equal(r.nremarks, i > 0);
        result_free(&r);
    }
}

static void numbers_sort_largest_first_and_stay_stable(void **state) {
    (void)state;
    struct result r;
    char buf[16];
    fill(&r);
    assert_int_equal(result_sort(&r, 1, NULL), 0);
    assert_string_equal(order_of(&r, buf), "dbca"); /* b before c; null last */
    assert_int_equal(result_sort(&r, 0, NULL), 0);
    assert_string_equal(order_of(&r, buf), "abcd");
    result_free(&r);
}

static bool not_b(const struct result *r, size_t row, const void *ctx) {
    (void)ctx;
    return result_cell(r, row, 0).s[0] != 'b';
}

static void filters_lower_the_total_and_the_cut_does_not(void **state) {
    (void)state;
    struct result r;
    char buf[16];
    fill(&r);
    result_filter(&r, not_b, NULL);
    assert_string_equal(order_of(&r, buf), "adc");
    assert_int_equal(r.total_rows, 3);
    result_top(&r, 2);
    assert_string_equal(order_of(&r, buf), "ad");
    assert_int_equal(r.total_rows, 3);
    result_top(&r, 100);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(result_done(&r, NULL), 0);
    result_free(&r);
}

static void profiles_stand_side_by_side(void **state) {
    (void)state;
    struct result a, b;
    struct column c = {.name = "profile", .type = COL_TEXT};
    fill(&a);
    fill(&b);
    result_remark(&a, "same");
    result_remark(&b, "same");
    result_missing(&b, "memory", "off", NULL);
    result_top(&b, 1);
    b.decimals = 6;
    assert_int_equal(result_prefix(&a, c, "one", NULL), 0);
    assert_int_equal(result_prefix(&b, c, "two", NULL), 0);
    assert_int_equal(result_join(&a, &b, NULL), 0);
    result_free(&b); /* what was joined must not depend on it */
    assert_int_equal(a.ncols, 3);
    assert_int_equal(a.nrows, 5);
    assert_int_equal(a.total_rows, 8);
    assert_int_equal(a.decimals, 6);
    assert_int_equal(a.nremarks, 1);
    assert_int_equal(a.nmissing, 1);
    assert_string_equal(result_cell(&a, 3, 0).s, "one");
    assert_string_equal(result_cell(&a, 4, 0).s, "two");
    assert_string_equal(result_cell(&a, 4, 1).s, "b");
    assert_int_equal(result_cell(&a, 4, 2).i, 2);
    result_free(&a);
}

static void different_columns_do_not_join(void **state) {
    (void)state;
    struct result a, b;
    struct ops_err e;
    fill(&a);
    result_init(&b, "ops", "Operations");
    result_col(&b, (struct column){.name = "name", .type = COL_TEXT});
    assert_int_equal(result_join(&a, &b, &e), OPS_EUNSUP);
    result_free(&a);
    result_free(&b);
}

static void takes_sources_notes_and_precision_from_the_trace(void **state) {
    (void)state;
    struct result r;
    struct trace *t = trace_new();
    uint32_t s = trace_source(t, "a.json", format_named("kineto"), NULL,
                              bytes_of(""));
    assert_int_equal(s, 0);
    t->sources[0].decimals = 6;
    trace_note(t, NOTE_BAD_EVENT, 3);
    assert_int_equal(trace_seal(t, NULL), 0);
    result_init(&r, "ops", "Operations");
    result_from_trace(&r, t);
    trace_free(t);
    assert_int_equal(r.nsources, 1);
    assert_string_equal(r.sources[0].path, "a.json");
    assert_null(r.sources[0].host);
    assert_int_equal(r.decimals, 6);
    size_t bad = 0;
    for (size_t i = 0; i < r.nnotes; i++)
        if (strcmp(r.notes[i].id, "bad-event") == 0) bad = r.notes[i].count;
    assert_int_equal(bad, 3);
    result_free(&r);
}

static void memory_that_ran_out_is_told_at_the_end(void **state) {
    (void)state;
    struct result r;
    struct ops_err e;
    fill(&r);
    r.oom = true;
    result_row(&r); /* nothing fails while filling */
    cell_text(&r, "name", "x");
    assert_int_equal(result_sort(&r, 0, &e), OPS_ELIMIT);
    assert_int_equal(result_done(&r, &e), OPS_ELIMIT);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_what_it_is_given),
        cmocka_unit_test(not_recorded_is_null),
        cmocka_unit_test(cells_go_by_name),
        cmocka_unit_test(texts_are_utf8),
        cmocka_unit_test(a_sum_that_stopped_is_said),
        cmocka_unit_test(numbers_sort_largest_first_and_stay_stable),
        cmocka_unit_test(filters_lower_the_total_and_the_cut_does_not),
        cmocka_unit_test(profiles_stand_side_by_side),
        cmocka_unit_test(different_columns_do_not_join),
        cmocka_unit_test(takes_sources_notes_and_precision_from_the_trace),
        cmocka_unit_test(memory_that_ran_out_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
