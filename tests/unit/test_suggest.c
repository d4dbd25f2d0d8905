/* SPDX-License-Identifier: Apache-2.0
 * Nearest words. */
#include "base/text/suggest.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *nearest(const char *word) {
    static const char *const known[] = {"info",   "overview", "steps",
                                        "ops",    "kernels",  "copies",
                                        "memory", "allocs",   "trace",
                                        "help"};
    struct suggest s = suggest_for(word);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        suggest_try(&s, known[i]);
    return suggest_best(&s);
}

static void distance_counts_edits(void **state) {
    (void)state;
    assert_int_equal(suggest_distance("", ""), 0);
    assert_int_equal(suggest_distance("abc", ""), 3);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("stpes", "steps"), 1);
    assert_int_equal(suggest_distance("ops", "opps"), 1);
}

static void long_words_are_far_from_everything(void **state) {
    (void)state;
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(suggest_distance(word, word), INT_MAX);
    assert_null(nearest(word));
}

static void slips_find_their_word(void **state) {
    (void)state;
    assert_string_equal(nearest("opps"), "ops");
    assert_string_equal(nearest("kernel"), "kernels");
    assert_string_equal(nearest("memroy"), "memory");
    assert_string_equal(nearest("over"), "overview");
    assert_string_equal(nearest("setps"), "steps");
}

static void other_words_find_nothing(void **state) {
    (void)state;
    assert_null(nearest("banana"));
    assert_null(nearest("x"));
    assert_null(nearest(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(long_words_are_far_from_everything),
        cmocka_unit_test(slips_find_their_word),
        cmocka_unit_test(other_words_find_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
