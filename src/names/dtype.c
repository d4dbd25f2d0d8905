/* SPDX-License-Identifier: Apache-2.0
 * Data types by name and by number. torch writes C++'s names of element types,
 * in the spelling of the compiler that built it. */
#include "names/dtype.h"

#include "base/array.h"
#include "names/pattern.h"
#include <assert.h>
#include <ctype.h>

/* clang-format off */
static const struct {
    const char *name;
    int bits;
} types[DTYPE_N] = {
    [DTYPE_UNKNOWN] = {"", 0},
    [DTYPE_FP64] = {"fp64", 64},     [DTYPE_FP32] = {"fp32", 32},
    [DTYPE_TF32] = {"tf32", 32},     [DTYPE_FP16] = {"fp16", 16},
    [DTYPE_BF16] = {"bf16", 16},     [DTYPE_FP8] = {"fp8", 8},
    [DTYPE_FP4] = {"fp4", 4},        [DTYPE_INT8] = {"int8", 8},
    [DTYPE_UINT8] = {"uint8", 8},    [DTYPE_INT64] = {"int64", 64},
    [DTYPE_INT32] = {"int32", 32},   [DTYPE_INT16] = {"int16", 16},
    [DTYPE_INT4] = {"int4", 4},      [DTYPE_INT2] = {"int2", 2},
    [DTYPE_INT1] = {"int1", 1},      [DTYPE_UINT64] = {"uint64", 64},
    [DTYPE_UINT32] = {"uint32", 32}, [DTYPE_UINT16] = {"uint16", 16},
    [DTYPE_UINT4] = {"uint4", 4},    [DTYPE_UINT2] = {"uint2", 2},
    [DTYPE_UINT1] = {"uint1", 1},    [DTYPE_BOOL] = {"bool", 8},
    [DTYPE_COMPLEX32] = {"complex32", 32},
    [DTYPE_COMPLEX64] = {"complex64", 64},
    [DTYPE_COMPLEX128] = {"complex128", 128},
};

/* Spellings in small letters, without blanks, c10:: and DT_. The most frequent
 * come first. */
static const struct pattern spellings[] = {
    {DTYPE_FP32, NAMES("float", "float32", "f32", "fp32")},
    {DTYPE_BF16, NAMES("bfloat16", "bf16")},
    {DTYPE_FP16, NAMES("half", "float16", "f16", "fp16")},
    {DTYPE_INT64, NAMES("longint", "long", "longlong", "int64", "s64")},
    {DTYPE_INT32, NAMES("int", "int32", "s32", "qint32")},
    {DTYPE_FP64, NAMES("double", "float64", "f64", "fp64")},
    {DTYPE_BOOL, NAMES("bool", "pred")},
    {DTYPE_UINT8, NAMES("unsignedchar", "byte", "uint8", "u8", "quint8")},
    /* c10::Float4_e2m1fn_x2 is a pair in a byte */
    {DTYPE_INT8, NAMES("signedchar", "char", "int8", "s8", "qint8", "float4*")},
    {DTYPE_INT16, NAMES("short", "shortint", "int16", "s16")},
    {DTYPE_UINT16, NAMES("unsignedshort", "shortunsignedint", "uint16", "u16")},
    {DTYPE_UINT32, NAMES("unsignedint", "uint32", "u32")},
    {DTYPE_UINT64, NAMES("unsignedlong", "longunsignedint", "uint64", "u64")},
    /* c10::Float8_e4m3fn, f8e5m2 */
    {DTYPE_FP8, NAMES("float8*", "f8e*", "fp8")},
    {DTYPE_FP4, NAMES("f4e2m1fn", "fp4")},
    {DTYPE_COMPLEX32, NAMES("complex<c10::half>", "complex32")},
    {DTYPE_COMPLEX64, NAMES("complex<float>", "complexfloat", "complex64")},
    {DTYPE_COMPLEX128, NAMES("complex<double>", "complexdouble", "complex128")},
};

/* The numbers of pytorch's ScalarType.h; 16 to 22 hold packed bits. */
static const uint8_t scalar_types[] = {
    DTYPE_UINT8, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64, DTYPE_FP16,
    DTYPE_FP32, DTYPE_FP64, DTYPE_COMPLEX32, DTYPE_COMPLEX64, DTYPE_COMPLEX128,
    DTYPE_BOOL, DTYPE_INT8, DTYPE_UINT8, DTYPE_INT32, DTYPE_BF16,
    [23] = DTYPE_FP8,    [24] = DTYPE_FP8,       [25] = DTYPE_FP8,
    [26] = DTYPE_FP8,    [27] = DTYPE_UINT16,    [28] = DTYPE_UINT32,
    [29] = DTYPE_UINT64,
};

/* XLA's element types, by their numbers in PrimitiveType: how XLA writes them,
 * and what they are. */
static const struct {
    const char *spelling;
    uint8_t type;
} hlo_types[DTYPE_HLO_N] = {
    [1] = {"pred", DTYPE_BOOL}, [2] = {"s8", DTYPE_INT8},
    [3] = {"s16", DTYPE_INT16}, [4] = {"s32", DTYPE_INT32},
    [5] = {"s64", DTYPE_INT64}, [6] = {"u8", DTYPE_UINT8},
    [7] = {"u16", DTYPE_UINT16}, [8] = {"u32", DTYPE_UINT32},
    [9] = {"u64", DTYPE_UINT64}, [10] = {"f16", DTYPE_FP16},
    [11] = {"f32", DTYPE_FP32}, [12] = {"f64", DTYPE_FP64},
    [14] = {"opaque", DTYPE_UNKNOWN}, [15] = {"c64", DTYPE_COMPLEX64},
    [16] = {"bf16", DTYPE_BF16}, [17] = {"token", DTYPE_UNKNOWN},
    [18] = {"c128", DTYPE_COMPLEX128}, [19] = {"f8e5m2", DTYPE_FP8},
    [20] = {"f8e4m3fn", DTYPE_FP8}, [21] = {"s4", DTYPE_INT4},
    [22] = {"u4", DTYPE_UINT4}, [23] = {"f8e4m3b11fnuz", DTYPE_FP8},
    [24] = {"f8e5m2fnuz", DTYPE_FP8}, [25] = {"f8e4m3fnuz", DTYPE_FP8},
    [26] = {"s2", DTYPE_INT2}, [27] = {"u2", DTYPE_UINT2},
    [28] = {"f8e4m3", DTYPE_FP8}, [29] = {"f8e3m4", DTYPE_FP8},
    [30] = {"s1", DTYPE_INT1}, [31] = {"u1", DTYPE_UINT1},
    [32] = {"f4e2m1fn", DTYPE_FP4}, [33] = {"f8e8m0fnu", DTYPE_FP8},
};
/* clang-format on */

const char *dtype_name(enum dtype d) {
    assert(d < DTYPE_N);
    return types[d].name;
}

int dtype_bits(enum dtype d) {
    assert(d < DTYPE_N);
    return types[d].bits;
}

enum dtype dtype_by_name(struct bytes name) {
    for (int i = DTYPE_UNKNOWN + 1; i < DTYPE_N; i++)
        if (bytes_eq(name, types[i].name, strlen(types[i].name)))
            return (enum dtype)i;
    return DTYPE_UNKNOWN;
}

enum dtype dtype_of_any(struct bytes text) {
    uint8_t s[24];
    size_t n = 0, skip = BYTES_STARTS(text, "c10::") ? 5
                         : BYTES_STARTS(text, "DT_") ? 3
                                                     : 0;
    for (size_t i = skip; i < text.n; i++) {
        if (text.p[i] == ' ') continue;
        if (n == sizeof s) return DTYPE_UNKNOWN;
        s[n++] = (uint8_t)tolower(text.p[i]);
    }
    return (enum dtype)pattern_first(spellings, COUNT(spellings),
                                     (struct bytes){s, n}, DTYPE_UNKNOWN);
}

enum dtype dtype_of_torch(struct bytes type) {
    if (type.n == 0 || !islower(type.p[0])) return DTYPE_UNKNOWN;
    return dtype_of_any(type);
}

enum dtype dtype_of_scalar_type(size_t number) {
    return number < COUNT(scalar_types) ? (enum dtype)scalar_types[number]
                                        : DTYPE_UNKNOWN;
}

enum dtype dtype_of_hlo(size_t number) {
    return number < DTYPE_HLO_N ? (enum dtype)hlo_types[number].type
                                : DTYPE_UNKNOWN;
}

const char *dtype_hlo_spelling(size_t number) {
    const char *s = number < DTYPE_HLO_N ? hlo_types[number].spelling : NULL;
    return s != NULL ? s : "?";
}
