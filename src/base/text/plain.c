/* SPDX-License-Identifier: Apache-2.0
 * The rule is a table of ranges, by Unicode 15: general categories Cc, Cf, Zl
 * and Zp, the default-ignorable characters, and the non-characters. */
#include "base/text/plain.h"

#include "base/array.h"
#include "base/text/utf8.h"
#include <string.h>

static const struct range {
    uint32_t lo, hi;
} hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},
    {0x34f, 0x34f},     {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0x3164, 0x3164},   {0xd800, 0xdfff},
    {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

size_t plain_take(const char *s, size_t n, uint32_t *code) {
    const uint8_t *p = (const uint8_t *)s;
    size_t k = utf8_len(p, n);
    if (k <= 1) {
        *code = k == 1 ? p[0] : PLAIN_BAD;
        return 1;
    }
    uint32_t c = p[0] & (0x7fu >> k);
    for (size_t i = 1; i < k; i++) c = c << 6 | (p[i] & 0x3f);
    *code = c;
    return k;
}

bool plain_char(uint32_t c) {
    if (c >= 0x20 && c < 0x7f) return true;
    /* the last two code points of every plane are no characters */
    if (c > 0x10ffff || (c & 0xfffe) == 0xfffe) return false;
    size_t i;
    BOUND(i, 0, COUNT(hidden), hidden[i].hi < c);
    return i == COUNT(hidden) || c < hidden[i].lo;
}

/* Is each of the eight bytes at s printable ASCII? Most of all text is. */
static bool eight_plain(const char *s) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t v;
    memcpy(&v, s, sizeof v);
    /* no top bit is set, no byte is below 0x20 or is 0x7f: no sum or difference
     * here borrows from the byte above where the first test holds */
    return ((v | (v + ones) | (v - 0x20 * ones)) & tops) == 0;
}

size_t plain_run(const char *s, size_t n) {
    size_t i = 0;
    while (n - i >= 8 && eight_plain(s + i)) i += 8;
    while (i < n && s[i] >= 0x20 && s[i] < 0x7f) i++;
    return i;
}

size_t plain_clean(char *s, size_t n, enum plain_kind kind) {
    size_t to = 0;
    for (size_t i = 0; i < n;) {
        size_t k = plain_run(s + i, n - i);
        if (k == 0) {
            uint32_t c;
            k = plain_take(s + i, n - i, &c);
            bool good = plain_char(c) && (c < 0x80 || kind != PLAIN_ASCII);
            if (kind != PLAIN_LINE)
                good |= c == '\n' || c == '\t' ||
                        (c == '\r' && i + k < n && s[i + k] == '\n');
            if (!good) {
                s[to++] = '?';
                i += k;
                continue;
            }
        }
        if (to != i) memmove(s + to, s + i, k);
        to += k;
        i += k;
    }
    return to;
}

size_t plain_whole(const char *s, size_t n) {
    if (n > 0 && s[n - 1] == '\r') return n - 1;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t c = (uint8_t)s[n - back];
        if (c < 0x80) break;
        if (c < 0xc0) continue; /* inside of a character */
        size_t need = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        return need > back ? n - back : n;
    }
    return n;
}

void plain_string(char *s) { s[plain_clean(s, strlen(s), PLAIN_LINE)] = '\0'; }
