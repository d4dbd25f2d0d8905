/* SPDX-License-Identifier: Apache-2.0
 * The hash map against a plain array. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_empty_map_knows_nothing(void **state) {
    (void)state;
    struct map m = {0};
    assert_int_equal(map_get(&m, 0), MAP_NONE);
    assert_int_equal(map_get(&m, UINT64_MAX), MAP_NONE);
    map_free(&m);
}

static void every_key_keeps_its_last_value(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    struct map m = {0};
    static uint32_t want[KEYS];
    uint32_t seed = 3;
    for (uint32_t i = 0; i < KEYS; i++) want[i] = MAP_NONE;
    for (uint32_t i = 0; i < 3 * KEYS; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t k = (seed >> 8) % KEYS;
        /* keys with equal low bits, and 0 and the largest among them */
        uint64_t key = k == 0 ? 0 : k == 1 ? UINT64_MAX : (uint64_t)k << 40;
        assert_true(map_set(&m, key, i));
        want[k] = i;
    }
    size_t known = 0;
    for (uint32_t k = 0; k < KEYS; k++) {
        uint64_t key = k == 0 ? 0 : k == 1 ? UINT64_MAX : (uint64_t)k << 40;
        assert_int_equal(map_get(&m, key), want[k]);
        known += want[k] != MAP_NONE;
    }
    assert_int_equal(m.n, known);
    assert_int_equal(map_get(&m, 12345), MAP_NONE);
    map_free(&m);
}

static void a_slot_handed_out_is_empty_until_filled(void **state) {
    (void)state;
    struct map m = {0};
    uint32_t *at = map_at(&m, 77);
    assert_non_null(at);
    assert_int_equal(*at, MAP_NONE);
    assert_int_equal(map_get(&m, 77), MAP_NONE);
    *map_at(&m, 77) = 5;
    assert_int_equal(map_get(&m, 77), 5);
    assert_int_equal(m.n, 1);
    map_free(&m);
    assert_int_equal(map_get(&m, 77), MAP_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_knows_nothing),
        cmocka_unit_test(every_key_keeps_its_last_value),
        cmocka_unit_test(a_slot_handed_out_is_empty_until_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
