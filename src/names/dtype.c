/* SPDX-License-Identifier: Apache-2.0
 * Data types by name. torch writes C++'s names of element types, in the
 * spelling of the compiler that built it. */
#include "names/dtype.h"

#include <assert.h>
#include <stddef.h>

static const struct {
    const char *name;
    int bits;
} types[DTYPE_N] = {
    [DTYPE_UNKNOWN] = {"", 0},
    [DTYPE_FP64] = {"fp64", 64},
    [DTYPE_FP32] = {"fp32", 32},
    [DTYPE_TF32] = {"tf32", 32},
    [DTYPE_FP16] = {"fp16", 16},
    [DTYPE_BF16] = {"bf16", 16},
    [DTYPE_FP8] = {"fp8", 8},
    [DTYPE_FP4] = {"fp4", 4},
    [DTYPE_INT8] = {"int8", 8},
    [DTYPE_INT64] = {"int64", 64},
    [DTYPE_INT32] = {"int32", 32},
    [DTYPE_INT16] = {"int16", 16},
    [DTYPE_BOOL] = {"bool", 8},
    [DTYPE_COMPLEX64] = {"complex64", 64},
    [DTYPE_COMPLEX128] = {"complex128", 128},
};

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

static const struct {
    const char *text;
    enum dtype type;
} torch_types[] = {
    {"float", DTYPE_FP32},
    {"c10::BFloat16", DTYPE_BF16},
    {"c10::Half", DTYPE_FP16},
    {"long int", DTYPE_INT64},
    {"long", DTYPE_INT64},
    {"int", DTYPE_INT32},
    {"double", DTYPE_FP64},
    {"bool", DTYPE_BOOL},
    {"unsigned char", DTYPE_INT8},
    {"signed char", DTYPE_INT8},
    {"char", DTYPE_INT8},
    {"short", DTYPE_INT16},
    {"short int", DTYPE_INT16},
    {"unsigned short", DTYPE_INT16},
    {"short unsigned int", DTYPE_INT16},
    {"unsigned int", DTYPE_INT32},
    {"unsigned long", DTYPE_INT64},
    {"long unsigned int", DTYPE_INT64},
    {"c10::complex<float>", DTYPE_COMPLEX64},
    {"c10::complex<double>", DTYPE_COMPLEX128},
    {"c10::complex<c10::Half>", DTYPE_INT32}, /* as large as one */
    {"c10::qint8", DTYPE_INT8},
    {"c10::quint8", DTYPE_INT8},
    {"c10::qint32", DTYPE_INT32},
};

enum dtype dtype_of_torch(struct bytes type) {
    for (size_t i = 0; i < sizeof torch_types / sizeof *torch_types; i++)
        if (bytes_eq(type, torch_types[i].text, strlen(torch_types[i].text)))
            return torch_types[i].type;
    /* c10::Float8_e4m3fn, c10::Float8_e5m2fnuz, c10::Float4_e2m1fn_x2, ... */
    if (BYTES_STARTS(type, "c10::Float8")) return DTYPE_FP8;
    if (BYTES_STARTS(type, "c10::Float4")) return DTYPE_INT8; /* a pair */
    return DTYPE_UNKNOWN;
}
