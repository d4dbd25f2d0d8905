/* SPDX-License-Identifier: Apache-2.0
 * torch writes the values of an op's plain arguments as a list of strings,
 * "Concrete Inputs". The ops that make room take the size first, and the type
 * as the number of c10::ScalarType. */
#include "analyze/memory/mem_shape.h"

#include "base/text/json.h"
#include "model/args.h"
#include "model/trace.h"
#include "names/dtype.h"
#include "names/op_names.h"

/* The n-th string of a JSON list; empty when there is none. */
static struct bytes nth_string(struct bytes list, int n) {
    struct json j = json_reader(list);
    struct json_str s = {0};
    if (!json_enter(&j, '[')) return s.raw;
    for (int i = 0; json_item(&j); i++) {
        if (i == n)
            return json_peek(&j) == '"' && json_string(&j, &s)
                       ? s.raw
                       : (struct bytes){0};
        json_skip(&j);
    }
    return (struct bytes){0};
}

/* Elements of "[32, 3, 8]"; -1: no list of numbers, or too many. */
static int64_t elements(struct bytes dims) {
    int64_t all = 1, one = -1;
    if (dims.n < 2 || dims.p[0] != '[' || dims.p[dims.n - 1] != ']') return -1;
    for (size_t i = 1; i < dims.n; i++) {
        uint8_t c = dims.p[i];
        if (c >= '0' && c <= '9') {
            if (one < 0) one = 0;
            if (__builtin_mul_overflow(one, 10, &one) ||
                __builtin_add_overflow(one, c - '0', &one))
                return -1;
        } else if (c == ',' || c == ']') {
            if (one < 0) return dims.n == 2 ? 1 : -1;
            if (__builtin_mul_overflow(all, one, &all)) return -1;
            one = -1;
        } else if (c != ' ') {
            return -1;
        }
    }
    return all;
}

static enum dtype dtype_of(struct bytes number) {
    size_t v = 0;
    if (number.n == 0 || number.n > 2) return DTYPE_UNKNOWN;
    for (size_t i = 0; i < number.n; i++) {
        if (number.p[i] < '0' || number.p[i] > '9') return DTYPE_UNKNOWN;
        v = v * 10 + (size_t)(number.p[i] - '0');
    }
    return dtype_of_scalar_type(v);
}

struct mem_shape mem_shape_from(struct bytes op, struct bytes concrete,
                                int64_t bytes) {
    struct mem_shape none = {{0}, NULL};
    int size, type;
    if (!op_size_inputs(op, &size, &type)) return none;
    struct bytes dims = nth_string(concrete, size);
    int64_t n = elements(dims), need;
    enum dtype d = dtype_of(nth_string(concrete, type));
    if (n < 0 || __builtin_mul_overflow(n, d ? dtype_bits(d) / 8 : 1, &need) ||
        need > bytes)
        return none;
    return (struct mem_shape){dims, d ? dtype_name(d) : NULL};
}

struct mem_shape mem_shape_of(const struct trace *t, uint32_t op,
                              int64_t bytes) {
    struct mem_shape none = {{0}, NULL};
    if (op == ROW_NONE) return none;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[op]);
    int size, type;
    if (!op_size_inputs(name, &size, &type)) return none;
    struct arg a = args_get(t, op, "Concrete Inputs");
    return a.type == ARG_JSON ? mem_shape_from(name, a.text, bytes) : none;
}
