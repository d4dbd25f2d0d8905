/* SPDX-License-Identifier: Apache-2.0
 * A forgiving cursor over JSON that torch wrote: what cannot be read is left
 * out, and nothing is ever read past the end. */
#include "analyze/shared/op_inputs.h"

#include "base/sum.h"
#include "model/args.h"
#include <assert.h>

struct cur {
    const uint8_t *p, *end;
};

static struct cur cur_of(struct bytes b) {
    return (struct cur){b.p, b.n ? b.p + b.n : b.p};
}

static int peek(struct cur *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == ',' || *c->p == '\n'))
        c->p++;
    return c->p < c->end ? *c->p : -1;
}

/* Reads a number of at most 18 digits. Returns false if there is none. */
static bool number(struct cur *c, int64_t *out) {
    int64_t v = 0;
    int digits = 0;
    bool minus = peek(c) == '-';
    if (minus) c->p++;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (++digits <= 18) v = v * 10 + (*c->p - '0');
    *out = minus ? -v : v;
    return digits > 0 && digits <= 18;
}

/* Reads a plain shape at "[". Returns false if it is none. */
static bool read_plain(struct cur *c, struct op_input *in) {
    struct cur at = *c;
    *in = (struct op_input){.numel = 1};
    at.p++;
    while (peek(&at) != ']') {
        int64_t v;
        if (!number(&at, &v) || v < 0 || in->n == OP_DIMS_MAX) return false;
        in->numel = known_mul(in->numel, v);
        in->d[in->n++] = v;
    }
    at.p++;
    *c = at;
    return true;
}

/* Reads a list of shapes at "[[": their sizes together. */
static void read_list(struct cur *c, struct op_input *in) {
    struct cur at = *c;
    struct op_input one;
    *in = (struct op_input){.n = -1};
    at.p++;
    while (peek(&at) == '[' && read_plain(&at, &one)) {
        in->numel = known_add(in->numel, one.numel);
        if (one.n >= 2) in->matrices = known_add(in->matrices, one.numel);
    }
    if (peek(&at) != ']') in->numel = in->matrices = -1;
    for (int depth = 0; c->p < c->end;) { /* steps over all of the list */
        uint8_t ch = *c->p++;
        if (ch == '[') depth++;
        if (ch == ']' && --depth <= 0) return;
    }
}

/* Reads a string at its quote. Returns false if there is none. */
static bool read_string(struct cur *c, struct bytes *out) {
    if (peek(c) != '"') return false;
    const uint8_t *from = ++c->p;
    while (c->p < c->end && *c->p != '"') c->p += *c->p == '\\' ? 2 : 1;
    if (c->p >= c->end) return false;
    *out = (struct bytes){from, (size_t)(c->p++ - from)};
    return true;
}

struct bytes op_inputs_string(struct bytes list, int i) {
    struct cur c = cur_of(list);
    struct bytes s;
    if (peek(&c) != '[') return (struct bytes){0};
    c.p++;
    for (int k = 0; read_string(&c, &s); k++)
        if (k == i) return s;
    return (struct bytes){0};
}

int64_t op_inputs_numel(struct bytes dims) {
    struct cur c = cur_of(dims);
    struct op_input in;
    if (peek(&c) != '[' || !read_plain(&c, &in) || c.p != c.end) return -1;
    return in.numel;
}

void op_inputs_from(struct bytes dims, struct bytes types,
                    struct bytes concrete, struct op_inputs *out) {
    struct cur c = cur_of(dims);
    out->n = 0;
    out->concrete = concrete;
    if (peek(&c) != '[') return;
    c.p++;
    while (out->n < OP_INPUTS_MAX && peek(&c) == '[') {
        struct op_input *in = &out->v[out->n++];
        if (!read_plain(&c, in)) read_list(&c, in);
    }
    c = cur_of(types);
    struct bytes type;
    if (peek(&c) == '[') c.p++;
    for (int k = 0; k < out->n && read_string(&c, &type); k++)
        out->v[k].type = dtype_of_torch(type);
    /* "[]" is a scalar, no input at all, or a tensor of no dimension */
    for (int i = 0; i < out->n; i++)
        if (out->v[i].n == 0 && out->v[i].type == DTYPE_UNKNOWN)
            out->v[i].numel = 0;
}

struct wanted {
    struct bytes dims, types, concrete;
};

static bool pick(void *ctx, struct bytes key, const struct arg *a) {
    struct wanted *w = ctx;
    if (BYTES_IS(key, "Input Dims") || BYTES_IS(key, "Input dims"))
        w->dims = a->text;
    else if (BYTES_IS(key, "Input type")) w->types = a->text;
    else if (BYTES_IS(key, "Concrete Inputs")) w->concrete = a->text;
    return w->dims.n == 0 || w->types.n == 0 || w->concrete.n == 0;
}

bool op_inputs_of(const struct trace *t, row_id row, struct op_inputs *out) {
    struct wanted w = {0};
    args_each(t, row, pick, &w);
    if (w.dims.n == 0) return false;
    op_inputs_from(w.dims, w.types, w.concrete, out);
    return out->n > 0;
}

struct bytes op_inputs_text(const struct op_inputs *in, int i) {
    return op_inputs_string(in->concrete, i);
}

int op_inputs_ints(const struct op_inputs *in, int i, int64_t *v, int max) {
    struct cur c = cur_of(op_inputs_text(in, i));
    int n = 0;
    assert(max > 0);
    if (peek(&c) == '[') c.p++;
    while (n < max && number(&c, &v[n])) n++;
    return n;
}

bool op_inputs_true(const struct op_inputs *in, int i) {
    struct bytes b = op_inputs_text(in, i);
    return BYTES_IS(b, "True") || BYTES_IS(b, "true");
}
