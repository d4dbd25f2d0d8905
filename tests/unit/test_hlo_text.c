/* SPDX-License-Identifier: Apache-2.0
 * HLO as text: shapes, memory spaces, halves of an instruction, groups. */
#include "names/hlo_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct hlo_result result(const char *text) {
    return hlo_result_of(bytes_of(text));
}

static void results_are_added_up(void **state) {
    (void)state;
    struct hlo_result r = result(
        "%c = (f32[8,128]{1,0:T(8,128)S(5)}, bf16[4]{0}, u32[]{:S(2)}) "
        "copy-start(f32[8,128]{1,0} %p)");
    assert_int_equal(r.first_bytes, 4096);
    assert_int_equal(r.bytes, 4096 + 8 + 4);
    assert_int_equal(r.elements, 1024 + 4 + 1);
    assert_int_equal(r.last_bytes, 4);
    assert_int_equal(r.type, DTYPE_FP32);
    assert_int_equal(r.host[0], 1);
    assert_int_equal(r.host[1], 0);
    r = result("%a = pred[3]{0} and(pred[3]{0} %x, pred[3]{0} %y)");
    assert_int_equal(r.bytes, 3);
    assert_int_equal(r.host[1], -1);
    r = hlo_shape_of(bytes_of("f32[<=8,2]"));
    assert_int_equal(r.elements, 16);
}

static void what_is_no_shape_is_not_known(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        " = ",
        "%b = () barrier-cores()",
        "%x = f32[12",
        "%x = f32[9223372036854775807,9223372036854775807] add()",
        "%x = f32[99999999999999999999999] add()",
        "%x = mystery[4] add()",
        "f32[4] add()",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(result(texts[i]).bytes, -1);
}

static void halves_have_one_key(void **state) {
    (void)state;
    uint64_t a, b, c;
    assert_int_equal(hlo_half_of(bytes_of("copy-start.3"), &a), HLO_START);
    assert_int_equal(hlo_half_of(bytes_of("copy-done.3"), &b), HLO_DONE);
    assert_int_equal(hlo_half_of(bytes_of("copy-done.4"), &c), HLO_DONE);
    assert_true(a == b);
    assert_true(a != c);
    assert_int_equal(hlo_half_of(bytes_of("copy-start"), &a), HLO_START);
    assert_int_equal(hlo_half_of(bytes_of("copy-startle"), &a), HLO_WHOLE);
    assert_int_equal(hlo_half_of(bytes_of("fusion.3"), &a), HLO_WHOLE);
}

static int64_t group(const char *text) {
    return hlo_group_size(bytes_of(text));
}

/* Elements of half a byte, and more of them than there are bytes. */
static void sizes_in_bits(void **state) {
    (void)state;
    assert_int_equal(hlo_shape_of(bytes_of("f4e2m1fn[3]")).bytes, 2);
    assert_int_equal(
        hlo_shape_of(bytes_of("f4e2m1fn[2147483647,1073741823]")).bytes,
        (INT64_C(2147483647) * 1073741823 + 1) / 2);
    assert_int_equal(
        hlo_shape_of(bytes_of("f4e2m1fn[4294967296,4294967296]")).bytes, -1);
}

static void groups_in_both_spellings(void **state) {
    (void)state;
    assert_int_equal(group("x, replica_groups={{0,1,2},{3,4,5}}, y"), 3);
    assert_int_equal(group("x, replica_groups=[2,16]<=[4,8]T(1,0)"), 16);
    assert_int_equal(group("x, replica_groups={}"), -1);
    assert_int_equal(group("x, replica_groups=[2,"), -1);
    assert_int_equal(group("x"), -1);
    assert_int_equal(group("replica_groups="), -1);
}

static void transfers(void **state) {
    (void)state;
    struct bytes none = bytes_of("");
    assert_true(hlo_is_transfer(bytes_of("copy-done.1"), none));
    assert_true(hlo_is_transfer(bytes_of("x"), bytes_of("copy-start")));
    assert_true(hlo_is_transfer(bytes_of("send.1"), bytes_of("host send")));
    assert_false(hlo_is_transfer(bytes_of("copy.1"), none));
    assert_false(hlo_is_transfer(bytes_of("send.1"), bytes_of("send")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_added_up),
        cmocka_unit_test(what_is_no_shape_is_not_known),
        cmocka_unit_test(halves_have_one_key),
        cmocka_unit_test(sizes_in_bits),
        cmocka_unit_test(groups_in_both_spellings),
        cmocka_unit_test(transfers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
