/* SPDX-License-Identifier: Apache-2.0
 * torch's formulas, to the letter: its tables are what these are compared
 * with. op_cost.h has what torch leaves out. */
#include "analyze/cost/flops.h"

#include "analyze/cost/op_inputs.h"

enum flops_rule flops_rule_of(struct bytes n) {
    if (!BYTES_STARTS(n, "aten::")) return FLOPS_NONE;
    if (BYTES_IS(n, "aten::conv2d")) return FLOPS_CONV2D;
    if (BYTES_IS(n, "aten::mm")) return FLOPS_GEMM;
    if (BYTES_IS(n, "aten::addmm")) return FLOPS_ADD_GEMM;
    if (BYTES_IS(n, "aten::bmm")) return FLOPS_BATCH;
    if (BYTES_IS(n, "aten::baddbmm")) return FLOPS_ADD_BATCH;
    if (BYTES_IS(n, "aten::mul") || BYTES_IS(n, "aten::add"))
        return FLOPS_POINTWISE;
    return FLOPS_NONE;
}

static int64_t product(int64_t v, const struct op_input *x, int from, int to) {
    for (int i = from; i < to; i++) v = count_times(v, x->d[i]);
    return v;
}

static int64_t gemm(const struct op_input *a, const struct op_input *b,
                    int rank) {
    if (a->n != rank || b->n != rank) return -1;
    /* 2 x rows of a x columns of b x shared side x batch */
    return product(product(2, a, 0, rank), b, rank - 1, rank);
}

/* Value i as two numbers; a single one stands for both. */
static bool pair_at(const struct op_inputs *in, int i, int64_t out[2]) {
    int n = op_inputs_ints(in, i, out, 2);
    if (n == 1) out[1] = out[0];
    return n > 0 && out[0] >= 0 && out[1] >= 0;
}

/* Output size of one side; -1 when the numbers make no sense. */
static int64_t conv_side(int64_t in, int64_t k, int64_t pad, int64_t stride,
                         int64_t dilation) {
    const int64_t big = INT64_C(1) << 30;
    if (in > big || k > big || pad > big || dilation > big || stride < 1)
        return -1;
    int64_t span = in + 2 * pad - dilation * (k - 1) - 1;
    return span < 0 ? -1 : span / stride + 1;
}

/* Inputs: image, weight, bias, stride, padding, dilation, groups. */
static int64_t conv2d(const struct op_inputs *in) {
    const struct op_input *x = &in->v[0], *w = &in->v[1];
    int64_t stride[2], pad[2], dilation[2], groups[2], out[2];
    if (x->n != 4 || w->n != 4) return -1;
    if (!pair_at(in, 3, stride) || !pair_at(in, 4, pad) ||
        !pair_at(in, 5, dilation) || !pair_at(in, 6, groups))
        return -1;
    if (groups[0] < 1) return -1;
    for (int i = 0; i < 2; i++) {
        out[i] = conv_side(x->d[2 + i], w->d[2 + i], pad[i], stride[i],
                           dilation[i]);
        if (out[i] < 0) return -1;
    }
    int64_t v = count_times(count_times(count_times(2, x->d[0]), out[0]),
                            out[1]);
    v = count_times(count_times(count_times(v, w->d[2]), w->d[3]), x->d[1]);
    v = count_times(v, w->d[0]);
    return v < 0 ? -1 : v / groups[0];
}

/* A tensor of no dimension has one element; what is no tensor has none. */
static int64_t pointwise(const struct op_input *x) {
    if (x->n < 0) return -1;
    return x->n == 0 && x->numel == 0 ? -1 : x->numel;
}

static int64_t count(enum flops_rule rule, const struct op_inputs *in) {
    bool add = rule == FLOPS_ADD_GEMM || rule == FLOPS_ADD_BATCH;
    int first = add ? 1 : 0;
    if (in->n < (rule == FLOPS_POINTWISE ? 1 : first + 2)) return -1;
    const struct op_input *a = &in->v[first];
    switch (rule) {
    case FLOPS_CONV2D: return conv2d(in);
    case FLOPS_GEMM:
    case FLOPS_ADD_GEMM: return gemm(a, a + 1, 2);
    case FLOPS_BATCH:
    case FLOPS_ADD_BATCH: return gemm(a, a + 1, 3);
    case FLOPS_POINTWISE: return pointwise(a);
    default: return -1;
    }
}

int64_t flops_from(enum flops_rule rule, struct bytes dims, struct bytes types,
                   struct bytes concrete) {
    struct op_inputs in;
    op_inputs_from(dims, types, concrete, &in);
    return count(rule, &in);
}

int64_t flops_of(const struct trace *t, row_id row, enum flops_rule rule) {
    struct op_inputs in;
    return op_inputs_of(t, row, &in) ? count(rule, &in) : -1;
}
