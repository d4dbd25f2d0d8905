/* SPDX-License-Identifier: Apache-2.0
 * One table of op names; their row says which formula, and where the op has
 * what the formula needs. torch records inputs only, so each formula also
 * derives what comes out.
 *
 * Convolutions need no groups: a weight of shape [Cout, Cin/groups, ...] has
 * just the products of one output position in it, a transposed one's those of
 * one input position. Attention's gradient takes five products where the
 * forward pass takes two, because it works the scores out again; a causal mask
 * leaves half of them. */
#include "analyze/cost/op_cost.h"

#include "analyze/shared/op_inputs.h"
#include "base/array.h"
#include "base/sum.h"
#include <assert.h>

enum formula {
    F_GEMM,   /* inputs first and first + 1, both of that rank */
    F_LINEAR, /* x [..., K], w [N, K] */
    F_MV,     /* first: the matrix */
    F_CONV,
    F_CONV_T, /* transposed */
    F_CONV_GRAD,
    F_ATTN,
    F_ATTN_GRAD,
    F_RNN,
    F_RNN_GRAD, /* the last one of matrix work */
    F_MAP,      /* ops for each element of what the inputs broadcast to */
    F_EACH,     /* ops for each element of input first */
    F_MOVE,     /* no arithmetic: all inputs once */
    F_REDUCE,   /* ops for each element of input 0 */
    F_POOL,
    F_PICK,   /* rows of input 0 by an index */
    F_GATHER, /* as many elements as the index has */
    F_EMBED_GRAD,
    F_EACH_LIST, /* ops for each element of a list of tensors */
    F_OPTIMIZER, /* the same; all lists but the gradients (list 1) are written,
                    too */
    F_CAT,
    F_ALL, /* bytes alone: what it reads and writes are its inputs */
};

/* A formula, and where the op has what the formula needs: the numbers of inputs
 * (first, index), those of plain values, or counts. */
struct cost_rule {
    const char *names; /* without "aten::", a space between them */
    uint8_t formula;
    bool torch;                   /* torch counts its FLOPs, too */
    int8_t first;                 /* the first input that it works on */
    int8_t rank;                  /* dimensions of both matrices */
    int8_t stride, pad, dilation; /* values; dilation -1: it has none */
    int8_t transposed;            /* value; 0: it never is */
    int8_t out_pad, groups;       /* values, where it is transposed */
    int8_t causal;                /* value */
    int8_t heads;                 /* which axis of q, k and v */
    int8_t ops;                   /* operations per element */
    int8_t out_bytes;             /* per element; 0: as the inputs */
    int8_t outputs;               /* outputs of the size of its input */
    int8_t axes;                  /* value: along which it reduces */
    int8_t index;                 /* input */
    int8_t lists;                 /* lists of tensors that it reads */
};

#define TORCH_COUNTS .torch = true

/* clang-format off */
static const struct cost_rule rules[] = {
    /* products of matrices */
    {"mm", F_GEMM, .rank = 2, TORCH_COUNTS},
    {"addmm", F_GEMM, .first = 1, .rank = 2, TORCH_COUNTS},
    {"addmm_ _addmm_activation", F_GEMM, .first = 1, .rank = 2},
    {"bmm", F_GEMM, .rank = 3, TORCH_COUNTS},
    {"baddbmm", F_GEMM, .first = 1, .rank = 3, TORCH_COUNTS},
    {"baddbmm_", F_GEMM, .first = 1, .rank = 3},
    {"_int_mm _scaled_mm", F_GEMM, .rank = 2},
    {"linear mkldnn_linear", .formula = F_LINEAR},
    {"mv", .formula = F_MV},
    {"addmv addmv_", F_MV, .first = 1},
    {"conv1d conv3d cudnn_convolution_relu",
     F_CONV, .stride = 3, .pad = 4, .dilation = 5},
    {"conv2d", F_CONV, .stride = 3, .pad = 4, .dilation = 5, TORCH_COUNTS},
    {"cudnn_convolution", F_CONV, .stride = 3, .pad = 2, .dilation = 4},
    {"cudnn_convolution_add_relu",
     F_CONV, .stride = 5, .pad = 6, .dilation = 7},
    {"miopen_convolution miopen_depthwise_convolution mkldnn_convolution",
     F_CONV, .stride = 4, .pad = 3, .dilation = 5},
    {"_slow_conv2d_forward thnn_conv2d slow_conv3d_forward",
     F_CONV, .stride = 4, .pad = 5, .dilation = -1},
    {"slow_conv_dilated2d _conv_depthwise2d conv_depthwise3d",
     F_CONV, .stride = 4, .pad = 5, .dilation = 6},
    {"convolution _convolution convolution_overrideable",
     F_CONV, .stride = 3, .pad = 4, .dilation = 5,
     .transposed = 6, .out_pad = 7, .groups = 8},
    {"conv_transpose1d conv_transpose2d conv_transpose3d",
     F_CONV_T, .stride = 3, .pad = 4, .dilation = 7, .out_pad = 5, .groups = 6},
    {"cudnn_convolution_transpose",
     F_CONV_T, .stride = 4, .pad = 2, .dilation = 5, .out_pad = 3, .groups = 6},
    {"miopen_convolution_transpose",
     F_CONV_T, .stride = 5, .pad = 3, .dilation = 6, .out_pad = 4, .groups = 7},
    {"convolution_backward convolution_backward_overrideable",
     .formula = F_CONV_GRAD},
    {"_flash_attention_forward", F_ATTN, .causal = 8, .heads = 2},
    {"_efficient_attention_forward", F_ATTN, .causal = 9, .heads = 2},
    {"_cudnn_attention_forward", F_ATTN, .causal = 10, .heads = 1},
    {"_scaled_dot_product_flash_attention"
     " _scaled_dot_product_flash_attention_for_cpu",
     F_ATTN, .causal = 4, .heads = 1},
    {"_scaled_dot_product_efficient_attention"
     " _scaled_dot_product_cudnn_attention",
     F_ATTN, .causal = 6, .heads = 1},
    {"_flash_attention_backward",
     F_ATTN_GRAD, .first = 1, .causal = 11, .heads = 2},
    {"_efficient_attention_backward",
     F_ATTN_GRAD, .first = 1, .causal = 14, .heads = 2},
    {"_cudnn_attention_backward"
     " _scaled_dot_product_cudnn_attention_backward",
     F_ATTN_GRAD, .first = 1, .causal = 14, .heads = 1},
    {"_scaled_dot_product_flash_attention_backward"
     " _scaled_dot_product_efficient_attention_backward",
     F_ATTN_GRAD, .first = 1, .causal = 11, .heads = 1},
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
     F_ATTN_GRAD, .first = 1, .causal = 7, .heads = 1},
    {"_cudnn_rnn miopen_rnn", .formula = F_RNN},
    {"_cudnn_rnn_backward", .formula = F_RNN_GRAD},
    /* pointwise */
    {"add mul", F_MAP, .ops = 1, TORCH_COUNTS},
    {"add_ sub sub_ rsub mul_ div div_ neg abs relu relu_ clamp_min"
     " clamp_min_ threshold_backward reciprocal maximum minimum square",
     F_MAP, .ops = 1},
    {"clamp clamp_ leaky_relu leaky_relu_ leaky_relu_backward hardtanh"
     " hardtanh_ hardtanh_backward sqrt rsqrt native_dropout_backward"
     " hardsigmoid_backward",
     F_MAP, .ops = 2},
    {"hardswish hardswish_ exp log pow sigmoid sin cos", F_MAP, .ops = 4},
    {"tanh silu silu_ hardswish_backward elu", F_MAP, .ops = 5},
    {"tanh_backward sigmoid_backward addcmul addcmul_ addcdiv addcdiv_"
     " lerp lerp_ hardsigmoid hardsigmoid_",
     F_MAP, .ops = 3},
    {"silu_backward gelu", F_MAP, .ops = 8},
    {"gelu_backward", F_MAP, .ops = 14},
    {"where masked_fill masked_fill_", .formula = F_MAP},
    {"eq ne lt le gt ge isnan isinf isneginf", F_MAP, .ops = 1, .out_bytes = 1},
    {"logical_not logical_and", F_MAP, .out_bytes = 1},
    {"erf", F_MAP, .ops = 6},
    /* so many operations for each element */
    {"native_dropout", F_EACH, .ops = 2, .outputs = 1},
    {"_softmax _log_softmax _log_softmax_backward_data",
     F_EACH, .ops = 6, .outputs = 1},
    {"_softmax_backward_data", F_EACH, .ops = 4, .outputs = 1},
    {"native_layer_norm native_group_norm native_batch_norm"
     " cudnn_batch_norm miopen_batch_norm _batch_norm_with_update",
     F_EACH, .ops = 8, .outputs = 1},
    {"native_layer_norm_backward native_group_norm_backward"
     " native_batch_norm_backward cudnn_batch_norm_backward"
     " miopen_batch_norm_backward batch_norm_backward",
     F_EACH, .ops = 14, .outputs = 1},
    {"_fused_rms_norm", F_EACH, .ops = 5, .outputs = 1},
    {"_fused_rms_norm_backward", F_EACH, .ops = 10, .outputs = 1},
    {"max_pool2d_with_indices_backward", F_EACH, .ops = 1},
    {"triu tril clone flip roll", F_EACH, .outputs = 1},
    /* moves */
    {"copy_ fill_ zero_ normal_ uniform_ random_ bernoulli_",
     .formula = F_MOVE},
    {"sum mean amax amin argmax", F_REDUCE, .ops = 1, .axes = 1},
    {"any all", F_REDUCE, .axes = 1},
    {"std var", F_REDUCE, .ops = 3, .axes = 1},
    {"linalg_vector_norm", F_REDUCE, .ops = 2, .axes = 2},
    {"max_pool2d_with_indices", .formula = F_POOL},
    {"index_select", F_PICK, .index = 2},
    {"embedding", F_PICK, .index = 1},
    {"gather", F_GATHER, .index = 2},
    {"embedding_dense_backward", .formula = F_EMBED_GRAD},
    /* optimizers */
    {"_foreach_add_ _foreach_add _foreach_sub_ _foreach_sqrt"
     " _foreach_sqrt_",
     F_EACH_LIST, .ops = 2, .outputs = 1},
    {"_foreach_mul_ _foreach_mul _foreach_div_ _foreach_div _foreach_neg"
     " _foreach_reciprocal_ _foreach_maximum_",
     F_EACH_LIST, .ops = 1, .outputs = 1},
    {"_foreach_pow", F_EACH_LIST, .ops = 4, .outputs = 1},
    {"_foreach_lerp_ _foreach_addcmul_ _foreach_addcdiv_",
     F_EACH_LIST, .ops = 3, .outputs = 1},
    {"_foreach_norm", F_EACH_LIST, .ops = 2},
    {"_foreach_zero_ _foreach_copy_", .formula = F_EACH_LIST},
    {"_fused_adam_", F_OPTIMIZER, .ops = 12, .lists = 5},
    {"_fused_adamw_", F_OPTIMIZER, .ops = 13, .lists = 5},
    {"_fused_sgd_", F_OPTIMIZER, .ops = 4, .lists = 3},
    {"_fused_adagrad_", F_OPTIMIZER, .ops = 6, .lists = 3},
    {"cat stack", .formula = F_CAT},
};
/* clang-format on */

/* Kernels that torch compiled: they are called with all tensors, outputs too;
 * what they compute is not recorded. */
static const struct cost_rule triton = {"triton", .formula = F_ALL};

/* Does the rule name the op? */
static bool is_named(const struct cost_rule *r, struct bytes op) {
    for (const char *p = r->names; *p != 0;) {
        size_t n = strcspn(p, " ");
        if (bytes_eq(op, p, n)) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* Takes "aten::" off. Returns false if the name does not begin with it. */
static bool is_aten(struct bytes *name) {
    if (!BYTES_STARTS(*name, "aten::")) return false;
    name->p += sizeof "aten::" - 1;
    name->n -= sizeof "aten::" - 1;
    return true;
}

const struct cost_rule *op_cost_rule(struct bytes name) {
    if (BYTES_STARTS(name, "triton_")) return &triton;
    if (!is_aten(&name)) return NULL;
    for (size_t i = 0; i < COUNT(rules); i++)
        if (is_named(&rules[i], name)) return &rules[i];
    return NULL;
}

uint8_t torch_flops_rule(struct bytes name) {
    _Static_assert(COUNT(rules) < UINT8_MAX, "a rule's number fits");
    if (!is_aten(&name)) return 0;
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].torch && is_named(&rules[i], name))
            return (uint8_t)(i + 1);
    return 0;
}

bool op_cost_is_matrix(const struct cost_rule *r) {
    return r->formula <= F_RNN_GRAD && r->formula != F_MV;
}

bool op_cost_is_pointwise(const struct cost_rule *rule) {
    return rule->formula == F_MAP;
}

bool op_cost_reduces(const struct cost_rule *rule) {
    return rule->formula == F_EACH || rule->formula == F_REDUCE ||
           rule->formula == F_MOVE || rule->formula == F_CAT;
}

/* What a call works on: its inputs, and the type of lists. */
struct call {
    const struct op_inputs *in;
    const struct cost_rule *r;
    enum dtype list;
};

/* Returns input i, or an empty one. */
static const struct op_input *input(const struct call *c, int i) {
    static const struct op_input none = {0};
    return i >= 0 && i < c->in->n ? &c->in->v[i] : &none;
}

static int64_t size_of(int64_t numel, enum dtype type) {
    int bits = dtype_bits(type);
    if (bits == 0) return -1;
    return known_add(known_mul(numel, bits), 7) / 8;
}

/* Returns the bytes of input i; 0 if it is no tensor; -1 if not known. */
static int64_t bytes_of_input(const struct call *c, int i) {
    const struct op_input *in = input(c, i);
    if (in->numel == 0) return 0;
    return size_of(in->numel, in->n < 0 ? c->list : in->type);
}

static int64_t all_bytes(const struct call *c) {
    int64_t sum = 0;
    for (int i = 0; i < c->in->n; i++)
        sum = known_add(sum, bytes_of_input(c, i));
    return sum;
}

static int64_t product(const struct op_input *x, int from, int to) {
    int64_t v = 1;
    for (int i = from; i < to; i++) v = known_mul(v, x->d[i]);
    return v;
}

static void gemm(const struct call *c, struct op_cost *o) {
    const struct op_input *a = input(c, c->r->first),
                          *b = input(c, c->r->first + 1);
    int rank = c->r->rank;
    o->type = a->type;
    if (a->n != rank || b->n != rank) return;
    int64_t out = known_mul(product(a, 0, rank - 1), b->d[rank - 1]);
    o->flops = known_mul(known_mul(2, out), a->d[rank - 1]);
    bool integer = a->type == DTYPE_INT8 || a->type == DTYPE_UINT8;
    enum dtype to = integer                ? DTYPE_INT32
                    : a->type == DTYPE_FP8 ? DTYPE_BF16
                                           : a->type;
    o->bytes = known_add(all_bytes(c), size_of(out, to));
}

static void linear(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    o->type = x->type;
    if (x->n < 1 || w->n != 2) return;
    int64_t out = known_mul(product(x, 0, x->n - 1), w->d[0]);
    o->flops = known_mul(known_mul(2, out), w->d[1]);
    o->bytes = known_add(all_bytes(c), size_of(out, x->type));
}

static void mv(const struct call *c, struct op_cost *o) {
    const struct op_input *m = input(c, c->r->first);
    o->type = m->type;
    if (m->n != 2) return;
    o->flops = known_mul(2, m->numel);
    o->bytes = known_add(all_bytes(c), size_of(m->d[0], m->type));
}

/* Reads value i as one number per axis: "[2]" and "2" stand for all. Where it
 * is absent (or i is -1), dflt is taken. */
static bool axes(const struct call *c, int i, int n, int64_t dflt,
                 int64_t out[OP_DIMS_MAX]) {
    int have = i < 0 ? 0 : op_inputs_ints(c->in, i, out, OP_DIMS_MAX);
    if (have == 0 && i >= 0) return false;
    for (int k = have; k < n; k++) out[k] = have ? out[have - 1] : dflt;
    return true;
}

/* Returns the output size of one side; -1 if the numbers make no sense. */
static int64_t side(int64_t in, int64_t k, int64_t pad, int64_t stride,
                    int64_t dilation) {
    const int64_t big = INT64_C(1) << 30;
    if (in > big || k > big || pad > big || dilation > big || stride < 1 ||
        pad < 0 || dilation < 1 || k < 1)
        return -1;
    int64_t span = in + 2 * pad - dilation * (k - 1) - 1;
    return span < 0 ? -1 : span / stride + 1;
}

/* Counts a transposed convolution: one product per input position. */
static void conv_transposed(const struct call *c, struct op_cost *o) {
    const struct cost_rule *r = c->r;
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t stride[OP_DIMS_MAX], pad[OP_DIMS_MAX], dilation[OP_DIMS_MAX];
    int64_t more[OP_DIMS_MAX], groups, n = x->n - 2;
    o->type = x->type;
    if (n < 1 || w->n != x->n) return;
    int64_t at = known_mul(x->d[0], product(x, 2, x->n));
    o->flops = known_mul(known_mul(2, at), w->numel);
    if (!axes(c, r->stride, (int)n, 1, stride) ||
        !axes(c, r->pad, (int)n, 0, pad) ||
        !axes(c, r->dilation, (int)n, 1, dilation) ||
        !axes(c, r->out_pad, (int)n, 0, more) ||
        op_inputs_ints(c->in, r->groups, &groups, 1) != 1)
        return;
    int64_t out = known_mul(x->d[0], known_mul(w->d[1], groups));
    for (int i = 0; i < n; i++) {
        int64_t kernel = known_mul(dilation[i], w->d[2 + i] - 1);
        int64_t len = known_mul(x->d[2 + i] - 1, stride[i]);
        len = known_add(known_add(len, kernel), known_add(more[i], 1));
        out = known_mul(out, len - known_mul(2, pad[i]));
    }
    o->bytes = known_add(all_bytes(c), size_of(out, x->type));
}

static void conv(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t stride[OP_DIMS_MAX], pad[OP_DIMS_MAX], dilation[OP_DIMS_MAX];
    if (c->r->transposed > 0 && op_inputs_true(c->in, c->r->transposed)) {
        conv_transposed(c, o);
        return;
    }
    o->type = x->type;
    int n = x->n - 2;
    if (n < 1 || w->n != x->n || !axes(c, c->r->stride, n, 1, stride) ||
        !axes(c, c->r->pad, n, 0, pad) ||
        !axes(c, c->r->dilation, n, 1, dilation))
        return;
    int64_t out = x->d[0];
    for (int i = 0; i < n; i++)
        out = known_mul(out, side(x->d[2 + i], w->d[2 + i], pad[i], stride[i],
                                  dilation[i]));
    o->flops = known_mul(known_mul(2, out), w->numel);
    o->bytes = known_add(all_bytes(c),
                         size_of(known_mul(out, w->d[0]), x->type));
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
    int64_t positions = known_mul(at->d[0], product(at, 2, at->n));
    o->parts = both ? 2 : 1;
    o->flops = known_mul(known_mul(2 * o->parts, positions), w->numel);
    /* the gradient and both others go in, the wanted ones come out */
    bool dx = both || BYTES_STARTS(mask, "[True"), dw = both || !dx;
    o->bytes = bytes_of_input(c, 0);
    int64_t bx = bytes_of_input(c, 1), bw = bytes_of_input(c, 2);
    if (dw) o->bytes = known_add(o->bytes, known_add(bx, bw));
    if (dx) o->bytes = known_add(o->bytes, known_add(bx, bw));
}

/* Counts attention. q, k, v are [B, H, S, D] or, with the heads' axis 2, [B, S,
 * H, D]. Packed sequences of many lengths have three dimensions, and their
 * lengths are not recorded. */
static void attention(const struct call *c, struct op_cost *o) {
    bool gradient = c->r->formula == F_ATTN_GRAD;
    int first = c->r->first, h = c->r->heads, s = h == 1 ? 2 : 1;
    const struct op_input *q = input(c, first), *k = input(c, first + 1),
                          *v = input(c, first + 2);
    o->type = q->type;
    if (q->n != 4 || k->n != 4 || v->n != 4) return;
    int64_t pairs = known_mul(known_mul(q->d[0], q->d[h]),
                              known_mul(q->d[s], k->d[s]));
    /* the scores and their use; for the gradient the scores again, and the
     * gradients of q, k (width of q), of the scores and v (width of v) */
    int64_t width = gradient ? known_add(known_mul(3, q->d[3]),
                                         known_mul(2, v->d[3]))
                             : known_add(q->d[3], v->d[3]);
    o->flops = known_mul(known_mul(2, pairs), width);
    struct bytes mask = op_inputs_text(c->in, c->r->causal);
    /* memory-efficient kernels have a kind of mask: 0 none, 1 and 2 causal */
    if (o->flops > 0 && (op_inputs_true(c->in, c->r->causal) ||
                         BYTES_IS(mask, "1") || BYTES_IS(mask, "2")))
        o->flops /= 2;
    int64_t in = known_add(bytes_of_input(c, first),
                           known_add(bytes_of_input(c, first + 1),
                                     bytes_of_input(c, first + 2)));
    int64_t rows = known_mul(known_mul(q->d[0], q->d[h]), q->d[s]);
    int64_t out = size_of(known_mul(rows, v->d[3]), q->type);
    /* forward: three go in, one comes out; gradient: those four and one more go
     * in, three come out */
    o->bytes = known_add(in, out);
    if (gradient) o->bytes = known_mul(2, o->bytes);
}

/* Counts every weight matrix once per position of the sequence. Bytes are the
 * least: weights are read once, though a long sequence reads them at every
 * position. */
static void rnn(const struct call *c, struct op_cost *o) {
    bool gradient = c->r->formula == F_RNN_GRAD;
    const struct op_input *x = input(c, 0), *w = input(c, 1);
    int64_t hidden;
    o->type = x->type;
    if (x->n < 2 || w->n != -1 || w->matrices <= 0) return;
    int64_t positions = product(x, 0, x->n - 1);
    o->flops = known_mul(known_mul(2, positions), w->matrices);
    o->bytes = known_add(bytes_of_input(c, 0), size_of(w->numel, x->type));
    if (gradient) {
        struct bytes mask = op_inputs_text(c->in, c->in->n - 1);
        bool weights = mask.n >= 5 &&
                       memcmp(mask.p + mask.n - 5, "True]", 5) == 0;
        if (weights) o->flops = known_mul(2, o->flops);
        /* both come again as gradients; so do the output and its gradient */
        o->bytes = known_add(known_mul(2, o->bytes),
                             known_add(bytes_of_input(c, 6),
                                       bytes_of_input(c, 7)));
    } else if (op_inputs_ints(c->in, 7, &hidden, 1) == 1) {
        int64_t out = known_mul(positions, hidden);
        if (op_inputs_true(c->in, 13)) out = known_mul(2, out);
        o->bytes = known_add(o->bytes, size_of(out, x->type));
    } else {
        o->bytes = -1;
    }
}

/* Returns the elements of what the inputs broadcast to; -1 if they do not. */
static int64_t broadcast(const struct call *c) {
    int64_t d[OP_DIMS_MAX], out = 1;
    int rank = 0;
    bool any = false;
    for (int i = 0; i < OP_DIMS_MAX; i++) d[i] = 1;
    for (int i = 0; i < c->in->n; i++) {
        const struct op_input *x = input(c, i);
        if (x->n < 0) return -1;
        /* it is no tensor; or an empty one, given to hold what comes out */
        if (x->numel == 0) continue;
        any = true;
        for (int k = 0; k < x->n; k++)
            if (x->d[x->n - 1 - k] != 1) d[k] = x->d[x->n - 1 - k];
        if (x->n > rank) rank = x->n;
    }
    for (int i = 0; i < rank; i++) out = known_mul(out, d[i]);
    return any ? out : -1;
}

/* Returns the widest type of the inputs, the usual type of what comes out. */
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
    o->flops = known_mul(c->r->ops, n);
    int64_t out = c->r->out_bytes ? known_mul(n, c->r->out_bytes)
                                  : size_of(n, o->type);
    o->bytes = known_add(all_bytes(c), out);
}

static void each(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, c->r->first);
    o->type = x->type;
    if (x->n < 0 || x->numel <= 0) return;
    o->flops = known_mul(c->r->ops, x->numel);
    o->bytes = known_add(all_bytes(c),
                         known_mul(c->r->outputs,
                                   bytes_of_input(c, c->r->first)));
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
    int n = op_inputs_ints(c->in, c->r->axes, axis, OP_DIMS_MAX);
    int64_t out = n ? x->numel : 1;
    for (int i = 0; i < n; i++) {
        int64_t k = axis[i] < 0 ? axis[i] + x->n : axis[i];
        if (k >= 0 && k < x->n && x->d[k] > 0) out /= x->d[k];
    }
    o->flops = known_mul(c->r->ops, x->numel);
    o->bytes = known_add(bytes_of_input(c, 0), size_of(out, x->type));
}

static void pool(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    int64_t k[OP_DIMS_MAX], stride[OP_DIMS_MAX], pad[OP_DIMS_MAX];
    o->type = x->type;
    if (x->n < 3 || !axes(c, 1, 2, 1, k) || !axes(c, 3, 2, 0, pad)) return;
    if (!axes(c, 2, 2, 1, stride)) memcpy(stride, k, sizeof k);
    int64_t out = product(x, 0, x->n - 2);
    for (int i = 0; i < 2; i++)
        out = known_mul(out,
                        side(x->d[x->n - 2 + i], k[i], pad[i], stride[i], 1));
    o->flops = known_mul(out, known_mul(k[0], k[1]));
    o->bytes = known_add(all_bytes(c), known_add(size_of(out, x->type),
                                                 size_of(out, DTYPE_INT64)));
}

/* Counts rows that an index picks: read and written once, and the index. */
static void picked(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0), *index = input(c, c->r->index);
    bool rows = c->r->formula == F_PICK;
    o->type = x->type;
    if (x->n < 1 || index->n < 0) return;
    int64_t width = rows ? product(x, 1, x->n) : 1, axis;
    if (rows && c->r->index == 2 && op_inputs_ints(c->in, 1, &axis, 1) == 1 &&
        axis >= 0 && axis < x->n && x->d[axis] > 0)
        width = x->numel / x->d[axis];
    int64_t out = size_of(known_mul(index->numel, width), x->type);
    o->bytes = known_add(known_mul(2, out), bytes_of_input(c, c->r->index));
    o->flops = o->bytes < 0 ? -1 : 0;
}

static void embedding_gradient(const struct call *c, struct op_cost *o) {
    const struct op_input *g = input(c, 0);
    int64_t rows;
    o->type = g->type;
    if (g->n < 1 || op_inputs_ints(c->in, 2, &rows, 1) != 1) return;
    o->flops = g->numel;
    int64_t out = size_of(known_mul(rows, g->d[g->n - 1]), g->type);
    o->bytes = known_add(all_bytes(c), out);
}

static void each_list(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    o->type = c->list;
    if (x->n != -1 || x->numel <= 0) return;
    o->flops = known_mul(c->r->ops, x->numel);
    o->bytes = known_add(all_bytes(c),
                         known_mul(c->r->outputs, bytes_of_input(c, 0)));
}

static void optimizer(const struct call *c, struct op_cost *o) {
    const struct op_input *x = input(c, 0);
    o->type = c->list;
    if (x->n != -1 || x->numel <= 0) return;
    o->flops = known_mul(c->r->ops, x->numel);
    o->bytes = 0;
    for (int i = 0; i < c->r->lists; i++) {
        int64_t b = bytes_of_input(c, i);
        if (i != 1) b = known_mul(2, b);
        o->bytes = known_add(o->bytes, b);
    }
}

static void cat(const struct call *c, struct op_cost *o) {
    o->type = c->list;
    if (input(c, 0)->n != -1) return; /* long lists are not recorded */
    o->bytes = known_mul(2, bytes_of_input(c, 0));
    o->flops = o->bytes < 0 ? -1 : 0;
}

static void all(const struct call *c, struct op_cost *o) {
    o->type = input(c, 0)->type;
    o->bytes = all_bytes(c);
}

/* clang-format off */
typedef void cost_formula(const struct call *c, struct op_cost *o);
static cost_formula *const formulas[] = {
    [F_GEMM] = gemm,              [F_LINEAR] = linear,
    [F_MV] = mv,                  [F_CONV] = conv,
    [F_CONV_T] = conv_transposed, [F_CONV_GRAD] = conv_gradient,
    [F_ATTN] = attention,         [F_ATTN_GRAD] = attention,
    [F_RNN] = rnn,                [F_RNN_GRAD] = rnn,
    [F_MAP] = map,                [F_EACH] = each,
    [F_MOVE] = move,              [F_REDUCE] = reduce,
    [F_POOL] = pool,              [F_PICK] = picked,
    [F_GATHER] = picked,          [F_EMBED_GRAD] = embedding_gradient,
    [F_EACH_LIST] = each_list,    [F_OPTIMIZER] = optimizer,
    [F_CAT] = cat,                [F_ALL] = all,
};
/* clang-format on */

void op_cost_from(const struct op_inputs *in, const struct cost_rule *r,
                  enum dtype list, struct op_cost *o) {
    const struct call c = {in, r, list};
    *o = (struct op_cost){.flops = -1, .bytes = -1, .parts = 1};
    o->matrix = op_cost_is_matrix(r);
    formulas[r->formula](&c, o);
    assert(o->flops >= -1 && o->bytes >= -1);
}

bool op_cost_of(const struct trace *t, row_id row, const struct cost_rule *r,
                enum dtype list, struct op_cost *out) {
    struct op_inputs in;
    if (!op_inputs_of(t, row, &in)) return false;
    op_cost_from(&in, r, list, out);
    return true;
}

/* torch counts a pointwise op once per element of its first input; a tensor of
 * no dimension has one element, a value that is no tensor has none. */
int64_t torch_flops_from(const struct op_inputs *in, uint8_t rule) {
    assert(rule > 0 && rule <= COUNT(rules));
    const struct cost_rule *r = &rules[rule - 1];
    const struct op_input *x = &in->v[0];
    struct op_cost c;
    if (r->formula == F_MAP)
        return in->n > 0 && x->n >= (x->numel == 0) ? x->numel : -1;
    op_cost_from(in, r, DTYPE_UNKNOWN, &c);
    return c.flops;
}

int64_t torch_flops_of(const struct trace *t, row_id row, uint8_t rule) {
    struct op_inputs in;
    return op_inputs_of(t, row, &in) ? torch_flops_from(&in, rule) : -1;
}
