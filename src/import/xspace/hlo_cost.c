/* SPDX-License-Identifier: Apache-2.0
 * What an HLO instruction costs, from its shapes.
 *
 * Arithmetic: 2 for each multiply-add of matrix work, 1 for each element of
 * elementwise work, whatever the operation. Bytes: what must be read and
 * written once if nothing is found in a cache: operands and outputs, of slices
 * only the part that is touched. A fusion computes what its body does and moves
 * what its parameters and outputs hold. The surprise: a call of cuBLAS or cuDNN
 * returns a tuple whose last part is the library's workspace, which is as large
 * as you like and hardly touched; it does not count. */
#include "import/xspace/hlo.h"

#include "base/array.h"
#include "base/pb.h"
#include "base/sum.h"
#include "model/hlo/hlo.h"
#include "model/trace_fill.h"
#include "names/pattern.h"

#include <stdlib.h>

/* The most frequent come first. What is missing here is HC_OTHER. */
/* clang-format off */
static const struct pattern opcodes[] = {
    {HC_FREE, NAMES("parameter", "get-tuple-element", "constant", "tuple",
        "bitcast", "add-dependency", "after-all", "domain",
        "get-dimension-size", "opt-barrier", "partition-id", "replica-id",
        "set-dimension-size")},
    {HC_FUSION, NAMES("fusion")},
    {HC_MOVE, NAMES("broadcast", "reshape", "transpose", "copy",
        "bitcast-convert", "concatenate", "copy-start", "dynamic-reshape",
        "iota", "pad", "reverse", "rng-bit-generator",
        "rng-get-and-update-state")},
    {HC_ELEM, NAMES("add", "multiply", "convert", "subtract", "select",
        "compare", "maximum", "divide", "abs", "and", "ceil", "clamp",
        "complex", "count-leading-zeros", "floor", "imag", "is-finite",
        "minimum", "negate", "not", "or", "popcnt", "real", "reduce-precision",
        "remainder", "round-nearest-afz", "round-nearest-even", "shift-left",
        "shift-right-arithmetic", "shift-right-logical", "sign",
        "stochastic-convert", "xor")},
    {HC_TRANS, NAMES("acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt",
        "cosh", "cosine", "erf", "exponential", "exponential-minus-one", "log",
        "log-plus-one", "logistic", "power", "rng", "rsqrt", "sine", "sinh",
        "sqrt", "tan", "tanh")},
    {HC_CUSTOM, NAMES("custom-call")},
    {HC_SLICE, NAMES("dynamic-slice", "gather", "slice")},
    {HC_UPDATE, NAMES("dynamic-update-slice")},
    {HC_DOT, NAMES("dot")},
    {HC_CONV, NAMES("convolution")},
    {HC_REDUCE, NAMES("reduce")},
    {HC_WINDOW, NAMES("reduce-window")},
    {HC_SCATTER, NAMES("scatter")},
    {HC_SORT, NAMES("sort", "topk")},
    {HC_MAP, NAMES("map")},
    {HC_CALL, NAMES("async-start", "call")},
    {HC_FLOW, NAMES("conditional", "while")},
    {HC_COMM, NAMES("all-gather", "all-gather-start", "all-reduce",
        "all-reduce-start", "all-to-all", "collective-broadcast",
        "collective-permute", "collective-permute-start", "ragged-all-to-all",
        "recv", "reduce-scatter", "send")},
    {HC_DONE, NAMES("all-gather-done", "all-reduce-done", "async-done",
        "async-update", "collective-permute-done", "copy-done", "recv-done",
        "send-done")},
};
/* clang-format on */

enum hlo_class hlo_class_of(struct bytes opcode) {
    return (enum hlo_class)pattern_first(opcodes, COUNT(opcodes), opcode,
                                         HC_OTHER);
}

static bool hlo_is_gemm(struct bytes target) {
    return BYTES_STARTS(target, "__cublas$") ||
           BYTES_STARTS(target, "__triton$gemm") ||
           BYTES_STARTS(target, "__cutlass$gemm") ||
           BYTES_IS(target, "__onednn$matmul");
}

static bool hlo_is_conv(struct bytes target) {
    return BYTES_STARTS(target, "__cudnn$conv") ||
           BYTES_IS(target, "__onednn$convolution");
}

bool hlo_is_library(const struct hlo_raw *i) {
    return i->class == HC_CUSTOM &&
           (hlo_is_gemm(i->target) || hlo_is_conv(i->target));
}

/* Returns the numbers of a repeated field, as bits: dimensions are few. */
static uint64_t read_dims(struct bytes b, uint32_t num) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    uint64_t bits = 0, v;
    while (pb_next(&r, &f)) {
        if (f.num != num) continue;
        if (f.wire == PB_VARINT && f.value < HLO_DIMS) bits |= 1u << f.value;
        if (f.wire != PB_BYTES) continue;
        const uint8_t *p = f.bytes.p, *end = p + f.bytes.n;
        while (p != NULL && p < end)
            if ((p = pb_varint(p, end, &v)) != NULL && v < HLO_DIMS)
                bits |= 1u << v;
    }
    return bits;
}

/* Returns the k-th number of a repeated field, or dflt. */
static int64_t read_dim(struct bytes b, uint32_t num, uint32_t k,
                        int64_t dflt) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    uint64_t v;
    while (pb_next(&r, &f)) {
        if (f.num != num) continue;
        if (f.wire == PB_VARINT && k-- == 0) return (int64_t)f.value;
        if (f.wire != PB_BYTES) continue;
        const uint8_t *p = f.bytes.p, *end = p + f.bytes.n;
        while (p != NULL && p < end)
            if ((p = pb_varint(p, end, &v)) != NULL && k-- == 0)
                return (int64_t)v;
    }
    return dflt;
}

static int64_t dims_product(const struct hlo_size *s, uint64_t which) {
    int64_t n = 1;
    for (uint32_t i = 0; i < s->ndims; i++)
        if (which >> i & 1) n = hlo_mul(n, s->dims[i]);
    return n;
}

static int64_t dim_at(const struct hlo_size *s, int64_t i) {
    return i >= 0 && i < (int64_t)s->ndims ? s->dims[i] : 1;
}

static void matrix_cost(struct hlo_raw *i, int64_t flops,
                        const struct hlo_size *lhs) {
    i->cost.flops = i->cost.matrix = flops;
    i->cost.math = lhs->type;
    /* Precision HIGH or HIGHEST (PrecisionConfig 1: a list of 0, 1, 2) of an
     * operand forbids TF32. */
    i->cost.full_f32 = (read_dims(i->precision, 1) & 6) != 0;
}

/* Reads the list of numbers behind "key": in JSON text, as bits. Returns false
 * if there is no such list. */
static bool config_dims(struct bytes text, const char *key, uint64_t *bits) {
    size_t n = strlen(key);
    const uint8_t *p = text.n ? memmem(text.p, text.n, key, n) : NULL;
    if (p == NULL) return false;
    const uint8_t *end = text.p + text.n;
    *bits = 0;
    for (p += n; p < end && *p != '[' && *p != ','; p++) continue;
    for (; p < end && *p != ']'; p++) {
        uint64_t v = 0;
        if (*p < '0' || *p > '9') continue;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            if (v < HLO_DIMS) v = v * 10 + (uint64_t)(*p - '0');
        if (v < HLO_DIMS) *bits |= 1u << v;
        p--;
    }
    return true;
}

/* Counts a product of matrices. Of cuBLAS the dimensions that are summed over
 * stand in the backend's configuration. */
static void dot_cost(const struct hlo_reader *r, struct hlo_raw *i) {
    const struct hlo_raw *lhs = hlo_operand(r, i, 0);
    uint64_t summed = read_dims(i->dot, 1);
    bool library = i->class == HC_CUSTOM;
    if (lhs == NULL ||
        (library &&
         !config_dims(i->config, "\"lhs_contracting_dimensions\"", &summed)))
        return;
    int64_t k = dims_product(&lhs->size, summed);
    matrix_cost(i, hlo_mul(hlo_mul(2, i->size.first_elements), k), &lhs->size);
    i->cost.full_f32 |= library && hlo_has(i->config, "\"HIGHEST\"");
}

/* One dimension of a window: WindowDimension { 1 size, 2 stride, 3 low, 4 high
 * padding, 5 window dilation, 6 base dilation }. */
struct window_dim {
    int64_t size, stride, low, window_dilation, base_dilation;
};

static struct window_dim window_at(struct bytes window, uint32_t k) {
    struct window_dim d = {1, 1, 0, 1, 1};
    struct pb r = pb_reader(window);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.num != 1 || f.wire != PB_BYTES || k-- != 0) continue;
        struct pb in = pb_reader(f.bytes);
        while (pb_next(&in, &f)) {
            if (f.wire != PB_VARINT) continue;
            int64_t v = (int64_t)f.value;
            if (f.num == 1) d.size = v;
            if (f.num == 2) d.stride = v;
            if (f.num == 3) d.low = v;
            if (f.num == 5) d.window_dilation = v;
            if (f.num == 6) d.base_dilation = v;
        }
        break;
    }
    return d;
}

/* Is every figure of a size that real windows have? */
static bool window_sane(const struct window_dim *d, int64_t in, int64_t out) {
    enum { MOST = 1 << 12, FAR = 1 << 24 };
    return d->size > 0 && d->size <= MOST && d->stride > 0 &&
           d->stride <= MOST && d->low > -FAR && d->low < FAR &&
           d->window_dilation > 0 && d->window_dilation <= MOST &&
           d->base_dilation > 0 && d->base_dilation <= MOST && in > 0 &&
           in <= FAR && out > 0 && out <= FAR;
}

/* Returns the least x for which a * x + b is a multiple of m, or -1; *every is
 * how far the next such x is. All are small (window_sane), a and m > 0. */
static int64_t first_multiple(int64_t a, int64_t b, int64_t m, int64_t *every) {
    int64_t gcd = a, rest = m;
    while (rest != 0) {
        int64_t next = gcd % rest;
        gcd = rest;
        rest = next;
    }
    *every = m / gcd;
    for (int64_t x = 0; x < *every; x++)
        if ((a * x + b) % m == 0) return x;
    return -1;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Returns how many pairs of an output place and a place in the window meet a
 * number of the input, and not the padding or a hole between its numbers: place
 * o and place k meet o * stride + k * window_dilation - low, which must lie in
 * the input and be a multiple of base_dilation. For each k these are every few
 * places of one range. */
static int64_t valid_pairs(const struct window_dim *d, int64_t in,
                           int64_t out) {
    int64_t n = 0, last = (in - 1) * d->base_dilation;
    for (int64_t k = 0; k < d->size; k++) {
        int64_t b = k * d->window_dilation - d->low, every;
        int64_t lo = -floor_div(b, d->stride); /* the first that is not < 0 */
        int64_t hi = floor_div(last - b, d->stride);
        if (lo < 0) lo = 0;
        if (hi > out - 1) hi = out - 1;
        if (lo > hi) continue;
        int64_t x = first_multiple(d->stride, lo * d->stride + b,
                                   d->base_dilation, &every);
        if (x >= 0 && lo + x <= hi) n += (hi - lo - x) / every + 1;
    }
    return n;
}

/* Counts a convolution. ConvolutionDimensionNumbers: 7 8 11 batch, feature and
 * spatial dimensions of the input, 3 4 6 of the kernel, 9 10 12 of the
 * output. */
static int64_t conv_flops(struct hlo_reader *r, const struct hlo_raw *i,
                          const struct hlo_size *in,
                          const struct hlo_size *kernel,
                          const struct hlo_size *out) {
    int64_t n = 2, spatial = out->ndims >= 2 ? (int64_t)out->ndims - 2 : 0;
    n = hlo_mul(n, dim_at(out, read_dim(i->conv, 9, 0, 0)));
    n = hlo_mul(n, dim_at(out, read_dim(i->conv, 10, 0, 0)));
    /* the kernel's input features are already those of one group */
    n = hlo_mul(n, dim_at(kernel, read_dim(i->conv, 3, 0, 0)));
    for (uint32_t k = 0; k < spatial; k++) {
        struct window_dim d = window_at(i->window, k);
        int64_t size = dim_at(in, read_dim(i->conv, 11, k, -1));
        int64_t places = dim_at(out, read_dim(i->conv, 12, k, -1));
        if (!window_sane(&d, size, places)) return -1;
        /* the places of the window, each with its walk over the holes */
        uint64_t steps = (uint64_t)(d.size * d.base_dilation);
        if (steps > r->steps) {
            trace_note(r->t, NOTE_WINDOW_SKIPPED, 1);
            return -1;
        }
        r->steps -= steps;
        n = hlo_mul(n, valid_pairs(&d, size, places));
    }
    if (i->batch_groups > 1) n /= i->batch_groups;
    return n;
}

static void conv_cost(struct hlo_reader *r, struct hlo_raw *i) {
    const struct hlo_raw *a = hlo_operand(r, i, 0), *b = hlo_operand(r, i, 1);
    if (a == NULL || b == NULL) return;
    const struct hlo_size *in = &a->size, *kernel = &b->size, *out = &i->size;
    /* cuDNN's gradients are described as the convolution that they undo */
    if (BYTES_IS(i->target, "__cudnn$convBackwardInput")) {
        in = &i->size;
        out = &a->size;
    } else if (BYTES_IS(i->target, "__cudnn$convBackwardFilter")) {
        kernel = &i->size;
        out = &b->size;
    }
    matrix_cost(i, conv_flops(r, i, in, kernel, out), &a->size);
}

/* Returns what one use of the function of a reduction costs; most are one
 * operation. */
static int64_t function_flops(const struct hlo_reader *r,
                              const struct hlo_raw *i) {
    const struct hlo_body *b = hlo_callee(r, i, 0);
    return b == NULL || b->cost.flops < 1 ? 1 : b->cost.flops;
}

static void window_cost(const struct hlo_reader *r, struct hlo_raw *i) {
    int64_t places = 1;
    for (uint32_t k = 0; k < i->size.ndims; k++) {
        struct window_dim d = window_at(i->window, k);
        places = hlo_mul(places, d.size);
    }
    i->cost.flops = hlo_mul(hlo_mul(i->size.first_elements, places - 1),
                            function_flops(r, i));
}

/* Counts n log n comparisons along the sorted dimension; the longest is as
 * good. */
static void sort_cost(struct hlo_raw *i) {
    int64_t longest = 1, log = 0;
    for (uint32_t k = 0; k < i->size.ndims; k++)
        if (i->size.dims[k] > longest) longest = i->size.dims[k];
    while (longest > 1) {
        longest -= longest / 2;
        log++;
    }
    i->cost.flops = hlo_mul(i->size.first_elements, log);
}

static void count_flops(struct hlo_reader *r, struct hlo_raw *i) {
    const struct hlo_body *b = hlo_callee(r, i, 0);
    const struct hlo_raw *o;
    int64_t n = i->size.first_elements;
    switch ((enum hlo_class)i->class) {
    case HC_FREE:
    case HC_MOVE:
    case HC_SLICE:
    case HC_UPDATE:
    case HC_DONE: i->cost.flops = 0; break;
    case HC_ELEM:
    case HC_TRANS: i->cost.flops = n; break;
    case HC_DOT: dot_cost(r, i); break;
    case HC_CONV: conv_cost(r, i); break;
    case HC_REDUCE:
        if ((o = hlo_operand(r, i, 0)) != NULL)
            i->cost.flops = hlo_mul(sat_sub(o->size.first_elements, n),
                                    function_flops(r, i));
        break;
    case HC_WINDOW: window_cost(r, i); break;
    case HC_SORT: sort_cost(i); break;
    case HC_MAP: i->cost.flops = hlo_mul(n, function_flops(r, i)); break;
    case HC_SCATTER:
        if ((o = hlo_operand(r, i, i->noperand - 1)) != NULL)
            i->cost.flops = hlo_mul(o->size.first_elements,
                                    function_flops(r, i));
        break;
    case HC_FUSION:
    case HC_CALL:
        if (b == NULL) break;
        i->cost = b->cost;
        i->cost.read = i->cost.written = -1; /* count_bytes() knows */
        break;
    case HC_CUSTOM:
        if (hlo_is_gemm(i->target)) dot_cost(r, i);
        else if (hlo_is_conv(i->target)) conv_cost(r, i);
        break;
    case HC_COMM:
    case HC_FLOW:
    case HC_OTHER: break;
    }
}

/* Returns the size of the output of a library call without its workspace. */
static int64_t output_bytes(const struct hlo_raw *i) {
    enum dtype last = dtype_of_hlo(i->size.last_type);
    if (hlo_is_library(i) && i->size.arrays > 1 &&
        (last == DTYPE_INT8 || last == DTYPE_UINT8))
        return i->size.bytes - i->size.last_bytes;
    return i->size.bytes;
}

/* Returns the size of the operands from that one on. */
static int64_t operands_bytes(const struct hlo_reader *r,
                              const struct hlo_raw *i, uint32_t from) {
    int64_t sum = 0;
    for (uint32_t k = from; k < i->noperand; k++) {
        const struct hlo_raw *o = hlo_operand(r, i, k);
        if (o != NULL) sat_inc(&sum, o->size.bytes);
    }
    return sum;
}

/* Returns how much of a parameter the body of a fusion reads: all, unless only
 * slices of it are taken, or it is only written into. */
static int64_t parameter_bytes(const struct hlo_reader *r, uint32_t p) {
    const struct hlo_raw *param = &r->raw[p];
    uint32_t from = r->first_user[p], end = r->first_user[p + 1];
    int64_t sum = 0;
    if (from == end) return 0;
    for (uint32_t k = from; k < end; k++) {
        const struct hlo_raw *u = &r->raw[r->users[k]];
        bool first = hlo_operand(r, u, 0) == param;
        if (u->class == HC_SLICE && first) sat_inc(&sum, u->size.bytes);
        else if (u->class != HC_UPDATE || !first) return param->size.bytes;
    }
    return sum < param->size.bytes ? sum : param->size.bytes;
}

/* Returns what the root of a fusion writes: an update in place writes the
 * update. */
static int64_t root_bytes(const struct hlo_reader *r, const struct hlo_raw *i) {
    const struct hlo_raw *update = hlo_operand(r, i, 1);
    if (i->class == HC_UPDATE && update != NULL) return update->size.bytes;
    return i->size.bytes;
}

void hlo_body_bytes(const struct hlo_reader *r, struct hlo_body *b) {
    int64_t read = 0, written = 0;
    for (uint32_t k = b->first; k < b->end; k++)
        if (BYTES_IS(r->raw[k].opcode, "parameter"))
            sat_inc(&read, parameter_bytes(r, k));
    if (b->root == MAP_NONE) {
        written = -1; /* only the fusion knows */
    } else if (BYTES_IS(r->raw[b->root].opcode, "tuple")) {
        const struct hlo_raw *root = &r->raw[b->root];
        for (uint32_t k = 0; k < root->noperand; k++) {
            const struct hlo_raw *o = hlo_operand(r, root, k);
            if (o != NULL) sat_inc(&written, root_bytes(r, o));
        }
    } else {
        written = root_bytes(r, &r->raw[b->root]);
    }
    b->cost.read = read;
    b->cost.written = written;
}

static void count_bytes(const struct hlo_reader *r, struct hlo_raw *i) {
    const struct hlo_raw *update = hlo_operand(r, i, 1);
    const struct hlo_body *b = hlo_callee(r, i, 0);
    switch ((enum hlo_class)i->class) {
    case HC_FREE:
    case HC_DONE: i->cost.read = i->cost.written = 0; break;
    case HC_SLICE:
        i->cost.written = i->size.bytes;
        i->cost.read = sat_add(i->size.bytes, operands_bytes(r, i, 1));
        break;
    case HC_UPDATE:
        if (update == NULL) break;
        i->cost.written = update->size.bytes;
        i->cost.read = operands_bytes(r, i, 1);
        break;
    case HC_FUSION:
        if (b == NULL) break;
        i->cost.read = b->cost.read;
        i->cost.written = b->cost.written >= 0 ? b->cost.written
                                               : i->size.bytes;
        break;
    case HC_FLOW:
    case HC_CALL: break;
    default:
        i->cost.read = operands_bytes(r, i, 0);
        i->cost.written = output_bytes(i);
    }
}

void hlo_cost_of(struct hlo_reader *r, struct hlo_raw *i) {
    i->cost = (struct hlo_cost){-1, -1, -1, 0, false, 0};
    count_flops(r, i);
    count_bytes(r, i);
    if (i->class == HC_CUSTOM && i->cost.flops < 0 && !hlo_is_library(i))
        i->cost.read = i->cost.written = -1;
}
