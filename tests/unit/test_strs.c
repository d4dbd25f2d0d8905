/* SPDX-License-Identifier: Apache-2.0
 * Interned strings: one id for one text, whatever its bytes. */
#include "model/strs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_empty_text_is_number_zero(void **state) {
    (void)state;
    struct strs s;
    assert_true(strs_init(&s));
    assert_int_equal(strs_intern(&s, (struct bytes){NULL, 0}), 0);
    assert_int_equal(strs_intern(&s, bytes_of("")), 0);
    assert_int_equal(strs_find(&s, bytes_of("")), 0);
    assert_string_equal(strs_text(&s, 0), "");
    assert_string_equal(strs_text(&s, STR_NONE), "");
    strs_free(&s);
}

static void many_texts_keep_their_ids(void **state) {
    (void)state;
    enum { MANY = 20000 };
    struct strs s;
    char name[32];
    assert_true(strs_init(&s));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "kernel_%d", i);
            assert_int_equal(strs_intern(&s, bytes_of(name)), i + 1);
        }
    assert_int_equal(s.n, MANY + 1);
    for (int i = 0; i < MANY; i += 97) {
        snprintf(name, sizeof name, "kernel_%d", i);
        assert_string_equal(strs_text(&s, (str_id)i + 1), name);
        assert_int_equal(strs_bytes(&s, (str_id)i + 1).n, strlen(name));
    }
    assert_int_equal(strs_find(&s, bytes_of("kernel_x")), STR_NONE);
    assert_int_equal(s.n, MANY + 1); /* looking up stores nothing */
    strs_free(&s);
}

static void a_text_that_begins_another_is_its_own(void **state) {
    (void)state;
    struct strs s;
    assert_true(strs_init(&s));
    uint8_t zeros[24] = "aaaaaaaaaaaaaaaaaaaaaaa";
    str_id seen[24];
    for (size_t n = 1; n < 24; n++)
        seen[n] = strs_intern(&s, (struct bytes){zeros, n});
    for (size_t n = 2; n < 24; n++) assert_true(seen[n] != seen[n - 1]);
    strs_free(&s);
}

static void bad_bytes_are_mended_each_time_and_counted(void **state) {
    (void)state;
    struct strs s;
    assert_true(strs_init(&s));
    struct bytes bad = bytes_of("a\xff"
                                "b");
    str_id id = strs_intern(&s, bad);
    assert_string_equal(strs_text(&s, id), "a\xef\xbf\xbd"
                                           "b");
    assert_int_equal(s.mended, 1);
    assert_int_equal(strs_intern(&s, bad), id);
    assert_int_equal(s.mended, 2);
    assert_int_equal(strs_intern(&s, bytes_of("a\xef\xbf\xbd"
                                              "b")),
                     id);
    assert_int_equal(s.mended, 2);
    id = strs_intern(&s, (struct bytes){(const uint8_t *)"x\0y", 3});
    assert_string_equal(strs_text(&s, id), "x y");
    strs_free(&s);
}

static void a_text_of_a_megabyte_is_kept_whole(void **state) {
    (void)state;
    enum { BIG = 1 << 20 };
    struct strs s;
    uint8_t *big = malloc(BIG);
    assert_true(strs_init(&s));
    memset(big, 'k', BIG);
    str_id id = strs_intern(&s, (struct bytes){big, BIG});
    assert_int_equal(strs_bytes(&s, id).n, BIG);
    assert_memory_equal(strs_text(&s, id), big, BIG);
    assert_int_equal(strs_intern(&s, (struct bytes){big, BIG}), id);
    free(big);
    strs_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_empty_text_is_number_zero),
        cmocka_unit_test(many_texts_keep_their_ids),
        cmocka_unit_test(a_text_that_begins_another_is_its_own),
        cmocka_unit_test(bad_bytes_are_mended_each_time_and_counted),
        cmocka_unit_test(a_text_of_a_megabyte_is_kept_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
