/* SPDX-License-Identifier: Apache-2.0
 * op_cost: counts by hand, inputs as torch writes them, and nonsense. */
#include "tiny.h"

#include "analyze/cost/op_cost.h"
#include "analyze/shared/op_inputs.h"
#include <stdio.h>

static struct op_cost cost(const char *op, const char *dims, const char *types,
                           const char *values) {
    struct op_inputs in;
    struct op_cost c;
    const struct cost_rule *r = op_cost_rule(bytes_of(op));
    assert_non_null(r);
    op_inputs_from(bytes_of(dims), bytes_of(types), bytes_of(values), &in);
    op_cost_from(&in, r, DTYPE_FP32, &c);
    return c;
}

static void is(struct op_cost c, int64_t flops, int64_t bytes) {
    assert_int_equal(c.flops, flops);
    assert_int_equal(c.bytes, bytes);
}

#define F2 "[\"float\", \"float\"]"
#define F3 "[\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"]"
#define B2 "[\"c10::BFloat16\", \"c10::BFloat16\"]"

static void products(void **state) {
    (void)state;
    /* 2 x 4 x 8 x 3; (4x8 + 8x3 + 4x3) x 4 bytes */
    is(cost("aten::mm", "[[4, 8], [8, 3]]", F2, ""), 192, 272);
    /* bf16 is two bytes */
    is(cost("aten::mm", "[[4, 8], [8, 3]]", B2, ""), 192, 136);
    is(cost("aten::addmm", "[[3], [4, 8], [8, 3], [], []]", F3, ""), 192,
       272 + 12);
    is(cost("aten::bmm", "[[5, 4, 8], [5, 8, 3]]", F2, ""), 960, 1360);
    is(cost("aten::linear", "[[2, 4, 8], [3, 8], [3]]", F3, ""), 384,
       (64 + 24 + 3 + 24) * 4);
    is(cost("aten::mv", "[[4, 8], [8]]", F2, ""), 64, (32 + 8 + 4) * 4);
    is(cost("aten::_int_mm", "[[4, 8], [8, 3]]",
            "[\"signed char\", \"signed char\"]", ""),
       192, 32 + 24 + 48);
    struct op_cost c = cost("aten::mm", "[[4, 8], [8, 3]]", B2, "");
    assert_true(c.matrix);
    assert_int_equal(c.type, DTYPE_BF16);
}

#define CONV                                                                   \
    "[\"float\", \"float\", \"ScalarList\", \"ScalarList\", "                  \
    "\"ScalarList\", \"Scalar\"]"

static void convolutions(void **state) {
    (void)state;
    /* cudnn_convolution(x, w, padding, stride, dilation, groups): 28 -> 14;
     * 2 x 16 x 14 x 14 x 64 x 32 x 9 */
    is(cost("aten::cudnn_convolution",
            "[[16, 32, 28, 28], [64, 32, 3, 3], [], [], [], []]", CONV,
            "[\"\", \"\", \"[1, 1]\", \"[2, 2]\", \"[1, 1]\", \"1\"]"),
       115605504, (401408 + 18432 + 16 * 64 * 196) * 4);
    /* the same as conv2d, padding after stride */
    is(cost("aten::conv2d",
            "[[16, 32, 28, 28], [64, 32, 3, 3], [], [], [], [], []]", CONV,
            "[\"\", \"\", \"\", \"[2, 2]\", \"[1, 1]\", \"[1, 1]\", \"1\"]"),
       115605504, (401408 + 18432 + 16 * 64 * 196) * 4);
    /* depthwise: each output channel has one input channel */
    assert_int_equal(
        cost("aten::_conv_depthwise2d", "[[1, 8, 5, 5], [8, 1, 3, 3]]", F2,
             "[\"\", \"\", \"[3, 3]\", \"\", \"[1, 1]\", \"[1, 1]\", "
             "\"[1, 1]\"]")
            .flops,
        2 * 25 * 8 * 9);
    /* one and three dimensions; a single value stands for all sides */
    assert_int_equal(
        cost("aten::conv1d", "[[2, 3, 10], [4, 3, 5], []]", F2,
             "[\"\", \"\", \"\", \"[1]\", \"[0]\", \"[1]\", \"1\"]")
            .flops,
        2 * 2 * 6 * 4 * 3 * 5);
    assert_int_equal(
        cost("aten::convolution", "[[1, 2, 4, 4, 4], [3, 2, 2, 2, 2], []]", F2,
             "[\"\", \"\", \"\", \"[1]\", \"[0]\", \"[1]\", \"False\", "
             "\"[0]\", \"1\"]")
            .flops,
        2 * 27 * 3 * 2 * 8);
    /* transposed: 7 -> (7-1)*2+3 = 15; one product per input position */
    is(cost("aten::cudnn_convolution_transpose",
            "[[2, 4, 7, 7], [4, 6, 3, 3], []]", F2,
            "[\"\", \"\", \"[0, 0]\", \"[0, 0]\", \"[2, 2]\", \"[1, 1]\", "
            "\"1\"]"),
       2 * 2 * 49 * 4 * 6 * 9, (392 + 216 + 2 * 6 * 225) * 4);
    is(cost("aten::convolution", "[[2, 4, 7, 7], [4, 6, 3, 3], []]", F2,
            "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", "
            "\"True\", \"[0, 0]\", \"1\"]"),
       2 * 2 * 49 * 4 * 6 * 9, (392 + 216 + 2 * 6 * 225) * 4);
}

static struct op_cost conv_grad(const char *transposed, const char *mask) {
    char values[256];
    snprintf(values, sizeof values,
             "[\"\", \"\", \"\", \"[0]\", \"[2, 2]\", \"[1, 1]\", "
             "\"[1, 1]\", \"%s\", \"[0]\", \"1\", \"%s\"]",
             transposed, mask);
    return cost("aten::convolution_backward",
                "[[16, 64, 14, 14], [16, 32, 28, 28], [64, 32, 3, 3]]",
                "[\"float\", \"float\", \"float\"]", values);
}

static void convolution_gradients(void **state) {
    (void)state;
    int64_t gy = 200704, x = 401408, w = 18432;
    /* each gradient costs what the forward pass did */
    is(conv_grad("False", "[True, True, False]"), 2 * 115605504,
       (gy + 2 * x + 2 * w) * 4);
    is(conv_grad("False", "[False, True, True]"), 115605504, (gy + x + w) * 4);
    is(conv_grad("False", "[True, False, False]"), 115605504, (gy + x + w) * 4);
    assert_int_equal(conv_grad("False", "[True, True, False]").parts, 2);
    is(conv_grad("False", "[False, False, True]"), -1, -1);
}

#define HALF3 "[\"c10::Half\", \"c10::Half\", \"c10::Half\"]"

static void attention(void **state) {
    (void)state;
    int64_t full = INT64_C(2) * 4 * 8 * 256 * 256 * 128;
    int64_t one = INT64_C(4) * 8 * 256 * 64 * 2;
    const char *bhsd = "[[4, 8, 256, 64], [4, 8, 256, 64], [4, 8, 256, 64]]";
    const char *bshd = "[[4, 256, 8, 64], [4, 256, 8, 64], [4, 256, 8, 64]]";
    is(cost("aten::_scaled_dot_product_flash_attention", bhsd, HALF3,
            "[\"\", \"\", \"\", \"0.\", \"False\"]"),
       full, 4 * one);
    is(cost("aten::_scaled_dot_product_flash_attention", bhsd, HALF3,
            "[\"\", \"\", \"\", \"0.\", \"True\"]"),
       full / 2, 4 * one);
    is(cost("aten::_flash_attention_forward", bshd, HALF3,
            "[\"\", \"\", \"\", \"\", \"\", \"256\", \"256\", \"0.\", "
            "\"True\", \"False\"]"),
       full / 2, 4 * one);
    /* kind of mask 1: causal */
    is(cost("aten::_efficient_attention_forward", bshd, HALF3,
            "[\"\", \"\", \"\", \"\", \"\", \"\", \"\", \"\", \"0.\", "
            "\"1\", \"True\"]"),
       full / 2, 4 * one);
    /* five products for two; eight tensors */
    is(cost("aten::_scaled_dot_product_flash_attention_backward",
            "[[4, 8, 256, 64], [4, 8, 256, 64], [4, 8, 256, 64], "
            "[4, 8, 256, 64]]",
            "[\"c10::Half\", \"c10::Half\", \"c10::Half\", \"c10::Half\"]",
            "[]"),
       full / 2 * 5, 8 * one);
    /* grouped queries, and keys longer than queries */
    is(cost("aten::_scaled_dot_product_cudnn_attention",
            "[[1, 8, 1, 64], [1, 2, 100, 64], [1, 2, 100, 64]]", HALF3, "[]"),
       2 * 8 * 100 * 128, 2 * (8 * 64 + 2 * 2 * 100 * 64 + 8 * 64));
    /* packed sequences: lengths are not recorded */
    is(cost("aten::_flash_attention_forward",
            "[[900, 8, 64], [900, 8, 64], [900, 8, 64]]", HALF3, "[]"),
       -1, -1);
}

static void recurrent(void **state) {
    (void)state;
    /* 2 x 6 positions x (16x4 + 16x8) */
    struct op_cost c =
        cost("aten::_cudnn_rnn",
             "[[2, 3, 4], [[16, 4], [16, 8], [16]], [], [208]]",
             "[\"float\", \"TensorList\", \"Scalar\", \"float\"]",
             "[\"\", \"\", \"4\", \"\", \"\", \"\", \"2\", \"8\", \"0\", "
             "\"1\", \"False\", \"0.\", \"True\", \"False\"]");
    is(c, 2 * 6 * (64 + 128), (24 + 208 + 6 * 8) * 4);
}

static void the_rest(void **state) {
    (void)state;
    is(cost("aten::add", "[[4, 1], [1, 8], []]",
            "[\"float\", \"float\", \"Scalar\"]", ""),
       32, (4 + 8 + 32) * 4);
    is(cost("aten::mul", "[[4, 8], []]", "[\"float\", \"double\"]", ""), 32,
       (32 + 32) * 4 + 8);
    /* an empty tensor to hold the result */
    is(cost("aten::abs", "[[4, 8], [0]]", F2, ""), 32, 256);
    is(cost("aten::eq", "[[4, 8], []]", "[\"float\", \"Scalar\"]", ""), 32,
       32 * 4 + 32);
    is(cost("aten::copy_", "[[4, 8], [4, 8], []]",
            "[\"c10::BFloat16\", \"float\", \"Scalar\"]", ""),
       0, 64 + 128);
    is(cost("aten::sum", "[[4, 8], []]", "[\"float\", \"ScalarList\"]",
            "[\"\", \"[-1]\"]"),
       32, (32 + 4) * 4);
    is(cost("aten::sum", "[[4, 8], []]", "[\"float\", \"\"]", "[\"\", \"\"]"),
       32, (32 + 1) * 4);
    is(cost("aten::_softmax", "[[4, 8], [], []]", "[\"float\"]", ""), 192, 256);
    is(cost("aten::native_layer_norm", "[[4, 8], [], [8], [8], []]",
            "[\"float\", \"ScalarList\", \"float\", \"float\"]", ""),
       256, (32 + 8 + 8 + 32) * 4);
    is(cost("aten::embedding", "[[99, 16], [7]]", "[\"float\", \"long int\"]",
            ""),
       0, 2 * 7 * 16 * 4 + 56);
    is(cost("aten::index_select", "[[99, 16], [], [7]]",
            "[\"float\", \"Scalar\", \"long int\"]", "[\"\", \"0\", \"\"]"),
       0, 2 * 7 * 16 * 4 + 56);
    is(cost("aten::_fused_adamw_",
            "[[[4, 8], [8]], [[4, 8], [8]], [[4, 8], [8]], [[4, 8], [8]], "
            "[], [[], []]]",
            "[\"TensorList\", \"TensorList\", \"TensorList\", \"TensorList\", "
            "\"TensorList\", \"TensorList\"]",
            ""),
       13 * 40, 7 * 40 * 4);
    is(cost("aten::_foreach_lerp_", "[[[4, 8], [8]], [[4, 8], [8]], []]",
            "[\"TensorList\", \"TensorList\", \"Scalar\"]", ""),
       120, 3 * 160);
    /* long lists are not recorded */
    is(cost("aten::_foreach_lerp_", "[[], [], []]",
            "[\"TensorList\", \"TensorList\", \"Scalar\"]", ""),
       -1, -1);
    is(cost("aten::cat", "[[], []]", "[\"TensorList\", \"Scalar\"]", ""), -1,
       -1);
    is(cost("aten::cat", "[[[4, 8], [8]], []]", "[\"TensorList\", \"Scalar\"]",
            ""),
       0, 320);
    is(cost("aten::max_pool2d_with_indices", "[[1, 2, 4, 4], [], [], [], []]",
            "[\"float\"]",
            "[\"\", \"[2, 2]\", \"[]\", \"[0, 0]\", \"[1, 1]\"]"),
       8 * 4, 32 * 4 + 8 * 4 + 8 * 8);
    is(cost("triton_poi_fused_add_0", "[[4, 8], [4, 8], []]",
            "[\"float\", \"c10::BFloat16\", \"Scalar\"]", ""),
       -1, 192);
}

static void nonsense(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const dims[] = {
        "", "[", "[[", "[[4", "[[4, 8], [8, 3", "[[4, -8], [8, 3]]", "{}",
        "[[9223372036854775807, 9223372036854775807], [9, 9]]",
        "[[999999999999999999, 999999999999999999], [999999999999999999, 9]]",
        "[[1,1,1,1,1,1,1,1,1,1], [1]]", "[[[[[[[", "[]", "[[], []]",
    };
    /* clang-format on */
    /* clang-format off */
    static const char *const ops[] = {
        "aten::mm", "aten::cudnn_convolution", "aten::convolution_backward",
        "aten::_flash_attention_forward", "aten::_cudnn_rnn", "aten::add",
        "aten::sum", "aten::_fused_adamw_", "aten::gather", "aten::cat",
        "aten::cudnn_convolution_transpose", "aten::max_pool2d_with_indices",
        "aten::embedding_dense_backward", "aten::_softmax", "aten::copy_",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            struct op_cost c = cost(ops[k], dims[i], "[\"float\", \"",
                                    "[\"[-9, 9\", \"\\");
            assert_true(c.flops >= -1 && c.bytes >= -1);
        }
    assert_null(op_cost_rule(bytes_of("aten::mm_")));
    assert_null(op_cost_rule(bytes_of("mm")));
    assert_null(op_cost_rule(bytes_of("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(convolution_gradients),
        cmocka_unit_test(attention),
        cmocka_unit_test(recurrent),
        cmocka_unit_test(the_rest),
        cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
