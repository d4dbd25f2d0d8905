/* SPDX-License-Identifier: Apache-2.0
 * Query strings: names, values, escapes. */
#include "api/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void query_splits_names_and_values(void **state) {
    (void)state;
    char text[] = "&top=20&&name=conv%2A+a%3d&flag&empty=";
    char *p = text, *name, *value;
    struct ops_err e;
    assert_int_equal(query_next(&p, &name, &value, &e), 1);
    assert_string_equal(name, "top");
    assert_string_equal(value, "20");
    assert_int_equal(query_next(&p, &name, &value, &e), 1);
    assert_string_equal(name, "name");
    assert_string_equal(value, "conv* a=");
    assert_int_equal(query_next(&p, &name, &value, &e), 1);
    assert_string_equal(name, "flag");
    assert_null(value);
    assert_int_equal(query_next(&p, &name, &value, &e), 1);
    assert_string_equal(name, "empty");
    assert_string_equal(value, "");
    assert_int_equal(query_next(&p, &name, &value, &e), 0);
    assert_int_equal(query_next(&p, &name, &value, &e), 0);
}

static void query_escapes_are_undone_after_the_split(void **state) {
    (void)state;
    char text[] = "a%26b%3D=1%3D2%262";
    char *p = text, *name, *value;
    struct ops_err e;
    assert_int_equal(query_next(&p, &name, &value, &e), 1);
    assert_string_equal(name, "a&b=");
    assert_string_equal(value, "1=2&2");
    assert_int_equal(query_next(&p, &name, &value, &e), 0);
}

static void query_refuses_bad_escapes(void **state) {
    (void)state;
    static const char *const bad[] = {"a=%", "a=%4", "a=%zz", "%2=1", "a=%00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[16];
        strcpy(text, bad[i]);
        char *p = text, *name, *value;
        struct ops_err e;
        assert_int_equal(query_next(&p, &name, &value, &e), OPS_EUSAGE);
        assert_non_null(strstr(e.text, "hexadecimal"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(query_splits_names_and_values),
        cmocka_unit_test(query_escapes_are_undone_after_the_split),
        cmocka_unit_test(query_refuses_bad_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
