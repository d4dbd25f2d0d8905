/* SPDX-License-Identifier: Apache-2.0
 * Patterns of names, and the data types in everybody's spelling. */
#include "base/array.h"
#include "names/dtype.h"
#include "names/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool fits(const char *pattern, const char *name) {
    return pattern_fits(pattern, bytes_of(name));
}

static void a_star_says_where_a_pattern_may_stand(void **state) {
    (void)state;
    assert_true(fits("aten::t", "aten::t"));
    assert_false(fits("aten::t", "aten::to"));
    assert_false(fits("aten::to", "aten::t"));
    assert_true(fits("nccl*", "ncclDevKernel"));
    assert_true(fits("nccl*", "nccl"));
    assert_false(fits("nccl*", "ncc"));
    assert_false(fits("nccl*", "void nccl"));
    assert_true(fits("*Grad", "ReluGrad"));
    assert_true(fits("*Grad", "Grad"));
    assert_false(fits("*Grad", "Gradient"));
    assert_true(fits("*mma*", "mma"));
    assert_true(fits("*mma*", "xmmma_"));
    assert_false(fits("*mma*", "mm"));
    assert_false(fits("*mma*", ""));
    assert_false(fits("a", ""));
    assert_false(pattern_fits("*a", (struct bytes){0}));
}

/* What stands far behind is not looked for, but an end is an end. */
static void long_names_are_searched_at_their_beginning(void **state) {
    (void)state;
    enum { LONG = 5000 };
    static uint8_t text[LONG];
    struct bytes name = {text, LONG};
    memset(text, 'x', sizeof text);
    memcpy(text + LONG - 4, "mmaE", 4);
    assert_false(pattern_fits("*mma*", name));
    assert_true(pattern_fits("*mmaE", name));
    memcpy(text + 4093, "mma", 3);
    assert_true(word_in("mma", name));
    memcpy(text + 4093, "xmma", 4);
    assert_false(word_in("mma", name));
}

enum { RED = 1, GREEN = 2, BLUE = 4 };

static const struct pattern rows[] = {
    {RED, NAMES("r*", "*-red")},
    {GREEN, NAMES("g*")},
    {BLUE, NAMES("*blue*", "g-b")},
};

static void rows_are_asked_in_order(void **state) {
    (void)state;
    size_t n = COUNT(rows);
    assert_int_equal(pattern_first(rows, n, bytes_of("g-b"), 99), GREEN);
    assert_int_equal(pattern_first(rows, n, bytes_of("a-red"), 99), RED);
    assert_int_equal(pattern_first(rows, n, bytes_of("none"), 99), 99);
    assert_int_equal(pattern_all(rows, n, bytes_of("g-b")), GREEN | BLUE);
    assert_int_equal(pattern_all(rows, n, bytes_of("r blue-red")), RED | BLUE);
    assert_int_equal(pattern_all(rows, n, bytes_of("none")), 0);
}

static void a_type_has_one_name_in_any_spelling(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
        int bits;
    } v[] = {
        {"Float", "fp32", 32},
        {"float", "fp32", 32},
        {"float32", "fp32", 32},
        {"f32", "fp32", 32},
        {"fp32", "fp32", 32},
        {"DT_FLOAT", "fp32", 32},
        {"c10::BFloat16", "bf16", 16},
        {"bf16", "bf16", 16},
        {"Half", "fp16", 16},
        {"Double", "fp64", 64},
        {"long int", "int64", 64},
        {"Int", "int32", 32},
        {"unsigned char", "uint8", 8},
        {"Byte", "uint8", 8},
        {"short unsigned int", "uint16", 16},
        {"Float8_e4m3fn", "fp8", 8},
        {"c10::Float8_e5m2fnuz", "fp8", 8},
        {"f8e8m0fnu", "fp8", 8},
        {"f4e2m1fn", "fp4", 4},
        {"fp4", "fp4", 4},
        {"Bool", "bool", 8},
        {"c10::complex<float>", "complex64", 64},
        {"c10::complex<c10::Half>", "complex32", 32},
        {"TensorList", "", 0},
        {"", "", 0},
        {"a name that is longer than that of any type", "", 0},
    };
    for (size_t i = 0; i < COUNT(v); i++) {
        enum dtype d = dtype_of_any(bytes_of(v[i].text));
        assert_string_equal(dtype_name(d), v[i].name);
        assert_int_equal(dtype_bits(d), v[i].bits);
    }
}

/* torch writes "Int" for a number that is no tensor. */
static void scalars_of_torch_are_no_tensors(void **state) {
    (void)state;
    assert_int_equal(dtype_of_torch(bytes_of("float")), DTYPE_FP32);
    assert_int_equal(dtype_of_torch(bytes_of("c10::Half")), DTYPE_FP16);
    assert_int_equal(dtype_of_torch(bytes_of("c10::Float4_e2m1fn_x2")),
                     DTYPE_INT8);
    assert_int_equal(dtype_of_torch(bytes_of("Int")), DTYPE_UNKNOWN);
    assert_int_equal(dtype_of_torch(bytes_of("Scalar")), DTYPE_UNKNOWN);
    assert_int_equal(dtype_of_torch(bytes_of("")), DTYPE_UNKNOWN);
}

static void what_xla_numbers_it_also_spells(void **state) {
    (void)state;
    size_t read = 0;
    for (size_t i = 0; i < DTYPE_HLO_N; i++) {
        enum dtype by_text = dtype_of_any(bytes_of(dtype_hlo_spelling(i)));
        if (by_text == DTYPE_UNKNOWN) continue;
        assert_int_equal(dtype_of_hlo(i), by_text);
        read++;
    }
    assert_true(read >= 20);
    assert_string_equal(dtype_hlo_spelling(11), "f32");
    assert_string_equal(dtype_hlo_spelling(0), "?");
    assert_string_equal(dtype_hlo_spelling(DTYPE_HLO_N), "?");
    assert_int_equal(dtype_of_hlo(DTYPE_HLO_N), DTYPE_UNKNOWN);
}

static void every_name_is_known_again(void **state) {
    (void)state;
    for (int i = DTYPE_UNKNOWN + 1; i < DTYPE_N; i++) {
        const char *name = dtype_name((enum dtype)i);
        assert_non_null(name);
        assert_int_equal(dtype_by_name(bytes_of(name)), i);
        assert_true(dtype_bits((enum dtype)i) > 0);
    }
    assert_int_equal(dtype_by_name(bytes_of("float")), DTYPE_UNKNOWN);
}

static void numbers_of_types_are_those_of_torch_and_xla(void **state) {
    (void)state;
    assert_int_equal(dtype_of_scalar_type(6), DTYPE_FP32);
    assert_int_equal(dtype_of_scalar_type(15), DTYPE_BF16);
    assert_int_equal(dtype_of_scalar_type(16), DTYPE_UNKNOWN);
    assert_int_equal(dtype_of_scalar_type(22), DTYPE_UNKNOWN);
    for (size_t i = 23; i <= 26; i++)
        assert_int_equal(dtype_of_scalar_type(i), DTYPE_FP8);
    assert_int_equal(dtype_of_scalar_type(27), DTYPE_UINT16);
    assert_int_equal(dtype_of_scalar_type(28), DTYPE_UINT32);
    assert_int_equal(dtype_of_scalar_type(29), DTYPE_UINT64);
    assert_int_equal(dtype_of_scalar_type(30), DTYPE_UNKNOWN);
    assert_int_equal(dtype_of_scalar_type(99), DTYPE_UNKNOWN);
    assert_int_equal(dtype_of_hlo(11), DTYPE_FP32);
    assert_int_equal(dtype_of_hlo(33), DTYPE_FP8);
    assert_int_equal(dtype_of_hlo(17), DTYPE_UNKNOWN); /* a token */
    assert_int_equal(dtype_of_hlo(255), DTYPE_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_says_where_a_pattern_may_stand),
        cmocka_unit_test(long_names_are_searched_at_their_beginning),
        cmocka_unit_test(rows_are_asked_in_order),
        cmocka_unit_test(a_type_has_one_name_in_any_spelling),
        cmocka_unit_test(scalars_of_torch_are_no_tensors),
        cmocka_unit_test(what_xla_numbers_it_also_spells),
        cmocka_unit_test(every_name_is_known_again),
        cmocka_unit_test(numbers_of_types_are_those_of_torch_and_xla),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
