/* SPDX-License-Identifier: Apache-2.0
 * torch writes shapes as JSON lists in the arguments of an op: "Input Dims" is
 * a list with one list of sizes per input, empty for what is no tensor (and
 * for a tensor of no dimension: the type tells them apart); "Concrete Inputs"
 * is a list of strings, "[1, 1]" for a list of numbers. */
#include "analyze/flops.h"
#include "model/args.h"

enum { MAX_INPUTS = 8, MAX_DIMS = 8 };

struct shape {
    int n; /* -1: not a plain tensor shape (a list of tensors) */
    int64_t d[MAX_DIMS];
};

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

/* A cursor over text; every reader stops at the end. */
struct cur {
    const uint8_t *p, *end;
};

static struct cur cur_of(struct bytes b) {
    return (struct cur){b.p, b.n ? b.p + b.n : b.p};
}

static int peek(struct cur *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == ',')) c->p++;
    return c->p < c->end ? *c->p : -1;
}

/* A number of at most 18 digits; -1: something else stands here. */
static int64_t number(struct cur *c) {
    int64_t v = 0;
    int digits = 0;
    peek(c);
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (++digits <= 18) v = v * 10 + (*c->p - '0');
    return digits > 0 && digits <= 18 ? v : -1;
}

/* Steps over one list with all that is in it. */
static void skip_list(struct cur *c) {
    int depth = 0;
    for (; c->p < c->end; c->p++) {
        if (*c->p == '[') depth++;
        if (*c->p == ']' && --depth <= 0) {
            c->p++;
            return;
        }
    }
}

/* One list of numbers; anything else in it makes n -1. */
static struct shape shape_read(struct cur *c) {
    struct shape s = {0};
    struct cur start = *c;
    c->p++;
    while (peek(c) != ']') {
        int64_t v = number(c);
        if (v < 0 || s.n == MAX_DIMS) {
            *c = start;
            skip_list(c);
            s.n = -1;
            return s;
        }
        s.d[s.n++] = v;
    }
    c->p++;
    return s;
}

/* The shapes of the inputs; returns how many. */
static int shapes_read(struct bytes dims, struct shape *v) {
    struct cur c = cur_of(dims);
    int n = 0;
    if (peek(&c) != '[') return 0;
    c.p++;
    while (n < MAX_INPUTS && peek(&c) == '[') v[n++] = shape_read(&c);
    return n;
}

/* The i-th string of a JSON list of strings. */
static struct bytes string_at(struct bytes list, int i) {
    struct cur c = cur_of(list);
    if (peek(&c) != '[') return (struct bytes){0};
    c.p++;
    for (int k = 0; peek(&c) == '"'; k++) {
        const uint8_t *from = ++c.p;
        while (c.p < c.end && *c.p != '"') c.p += *c.p == '\\' ? 2 : 1;
        if (c.p >= c.end) break;
        if (k == i) return (struct bytes){from, (size_t)(c.p - from)};
        c.p++;
    }
    return (struct bytes){0};
}

/* The first two numbers of "[2, 2]"; a single one stands for both. */
static bool pair_at(struct bytes list, int i, int64_t out[2]) {
    struct cur c = cur_of(string_at(list, i));
    if (peek(&c) == '[') c.p++;
    out[0] = number(&c);
    if (out[0] < 0) return false;
    out[1] = number(&c);
    if (out[1] < 0) out[1] = out[0];
    return true;
}

/* v * by, -1 once it no longer fits. */
static int64_t times(int64_t v, int64_t by) {
    int64_t out;
    if (v < 0 || __builtin_mul_overflow(v, by, &out)) return -1;
    return out;
}

static int64_t product(int64_t v, const struct shape *s, int from, int to) {
    for (int i = from; i < to; i++) v = times(v, s->d[i]);
    return v;
}

static int64_t gemm(const struct shape *a, const struct shape *b, int rank) {
    if (a->n != rank || b->n != rank) return -1;
    /* 2 x rows of a x columns of b x shared side x batch */
    return product(product(2, a, 0, rank), b, rank - 1, rank);
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
static int64_t conv2d(const struct shape *x, const struct shape *w,
                      struct bytes concrete) {
    int64_t stride[2], pad[2], dilation[2], groups[2], out[2];
    if (x->n != 4 || w->n != 4) return -1;
    if (!pair_at(concrete, 3, stride) || !pair_at(concrete, 4, pad) ||
        !pair_at(concrete, 5, dilation) || !pair_at(concrete, 6, groups))
        return -1;
    if (groups[0] < 1) return -1;
    for (int i = 0; i < 2; i++) {
        out[i] = conv_side(x->d[2 + i], w->d[2 + i], pad[i], stride[i],
                           dilation[i]);
        if (out[i] < 0) return -1;
    }
    int64_t v = times(times(times(2, x->d[0]), out[0]), out[1]);
    v = times(times(times(v, w->d[2]), w->d[3]), x->d[1]);
    v = times(v, w->d[0]);
    return v < 0 ? -1 : v / groups[0];
}

static int64_t pointwise(const struct shape *x, struct bytes types) {
    if (x->n < 0) return -1;
    if (x->n > 0) return product(1, x, 0, x->n);
    struct bytes type = string_at(types, 0);
    bool tensor = type.n > 0 && !BYTES_STARTS(type, "Scalar");
    return tensor ? 1 : -1;
}

int64_t flops_from(enum flops_rule rule, struct bytes dims, struct bytes types,
                   struct bytes concrete) {
    struct shape in[MAX_INPUTS];
    int n = shapes_read(dims, in);
    bool add = rule == FLOPS_ADD_GEMM || rule == FLOPS_ADD_BATCH;
    int first = add ? 1 : 0;
    if (n < (rule == FLOPS_POINTWISE ? 1 : first + 2)) return -1;
    switch (rule) {
    case FLOPS_CONV2D: return conv2d(&in[0], &in[1], concrete);
    case FLOPS_GEMM:
    case FLOPS_ADD_GEMM: return gemm(&in[first], &in[first + 1], 2);
    case FLOPS_BATCH:
    case FLOPS_ADD_BATCH: return gemm(&in[first], &in[first + 1], 3);
    case FLOPS_POINTWISE: return pointwise(&in[0], types);
    default: return -1;
    }
}

struct wanted {
    struct bytes dims, types, concrete;
};

static bool pick(void *ctx, struct bytes key, const struct arg *a) {
    struct wanted *w = ctx;
    if (BYTES_IS(key, "Input Dims") || BYTES_IS(key, "Input dims"))
        w->dims = a->text;
    else if (BYTES_IS(key, "Input type"))
        w->types = a->text;
    else if (BYTES_IS(key, "Concrete Inputs"))
        w->concrete = a->text;
    return w->dims.n == 0 || w->types.n == 0 || w->concrete.n == 0;
}

int64_t flops_of(const struct trace *t, row_id row, enum flops_rule rule) {
    struct wanted w = {0};
    args_each(t, row, pick, &w);
    if (w.dims.n == 0) return -1;
    return flops_from(rule, w.dims, w.types, w.concrete);
}
