/* SPDX-License-Identifier: Apache-2.0
 * torch writes the values of an op's plain arguments as a list of strings,
 * "Concrete Inputs". The ops that make room take the size first, and the type
 * as the number of c10::ScalarType. */
#include "analyze/memory/mem_shape.h"

#include "analyze/shared/op_inputs.h"
#include "model/args.h"
#include "model/trace.h"

/* Which input is the size and which the type. */
static const struct maker {
    const char *op;
    int size, type;
} makers[] = {
    {"aten::empty", 0, 1},
    {"aten::empty_strided", 0, 2},
    {"aten::zeros", 0, 1},
    {"aten::ones", 0, 1},
    {"aten::rand", 0, 1},
    {"aten::randn", 0, 1},
    {"aten::full", 0, 2},
    {"aten::new_empty", 1, 2},
    {"aten::new_empty_strided", 1, 3},
    {"aten::new_zeros", 1, 2},
};

/* c10::ScalarType, by number: the name and the bytes of an element. */
static const struct scalar_type {
    const char *name;
    int bytes;
} dtypes[] = {
    {"uint8", 1},     {"int8", 1},      {"int16", 2},       {"int32", 4},
    {"int64", 8},     {"float16", 2},   {"float32", 4},     {"float64", 8},
    {"complex32", 4}, {"complex64", 8}, {"complex128", 16}, {"bool", 1},
    {"qint8", 1},     {"quint8", 1},    {"qint32", 4},      {"bfloat16", 2},
};

static const struct maker *maker_of(struct bytes op) {
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (bytes_eq(op, makers[i].op, strlen(makers[i].op))) return &makers[i];
    return NULL;
}

static const struct scalar_type *dtype_of(struct bytes number) {
    size_t v = 0;
    if (number.n == 0 || number.n > 2) return NULL;
    for (size_t i = 0; i < number.n; i++) {
        if (number.p[i] < '0' || number.p[i] > '9') return NULL;
        v = v * 10 + (size_t)(number.p[i] - '0');
    }
    return v < sizeof dtypes / sizeof *dtypes ? &dtypes[v] : NULL;
}

struct mem_shape mem_shape_from(struct bytes op, struct bytes concrete,
                                int64_t bytes) {
    struct mem_shape none = {{0}, NULL};
    const struct maker *m = maker_of(op);
    if (!m) return none;
    struct bytes dims = op_inputs_string(concrete, m->size);
    int64_t n = op_inputs_numel(dims), need;
    const struct scalar_type *d = dtype_of(op_inputs_string(concrete, m->type));
    if (n < 0 || __builtin_mul_overflow(n, d ? d->bytes : 1, &need) ||
        need > bytes)
        return none;
    return (struct mem_shape){dims, d ? d->name : NULL};
}

struct mem_shape mem_shape_of(const struct trace *t, uint32_t op,
                              int64_t bytes) {
    struct mem_shape none = {{0}, NULL};
    if (op == ROW_NONE) return none;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[op]);
    if (!maker_of(name)) return none;
    struct arg a = args_get(t, op, "Concrete Inputs");
    return a.type == ARG_JSON ? mem_shape_from(name, a.text, bytes) : none;
}
