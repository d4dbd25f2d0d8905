/* SPDX-License-Identifier: Apache-2.0
 * Glob matching without recursion. When a piece after a star does not fit, it
 * is enough to give one more character to the *last* star: giving one to an
 * earlier star could never help. That bounds the work by pattern times text. */
#include "base/text/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the character of UTF-8 at s (not its end), and its length in
 * bytes. */
static uint32_t get_char(const char *s, size_t *len) {
    const unsigned char *p = (const unsigned char *)s;
    size_t n = p[0] < 0xc2   ? 1
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 1;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) { /* also stops at the final NUL */
            *len = 1;
            return p[0];
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    *len = n;
    return c;
}

/* Returns the closing bracket of a set whose contents begin at p, or NULL. */
static const char *set_end(const char *p) {
    if (*p == '!' || *p == '^') p++;
    if (*p == ']') p++; /* first in the set it is an ordinary character */
    return strchr(p, ']');
}

/* Is c in the set that lies between p and end? */
static bool in_set(const char *p, const char *end, uint32_t c) {
    bool negate = *p == '!' || *p == '^', found = false;
    if (negate) p++;
    while (p < end) {
        size_t n;
        uint32_t lo = get_char(p, &n), hi = lo;
        p += n;
        if (*p == '-' && p + 1 < end) {
            hi = get_char(p + 1, &n);
            p += 1 + n;
        }
        if (c >= lo && c <= hi) found = true;
    }
    return found != negate;
}

/* Does the item at p (not a star) match c? *next is the item after it. */
static bool item_match(const char *p, uint32_t c, const char **next) {
    size_t n;
    if (*p == '?') {
        *next = p + 1;
        return true;
    }
    const char *end = *p == '[' ? set_end(p + 1) : NULL;
    if (end != NULL) {
        *next = end + 1;
        return in_set(p + 1, end, c);
    }
    if (*p == '\\' && p[1] != '\0') p++;
    uint32_t want = get_char(p, &n);
    *next = p + n;
    return want == c;
}

bool glob_match(const char *pattern, const char *text) {
    const char *p = pattern, *s = text;
    const char *star = NULL, *retry = NULL; /* after the last star; its text */
    while (*s != '\0') {
        size_t n;
        uint32_t c = get_char(s, &n);
        const char *next;
        if (*p == '*') {
            star = ++p;
            retry = s;
        } else if (*p != '\0' && item_match(p, c, &next)) {
            p = next;
            s += n;
        } else if (star != NULL) {
            get_char(retry, &n);
            retry += n;
            s = retry;
            p = star;
        } else {
            return false;
        }
    }
    while (*p == '*') p++;
    return *p == '\0';
}

bool glob_special(const char *pattern) {
    return strpbrk(pattern, "*?[\\") != NULL;
}
