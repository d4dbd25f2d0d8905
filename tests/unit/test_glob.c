/* SPDX-License-Identifier: Apache-2.0
 * Glob patterns, held against fnmatch(3) where both mean the same. */
#include "base/text/glob.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void plain_patterns_match_whole_names(void **state) {
    (void)state;
    assert_true(glob_match("aten::mm", "aten::mm"));
    assert_false(glob_match("aten::mm", "aten::mm_"));
    assert_false(glob_match("aten::mm", "aten::m"));
    assert_true(glob_match("", ""));
    assert_false(glob_match("", "a"));
}

static void stars_match_any_run(void **state) {
    (void)state;
    assert_true(glob_match("aten::*", "aten::mm"));
    assert_true(glob_match("*conv*", "aten::conv2d"));
    assert_true(glob_match("*", ""));
    assert_true(glob_match("a**b", "ab"));
    assert_true(glob_match("*a*b*c", "xaxbxbxcxc"));
    assert_false(glob_match("*a*b*c", "xaxbxcx"));
}

static void sets_have_ranges_and_negation(void **state) {
    (void)state;
    assert_true(glob_match("conv[1-3]d", "conv2d"));
    assert_false(glob_match("conv[1-3]d", "conv4d"));
    assert_true(glob_match("conv[!1-3]d", "conv4d"));
    assert_true(glob_match("[]x]", "]"));
    assert_true(glob_match("[a-]", "-"));
    assert_true(glob_match("[ab", "[ab")); /* no end: an ordinary character */
    assert_true(glob_match("a\\*", "a*"));
    assert_false(glob_match("a\\*", "ab"));
}

static void one_question_mark_is_one_character(void **state) {
    (void)state;
    assert_true(glob_match("?", "é"));
    assert_true(glob_match("[α-ω]", "λ"));
    assert_false(glob_match("?", "ab"));
    assert_true(glob_match("?", "\xff"));      /* a bad byte counts one */
    assert_true(glob_match("??", "\xe2\x82")); /* a cut character: two */
}

static void agrees_with_fnmatch_on_random_cases(void **state) {
    (void)state;
    static const char pool[] = "ab*?";
    uint32_t x = 12345;
    for (int round = 0; round < 20000; round++) {
        char pat[8], text[8];
        for (int k = 0; k < 7; k++) {
            x = x * 1664525u + 1013904223u;
            pat[k] = pool[x >> 30];
            text[k] = (char)('a' + (x >> 28 & 1));
        }
        pat[x >> 8 & 7] = '\0';
        text[x >> 12 & 7] = '\0';
        pat[7] = text[7] = '\0';
        if (glob_match(pat, text) != (fnmatch(pat, text, 0) == 0))
            fail_msg("pattern '%s', text '%s'", pat, text);
    }
}

static void no_pattern_takes_exponential_time(void **state) {
    (void)state;
    char text[5001];
    memset(text, 'a', 5000);
    text[5000] = '\0';
    clock_t start = clock();
    assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

static void tells_patterns_from_plain_names(void **state) {
    (void)state;
    assert_false(glob_special("aten::mm"));
    assert_true(glob_special("aten::*"));
    assert_true(glob_special("conv[12]"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_patterns_match_whole_names),
        cmocka_unit_test(stars_match_any_run),
        cmocka_unit_test(sets_have_ranges_and_negation),
        cmocka_unit_test(one_question_mark_is_one_character),
        cmocka_unit_test(agrees_with_fnmatch_on_random_cases),
        cmocka_unit_test(no_pattern_takes_exponential_time),
        cmocka_unit_test(tells_patterns_from_plain_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
