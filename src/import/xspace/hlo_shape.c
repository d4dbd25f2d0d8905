/* SPDX-License-Identifier: Apache-2.0
 * Shapes of HLO:
 *
 *     ShapeProto { 2 element_type, 3 dimensions, 4 tuple_shapes, 5 layout }
 *
 * A tuple may hold tuples; how deep is bounded here, real programs have two or
 * three. */
#include "import/xspace/hlo.h"

#include "base/pb.h"
#include "base/sum.h"
#include "model/hlo/hlo.h"

#include <inttypes.h>
#include <stdio.h>

enum { DEEPEST = 16, TUPLE = 13 };

/* One array: its type and dimensions. */
struct array {
    uint8_t type;
    uint32_t ndims;
    int64_t dims[HLO_DIMS];
    bool tuple;
};

static void add_dim(struct array *a, uint64_t v) {
    if (a->ndims == HLO_DIMS) return;
    /* a dimension without a bound is written as the smallest number */
    a->dims[a->ndims++] = v > INT64_MAX ? 0 : (int64_t)v;
}

static void add_dims(struct array *a, const struct pb_field *f) {
    if (f->wire == PB_VARINT) add_dim(a, f->value);
    if (f->wire != PB_BYTES) return;
    const uint8_t *p = f->bytes.p, *end = p + f->bytes.n;
    uint64_t v;
    while (p != NULL && p < end && a->ndims < HLO_DIMS)
        if ((p = pb_varint(p, end, &v)) != NULL) add_dim(a, v);
}

/* Reads the shape itself, its parts not looked into. */
static struct array read_array(struct bytes shape) {
    struct array a = {0};
    struct pb r = pb_reader(shape);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.num == 2 && f.wire == PB_VARINT)
            a.type = f.value < DTYPE_HLO_N ? (uint8_t)f.value : 0;
        if (f.num == 3) add_dims(&a, &f);
        if (f.num == 4) a.tuple = true;
    }
    if (a.type == TUPLE) a.tuple = true;
    return a;
}

static void add_array(struct hlo_size *s, const struct array *a) {
    int64_t n = 1;
    for (uint32_t i = 0; i < a->ndims; i++) n = hlo_mul(n, a->dims[i]);
    int64_t bits = dtype_bits(dtype_of_hlo(a->type));
    if (bits == 0) n = 0;
    int64_t bytes = bits < 8 ? n / 8 * bits + (n % 8 * bits + 7) / 8
                             : hlo_mul(n, bits / 8);
    if (s->arrays++ == 0) {
        memcpy(s->dims, a->dims, sizeof s->dims);
        s->ndims = a->ndims;
        s->type = a->type;
        s->first_elements = n;
    }
    sat_inc(&s->elements, n);
    sat_inc(&s->bytes, bytes);
    s->last_bytes = bytes;
    s->last_type = a->type;
}

/* Parts of tuples that are still to be read. */
struct levels {
    struct pb r[DEEPEST];
    uint32_t n;
};

/* Walks a shape's arrays without recursion. For each array, and for each
 * bracket of a tuple ('(' and ')'), see() is called. */
static void walk(struct bytes shape, void *ctx,
                 void (*see)(void *ctx, char what, const struct array *a)) {
    struct levels l = {.n = 0};
    struct pb_field f = {.num = 4, .wire = PB_BYTES, .bytes = shape};
    for (;;) {
        if (f.num == 4 && f.wire == PB_BYTES) {
            struct array a = read_array(f.bytes);
            see(ctx, a.tuple ? '(' : 'a', &a);
            if (a.tuple && l.n < DEEPEST) l.r[l.n++] = pb_reader(f.bytes);
            else if (a.tuple) see(ctx, ')', NULL);
        }
        while (l.n > 0 && !pb_next(&l.r[l.n - 1], &f)) {
            see(ctx, ')', NULL);
            l.n--;
        }
        if (l.n == 0) return;
    }
}

static void see_size(void *ctx, char what, const struct array *a) {
    if (what == 'a') add_array(ctx, a);
}

struct hlo_size hlo_shape_size(struct bytes shape) {
    struct hlo_size s = {0};
    walk(shape, &s, see_size);
    return s;
}

struct text {
    char *out;
    size_t n, cap;
    bool comma; /* due before the next part */
};

static void put(struct text *t, const char *s) {
    while (*s && t->n + 1 < t->cap) t->out[t->n++] = *s++;
}

static void see_text(void *ctx, char what, const struct array *a) {
    struct text *t = ctx;
    char num[24];
    if (what != ')' && t->comma) put(t, ", ");
    t->comma = what != '(';
    if (what == '(') put(t, "(");
    if (what == ')') put(t, ")");
    if (what != 'a') return;
    put(t, dtype_hlo_spelling(a->type));
    if (dtype_of_hlo(a->type) == DTYPE_UNKNOWN) {
        put(t, "[]");
        return;
    }
    for (uint32_t i = 0; i < a->ndims; i++) {
        snprintf(num, sizeof num, "%c%" PRId64, i ? ',' : '[', a->dims[i]);
        put(t, num);
    }
    put(t, a->ndims ? "]" : "[]");
}

size_t hlo_shape_text(struct bytes shape, char *out, size_t cap) {
    struct text t = {out, 0, cap, false};
    walk(shape, &t, see_text);
    if (cap > 0) out[t.n] = 0;
    return t.n;
}
