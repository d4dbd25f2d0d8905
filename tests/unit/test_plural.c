/* SPDX-License-Identifier: Apache-2.0
 * Words that agree with a number: the choices, and all notes. */
#include "base/text/plural.h"

#include "model/result.h"
#include "model/trace.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void one_and_many_are_told_apart(void **state) {
    (void)state;
    static const char text[] = "entr[y is|ies are] here, [|all] of %d %%";
    char buf[64];
    assert_string_equal(plural_put(buf, sizeof buf, text, 1),
                        "entry is here,  of %d %%");
    assert_string_equal(plural_put(buf, sizeof buf, text, 0),
                        "entries are here, all of %d %%");
    assert_string_equal(plural_put(buf, sizeof buf, text, 2),
                        "entries are here, all of %d %%");
    assert_string_equal(plural_put(buf, 6, text, 2), "entri");
    assert_string_equal(plural_put(buf, sizeof buf, "a|b", 1), "a|b");
}

/* Is the word in the text, with no letter beside it? */
static bool has_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == ';'))
            return true;
    return false;
}

static void every_note_has_a_singular(void **state) {
    (void)state;
    /* what stands right behind the noun, of which there may be none */
    static const char *const plural_only[] = {"were", "they", "them", "their"};
    for (int i = 0; i < NOTE_COUNT; i++) {
        char one[NOTE_TEXT], many[NOTE_TEXT];
        note_text(i, 1, one);
        note_text(i, 2, many);
        assert_string_not_equal(one, many);
        assert_true(strlen(one) < NOTE_TEXT - 1);
        assert_true(strlen(many) < NOTE_TEXT - 1);
        assert_null(strpbrk(one, "[]|"));
        assert_null(strpbrk(many, "[]|"));
        for (size_t k = 0; k < sizeof plural_only / sizeof *plural_only; k++)
            if (has_word(one, plural_only[k]))
                assert_int_equal(i, NOTE_SIZE_OUT_OF_RANGE);
    }
}

static void notes_of_two_profiles_are_many(void **state) {
    (void)state;
    struct result a, b;
    struct ops_err e;
    result_init(&a, "ops", "");
    result_init(&b, "ops", "");
    result_note(&a, NOTE_STEPS_NONE, 1);
    result_note(&b, NOTE_STEPS_NONE, 1);
    assert_non_null(strstr(a.notes[0].text, "profile has no step"));
    assert_int_equal(result_done(&a, &e), 0);
    assert_int_equal(result_done(&b, &e), 0);
    assert_int_equal(result_join(&a, &b, &e), 0);
    assert_int_equal(a.nnotes, 1);
    assert_int_equal(a.notes[0].count, 2);
    assert_non_null(strstr(a.notes[0].text, "profiles have no step"));
    result_free(&a);
    result_free(&b);
}

static void a_remark_agrees_with_its_count(void **state) {
    (void)state;
    struct result r;
    result_init(&r, "ops", "");
    for (size_t n = 1; n < 3; n++)
        result_remark_n(&r, n, "%zu file[ is|s are] %s", n, "[here|there]");
    assert_string_equal(r.remarks[0], "1 file is [here|there]");
    assert_string_equal(r.remarks[1], "2 files are [here|there]");
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_many_are_told_apart),
        cmocka_unit_test(every_note_has_a_singular),
        cmocka_unit_test(notes_of_two_profiles_are_many),
        cmocka_unit_test(a_remark_agrees_with_its_count),
    };
    return cmocka_run_group_tests_name("plural", tests, NULL, NULL);
}
