/* SPDX-License-Identifier: Apache-2.0
 * The merge sort against insertion sort, on the shapes that profiles have. */
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 300 };

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void sort_slowly(struct sort_key *v, size_t n) {
    for (size_t i = 1; i < n; i++) {
        struct sort_key x = v[i];
        size_t k = i;
        for (; k > 0 && (v[k - 1].hi > x.hi ||
                         (v[k - 1].hi == x.hi && v[k - 1].lo > x.lo));
             k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

static void check(struct sort_key *v, size_t n) {
    struct sort_key want[MOST];
    for (size_t i = 0; i < n; i++) v[i].row = (uint32_t)i;
    memcpy(want, v, n * sizeof *v);
    sort_slowly(want, n);
    assert_true(sort_keys(v, n));
    for (size_t i = 0; i < n; i++) assert_int_equal(v[i].row, want[i].row);
}

static void random_keys_are_sorted_and_equal_ones_stay(void **state) {
    (void)state;
    uint32_t seed = 5;
    struct sort_key v[MOST];
    for (size_t n = 0; n < MOST; n++) {
        memset(v, 0, sizeof v);
        for (size_t i = 0; i < n; i++)
            v[i] = (struct sort_key){next(&seed) % 8, next(&seed) % 8, 0};
        check(v, n);
    }
}

static void any_number_of_runs_is_merged(void **state) {
    (void)state;
    struct sort_key v[MOST];
    for (size_t runs = 1; runs < 20; runs++) {
        memset(v, 0, sizeof v);
        for (size_t i = 0; i < MOST; i++) v[i].hi = i % (MOST / runs + 1);
        check(v, MOST);
    }
    for (size_t i = 0; i < MOST; i++) v[i].hi = MOST - i; /* falling */
    check(v, MOST);
}

static void signed_order_survives(void **state) {
    (void)state;
    static const int64_t v[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (size_t i = 1; i < 5; i++)
        assert_true(sort_signed(v[i - 1]) < sort_signed(v[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_keys_are_sorted_and_equal_ones_stay),
        cmocka_unit_test(any_number_of_runs_is_merged),
        cmocka_unit_test(signed_order_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
