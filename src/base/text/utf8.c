/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 by the table of RFC 3629: no overlong forms, no surrogates. */
#include "base/text/utf8.h"

static bool tail(uint8_t b) { return (b & 0xc0) == 0x80; }

size_t utf8_len(const uint8_t *p, size_t n) {
    if (n == 0) return 0;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    if (p[0] < 0xe0) return n >= 2 && tail(p[1]) ? 2 : 0;
    if (p[0] < 0xf0) {
        if (n < 3 || !tail(p[1]) || !tail(p[2])) return 0;
        if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
        if (p[0] == 0xed && p[1] >= 0xa0) return 0;
        return 3;
    }
    if (n < 4 || !tail(p[1]) || !tail(p[2]) || !tail(p[3])) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] >= 0x90) return 0;
    return 4;
}

bool utf8_clean(struct bytes b) {
    for (size_t i = 0, k; i < b.n; i += k) {
        k = utf8_len(b.p + i, b.n - i);
        if (k == 0 || b.p[i] == 0) return false;
    }
    return true;
}

size_t utf8_mend(struct bytes b, uint8_t *out, size_t *mended) {
    size_t n = 0;
    for (size_t i = 0; i < b.n;) {
        size_t k = utf8_len(b.p + i, b.n - i);
        if (k == 0 || b.p[i] == 0) {
            ++*mended;
            n += k == 0 ? utf8_put(0xfffd, out + n) : utf8_put(' ', out + n);
            i++;
            continue;
        }
        memcpy(out + n, b.p + i, k);
        n += k;
        i += k;
    }
    return n;
}

size_t utf8_put(uint32_t c, uint8_t out[4]) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}
