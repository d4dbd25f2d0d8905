/* SPDX-License-Identifier: Apache-2.0
 * The language of windows: what each form asks for is written out as the list
 * of steps, and found again by asking for every step. */
#include "ring/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static struct window parsed(const char *text) {
    struct window w;
    char why[200];
    if (window_parse(&w, text, why, sizeof why) != 0)
        fail_msg("%s: %s", text, why);
    assert_string_equal(why, "");
    return w;
}

/* Checks the wanted steps of 0..1000 as text: "1 2 3", at most `most` of
 * them. */
static void assert_steps(const char *text, int most, const char *want) {
    struct window w = parsed(text);
    char got[4096] = "";
    for (int64_t i = 0; i <= 1000 && most > 0; i++) {
        if (!window_wants_step(&w, i)) continue;
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%lld", n ? " " : "", (long long)i);
        most--;
    }
    assert_string_equal(got, want);
}

static void steps_and_ranges(void **state) {
    (void)state;
    assert_steps("100..102", 99, "100 101 102");
    assert_steps("1,10,100", 99, "1 10 100");
    assert_steps("500..", 3, "500 501 502");
    assert_steps("998..", 99, "998 999 1000");
    assert_steps("..5", 99, "0 1 2 3 4 5");
    assert_steps("7", 99, "7");
    assert_steps("0", 99, "0");
    assert_steps("3..3", 99, "3");
    assert_steps(" 1 , 4 .. 6 ,\t9 ", 99, "1 4 5 6 9");
    assert_steps("5..7,6..8", 99, "5 6 7 8");
}

static void periods(void **state) {
    (void)state;
    assert_steps("every 50", 4, "0 50 100 150");
    assert_steps("every 50 for 3", 7, "0 1 2 50 51 52 100");
    assert_steps("every 1", 3, "0 1 2");
    assert_steps("every 400 for 2, 7, 998..", 99,
                 "0 1 7 400 401 800 801 998 "
                 "999 1000");
    assert_steps("every50for3", 4, "0 1 2 50");
}

static void times_are_half_open(void **state) {
    (void)state;
    struct window w = parsed("10s..20s");
    assert_false(window_wants_time(&w, 10 * S - 1));
    assert_true(window_wants_time(&w, 10 * S));
    assert_true(window_wants_time(&w, 20 * S - 1));
    assert_false(window_wants_time(&w, 20 * S));
    assert_false(window_wants_step(&w, 10));
    w = parsed("500ms..2s");
    assert_false(window_wants_time(&w, 499 * MS));
    assert_true(window_wants_time(&w, 500 * MS));
    assert_false(window_wants_time(&w, 2000 * MS));
    w = parsed("every 60s for 2s");
    assert_true(window_wants_time(&w, 0));
    assert_false(window_wants_time(&w, 2 * S));
    assert_true(window_wants_time(&w, 61 * S));
    assert_false(window_wants_time(&w, 62 * S));
    assert_true(window_wants_time(&w, 3600 * S + 1));
    w = parsed("1.5s.., ..250us");
    assert_true(window_wants_time(&w, 249999));
    assert_false(window_wants_time(&w, 250000));
    assert_false(window_wants_time(&w, 1500 * MS - 1));
    assert_true(window_wants_time(&w, 1500 * MS));
    assert_false(window_wants_time(&w, UINT64_MAX));
}

static void units_are_what_they_say(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"..1us", 1000},
        {"..1ms", 1000000},
        {"..1s", 1000000000},
        {"..1min", 60000000000},
        {"..1h", 3600000000000},
        {"..0.5h", 1800000000000},
        {"..1.25ms", 1250000},
        {"..0.001us", 1},
        {"..2.5 min", 150000000000},
        {"..0.1234567899s", 123456789},
        {"..1.999999999h", 7199999996400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = parsed(cases[i].text);
        assert_int_equal(window_next_ns(&w, 0), cases[i].ns);
    }
}

static void kinds_are_known(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool steps, time, demand;
    } cases[] = {
        {"100..102", true, false, false},    {"9,3,5..7", true, false, false},
        {"..5", true, false, false},         {"500..", true, false, false},
        {"3,every 50", true, false, false},  {"demand", false, false, true},
        {"5,demand", true, false, true},     {"1s..2s", false, true, false},
        {"1s..2s,..3s", false, true, false}, {"1s..2s,3", true, true, false},
        {"1s..", false, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = parsed(cases[i].text);
        assert_int_equal(window_uses_steps(&w), cases[i].steps);
        assert_int_equal(window_uses_time(&w), cases[i].time);
        assert_int_equal(w.demand, cases[i].demand);
    }
}

/* Going from border to border misses no change: asked at every millisecond in
 * between, the answer stays. */
static void next_ns_finds_every_change(void **state) {
    (void)state;
    struct window w = parsed("every 70ms for 20ms, 95ms..130ms, 400ms..");
    uint64_t now = 0;
    int changes = 0;
    while (now < 600 * MS) {
        uint64_t next = window_next_ns(&w, now);
        bool on = window_wants_time(&w, now);
        assert_true(next > now);
        for (uint64_t t = now; t < next && t < 600 * MS; t += MS)
            assert_int_equal(window_wants_time(&w, t), on);
        if (next < 600 * MS && window_wants_time(&w, next) != on) changes++;
        now = next;
    }
    /* off 20, on 70, off 90, on 95, off 130, on 140, 160, 210, 230, 280, 300,
     * 350, 370, on for good 400 */
    assert_int_equal(changes, 14);
    w = parsed("1..5");
    assert_true(window_next_ns(&w, 0) == UINT64_MAX);
    w = parsed("..1s");
    assert_true(window_next_ns(&w, 0) == S);
    assert_true(window_next_ns(&w, S) == UINT64_MAX);
    assert_true(window_next_ns(&w, UINT64_MAX) == UINT64_MAX);
}

static void steps_at_the_edges_of_int64(void **state) {
    (void)state;
    struct window w = parsed("every 3, 9223372036854775806");
    assert_true(window_wants_step(&w, 9223372036854775806));
    assert_false(window_wants_step(&w, INT64_MAX));
    assert_false(window_wants_step(&w, -1));
    assert_false(window_wants_step(&w, INT64_MIN));
    w = parsed("..5");
    assert_false(window_wants_step(&w, -1));
}

static void errors_name_the_part(void **state) {
    (void)state;
    static const struct {
        const char *text, *part, *says;
    } cases[] = {
        {"", "", "missing at the end"},
        {"  ", "", "missing at the end"},
        {"1,", "", "missing at the end"},
        {",1", "", "before a comma"},
        {"1,,2", "", "before a comma"},
        {"1,x", "'x'", "not a step"},
        {"-5", "'-5'", "not a step"},
        {"..", "'..'", "must follow '..'"},
        {"1, 9..4 ,7", "'9..4'", "ends before"},
        {"20s..10s", "'20s..10s'", "ends before"},
        {"10s..10s", "'10s..10s'", "ends before"},
        {"10s..20", "'10s..20'", "one end is a time"},
        {"10..20s", "'10..20s'", "one end is a time"},
        {"1,10s", "'10s'", "not a range"},
        {"1.5", "'1.5'", "whole number"},
        {"every 1.5", "'every 1.5'", "whole number"},
        {"every", "'every'", "must follow 'every'"},
        {"every 5 for", "'every 5 for'", "must follow 'for'"},
        {"every 0", "'every 0'", "no period"},
        {"every 5 for 0", "'every 5 for 0'", "no period"},
        {"every 5 for 6", "'every 5 for 6'", "longer"},
        {"every 60s", "'every 60s'", "how long"},
        {"every 60s for 2", "'every 60s for 2'", "one value is a time"},
        {"every 60 for 2s", "'every 60 for 2s'", "one value is a time"},
        {"10m..", "'10m..'", "units"},
        {"10sec..", "'10sec..'", "units"},
        {"5 6", "'5 6'", "'6' was not expected"},
        {"5..6..7", "'5..6..7'", "not expected"},
        {"demand 5", "'demand 5'", "not expected"},
        {"demanding", "'demanding'", "not a step"},
        {"9223372036854775807", "'9223372036854775807'", "too large"},
        {"99999999999999999999", "'99999999999999999999'", "too large"},
        {"..9999999999h", "'..9999999999h'", "too long"},
        {"..9223372036854775806us", "'..922", "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w;
        char why[200] = "?";
        int rc = window_parse(&w, cases[i].text, why, sizeof why);
        if (rc != -1 || !strstr(why, cases[i].part) ||
            !strstr(why, cases[i].says))
            fail_msg("\"%s\": %d, %s", cases[i].text, rc, why);
        assert_false(window_wants_step(&w, 1));
    }
}

/* Whatever the bytes: it returns, and says something exactly when it fails; a
 * small buffer is not overrun. */
static void hostile_text_is_survived(void **state) {
    (void)state;
    static const char *const bits[] = {"every",      "for", "demand", "..",
                                       ",",          " ",   "1",      "50",
                                       "9999999999", ".5",  "s",      "ms",
                                       "min",        "x",   "\xff",   "-",
                                       "\n"};
    char text[400], why[24];
    struct window w;
    unsigned seed = 5;
    for (int i = 0; i < 20000; i++) {
        text[0] = '\0';
        for (int k = 0; k < 12; k++) {
            seed = seed * 1103515245 + 12345;
            strcat(text, bits[(seed >> 16) % (sizeof bits / sizeof *bits)]);
        }
        size_t cap = (seed >> 8) % sizeof why;
        memset(why, '#', sizeof why);
        int rc = window_parse(&w, text, why, cap);
        for (size_t k = cap; k < sizeof why; k++) assert_int_equal(why[k], '#');
        if (cap > 1) assert_int_equal(rc == 0, why[0] == '\0');
        window_wants_step(&w, seed);
        window_next_ns(&w, seed);
    }
    char many[WINDOW_PARTS * 2 + 3] = "1";
    for (int k = 1; k < WINDOW_PARTS; k++) strcat(many, ",2");
    parsed(many);
    strcat(many, ",3");
    assert_int_equal(window_parse(&w, many, why, sizeof why), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_ranges),
        cmocka_unit_test(periods),
        cmocka_unit_test(times_are_half_open),
        cmocka_unit_test(units_are_what_they_say),
        cmocka_unit_test(kinds_are_known),
        cmocka_unit_test(next_ns_finds_every_change),
        cmocka_unit_test(steps_at_the_edges_of_int64),
        cmocka_unit_test(errors_name_the_part),
        cmocka_unit_test(hostile_text_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
