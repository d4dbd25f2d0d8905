/* SPDX-License-Identifier: Apache-2.0
 * TensorProto { 1 dtype, 2 tensor_shape, 4 tensor_content, and a list for each
 * family of types: 5 float, 6 double, 7 int, 8 string, 10 int64, 11 bool,
 * 13 half (bits, of half and bfloat16), 16 uint32, 17 uint64 }. Lists come
 * packed or one by one; content is the elements as they lie in memory. */
#include "scalars/tensor.h"

#include "base/pb.h"
#include "base/vec.h"
#include <math.h>
#include <stdlib.h>

/* enum DataType of TensorFlow. */
enum {
    DT_FLOAT = 1,
    DT_DOUBLE = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 5,
    DT_INT8 = 6,
    DT_STRING = 7,
    DT_INT64 = 9,
    DT_BOOL = 10,
    DT_BFLOAT16 = 14,
    DT_UINT16 = 17,
    DT_HALF = 19,
    DT_UINT32 = 22,
    DT_UINT64 = 23,
};

enum field {
    F_DTYPE = 1,
    F_SHAPE = 2,
    F_CONTENT = 4,
    F_FLOAT = 5,
    F_DOUBLE = 6,
    F_INT = 7,
    F_STRING = 8,
    F_INT64 = 10,
    F_BOOL = 11,
    F_HALF = 13,
    F_UINT32 = 16,
    F_UINT64 = 17,
};

void tensor_free(struct tensor *t) {
    free(t->v);
    *t = (struct tensor){0};
}

static void put(struct tensor *t, double v) {
    if (t->n >= TENSOR_VALUES_MAX) return;
    if (!VEC_ROOM(t->v, t->n, t->cap)) t->oom = true;
    else t->v[t->n++] = v;
}

static double float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
}

/* IEEE half: 1 sign, 5 exponent, 10 fraction. */
static double half_of(uint32_t bits) {
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent == 0
                   ? ldexp((double)fraction, -24)
                   : ldexp((double)(fraction + 1024), (int)exponent - 25);
    return bits & 0x8000 ? -v : v;
}

static double half_or_bfloat(const struct tensor *t, uint32_t bits) {
    return t->dtype == DT_BFLOAT16 ? float_of(bits << 16)
                                   : half_of(bits & 0xffff);
}

static size_t width_of(unsigned dtype) {
    switch (dtype) {
    case DT_DOUBLE:
    case DT_INT64:
    case DT_UINT64: return 8;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32: return 4;
    case DT_INT16:
    case DT_UINT16:
    case DT_HALF:
    case DT_BFLOAT16: return 2;
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL: return 1;
    default: return 0;
    }
}

/* One element of the content: w, its bytes as a number. */
static double element(const struct tensor *t, uint64_t w) {
    switch (t->dtype) {
    case DT_FLOAT: return float_of((uint32_t)w);
    case DT_DOUBLE: return pb_double(w);
    case DT_INT64: return (double)(int64_t)w;
    case DT_INT32: return (double)(int32_t)w;
    case DT_INT16: return (double)(int16_t)w;
    case DT_INT8: return (double)(int8_t)w;
    case DT_HALF:
    case DT_BFLOAT16: return half_or_bfloat(t, (uint32_t)w);
    default: return (double)w;
    }
}

static void read_content(struct tensor *t, struct bytes b) {
    size_t width = width_of(t->dtype);
    if (width == 0) return;
    for (; b.n >= width && t->n < TENSOR_VALUES_MAX; b.p += width) {
        uint64_t w = 0;
        memcpy(&w, b.p, width);
        put(t, element(t, w));
        b.n -= width;
    }
}

/* One number of a list, from its varint or fixed bits. */
static void put_listed(struct tensor *t, uint32_t field, uint64_t v) {
    switch (field) {
    case F_FLOAT: put(t, float_of((uint32_t)v)); break;
    case F_DOUBLE: put(t, pb_double(v)); break;
    case F_HALF: put(t, half_or_bfloat(t, (uint32_t)v)); break;
    case F_INT: put(t, (double)(int32_t)v); break;
    case F_INT64: put(t, (double)(int64_t)v); break;
    default: put(t, (double)v); break;
    }
}

/* A packed list: numbers without keys. False: it is cut. */
static bool read_packed(struct tensor *t, const struct pb_field *f) {
    const uint8_t *p = f->bytes.p, *end = p + f->bytes.n;
    size_t width = f->num == F_DOUBLE ? 8 : f->num == F_FLOAT ? 4 : 0;
    while (p < end && t->n < TENSOR_VALUES_MAX && !t->oom) {
        uint64_t v = 0;
        if (width == 0) {
            p = pb_varint(p, end, &v);
            if (p == NULL) return false;
        } else {
            if ((size_t)(end - p) < width) return false;
            memcpy(&v, p, width);
            p += width;
        }
        put_listed(t, f->num, v);
    }
    return true;
}

/* TensorShapeProto { 2 dim { 1 size }, 3 unknown_rank }. */
static bool read_shape(struct tensor *t, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f, size;
    while (pb_next(&r, &f)) {
        if (f.num != 2 || f.wire != PB_BYTES) continue;
        struct pb dim = pb_reader(f.bytes);
        uint64_t n = 0; /* a size of 0 is not written */
        while (pb_next(&dim, &size))
            if (size.num == 1 && size.wire == PB_VARINT) n = size.value;
        if (dim.bad) return false;
        if (t->ndims < TENSOR_DIMS) t->dims[t->ndims] = n;
        t->ndims++;
    }
    return !r.bad;
}

static bool read_field(struct tensor *t, const struct pb_field *f) {
    switch (f->num) {
    case F_DTYPE:
        if (f->wire != PB_VARINT) return false;
        t->dtype = (unsigned)f->value;
        t->is_text = t->dtype == DT_STRING;
        return true;
    case F_SHAPE: return f->wire == PB_BYTES && read_shape(t, f->bytes);
    case F_STRING:
        if (f->wire != PB_BYTES) return false;
        if (t->ntexts++ == 0) t->text = f->bytes;
        return true;
    case F_FLOAT:
    case F_DOUBLE:
    case F_INT:
    case F_INT64:
    case F_BOOL:
    case F_HALF:
    case F_UINT32:
    case F_UINT64:
        if (f->wire == PB_BYTES) return read_packed(t, f);
        put_listed(t, f->num, f->value);
        return true;
    default: return true;
    }
}

bool tensor_read(struct tensor *t, struct bytes b) {
    struct bytes content = {b.p, 0};
    struct pb r = pb_reader(b);
    struct pb_field f;
    *t = (struct tensor){.v = t->v, .cap = t->cap};
    while (pb_next(&r, &f)) {
        if (f.num == F_CONTENT && f.wire == PB_BYTES) content = f.bytes;
        else if (!read_field(t, &f)) return false;
    }
    if (r.bad || t->oom) return false;
    if (content.n > 0) {
        t->n = 0;
        read_content(t, content); /* the type may stand behind it */
    }
    if (t->is_text) return true;
    if (width_of(t->dtype) == 0) return false;
    bool empty = false;
    for (unsigned i = 0; i < t->ndims && i < TENSOR_DIMS; i++)
        empty |= t->dims[i] == 0;
    if (t->n == 0 && !empty) put(t, 0); /* zeros need not be written */
    return !t->oom;
}
