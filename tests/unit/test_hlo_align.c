/* SPDX-License-Identifier: Apache-2.0
 * Which instruction launched which kernel: order and names together. */
#include "model/hlo/hlo.h"
#include "model/hlo/hlo_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A tiny language: letters are bases, digits numbers. Kernels "a1 a2 L h":
 * generated ones, L a library's, h its helper. Instructions "a1 L? M2": lower
 * case one kernel, L1 a library's call, M a maybe, X any number. */
static size_t kernels(const char *text, struct align_kernel *k) {
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        if (*p == ' ') continue;
        bool lib = *p == 'L' || *p == 'h';
        k[n] = (struct align_kernel){.base = (uint32_t)*p,
                                     .generated = !lib,
                                     .helper = *p == 'h'};
        k[n].name = (uint32_t)*p << 8;
        if (p[1] >= '0' && p[1] <= '9') k[n].name |= (uint32_t) * ++p;
        n++;
    }
    return n;
}

static size_t instrs(const char *text, struct align_instr *s) {
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        if (*p == ' ') continue;
        uint8_t launch = *p == 'L'   ? HLO_LAUNCHES_LIBRARY
                         : *p == 'X' ? HLO_LAUNCHES_ANY
                                     : HLO_LAUNCHES_ONE;
        char base = *p;
        if (*p == 'M') {
            launch = HLO_LAUNCHES_MAYBE;
            base = *++p;
        }
        s[n] = (struct align_instr){.base = (uint32_t)base, .launch = launch};
        s[n].name = (uint32_t)base << 8;
        if (p[1] >= '0' && p[1] <= '9') s[n].name |= (uint32_t) * ++p;
        n++;
    }
    return n;
}

/* want: a digit per kernel, '-' where there is no answer. */
static void check(const char *ks, const char *is, const char *want) {
    struct align_kernel k[64] = {{0}};
    struct align_instr s[64] = {{0}};
    uint32_t out[64];
    char got[65] = "";
    size_t n = kernels(ks, k), m = instrs(is, s);
    assert_true(hlo_align(k, n, s, m, out));
    for (size_t i = 0; i < n; i++)
        got[i] = out[i] == ALIGN_NONE ? '-' : (char)('0' + out[i]);
    assert_string_equal(got, want);
}

static void the_whole_schedule_in_order(void **state) {
    (void)state;
    check("a1 b1 c", "a1 b1 c", "012");
    check("a1 L b1", "a1 L b1", "012");
}

static void one_kernel_serves_equal_fusions(void **state) {
    (void)state;
    check("a1 a1 b a1", "a1 a2 b a3", "0123");
}

static void a_graph_may_be_a_part_of_the_schedule(void **state) {
    (void)state;
    check("c d", "a b c d e", "23");
    check("L c", "a L b L c d", "34");
}

static void a_library_launches_helpers(void **state) {
    (void)state;
    check("a L h b", "a L b", "0112");
    check("a L h L b", "a L L b", "01123");
    check("a h L L h b", "a L L b", "011223");
}

static void what_may_be_nothing_is_left_out(void **state) {
    (void)state;
    check("a b", "a Mc Md b", "03");
    check("a c b", "a Mc Md b", "013");
    check("a L L b", "a X b", "0112");
    check("a b", "a X b", "02");
}

static void contradictions_place_nothing(void **state) {
    (void)state;
    check("a z b", "a c b", "---");  /* no such instruction */
    check("a b", "a c b", "--");     /* c must have launched */
    check("b a", "a b", "--");       /* another order */
    check("a L b", "a c b", "---");  /* a library's in place of c */
    check("a L L b", "a b", "----"); /* nobody calls a library */
}

static void two_readings_place_what_they_share(void **state) {
    (void)state;
    /* the middle one may be the first call's second or the other way round */
    check("a L L L b", "a L L b", "01-23");
    /* a part of equal ones could stand anywhere */
    check("a9 a9", "a1 a2 a3", "--");
}

static void empty_and_huge_inputs(void **state) {
    (void)state;
    enum { MANY = 20000 };
    uint32_t out[1];
    struct align_kernel k[1] = {{1, 1, true, false}};
    assert_true(hlo_align(k, 0, NULL, 0, out));
    assert_true(hlo_align(k, 1, NULL, 0, out));
    assert_int_equal(out[0], ALIGN_NONE);
    /* equal lengths are a band, whatever their size */
    struct align_kernel *ks = calloc(MANY, sizeof *ks);
    struct align_instr *s = calloc(MANY, sizeof *s);
    uint32_t *found = calloc(MANY, sizeof *found);
    for (uint32_t i = 0; i < MANY; i++) {
        ks[i] = (struct align_kernel){i % 7, i % 7, true, false};
        s[i] = (struct align_instr){i % 7, i % 7, HLO_LAUNCHES_ONE};
    }
    assert_true(hlo_align(ks, MANY, s, MANY, found));
    for (uint32_t i = 0; i < MANY; i++) assert_int_equal(found[i], i);
    /* a short part of a long schedule is not worth gigabytes */
    assert_true(hlo_align(ks, MANY / 2, s, MANY, found));
    assert_int_equal(found[0], ALIGN_NONE);
    free(ks);
    free(s);
    free(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_schedule_in_order),
        cmocka_unit_test(one_kernel_serves_equal_fusions),
        cmocka_unit_test(a_graph_may_be_a_part_of_the_schedule),
        cmocka_unit_test(a_library_launches_helpers),
        cmocka_unit_test(what_may_be_nothing_is_left_out),
        cmocka_unit_test(contradictions_place_nothing),
        cmocka_unit_test(two_readings_place_what_they_share),
        cmocka_unit_test(empty_and_huge_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
