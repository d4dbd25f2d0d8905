/* SPDX-License-Identifier: Apache-2.0
 * Sparklines: heights, places, what is no number. */
#include "scalars/scalar_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void heights_go_from_smallest_to_largest(void **state) {
    (void)state;
    char b[SPARK_BYTES];
    const double up[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    assert_string_equal(spark_line(up, 8, 16, false, b), "▁▂▃▄▅▆▇█");
    assert_string_equal(spark_line(up, 8, 16, true, b), "_.,-~=+#");
    assert_string_equal(spark_line(up, 8, 4, false, b), "▁▃▆█");
    assert_string_equal(spark_line(up, 0, 16, false, b), "");
}

static void a_flat_line_is_in_the_middle(void **state) {
    (void)state;
    char b[SPARK_BYTES];
    const double flat[] = {5, 5, 5};
    assert_string_equal(spark_line(flat, 3, 16, false, b), "▄▄▄");
}

static void what_is_no_number_is_marked(void **state) {
    (void)state;
    char b[SPARK_BYTES];
    const double v[] = {0, NAN, 8, INFINITY, -INFINITY};
    assert_string_equal(spark_line(v, 5, 16, false, b), "▁x█xx");
    const double none[] = {NAN, NAN};
    assert_string_equal(spark_line(none, 2, 16, false, b), "xx");
}

static void large_numbers_and_many_do_no_harm(void **state) {
    (void)state;
    char b[SPARK_BYTES];
    const double huge[] = {-1e308, 1e308, 1.7e308, 1.7e308};
    assert_string_equal(spark_line(huge, 2, 16, false, b), "▁█");
    spark_line(huge, 4, 2, false, b);
    static double many[100001];
    for (size_t i = 0; i < 100001; i++) many[i] = (double)i;
    spark_line(many, 100001, 1000, false, b);
    assert_int_equal(strlen(b), 3 * SPARK_CHARS);
    assert_memory_equal(b, "▁", 3);
    assert_memory_equal(b + 3 * (SPARK_CHARS - 1), "█", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heights_go_from_smallest_to_largest),
        cmocka_unit_test(a_flat_line_is_in_the_middle),
        cmocka_unit_test(what_is_no_number_is_marked),
        cmocka_unit_test(large_numbers_and_many_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
