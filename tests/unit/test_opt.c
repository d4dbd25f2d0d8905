/* SPDX-License-Identifier: Apache-2.0
 * Options: what each type takes and refuses, and what it is read as. */
#include "base/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct opt table[] = {
    {"top", 0, OPT_INT, "N", "20", .help = "rows"},
    {"share", 0, OPT_FLOAT, "X", NULL, .help = "share"},
    {"sort", 0, OPT_TEXT, "COL", NULL, .help = "order"},
    {"format", 0, OPT_CHOICE, "text|json|csv", "text", .help = "form"},
    {"min-bytes", 0, OPT_BYTES, "SIZE", NULL, .help = "size"},
    {"at", 0, OPT_US, "US", NULL, .help = "time"},
    {"steps", 0, OPT_RANGE, "A..B", NULL, .help = "steps"},
    {.name = NULL},
};
static const struct opt second[] = {
    {"quiet", 'q', OPT_FLAG, NULL, NULL, .help = "less"},
    {.name = NULL},
};

static struct opts make(void) {
    struct opts o;
    opts_init(&o, table, NULL, second);
    return o;
}

/* Sets one value. Returns what opts_set does. */
static int set(struct opts *o, const char *name, const char *value) {
    struct ops_err e = {0};
    int rc = opts_set(o, name, value, &e);
    assert_int_equal(rc, rc ? e.code : 0);
    if (rc) assert_true(strstr(e.text, name) != NULL);
    return rc;
}

static void finds_rows_in_every_table(void **state) {
    (void)state;
    struct opts o = make();
    assert_ptr_equal(opts_find(&o, "quiet"), &second[0]);
    assert_ptr_equal(opts_find_letter(&o, 'q'), &second[0]);
    assert_null(opts_find(&o, "to"));
    assert_null(opts_find_letter(&o, '\0'));
}

static void defaults_are_not_given(void **state) {
    (void)state;
    struct opts o = make();
    assert_false(opts_given(&o, "top"));
    assert_int_equal(opts_int(&o, "top"), 20);
    assert_string_equal(opts_text(&o, "format"), "text");
    assert_null(opts_text(&o, "sort"));
    assert_false(opts_flag(&o, "quiet"));
}

static void a_later_value_replaces_an_earlier(void **state) {
    (void)state;
    struct opts o = make();
    assert_int_equal(set(&o, "top", "5"), 0);
    assert_int_equal(set(&o, "top", "-7"), 0);
    assert_true(opts_given(&o, "top"));
    assert_int_equal(opts_int(&o, "top"), -7);
    assert_int_equal(o.n, 1);
}

static void numbers_must_be_whole_words(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", " 5", "5 ", "5x", "1.5", "x", "99999999999999999999"};
    struct opts o = make();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(set(&o, "top", bad[i]), OPS_EUSAGE);
    assert_int_equal(set(&o, "share", "inf"), OPS_EUSAGE);
    assert_int_equal(set(&o, "share", "nan"), OPS_EUSAGE);
    assert_int_equal(set(&o, "share", "3.25"), 0);
    assert_true(opts_float(&o, "share") == 3.25);
}

static void numbers_out_of_range_are_refused(void **state) {
    (void)state;
    static const struct opt limited[] = {
        {"width", 0, OPT_INT, "N", NULL, .help = "", .limits = {0, 100000}},
        {"rows", 0, OPT_INT, "N", NULL, .help = "", .limits = {1, OPT_NO_END}},
        {"pause", 0, OPT_FLOAT, "S", NULL, .help = "", .limits = {0.01, 60}},
        {"min-us", 0, OPT_US, "US", NULL, .help = "",
         .limits = {0, OPT_NO_END}},
        {0},
    };
    static const struct {
        const char *name, *value, *says; /* NULL: it is taken */
    } cases[] = {
        {"width", "-1", "'-1' is not a whole number from 0 to 100000"},
        {"width", "100001", "is not a whole number from 0 to 100000"},
        {"width", "x", "'x' is not a whole number from 0 to 100000"},
        {"width", "0", NULL},
        {"width", "100000", NULL},
        {"rows", "0", "is not a whole number of 1 or more"},
        {"rows", "9223372036854775807", NULL},
        {"pause", "0.001", "is not a number from 0.01 to 60"},
        {"pause", "60", NULL},
        {"min-us", "-0.000001", "is not a number of 0 or more"},
        {"min-us", "0", NULL},
        {"width", NULL, "needs a value: a whole number from 0 to 100000"},
    };
    struct opts o;
    opts_init(&o, limited, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ops_err e = {0};
        int rc = opts_set(&o, cases[i].name, cases[i].value, &e);
        assert_int_equal(rc, cases[i].says ? OPS_EUSAGE : 0);
        if (rc != 0) assert_non_null(strstr(e.text, cases[i].says));
    }
}

static void sizes_have_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"4096", 4096},   {"1M", 1 << 20},
                {"1m", 1 << 20},  {"2.5GiB", 2684354560},
                {"1MB", 1000000}, {"3 KiB", 3072},
                {"0", 0},         {"7B", 7},
                {"1T", 1LL << 40}};
    static const char *const bad[] = {"",      "-1",   "1X",   "M",
                                      "1MiBs", "1e30", "0x10", "9000P"};
    struct opts o = make();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(set(&o, "min-bytes", good[i].text), 0);
        assert_int_equal(opts_bytes(&o, "min-bytes"), good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(set(&o, "min-bytes", bad[i]), OPS_EUSAGE);
}

static void microseconds_are_exact_picoseconds(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ps;
    } good[] = {{"12.5", 12500000},
                {"0.000001", 1},
                {"1790857026.123457", 1790857026123457},
                {"-3", -3000000},
                {".5", 500000},
                {"7.", 7000000},
                {"1.0000019", 1000001}};
    static const char *const bad[] = {
        "", ".", "-", "1.2.3", "1e3", "12us", "9223372036854775807"};
    struct opts o = make();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(set(&o, "at", good[i].text), 0);
        assert_int_equal(opts_ps(&o, "at"), good[i].ps);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(set(&o, "at", bad[i]), OPS_EUSAGE);
}

static void ranges_may_be_open(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t lo, hi;
    } good[] = {{"3..7", 3, 7},
                {"3..", 3, INT64_MAX},
                {"..7", INT64_MIN, 7},
                {"5", 5, 5},
                {"-2..-1", -2, -1}};
    static const char *const bad[] = {"", "..", "7..3", "a..b", "1...3", "1-3"};
    struct opts o = make();
    int64_t lo, hi;
    assert_false(opts_range(&o, "steps", &lo, &hi));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(set(&o, "steps", good[i].text), 0);
        assert_true(opts_range(&o, "steps", &lo, &hi));
        assert_int_equal(lo, good[i].lo);
        assert_int_equal(hi, good[i].hi);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(set(&o, "steps", bad[i]), OPS_EUSAGE);
}

static void choices_are_whole_words(void **state) {
    (void)state;
    struct opts o = make();
    assert_int_equal(set(&o, "format", "csv"), 0);
    assert_int_equal(set(&o, "format", "cs"), OPS_EUSAGE);
    assert_int_equal(set(&o, "format", "text|json"), OPS_EUSAGE);
    assert_int_equal(set(&o, "format", ""), OPS_EUSAGE);
    assert_string_equal(opts_text(&o, "format"), "csv");
}

static void flags_take_no_value_or_a_bit(void **state) {
    (void)state;
    struct opts o = make();
    assert_int_equal(set(&o, "quiet", NULL), 0);
    assert_true(opts_flag(&o, "quiet"));
    assert_int_equal(set(&o, "quiet", "0"), 0);
    assert_false(opts_flag(&o, "quiet"));
    assert_int_equal(set(&o, "quiet", "maybe"), OPS_EUSAGE);
    assert_int_equal(set(&o, "top", NULL), OPS_EUSAGE);
}

static void unknown_names_suggest_the_nearest(void **state) {
    (void)state;
    struct opts o = make();
    struct ops_err e;
    assert_int_equal(opts_set(&o, "stpes", "1", &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "did you mean '--steps'?"));
    assert_int_equal(opts_set(&o, "zebra", "1", &e), OPS_EUSAGE);
    assert_null(strstr(e.text, "did you mean"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_rows_in_every_table),
        cmocka_unit_test(defaults_are_not_given),
        cmocka_unit_test(a_later_value_replaces_an_earlier),
        cmocka_unit_test(numbers_must_be_whole_words),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(microseconds_are_exact_picoseconds),
        cmocka_unit_test(ranges_may_be_open),
        cmocka_unit_test(choices_are_whole_words),
        cmocka_unit_test(flags_take_no_value_or_a_bit),
        cmocka_unit_test(unknown_names_suggest_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
