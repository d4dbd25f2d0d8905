/* SPDX-License-Identifier: Apache-2.0
 * CRC32C (Castagnoli), as event files, TFRecords and iSCSI have it; and the
 * mask that TFRecord puts over it.
 *
 * Three ways to the same number: the processor's own instruction (SSE4.2, ARMv8
 * CRC; asked for at run time, by a test that costs a load), three chains of it
 * side by side for long data, because the instruction takes three cycles but
 * can start every cycle; and a table of 8 x 256 words where there is none.
 *
 * The surprise: the table is not listed. A CRC is linear, so an entry is the
 * xor of the entries for its bits, and those 64 words are all that is written
 * down: x^(32 + n) mod P for n = 0..63. The compiler makes the rest.
 *
 * libc only (the recorder uses it inside other people's programs). */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "words are taken as they lie in memory");

/* Makes entry i of a table whose entries for the bits 0 to 7 are a to h; the
 * macros below make 4, 16, 64 and 256 entries. */
#define CRC32C_1(i, a, b, c, d, e, f, g, h)                                    \
    (((i)&1 ? a : 0u) ^ ((i)&2 ? b : 0u) ^ ((i)&4 ? c : 0u) ^                  \
     ((i)&8 ? d : 0u) ^ ((i)&16 ? e : 0u) ^ ((i)&32 ? f : 0u) ^                \
     ((i)&64 ? g : 0u) ^ ((i)&128 ? h : 0u))
#define CRC32C_4(i, ...)                                                       \
    CRC32C_1(i, __VA_ARGS__), CRC32C_1((i) + 1, __VA_ARGS__),                  \
        CRC32C_1((i) + 2, __VA_ARGS__), CRC32C_1((i) + 3, __VA_ARGS__)
#define CRC32C_16(i, ...)                                                      \
    CRC32C_4(i, __VA_ARGS__), CRC32C_4((i) + 4, __VA_ARGS__),                  \
        CRC32C_4((i) + 8, __VA_ARGS__), CRC32C_4((i) + 12, __VA_ARGS__)
#define CRC32C_64(i, ...)                                                      \
    CRC32C_16(i, __VA_ARGS__), CRC32C_16((i) + 16, __VA_ARGS__),               \
        CRC32C_16((i) + 32, __VA_ARGS__), CRC32C_16((i) + 48, __VA_ARGS__)
#define CRC32C_256(...)                                                        \
    CRC32C_64(0, __VA_ARGS__), CRC32C_64(64, __VA_ARGS__),                     \
        CRC32C_64(128, __VA_ARGS__), CRC32C_64(192, __VA_ARGS__)

/* Entry [k][b] is what byte b does to the CRC with k bytes behind it. */
static const uint32_t crc32c_tables[8][256] = {
    {CRC32C_256(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu,
                0x20bd8edeu, 0x417b1dbcu, 0x82f63b78u)},
    {CRC32C_256(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u,
                0x7f8be302u, 0xff17c604u, 0xfbc3faf9u)},
    {CRC32C_256(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au,
                0xe144fb14u, 0xc76580d9u, 0x8b277743u)},
    {CRC32C_256(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du,
                0xd725148bu, 0xaba65fe7u, 0x52a0c93fu)},
    {CRC32C_256(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u,
                0x1ba8b557u, 0x37516aaeu, 0x6ea2d55cu)},
    {CRC32C_256(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu,
                0x85f4168du, 0x0e045bebu, 0x1c08b7d6u)},
    {CRC32C_256(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u,
                0x3d5b83bdu, 0x7ab7077au, 0xf56e0ef4u)},
    {CRC32C_256(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u,
                0x0d006599u, 0x1a00cb32u, 0x34019664u)},
};

/* Moves the register c on over p[0..n) by the tables alone. The register starts
 * as ~0 and is inverted at the end. */
static inline uint32_t crc32c_by_table(uint32_t c, const uint8_t *p, size_t n) {
    const uint32_t(*t)[256] = crc32c_tables;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= c;
        c = t[7][w & 255] ^ t[6][w >> 8 & 255] ^ t[5][w >> 16 & 255] ^
            t[4][w >> 24 & 255] ^ t[3][w >> 32 & 255] ^ t[2][w >> 40 & 255] ^
            t[1][w >> 48 & 255] ^ t[0][w >> 56];
    }
    for (; n > 0; p++, n--) c = c >> 8 ^ t[0][(c ^ *p) & 255];
    return c;
}

#if defined(__x86_64__) || defined(__aarch64__)

/* Does this processor have the instruction? */
static inline bool crc32c_has_hw(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("sse4.2");
#else
    return (getauxval(AT_HWCAP) & (1ul << 7)) != 0; /* HWCAP_CRC32 */
#endif
}

/* These move c on by eight bytes and by one. They are assembly, not intrinsics:
 * intrinsics can only be inlined into functions compiled for that processor. */
static inline uint32_t crc32c_word(uint32_t c, const uint8_t *p) {
    uint64_t w, r = c;
    memcpy(&w, p, 8);
#ifdef __x86_64__
    __asm__("crc32q %1, %0" : "+r"(r) : "rm"(w));
#else
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(r) : "r"(w));
#endif
    return (uint32_t)r;
}

static inline uint32_t crc32c_byte(uint32_t c, uint8_t b) {
#ifdef __x86_64__
    __asm__("crc32b %1, %0" : "+r"(c) : "rm"(b));
#else
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(c) : "r"(b));
#endif
    return c;
}

enum { CRC32C_LANE = 4096 }; /* bytes a chain takes before the three join */

/* Returns c moved on over one lane of zeros: c times x^(8 * 4096) mod P. This
 * takes 32 steps, once for each 6 KiB. */
static inline uint32_t crc32c_over_lane(uint32_t c) {
    uint32_t product = 0, x = 0x35d73a62; /* x^(8 * CRC32C_LANE) mod P */
    for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
        product ^= c & bit ? x : 0;
        x = x >> 1 ^ (x & 1 ? 0x82f63b78 : 0);
    }
    return product;
}

/* Does the same by the instruction; call it only where crc32c_has_hw(). */
static inline uint32_t crc32c_by_hw(uint32_t c, const uint8_t *p, size_t n) {
    for (; n >= 3 * CRC32C_LANE; p += 3 * CRC32C_LANE, n -= 3 * CRC32C_LANE) {
        uint32_t c1 = 0, c2 = 0;
        for (size_t i = 0; i < CRC32C_LANE; i += 8) {
            c = crc32c_word(c, p + i);
            c1 = crc32c_word(c1, p + CRC32C_LANE + i);
            c2 = crc32c_word(c2, p + 2 * CRC32C_LANE + i);
        }
        c = crc32c_over_lane(crc32c_over_lane(c) ^ c1) ^ c2;
    }
    for (; n >= 8; p += 8, n -= 8) c = crc32c_word(c, p);
    for (; n > 0; p++, n--) c = crc32c_byte(c, *p);
    return c;
}

#else

static inline bool crc32c_has_hw(void) { return false; }

static inline uint32_t crc32c_by_hw(uint32_t c, const uint8_t *p, size_t n) {
    return crc32c_by_table(c, p, n);
}

#endif

/* Returns the CRC of some bytes followed by p[0..n); crc is the CRC of those
 * bytes, 0 for none. */
static inline uint32_t crc32c_more(uint32_t crc, const void *p, size_t n) {
    return ~(crc32c_has_hw() ? crc32c_by_hw(~crc, p, n)
                             : crc32c_by_table(~crc, p, n));
}

/* Returns the CRC of p[0..n). */
static inline uint32_t crc32c(const void *p, size_t n) {
    return crc32c_more(0, p, n);
}

/* Returns the CRC as TFRecord stores it, so that a CRC of data that holds CRCs
 * stays sound. */
static inline uint32_t crc32c_mask(uint32_t crc) {
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static inline uint32_t crc32c_unmask(uint32_t masked) {
    uint32_t rot = masked - 0xa282ead8u;
    return rot >> 17 | rot << 15;
}

#undef CRC32C_1
#undef CRC32C_4
#undef CRC32C_16
#undef CRC32C_64
#undef CRC32C_256

#endif
