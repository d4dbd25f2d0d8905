/* SPDX-License-Identifier: Apache-2.0
 * Interval sets against a bit per unit of time. */
#include "tiny.h"

#include "analyze/shared/intervals.h"

enum { SPACE = 64 };

static void fill(struct intervals *s, const int (*v)[2], size_t n) {
    for (size_t i = 0; i < n; i++)
        assert_true(intervals_add(s, v[i][0], v[i][1]));
    intervals_union(s);
}

static void check_form(const struct intervals *s) {
    int64_t sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        assert_true(s->v[i].start < s->v[i].end);
        if (i > 0) assert_true(s->v[i].start > s->v[i - 1].end);
        assert_int_equal(s->v[i].before, sum);
        sum += s->v[i].end - s->v[i].start;
    }
    assert_int_equal(intervals_length(s), sum);
}

static void empty_set(void **state) {
    (void)state;
    struct intervals s = {0};
    intervals_union(&s);
    assert_int_equal(intervals_length(&s), 0);
    assert_int_equal(intervals_overlap(&s, 0, 100), 0);
    assert_false(intervals_contain(&s, 0));
    assert_true(intervals_add(&s, 5, 5));
    assert_true(intervals_add(&s, 7, 3));
    assert_int_equal(s.n, 0);
    intervals_free(&s);
}

static void touching_ones_join(void **state) {
    (void)state;
    struct intervals s = {0};
    fill(&s, (const int[][2]){{20, 30}, {0, 10}, {10, 12}, {25, 40}, {2, 3}},
         5);
    check_form(&s);
    assert_int_equal(s.n, 2);
    assert_int_equal(intervals_length(&s), 32);
    assert_int_equal(intervals_overlap(&s, 5, 22), 9);
    assert_int_equal(intervals_overlap(&s, 12, 20), 0);
    assert_true(intervals_contain(&s, 0));
    assert_false(intervals_contain(&s, 12));
    intervals_free(&s);
}

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void random_set(struct intervals *s, bool *bits, uint32_t *seed) {
    memset(bits, 0, SPACE * sizeof *bits);
    for (int i = 0; i < 6; i++) {
        int a = (int)(next(seed) % SPACE), b = a + (int)(next(seed) % 9);
        if (b > SPACE) b = SPACE;
        assert_true(intervals_add(s, a, b));
        for (int k = a; k < b; k++) bits[k] = true;
    }
    intervals_union(s);
    check_form(s);
}

static void same_as_bits(const struct intervals *s, const bool *bits) {
    for (int k = 0; k < SPACE; k++) {
        assert_int_equal(intervals_contain(s, k), bits[k]);
        assert_int_equal(intervals_overlap(s, k, k + 1), bits[k]);
    }
}

static void operations_equal_bits(void **state) {
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        struct intervals a = {0}, b = {0}, both = {0}, only = {0};
        bool x[SPACE], y[SPACE], and[SPACE], sub[SPACE];
        random_set(&a, x, &seed);
        random_set(&b, y, &seed);
        for (int k = 0; k < SPACE; k++) {
            and[k] = x[k] && y[k];
            sub[k] = x[k] && !y[k];
        }
        assert_true(intervals_and(&a, &b, &both));
        assert_true(intervals_sub(&a, &b, &only));
        check_form(&both);
        check_form(&only);
        same_as_bits(&a, x);
        same_as_bits(&both, and);
        same_as_bits(&only, sub);
        intervals_free(&a);
        intervals_free(&b);
        intervals_free(&both);
        intervals_free(&only);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_set),
        cmocka_unit_test(touching_ones_join),
        cmocka_unit_test(operations_equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
