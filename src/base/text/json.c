/* SPDX-License-Identifier: Apache-2.0
 * JSON pull reader. Strings are searched 16 bytes at a time. Skipping looks at
 * 64 bytes at a time: quotes become bits, their running xor tells which bytes
 * lie inside strings, and of the rest only one kind of bracket matters. */
#include "base/text/json.h"

#include "base/array.h"
#include "base/text/utf8.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Return which of the next 16 or 64 bytes equal c, as bits. SSE2 is part of
 * x86-64; elsewhere plain C does the same, slower. They may read 64 bytes past
 * the end of the data: files are mapped so (file.h). */
#ifdef __SSE2__
static inline uint32_t simd_eq16(const uint8_t *p, uint8_t c) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    __m128i k = _mm_set1_epi8((char)c);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, k));
}

/* Returns which of 16 bytes end or change a string: a quote, a backslash. */
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

/* Returns x with bit i replaced by the xor of bits 0..i: between an odd quote
 * and the next one all bits are set. */
static inline uint64_t simd_prefix_xor(uint64_t x) {
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

/* Marks damage where the reader stands. Returns false. */
static bool damaged(struct json *j) {
    j->bad = true;
    return false;
}

bool json_string(struct json *j, struct json_str *out) {
    if (json_peek(j) != '"') return false;
    const uint8_t *start = ++j->p, *p = start;
    out->escaped = false;
    while (p < j->end) {
        uint32_t bits = simd_quote16(p);
        if (bits == 0) {
            p += 16;
            continue;
        }
        p += __builtin_ctz(bits);
        if (p >= j->end) break;
        if (*p == '"') {
            out->raw = (struct bytes){start, (size_t)(p - start)};
            j->p = p + 1;
            return true;
        }
        out->escaped = true;
        p += 2;
    }
    out->raw = (struct bytes){start, (size_t)(j->end - start)};
    j->p = j->end;
    return damaged(j);
}

bool json_key(struct json *j, struct json_str *key) {
    uint8_t c = json_peek(j);
    bool first = j->first;
    j->first = false;
    if (c == ',') {
        j->p++;
        c = json_peek(j);
        if (c == '}') j->mended++; /* trailing comma */
    } else if (c == '"' && !first) {
        j->mended++; /* no comma */
    }
    if (c == '}') {
        j->p++;
        return false;
    }
    if (!json_string(j, key)) return damaged(j);
    if (json_peek(j) != ':') return damaged(j);
    j->p++;
    return true;
}

bool json_item(struct json *j) {
    uint8_t c = json_peek(j);
    if (c != ',' && c != ']' && c != 0 && !j->first) j->mended++; /* no comma */
    j->first = false;
    while (c == ',') {
        j->p++;
        c = json_peek(j);
        if (c == ']' || c == ',') j->mended++;
    }
    if (c == ']') {
        j->p++;
        return false;
    }
    if (j->p >= j->end) return damaged(j);
    return true;
}

/* Passes over a bare word: null, true, NaN, N/A, -inf, ... */
static void skip_word(struct json *j) {
    const uint8_t *p = j->p;
    while (p<j->end && * p> ' ' && *p != ',' && *p != ']' && *p != '}' &&
           *p != ':' && *p != '"')
        p++;
    size_t n = (size_t)(p - j->p);
    struct bytes word = {j->p, n};
    if (!byte_is_digit(*j->p) && *j->p != '-' && !BYTES_IS(word, "null") &&
        !BYTES_IS(word, "true") && !BYTES_IS(word, "false"))
        j->mended++;
    if (n == 0) damaged(j);
    j->p = p;
}

/* Reads digits from p up to end onto *v; stops before 20 digits, which
 * overflow, and tells how many were read. Returns the place behind them. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end,
                                  uint64_t *v, int *count) {
    while (p < end && byte_is_digit(*p) && *count < 19) {
        *v = *v * 10 + (uint64_t)(*p++ - '0');
        ++*count;
    }
    return p;
}

/* Reads a number that is too long or has an exponent, by the C library. */
static struct json_num slow_number(struct bytes text) {
    char buf[64];
    struct json_num n = {.kind = JSON_NAN};
    size_t len = text.n < sizeof buf - 1 ? text.n : sizeof buf - 1;
    memcpy(buf, text.p, len);
    buf[len] = '\0';
    char *stop;
    n.f = strtod(buf, &stop);
    if (stop == buf || !isfinite(n.f)) return n;
    n.kind = JSON_FLOAT;
    return n;
}

/* Reads a number at p; *after becomes the place where it ends. */
static struct json_num parse_number(const uint8_t *p, const uint8_t *end,
                                    const uint8_t **after) {
    const uint8_t *start = p;
    struct json_num n = {.kind = JSON_EXACT};
    bool minus = p < end && *p == '-';
    if (minus || (p < end && *p == '+')) p++;
    uint64_t v = 0;
    int count = 0;
    p = read_digits(p, end, &v, &count);
    int whole = count;
    if (p < end && *p == '.') {
        p = read_digits(p + 1, end, &v, &count);
        n.scale = count - whole;
    }
    bool more = p < end && (byte_is_digit(*p) || *p == '.' || (*p | 32) == 'e');
    *after = p;
    if (count > 0 && !more && v <= INT64_MAX) {
        n.digits = minus ? -(int64_t)v : (int64_t)v;
        return n;
    }
    while (p < end && (byte_is_digit(*p) || *p == '.' || *p == '+' ||
                       *p == '-' || (*p | 32) == 'e'))
        p++;
    *after = p;
    if (count == 0) return (struct json_num){.kind = JSON_NAN};
    return slow_number((struct bytes){start, (size_t)(p - start)});
}

struct json_num json_number(struct json *j) {
    uint8_t c = json_peek(j);
    struct json_num n = {.kind = JSON_NAN};
    if (byte_is_digit(c) || c == '-' || c == '+') {
        const uint8_t *start = j->p;
        n = parse_number(j->p, j->end, &j->p);
        if (n.kind == JSON_NAN && j->p == start + 1) skip_word(j); /* -inf */
        return n;
    }
    struct json_str s;
    if (c != '"') {
        json_skip(j);
        return n;
    }
    if (!json_string(j, &s)) return n;
    const uint8_t *after, *stop = s.raw.p + s.raw.n;
    n = parse_number(s.raw.p, stop, &after);
    if (after != stop) n.kind = JSON_NAN;
    n.quoted = true;
    return n;
}

/* Which bracket opens and which closes the value that is skipped. Brackets of
 * the other kind come in pairs inside it and need not be looked at. */
struct pair {
    uint8_t open, close;
    uint64_t depth; /* open ones */
};

/* Skips byte by byte up to stop; used where a backslash makes the quick way
 * unsure. Ends behind the bracket that closes the last open one. */
static const uint8_t *skip_slow(const uint8_t *p, const uint8_t *stop,
                                bool *in_string, struct pair *b) {
    assert(b->depth > 0);
    for (; p < stop; p++) {
        if (*in_string) {
            if (*p == '\\') p++;
            else if (*p == '"') *in_string = false;
        } else if (*p == '"') {
            *in_string = true;
        } else if (*p == b->open) {
            b->depth++;
        } else if (*p == b->close && --b->depth == 0) {
            return p + 1;
        }
    }
    return p;
}

/* Skips a block of 64 bytes without a backslash; *inside is all ones when it
 * begins in a string. Returns where the last open bracket closes, or NULL. */
static const uint8_t *skip_block(const uint8_t *p, uint64_t *inside,
                                 struct pair *b) {
    assert(b->depth > 0);
    uint64_t in = simd_prefix_xor(simd_eq64(p, '"')) ^ *inside;
    uint64_t open = simd_eq64(p, b->open) & ~in;
    uint64_t close = simd_eq64(p, b->close) & ~in;
    *inside = (uint64_t)((int64_t)in >> 63);
    for (uint64_t bits = open | close; bits != 0; bits &= bits - 1) {
        int at = __builtin_ctzll(bits);
        if (open >> at & 1) b->depth++;
        else if (--b->depth == 0) return p + at + 1;
    }
    return NULL;
}

/* Moves behind the bracket that closes the one that was entered, or to j->end
 * and sets bad. */
static void skip_nested(struct json *j, uint8_t open, uint8_t close) {
    const uint8_t *p = j->p;
    struct pair b = {open, close, 1};
    uint64_t inside = 0;
    while (p < j->end) {
        if (simd_eq64(p, '\\') != 0) {
            bool in_string = inside != 0;
            const uint8_t *stop = p + 64 < j->end ? p + 64 : j->end;
            p = skip_slow(p, stop, &in_string, &b);
            if (b.depth == 0) break;
            inside = in_string ? UINT64_MAX : 0;
            continue;
        }
        const uint8_t *after = skip_block(p, &inside, &b);
        p = after ? after : p + 64;
        if (after) break;
    }
    if (b.depth != 0 || p > j->end) {
        p = j->end;
        damaged(j);
    }
    j->p = p;
}

void json_skip(struct json *j) {
    uint8_t c = json_peek(j);
    struct json_str s;
    if (c == '"') {
        json_string(j, &s);
    } else if (c == '{' || c == '[') {
        j->p++;
        skip_nested(j, c, c == '{' ? '}' : ']');
    } else if (j->p < j->end) {
        skip_word(j);
    } else {
        damaged(j);
    }
}

void json_skip_rest(struct json *j) { skip_nested(j, '{', '}'); }

/* Returns the value of four hex digits at p, or -1. */
static int hex4(const uint8_t *p, const uint8_t *end) {
    int v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i] | 32;
        int d = byte_is_digit(p[i])      ? p[i] - '0'
                : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                                         : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Reads \uXXXX at p (behind the u), pairs joined. Returns the bytes used. */
static size_t unescape_u(const uint8_t *p, const uint8_t *end, uint32_t *code,
                         uint64_t *mended) {
    int hi = hex4(p, end);
    *code = 0xfffd;
    if (hi < 0) {
        ++*mended;
        return 0;
    }
    *code = (uint32_t)hi;
    if (hi < 0xd800 || hi > 0xdfff) return 4;
    int lo = hi < 0xdc00 && end - p >= 6 && p[4] == '\\' && p[5] == 'u'
                 ? hex4(p + 6, end)
                 : -1;
    if (lo >= 0xdc00 && lo <= 0xdfff) {
        *code = 0x10000 + (((uint32_t)hi - 0xd800) << 10) +
                ((uint32_t)lo - 0xdc00);
        return 10;
    }
    ++*mended;
    *code = 0xfffd;
    return 4;
}

size_t json_unescape(struct bytes raw, uint8_t *out, uint64_t *mended) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t n = 0;
    const uint8_t *p = raw.p, *end = raw.p + raw.n;
    while (p < end) {
        if (*p != '\\' || p + 1 == end) {
            out[n++] = *p++;
            continue;
        }
        uint8_t c = p[1];
        p += 2;
        const char *known = c ? strchr(from, c) : NULL;
        if (known != NULL) {
            out[n++] = (uint8_t)to[known - from];
        } else if (c == 'u') {
            uint32_t code;
            uint8_t utf8[4];
            p += unescape_u(p, end, &code, mended);
            /* a whole escape has at least 6 bytes, so the encoding fits; a
             * broken one (2 bytes) becomes one '?' */
            size_t k = utf8_put(code, utf8);
            if (n + k > (size_t)(p - raw.p)) out[n++] = '?';
            else
                for (size_t i = 0; i < k; i++) out[n++] = utf8[i];
        } else {
            ++*mended;
            out[n++] = c;
        }
    }
    return n;
}

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

bool json_to_int(const struct json_num *n, int64_t *out) {
    if (n->kind == JSON_EXACT) {
        int64_t v = n->digits;
        for (int i = 0; i < n->scale; i++) v /= 10;
        *out = v;
        return true;
    }
    if (n->kind != JSON_FLOAT || n->f >= 9.2e18 || n->f <= -9.2e18)
        return false;
    *out = (int64_t)n->f;
    return true;
}

double json_to_double(const struct json_num *n) {
    assert(n->scale >= 0 && n->scale < (int)(COUNT(powers)));
    if (n->kind == JSON_EXACT) return (double)n->digits / powers[n->scale];
    return n->kind == JSON_FLOAT ? n->f : (double)NAN;
}
