/* SPDX-License-Identifier: Apache-2.0
 * The yardsticks; see yard.h. */
#include "yard.h"
#include "base/pb.h"
#include <pthread.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Returns a bit for each of 64 bytes that equals c. */
static inline uint64_t mask64(const uint8_t *p, char c) {
#ifdef __SSE2__
    __m128i v = _mm_set1_epi8(c);
    uint64_t m = 0;
    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        uint32_t k = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, v));
        m |= (uint64_t)k << (16 * i);
    }
    return m;
#else
    uint64_t m = 0;
    for (int i = 0; i < 64; i++) m |= (uint64_t)(p[i] == (uint8_t)c) << i;
    return m;
#endif
}

/* Returns what the digits at p spell, a dot skipped. */
static inline uint64_t digits(const uint8_t *p) {
    uint64_t v = 0;
    for (; (uint8_t)(*p - '0') < 10 || *p == '.'; p++)
        if (*p != '.') v = v * 10 + (uint64_t)(*p - '0');
    return v;
}

/* Is the string [from, to), which was just closed, a key, and which? */
static inline void string_seen(struct yard *y, const uint8_t *from,
                               const uint8_t *to) {
    if (to[1] != ':') return;
    y->keys++;
    size_t n = (size_t)(to - from);
    if (n == 2 && from[0] == 'p' && from[1] == 'h') y->events++;
    if ((n == 2 && from[0] == 't' && from[1] == 's') ||
        (n == 3 && from[0] == 'd' && from[1] == 'u' && from[2] == 'r')) {
        y->numbers++;
        y->sum += digits(to + 2 + (to[2] == ' '));
    }
}

/* Returns the quotes of 64 bytes that no backslash stands before. */
static inline uint64_t quotes(const uint8_t *p, uint64_t *carry) {
    uint64_t q = mask64(p, '"'), b = mask64(p, '\\');
    if ((b | *carry) == 0) return q;
    uint64_t escaped = *carry;
    *carry = 0;
    b &= ~escaped; /* an escaped backslash escapes nothing */
    while (b != 0) {
        uint64_t low = b & -b;
        b ^= low;
        if (low >> 63) *carry = 1;
        escaped |= low << 1;
        b &= ~(low << 1);
    }
    return q & ~escaped;
}

/* 64 readable bytes must follow b. */
static struct yard scan(struct bytes b) {
    struct yard y = {0};
    uint64_t carry = 0;
    const uint8_t *open = NULL, *end = b.p + b.n;
    for (const uint8_t *p = b.p; p < end; p += 64) {
        uint64_t q = quotes(p, &carry);
        if (end - p < 64) q &= (UINT64_C(1) << (end - p)) - 1;
        for (; q != 0; q &= q - 1) {
            const uint8_t *at = p + __builtin_ctzll(q);
            if (open == NULL) {
                open = at + 1;
                continue;
            }
            string_seen(&y, open, at);
            open = NULL;
        }
    }
    return y;
}

struct half {
    struct bytes b;
    struct yard y;
};

static void *scan_half(void *arg) {
    struct half *h = arg;
    h->y = scan(h->b);
    return NULL;
}

struct yard yard_json(struct bytes b, int threads) {
    const uint8_t *nl = memchr(b.p + b.n / 2, '\n', b.n - b.n / 2);
    if (threads < 2 || nl == NULL) return scan(b);
    size_t n = (size_t)(nl + 1 - b.p); /* no string holds a raw newline */
    struct half h = {.b = {nl + 1, b.n - n}};
    pthread_t t;
    if (pthread_create(&t, NULL, scan_half, &h) != 0) return scan(b);
    struct yard y = scan((struct bytes){b.p, n});
    pthread_join(t, NULL);
    y.events += h.y.events;
    y.keys += h.y.keys;
    y.numbers += h.y.numbers;
    y.sum += h.y.sum;
    return y;
}

enum level { SPACE, PLANE, LINE, EVENT, STAT };

/* The field that leads one level down. */
static const uint32_t child[] = {1, 3, 4, 4, 0};

static inline const uint8_t *varint(const uint8_t *p, const uint8_t *end,
                                    uint64_t *v) {
    if (end - p > 1 && p[0] >= 0x80 && p[1] < 0x80) {
        *v = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
        return p + 2;
    }
    return pb_varint(p, end, v);
}

static inline __attribute__((always_inline)) const uint8_t *
walk(const uint8_t *p, const uint8_t *end, enum level level, struct yard *y,
     const uint8_t *(*down)(const uint8_t *, const uint8_t *, struct yard *)) {
    while (p < end) {
        uint64_t tag, v;
        if ((p = varint(p, end, &tag)) == NULL) return NULL;
        y->keys++;
        switch (tag & 7) {
        case PB_FIXED64: p += 8; continue;
        case PB_FIXED32: p += 4; continue;
        case PB_VARINT:
        case PB_BYTES: break;
        default: return NULL;
        }
        if ((p = varint(p, end, &v)) == NULL) return NULL;
        y->sum += v;
        if ((tag & 7) == PB_VARINT) continue;
        if (v > (uint64_t)(end - p)) return NULL;
        if (tag >> 3 == child[level] && down(p, p + v, y) == NULL) return NULL;
        p += v;
    }
    return p > end ? NULL : p;
}

static const uint8_t *no_child(const uint8_t *p, const uint8_t *end,
                               struct yard *y) {
    (void)end, (void)y;
    return p;
}

static const uint8_t *stat(const uint8_t *p, const uint8_t *end,
                           struct yard *y) {
    y->numbers++;
    return walk(p, end, STAT, y, no_child);
}

static const uint8_t *event(const uint8_t *p, const uint8_t *end,
                            struct yard *y) {
    y->events++;
    return walk(p, end, EVENT, y, stat);
}

static const uint8_t *line(const uint8_t *p, const uint8_t *end,
                           struct yard *y) {
    return walk(p, end, LINE, y, event);
}

static const uint8_t *plane(const uint8_t *p, const uint8_t *end,
                            struct yard *y) {
    return walk(p, end, PLANE, y, line);
}

struct yard yard_xspace(struct bytes b) {
    struct yard y = {0};
    walk(b.p, b.p + b.n, SPACE, &y, plane);
    return y;
}

struct yard yard_touch(struct bytes b) {
    struct yard y = {0};
    for (size_t i = 0; i < b.n; i += 64) y.sum += b.p[i];
    return y;
}
