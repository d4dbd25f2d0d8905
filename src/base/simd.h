/* SPDX-License-Identifier: Apache-2.0
 * The two vector primitives that the JSON reader stands on: which of the next
 * 16 or 64 bytes equal c, as bits. SSE2 is part of x86-64; elsewhere plain C
 * does the same, slower. Callers may read 64 bytes past the end of their data:
 * files are mapped so (see file.h). */
#ifndef BASE_SIMD_H
#define BASE_SIMD_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

static inline uint32_t simd_eq16(const uint8_t *p, uint8_t c) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    __m128i k = _mm_set1_epi8((char)c);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, k));
}

/* Which of 16 bytes end or change a string: a quote, a backslash. */
static inline uint32_t simd_quote16(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    __m128i q = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i b = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(q, b));
}

static inline uint64_t simd_eq64(const uint8_t *p, uint8_t c) {
    return (uint64_t)simd_eq16(p, c) | (uint64_t)simd_eq16(p + 16, c) << 16 |
           (uint64_t)simd_eq16(p + 32, c) << 32 |
           (uint64_t)simd_eq16(p + 48, c) << 48;
}
#else
static inline uint32_t simd_eq16(const uint8_t *p, uint8_t c) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < 16; i++) bits |= (uint32_t)(p[i] == c) << i;
    return bits;
}

static inline uint32_t simd_quote16(const uint8_t *p) {
    return simd_eq16(p, '"') | simd_eq16(p, '\\');
}

static inline uint64_t simd_eq64(const uint8_t *p, uint8_t c) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < 64; i++) bits |= (uint64_t)(p[i] == c) << i;
    return bits;
}
#endif

/* Bit i of the result is the xor of bits 0..i: between an odd quote and the
 * next one all bits are set. */
static inline uint64_t simd_prefix_xor(uint64_t x) {
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

#endif
