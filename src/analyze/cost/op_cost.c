/* SPDX-License-Identifier: Apache-2.0
 * One table of op names; a name's row says which formula and where the inputs
 * stand that it needs. torch records inputs only, so each formula also derives
 * what comes out.
 *
 * Convolutions need no groups: a weight of shape [Cout, Cin/groups, ...] has
 * just the products of one output position in it, a transposed one's those of
 * one input position. Attention's gradient takes five products where the
 * forward pass takes two, because it works the scores out again; a causal mask
 * leaves half of them. */
#include "analyze/cost/op_cost.h"

#include "analyze/cost/op_inputs.h"
#include <assert.h>

enum formula {
    F_GEMM,     /* a, b: inputs; rank of both in c */
    F_LINEAR,   /* x [..., K], w [N, K] */
    F_MV,       /* a: the matrix */
    F_CONV,     /* a, b, c: values of stride, padding, dilation */
    F_CONV_ANY, /* the same; transposed says value d */
    F_CONV_T,   /* transposed; d, e: output padding and groups */
    F_CONV_GRAD,
    F_ATTN, /* a: q's input, b: the causal value, c: its heads' axis */
    F_ATTN_GRAD,
    F_RNN,
    F_RNN_GRAD,
    F_MAP,    /* pointwise; a: operations per element, b: bytes per element
                    of the output when not the inputs' */
    F_EACH,   /* a: operations per element of input b, c: outputs of its
                    size */
    F_MOVE,   /* no arithmetic: all inputs once */
    F_REDUCE, /* a: operations per element, b: the value with the axes */
    F_POOL,
    F_PICK,   /* rows of input 0 by an index in input a */
    F_GATHER, /* as many as the index, input a, has */
    F_EMBED_GRAD,
    F_FOREACH, /* a: operations per element, b: lists written */
    F_FUSED,   /* optimizers: a: operations per element, b: lists read; all
                    but the gradients (list 1) are written, too */
    F_CAT,
    F_ALL, /* bytes alone: what it reads and writes are its inputs */
};

struct cost_rule {
    const char *name; /* without "aten::" */
    uint8_t formula;
    int8_t a, b, c, d, e;
};

/* clang-format off */
static const struct cost_rule rules[] = {
    {"mm", F_GEMM, 0, 1, 2, 0, 0},
    {"addmm", F_GEMM, 1, 2, 2, 0, 0},
    {"addmm_", F_GEMM, 1, 2, 2, 0, 0},
    {"_addmm_activation", F_GEMM, 1, 2, 2, 0, 0},
    {"bmm", F_GEMM, 0, 1, 3, 0, 0},
    {"baddbmm", F_GEMM, 1, 2, 3, 0, 0},
    {"baddbmm_", F_GEMM, 1, 2, 3, 0, 0},
    {"_int_mm", F_GEMM, 0, 1, 2, 0, 0},
    {"_scaled_mm", F_GEMM, 0, 1, 2, 0, 0},
    {"linear", F_LINEAR, 0, 0, 0, 0, 0},
    {"mkldnn_linear", F_LINEAR, 0, 0, 0, 0, 0},
    {"mv", F_MV, 0, 0, 0, 0, 0},
    {"addmv", F_MV, 1, 0, 0, 0, 0},
    {"addmv_", F_MV, 1, 0, 0, 0, 0},
    {"conv1d", F_CONV, 3, 4, 5, 0, 0},
    {"conv2d", F_CONV, 3, 4, 5, 0, 0},
    {"conv3d", F_CONV, 3, 4, 5, 0, 0},
    {"convolution", F_CONV_ANY, 3, 4, 5, 6, 0},
    {"_convolution", F_CONV_ANY, 3, 4, 5, 6, 0},
    {"convolution_overrideable", F_CONV_ANY, 3, 4, 5, 6, 0},
    {"cudnn_convolution", F_CONV, 3, 2, 4, 0, 0},
    {"cudnn_convolution_relu", F_CONV, 3, 4, 5, 0, 0},
    {"cudnn_convolution_add_relu", F_CONV, 5, 6, 7, 0, 0},
    {"miopen_convolution", F_CONV, 4, 3, 5, 0, 0},
    {"miopen_depthwise_convolution", F_CONV, 4, 3, 5, 0, 0},
    {"mkldnn_convolution", F_CONV, 4, 3, 5, 0, 0},
    {"_slow_conv2d_forward", F_CONV, 4, 5, -1, 0, 0},
    {"thnn_conv2d", F_CONV, 4, 5, -1, 0, 0},
    {"slow_conv3d_forward", F_CONV, 4, 5, -1, 0, 0},
    {"slow_conv_dilated2d", F_CONV, 4, 5, 6, 0, 0},
    {"_conv_depthwise2d", F_CONV, 4, 5, 6, 0, 0},
    {"conv_depthwise3d", F_CONV, 4, 5, 6, 0, 0},
    {"conv_transpose1d", F_CONV_T, 3, 4, 7, 5, 6},
    {"conv_transpose2d", F_CONV_T, 3, 4, 7, 5, 6},
    {"conv_transpose3d", F_CONV_T, 3, 4, 7, 5, 6},
    {"cudnn_convolution_transpose", F_CONV_T, 4, 2, 5, 3, 6},
    {"miopen_convolution_transpose", F_CONV_T, 5, 3, 6, 4, 7},
    {"convolution_backward", F_CONV_GRAD, 0, 0, 0, 0, 0},
    {"convolution_backward_overrideable", F_CONV_GRAD, 0, 0, 0, 0, 0},
    {"_flash_attention_forward", F_ATTN, 0, 8, 2, 0, 0},
    {"_efficient_attention_forward", F_ATTN, 0, 9, 2, 0, 0},
    {"_cudnn_attention_forward", F_ATTN, 0, 10, 1, 0, 0},
    {"_scaled_dot_product_flash_attention", F_ATTN, 0, 4, 1, 0, 0},
    {"_scaled_dot_product_flash_attention_for_cpu", F_ATTN, 0, 4, 1, 0, 0},
    {"_scaled_dot_product_efficient_attention", F_ATTN, 0, 6, 1, 0, 0},
    {"_scaled_dot_product_cudnn_attention", F_ATTN, 0, 6, 1, 0, 0},
    {"_flash_attention_backward", F_ATTN_GRAD, 1, 11, 2, 0, 0},
    {"_efficient_attention_backward", F_ATTN_GRAD, 1, 14, 2, 0, 0},
    {"_cudnn_attention_backward", F_ATTN_GRAD, 1, 14, 1, 0, 0},
    {"_scaled_dot_product_flash_attention_backward", F_ATTN_GRAD,
     1, 11, 1, 0, 0},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", F_ATTN_GRAD,
     1, 7, 1, 0, 0},
    {"_scaled_dot_product_efficient_attention_backward", F_ATTN_GRAD,
     1, 11, 1, 0, 0},
    {"_scaled_dot_product_cudnn_attention_backward", F_ATTN_GRAD,
     1, 14, 1, 0, 0},
    {"_cudnn_rnn", F_RNN, 0, 0, 0, 0, 0},
    {"_cudnn_rnn_backward", F_RNN_GRAD, 0, 0, 0, 0, 0},
    {"miopen_rnn", F_RNN, 0, 0, 0, 0, 0},
    /* pointwise */
    {"add", F_MAP, 1, 0, 0, 0, 0}, {"add_", F_MAP, 1, 0, 0, 0, 0},
    {"sub", F_MAP, 1, 0, 0, 0, 0}, {"sub_", F_MAP, 1, 0, 0, 0, 0},
    {"rsub", F_MAP, 1, 0, 0, 0, 0},
    {"mul", F_MAP, 1, 0, 0, 0, 0}, {"mul_", F_MAP, 1, 0, 0, 0, 0},
    {"div", F_MAP, 1, 0, 0, 0, 0}, {"div_", F_MAP, 1, 0, 0, 0, 0},
    {"neg", F_MAP, 1, 0, 0, 0, 0}, {"abs", F_MAP, 1, 0, 0, 0, 0},
    {"relu", F_MAP, 1, 0, 0, 0, 0}, {"relu_", F_MAP, 1, 0, 0, 0, 0},
    {"clamp", F_MAP, 2, 0, 0, 0, 0}, {"clamp_", F_MAP, 2, 0, 0, 0, 0},
    {"clamp_min", F_MAP, 1, 0, 0, 0, 0}, {"clamp_min_", F_MAP, 1, 0, 0, 0, 0},
    {"threshold_backward", F_MAP, 1, 0, 0, 0, 0},
    {"leaky_relu", F_MAP, 2, 0, 0, 0, 0}, {"leaky_relu_", F_MAP, 2, 0, 0, 0, 0},
    {"leaky_relu_backward", F_MAP, 2, 0, 0, 0, 0},
    {"hardtanh", F_MAP, 2, 0, 0, 0, 0}, {"hardtanh_", F_MAP, 2, 0, 0, 0, 0},
    {"hardtanh_backward", F_MAP, 2, 0, 0, 0, 0},
    {"hardswish", F_MAP, 4, 0, 0, 0, 0}, {"hardswish_", F_MAP, 4, 0, 0, 0, 0},
    {"exp", F_MAP, 4, 0, 0, 0, 0}, {"log", F_MAP, 4, 0, 0, 0, 0},
    {"sqrt", F_MAP, 2, 0, 0, 0, 0}, {"rsqrt", F_MAP, 2, 0, 0, 0, 0},
    {"pow", F_MAP, 4, 0, 0, 0, 0}, {"reciprocal", F_MAP, 1, 0, 0, 0, 0},
    {"tanh", F_MAP, 5, 0, 0, 0, 0}, {"tanh_backward", F_MAP, 3, 0, 0, 0, 0},
    {"sigmoid", F_MAP, 4, 0, 0, 0, 0},
    {"sigmoid_backward", F_MAP, 3, 0, 0, 0, 0},
    {"silu", F_MAP, 5, 0, 0, 0, 0}, {"silu_", F_MAP, 5, 0, 0, 0, 0},
    {"silu_backward", F_MAP, 8, 0, 0, 0, 0},
    {"gelu", F_MAP, 8, 0, 0, 0, 0}, {"gelu_backward", F_MAP, 14, 0, 0, 0, 0},
    {"sin", F_MAP, 4, 0, 0, 0, 0}, {"cos", F_MAP, 4, 0, 0, 0, 0},
    {"addcmul", F_MAP, 3, 0, 0, 0, 0}, {"addcmul_", F_MAP, 3, 0, 0, 0, 0},
    {"addcdiv", F_MAP, 3, 0, 0, 0, 0}, {"addcdiv_", F_MAP, 3, 0, 0, 0, 0},
    {"lerp", F_MAP, 3, 0, 0, 0, 0}, {"lerp_", F_MAP, 3, 0, 0, 0, 0},
    {"where", F_MAP, 0, 0, 0, 0, 0},
    {"masked_fill", F_MAP, 0, 0, 0, 0, 0},
    {"masked_fill_", F_MAP, 0, 0, 0, 0, 0},
    {"maximum", F_MAP, 1, 0, 0, 0, 0}, {"minimum", F_MAP, 1, 0, 0, 0, 0},
    {"eq", F_MAP, 1, 1, 0, 0, 0}, {"ne", F_MAP, 1, 1, 0, 0, 0},
    {"lt", F_MAP, 1, 1, 0, 0, 0}, {"le", F_MAP, 1, 1, 0, 0, 0},
    {"gt", F_MAP, 1, 1, 0, 0, 0}, {"ge", F_MAP, 1, 1, 0, 0, 0},
    {"isnan", F_MAP, 1, 1, 0, 0, 0}, {"isinf", F_MAP, 1, 1, 0, 0, 0},
    {"isneginf", F_MAP, 1, 1, 0, 0, 0}, {"logical_not", F_MAP, 0, 1, 0, 0, 0},
    {"logical_and", F_MAP, 0, 1, 0, 0, 0},
    {"native_dropout", F_EACH, 2, 0, 1, 0, 0},
    {"native_dropout_backward", F_MAP, 2, 0, 0, 0, 0},
    {"hardswish_backward", F_MAP, 5, 0, 0, 0, 0},
    {"hardsigmoid", F_MAP, 3, 0, 0, 0, 0},
    {"hardsigmoid_", F_MAP, 3, 0, 0, 0, 0},
    {"hardsigmoid_backward", F_MAP, 2, 0, 0, 0, 0},
    {"elu", F_MAP, 5, 0, 0, 0, 0},
    {"square", F_MAP, 1, 0, 0, 0, 0},
    {"erf", F_MAP, 6, 0, 0, 0, 0},
    /* along an axis */
    {"_softmax", F_EACH, 6, 0, 1, 0, 0},
    {"_log_softmax", F_EACH, 6, 0, 1, 0, 0},
    {"_softmax_backward_data", F_EACH, 4, 0, 1, 0, 0},
    {"_log_softmax_backward_data", F_EACH, 6, 0, 1, 0, 0},
    {"native_layer_norm", F_EACH, 8, 0, 1, 0, 0},
    {"native_layer_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"_fused_rms_norm", F_EACH, 5, 0, 1, 0, 0},
    {"_fused_rms_norm_backward", F_EACH, 10, 0, 1, 0, 0},
    {"native_group_norm", F_EACH, 8, 0, 1, 0, 0},
    {"native_group_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"native_batch_norm", F_EACH, 8, 0, 1, 0, 0},
    {"native_batch_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"cudnn_batch_norm", F_EACH, 8, 0, 1, 0, 0},
    {"cudnn_batch_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"miopen_batch_norm", F_EACH, 8, 0, 1, 0, 0},
    {"miopen_batch_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"_batch_norm_with_update", F_EACH, 8, 0, 1, 0, 0},
    {"batch_norm_backward", F_EACH, 14, 0, 1, 0, 0},
    {"sum", F_REDUCE, 1, 1, 0, 0, 0}, {"mean", F_REDUCE, 1, 1, 0, 0, 0},
    {"amax", F_REDUCE, 1, 1, 0, 0, 0}, {"amin", F_REDUCE, 1, 1, 0, 0, 0},
    {"any", F_REDUCE, 0, 1, 0, 0, 0}, {"std", F_REDUCE, 3, 1, 0, 0, 0},
    {"argmax", F_REDUCE, 1, 1, 0, 0, 0}, {"all", F_REDUCE, 0, 1, 0, 0, 0},
    {"var", F_REDUCE, 3, 1, 0, 0, 0},
    {"linalg_vector_norm", F_REDUCE, 2, 2, 0, 0, 0},
    {"max_pool2d_with_indices", F_POOL, 0, 0, 0, 0, 0},
    {"max_pool2d_with_indices_backward", F_EACH, 1, 0, 0, 0, 0},
    /* moves */
    {"copy_", F_MOVE, 0, 0, 0, 0, 0}, {"fill_", F_MOVE, 0, 0, 0, 0, 0},
    {"zero_", F_MOVE, 0, 0, 0, 0, 0}, {"normal_", F_MOVE, 0, 0, 0, 0, 0},
    {"uniform_", F_MOVE, 0, 0, 0, 0, 0}, {"random_", F_MOVE, 0, 0, 0, 0, 0},
    {"bernoulli_", F_MOVE, 0, 0, 0, 0, 0}, {"triu", F_EACH, 0, 0, 1, 0, 0},
    {"tril", F_EACH, 0, 0, 1, 0, 0}, {"clone", F_EACH, 0, 0, 1, 0, 0},
    {"flip", F_EACH, 0, 0, 1, 0, 0}, {"roll", F_EACH, 0, 0, 1, 0, 0},
    {"cat", F_CAT, 0, 0, 0, 0, 0}, {"stack", F_CAT, 0, 0, 0, 0, 0},
    {"index_select", F_PICK, 2, 0, 0, 0, 0},
    {"embedding", F_PICK, 1, 0, 0, 0, 0},
    {"gather", F_GATHER, 2, 0, 0, 0, 0},
    {"embedding_dense_backward", F_EMBED_GRAD, 0, 0, 0, 0, 0},
    /* optimizers */
    {"_fused_adam_", F_FUSED, 12, 5, 0, 0, 0},
    {"_fused_adamw_", F_FUSED, 13, 5, 0, 0, 0},
    {"_fused_sgd_", F_FUSED, 4, 3, 0, 0, 0},
    {"_fused_adagrad_", F_FUSED, 6, 3, 0, 0, 0},
    {"_foreach_add_", F_FOREACH, 2, 1, 0, 0, 0},
    {"_foreach_add", F_FOREACH, 2, 1, 0, 0, 0},
    {"_foreach_sub_", F_FOREACH, 2, 1, 0, 0, 0},
    {"_foreach_mul_", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_mul", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_div_", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_div", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_sqrt", F_FOREACH, 2, 1, 0, 0, 0},
    {"_foreach_sqrt_", F_FOREACH, 2, 1, 0, 0, 0},
    {"_foreach_neg", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_reciprocal_", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_pow", F_FOREACH, 4, 1, 0, 0, 0},
    {"_foreach_lerp_", F_FOREACH, 3, 1, 0, 0, 0},
    {"_foreach_addcmul_", F_FOREACH, 3, 1, 0, 0, 0},
    {"_foreach_addcdiv_", F_FOREACH, 3, 1, 0, 0, 0},
    {"_foreach_maximum_", F_FOREACH, 1, 1, 0, 0, 0},
    {"_foreach_norm", F_FOREACH, 2, 0, 0, 0, 0},
    {"_foreach_zero_", F_FOREACH, 0, 0, 0, 0, 0},
    {"_foreach_copy_", F_FOREACH, 0, 0, 0, 0, 0},
};
/* clang-format on */

/* Kernels that torch compiled: called with all tensors, outputs too; what
 * they compute is not recorded. */
static const struct cost_rule triton = {"triton", F_ALL, 0, 0, 0, 0, 0};

const struct cost_rule *op_cost_rule(struct bytes name) {
    static const char prefix[] = "aten::";
    size_t skip = sizeof prefix - 1;
    if (BYTES_STARTS(name, "triton_")) return &triton;
    if (!BYTES_STARTS(name, "aten::")) return NULL;
    name.p += skip;
    name.n -= skip;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (bytes_eq(name, rules[i].name, strlen(rules[i].name)))
            return &rules[i];
    return NULL;
}

bool op_cost_is_matrix(const struct cost_rule *r) {
    return r->formula <= F_RNN_GRAD && r->formula != F_MV;
}

/* What a call works on: its inputs, and the type of lists. */
struct call {
    const struct op_inputs *in;
    const struct cost_rule *r;
    enum dtype list;
};

/* Input i, or an empty one. */
static const struct op_input *input(const struct call *c, int i) {
    static const struct op_input none = {0};
    return i >= 0 && i < c->in->n ? &c->in->v[i] : &none;
}

static int64_t size_of(int64_t numel, enum dtype type) {
    int bits = dtype_bits(type);
    if (bits == 0) return -1;
    return count_plus(count_times(numel, bits), 7) / 8;
}

/* Bytes of input i; 0 when it is no tensor; -1: not known. */
static int64_t bytes_of_input(const struct call *c, int i) {
    const struct op_input *in = input(c, i);
    if (in->numel == 0) return 0;
    int64_t b = size_of(in->numel, in->n < 0 ? c->list : in->type);
    return b;
}

static int64_t all_bytes(const struct call *c) {
    int64_t sum = 0;
    for (int i = 0; i < c->in->n; i++)
        sum = count_plus(sum, bytes_of_input(c, i));
    return sum;
}

static int64_t product(const struct op_input *x, int from, int to) {
    int64_t v = 1;
    for (int i = from; i < to; i++) v = count_times(v, x->d[i]);
    return v;
}

static void gemm(const struct call *c, struct op_cost *o) {
    const struct op_input *a = input(c, c->r->a), *b = input(c, c->r->b);
    int rank = c->r->c;
    o->type = a->type;
    if (a->n != rank || b->n != rank) return;
    int64_t out = count_times(product(a, 0, rank - 1), b->d[rank - 1]);
    o->flops = count_times(count_times(2, out), a->d[rank - 1]);
    bool integer = a->type == DTYPE_INT8 || a->type == DTYPE_UINT8;
    enum dtype to = integer                ? DTYPE_INT32
                    : a->type == DTYPE_FP8 ? DTYPE_BF16
                                           : a->type;
    o->bytes = count_plus(all_bytes(c), size_of(out, to));
}

static void linear(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    o->type = x->type;
    if (x->n < 1 || w->n != 2) return;
    int64_t out = count_times(product(x, 0, x->n - 1), w->d[0]);
    o->flops = count_times(count_times(2, out), w->d[1]);
    o->bytes = count_plus(all_bytes(c), size_of(out, x->type));
}

static void mv(const struct call *c, struct op_cost *o) {
    const struct op_input *m = input(c, c->r->a);
    o->type = m->type;
    if (m->n != 2) return;
    o->flops = count_times(2, m->numel);
    o->bytes = count_plus(all_bytes(c), size_of(m->d[0], m->type));
}

/* Value i as one number per axis: "[2]" and "2" stand for all. Absent (or i
 * is -1): dflt. */
static bool axes(const struct call *c, int i, int n, int64_t dflt,
                 int64_t out[OP_DIMS_MAX]) {
    int have = i < 0 ? 0 : op_inputs_ints(c->in, i, out, OP_DIMS_MAX);
    if (have == 0 && i >= 0) return false;
    for (int k = have; k < n; k++) out[k] = have ? out[have - 1] : dflt;
    return true;
}

/* Output size of one side; -1 when the numbers make no sense. */
static int64_t side(int64_t in, int64_t k, int64_t pad, int64_t stride,
                    int64_t dilation) {
    const int64_t big = INT64_C(1) << 30;
    if (in > big || k > big || pad > big || dilation > big || stride < 1 ||
        pad < 0 || dilation < 1 || k < 1)
        return -1;
    int64_t span = in + 2 * pad - dilation * (k - 1) - 1;
    return span < 0 ? -1 : span / stride + 1;
}

static void conv(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t stride[OP_DIMS_MAX], pad[OP_DIMS_MAX], dilation[OP_DIMS_MAX];
    o->type = x->type;
    int n = x->n - 2;
    if (n < 1 || w->n != x->n || !axes(c, c->r->a, n, 1, stride) ||
        !axes(c, c->r->b, n, 0, pad) || !axes(c, c->r->c, n, 1, dilation))
        return;
    int64_t out = x->d[0];
    for (int i = 0; i < n; i++)
        out = count_times(out, side(x->d[2 + i], w->d[2 + i], pad[i], stride[i],
                                    dilation[i]));
    o->flops = count_times(count_times(2, out), w->numel);
    o->bytes = count_plus(all_bytes(c),
                          size_of(count_times(out, w->d[0]), x->type));
}

/* Transposed: one product per input position. r says where the values are:
 * not the rule's own when the op is of either kind. */
static void conv_transposed(const struct call *c, const struct cost_rule *r,
                            struct op_cost *o) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t stride[OP_DIMS_MAX], pad[OP_DIMS_MAX], dilation[OP_DIMS_MAX];
    int64_t more[OP_DIMS_MAX], groups, n = x->n - 2;
    o->type = x->type;
    if (n < 1 || w->n != x->n) return;
    int64_t at = count_times(x->d[0], product(x, 2, x->n));
    o->flops = count_times(count_times(2, at), w->numel);
    if (!axes(c, r->a, (int)n, 1, stride) || !axes(c, r->b, (int)n, 0, pad) ||
        !axes(c, r->c, (int)n, 1, dilation) ||
        !axes(c, r->d, (int)n, 0, more) ||
        op_inputs_ints(c->in, r->e, &groups, 1) != 1)
        return;
    int64_t out = count_times(x->d[0], count_times(w->d[1], groups));
    for (int i = 0; i < n; i++) {
        int64_t kernel = count_times(dilation[i], w->d[2 + i] - 1);
        int64_t len = count_times(x->d[2 + i] - 1, stride[i]);
        len = count_plus(count_plus(len, kernel), count_plus(more[i], 1));
        out = count_times(out, len - count_times(2, pad[i]));
    }
    o->bytes = count_plus(all_bytes(c), size_of(out, x->type));
}

static void conv_gradient(const struct call *c, struct op_cost *o) {
    const struct op_input *g = input(c, 0), *x = input(c, 1), *w = input(c, 2);
    struct bytes mask = op_inputs_text(c->in, 10);
    bool both = BYTES_STARTS(mask, "[True, True");
    bool one = BYTES_STARTS(mask, "[True, F") ||
               BYTES_STARTS(mask, "[False, T");
    o->type = x->type;
    if (x->n < 3 || g->n != x->n || w->n != x->n || !(both || one)) return;
    const struct op_input *at = op_inputs_true(c->in, 7) ? x : g;
    int64_t positions = count_times(at->d[0], product(at, 2, at->n));
    o->parts = both ? 2 : 1;
    o->flops = count_times(count_times(2 * o->parts, positions), w->numel);
    /* the gradient and both others in, the wanted ones out */
    bool dx = both || BYTES_STARTS(mask, "[True"), dw = both || !dx;
    o->bytes = bytes_of_input(c, 0);
    int64_t bx = bytes_of_input(c, 1), bw = bytes_of_input(c, 2);
    if (dw) o->bytes = count_plus(o->bytes, count_plus(bx, bw));
    if (dx) o->bytes = count_plus(o->bytes, count_plus(bx, bw));
}

static bool is_causal(const struct call *c) {
    struct bytes v = op_inputs_text(c->in, c->r->b);
    /* the memory-efficient kernels have a kind of mask: 0 none, 1 and 2
     * causal */
    return op_inputs_true(c->in, c->r->b) || BYTES_IS(v, "1") ||
           BYTES_IS(v, "2");
}

/* q, k, v: [B, H, S, D] or, with the heads' axis 2, [B, S, H, D]. Packed
 * sequences of many lengths have three dimensions, and their lengths are not
 * recorded. */
static void attention(const struct call *c, struct op_cost *o, bool gradient) {
    int first = c->r->a, h = c->r->c, s = h == 1 ? 2 : 1;
    const struct op_input *q = input(c, first), *k = input(c, first + 1),
                          *v = input(c, first + 2);
    o->type = q->type;
    if (q->n != 4 || k->n != 4 || v->n != 4) return;
    int64_t pairs = count_times(count_times(q->d[0], q->d[h]),
                                count_times(q->d[s], k->d[s]));
    /* scores and their use; the gradient: scores again, and the gradients of
     * q, k (width of q), of the scores and v (width of v) */
    int64_t width = gradient ? count_plus(count_times(3, q->d[3]),
                                          count_times(2, v->d[3]))
                             : count_plus(q->d[3], v->d[3]);
    o->flops = count_times(count_times(2, pairs), width);
    if (o->flops > 0 && is_causal(c)) o->flops /= 2;
    int64_t in = count_plus(bytes_of_input(c, first),
                            count_plus(bytes_of_input(c, first + 1),
                                       bytes_of_input(c, first + 2)));
    int64_t rows = count_times(count_times(q->d[0], q->d[h]), q->d[s]);
    int64_t out = size_of(count_times(rows, v->d[3]), q->type);
    /* forward: three in, one out; gradient: those four and one more in, three
     * out */
    o->bytes = count_plus(in, out);
    if (gradient) o->bytes = count_times(2, o->bytes);
}

/* Every weight matrix once per position of the sequence. Bytes: the least,
 * weights read once though a long sequence reads them at every position. */
static void rnn(const struct call *c, struct op_cost *o, bool gradient) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t hidden;
    o->type = x->type;
    if (x->n < 2 || w->n != -1 || w->matrices <= 0) return;
    int64_t positions = product(x, 0, x->n - 1);
    o->flops = count_times(count_times(2, positions), w->matrices);
    o->bytes = count_plus(bytes_of_input(c, 0), size_of(w->numel, x->type));
    if (gradient) {
        struct bytes mask = op_inputs_text(c->in, c->in->n - 1);
        bool weights = mask.n >= 5 &&
                       memcmp(mask.p + mask.n - 5, "True]", 5) == 0;
        if (weights) o->flops = count_times(2, o->flops);
        /* both again as gradients; the output and its gradient */
        o->bytes = count_plus(count_times(2, o->bytes),
                              count_plus(bytes_of_input(c, 6),
                                         bytes_of_input(c, 7)));
    } else if (op_inputs_ints(c->in, 7, &hidden, 1) == 1) {
        int64_t out = count_times(positions, hidden);
        if (op_inputs_true(c->in, 13)) out = count_times(2, out);
        o->bytes = count_plus(o->bytes, size_of(out, x->type));
    } else {
        o->bytes = -1;
    }
}

/* Elements of what the inputs broadcast to; -1: they do not. */
static int64_t broadcast(const struct call *c) {
    int64_t d[OP_DIMS_MAX], out = 1;
    int rank = 0;
    bool any = false;
    for (int i = 0; i < OP_DIMS_MAX; i++) d[i] = 1;
    for (int i = 0; i < c->in->n; i++) {
        const struct op_input *x = input(c, i);
        if (x->n < 0) return -1;
        /* no tensor; or an empty one, given to hold what comes out */
        if (x->numel == 0) continue;
        any = true;
        for (int k = 0; k < x->n; k++)
            if (x->d[x->n - 1 - k] != 1) d[k] = x->d[x->n - 1 - k];
        if (x->n > rank) rank = x->n;
    }
    for (int i = 0; i < rank; i++) out = count_times(out, d[i]);
    return any ? out : -1;
}

/* The widest type of the inputs, the usual type of what comes out. */
static enum dtype widest(const struct call *c) {
    enum dtype type = DTYPE_UNKNOWN;
    for (int i = 0; i < c->in->n; i++) {
        const struct op_input *x = input(c, i);
        /* a tensor of no dimension changes no type */
        if (x->n == 0 && type != DTYPE_UNKNOWN) continue;
        if (dtype_bits(x->type) > dtype_bits(type)) type = x->type;
    }
    return type;
}

static void map(const struct call *c, struct op_cost *o) {
    int64_t n = broadcast(c);
    o->type = widest(c);
    if (n <= 0) return;
    o->flops = count_times(c->r->a, n);
    int64_t out = c->r->b ? count_times(n, c->r->b) : size_of(n, o->type);
    o->bytes = count_plus(all_bytes(c), out);
}

static void each(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, c->r->b);
    o->type = x->type;
    if (x->n < 0 || x->numel <= 0) return;
    o->flops = count_times(c->r->a, x->numel);
    o->bytes = count_plus(all_bytes(c),
                          count_times(c->r->c, bytes_of_input(c, c->r->b)));
}

static void move(const struct call *c, struct op_cost *o) {
    o->type = input(c, 0)->type;
    if (o->type == DTYPE_UNKNOWN) return;
    o->bytes = all_bytes(c);
    o->flops = o->bytes < 0 ? -1 : 0;
}

static void reduce(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    int64_t axis[OP_DIMS_MAX];
    o->type = x->type;
    if (x->n < 0 || x->numel <= 0) return;
    int n = op_inputs_ints(c->in, c->r->b, axis, OP_DIMS_MAX);
    int64_t out = n ? x->numel : 1;
    for (int i = 0; i < n; i++) {
        int64_t k = axis[i] < 0 ? axis[i] + x->n : axis[i];
        if (k >= 0 && k < x->n && x->d[k] > 0) out /= x->d[k];
    }
    o->flops = count_times(c->r->a, x->numel);
    o->bytes = count_plus(bytes_of_input(c, 0), size_of(out, x->type));
}

static void pool(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    int64_t k[OP_DIMS_MAX], stride[OP_DIMS_MAX], pad[OP_DIMS_MAX];
    o->type = x->type;
    if (x->n < 3 || !axes(c, 1, 2, 1, k) || !axes(c, 3, 2, 0, pad)) return;
    if (!axes(c, 2, 2, 1, stride)) memcpy(stride, k, sizeof k);
    int64_t out = product(x, 0, x->n - 2);
    for (int i = 0; i < 2; i++)
        out = count_times(out,
                          side(x->d[x->n - 2 + i], k[i], pad[i], stride[i], 1));
    o->flops = count_times(out, count_times(k[0], k[1]));
    o->bytes = count_plus(all_bytes(c), count_plus(size_of(out, x->type),
                                                   size_of(out, DTYPE_INT64)));
}

/* Rows that an index picks: read and written once, and the index. */
static void picked(const struct call *c, struct op_cost *o, bool rows) {
    const struct op_input *x = input(c, 0), *index = input(c, c->r->a);
    o->type = x->type;
    if (x->n < 1 || index->n < 0) return;
    int64_t width = rows ? product(x, 1, x->n) : 1, axis;
    if (rows && c->r->a == 2 && op_inputs_ints(c->in, 1, &axis, 1) == 1 &&
        axis >= 0 && axis < x->n && x->d[axis] > 0)
        width = x->numel / x->d[axis];
    int64_t out = size_of(count_times(index->numel, width), x->type);
    o->bytes = count_plus(count_times(2, out), bytes_of_input(c, c->r->a));
    o->flops = o->bytes < 0 ? -1 : 0;
}

static void embedding_gradient(const struct call *c, struct op_cost *o) {
    const struct op_input *g = input(c, 0);
    int64_t rows;
    o->type = g->type;
    if (g->n < 1 || op_inputs_ints(c->in, 2, &rows, 1) != 1) return;
    o->flops = g->numel;
    int64_t out = size_of(count_times(rows, g->d[g->n - 1]), g->type);
    o->bytes = count_plus(all_bytes(c), out);
}

static void foreach (const struct call *c, struct op_cost * o) {
    const struct op_input *x = input(c, 0);
    o->type = c->list;
    if (x->n != -1 || x->numel <= 0) return;
    o->flops = count_times(c->r->a, x->numel);
    o->bytes = count_plus(all_bytes(c),
                          count_times(c->r->b, bytes_of_input(c, 0)));
}

static void fused(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    o->type = c->list;
    if (x->n != -1 || x->numel <= 0) return;
    o->flops = count_times(c->r->a, x->numel);
    o->bytes = 0;
    for (int i = 0; i < c->r->b; i++) {
        int64_t b = bytes_of_input(c, i);
        if (i != 1) b = count_times(2, b);
        o->bytes = count_plus(o->bytes, b);
    }
}

static void cat(const struct call *c, struct op_cost *o) {
    o->type = c->list;
    if (input(c, 0)->n != -1) return; /* long lists are not recorded */
    o->bytes = count_times(2, bytes_of_input(c, 0));
    o->flops = o->bytes < 0 ? -1 : 0;
}

void op_cost_from(const struct op_inputs *in, const struct cost_rule *r,
                  enum dtype list, struct op_cost *o) {
    struct call c = {in, r, list};
    *o = (struct op_cost){.flops = -1, .bytes = -1, .parts = 1};
    o->matrix = op_cost_is_matrix(r);
    switch ((enum formula)r->formula) {
    case F_GEMM: gemm(&c, o); break;
    case F_LINEAR: linear(&c, o); break;
    case F_MV: mv(&c, o); break;
    case F_CONV: conv(&c, o); break;
    case F_CONV_ANY:
        if (op_inputs_true(in, r->d))
            conv_transposed(&c,
                            &(struct cost_rule){.a = r->a,
                                                .b = r->b,
                                                .c = r->c,
                                                .d = 7,
                                                .e = 8},
                            o);
        else conv(&c, o);
        break;
    case F_CONV_T: conv_transposed(&c, r, o); break;
    case F_CONV_GRAD: conv_gradient(&c, o); break;
    case F_ATTN: attention(&c, o, false); break;
    case F_ATTN_GRAD: attention(&c, o, true); break;
    case F_RNN: rnn(&c, o, false); break;
    case F_RNN_GRAD: rnn(&c, o, true); break;
    case F_MAP: map(&c, o); break;
    case F_EACH: each(&c, o); break;
    case F_MOVE: move(&c, o); break;
    case F_REDUCE: reduce(&c, o); break;
    case F_POOL: pool(&c, o); break;
    case F_PICK: picked(&c, o, true); break;
    case F_GATHER: picked(&c, o, false); break;
    case F_EMBED_GRAD: embedding_gradient(&c, o); break;
    case F_FOREACH:
        foreach (&c, o)
            ;
        break;
    case F_FUSED: fused(&c, o); break;
    case F_CAT: cat(&c, o); break;
    case F_ALL:
        o->type = input(&c, 0)->type;
        o->bytes = all_bytes(&c);
        break;
    }
    assert(o->flops >= -1 && o->bytes >= -1);
}

bool op_cost_of(const struct trace *t, row_id row, const struct cost_rule *r,
                enum dtype list, struct op_cost *out) {
    struct op_inputs in;
    if (!op_inputs_of(t, row, &in)) return false;
    op_cost_from(&in, r, list, out);
    return true;
}
