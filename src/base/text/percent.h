/* SPDX-License-Identifier: Apache-2.0
 * The escapes of query strings. They are inline, because the recorder is
 * linked with no object of this folder. */
#ifndef BASE_TEXT_PERCENT_H
#define BASE_TEXT_PERCENT_H

#include <stdbool.h>

/* Returns the value of a hexadecimal digit; -1 if c is none. */
static inline int percent_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes %XX and '+' in place: the text never grows. Returns false at a bad
 * escape and at %00, which no text can hold. */
static inline bool percent_decode(char *s) {
    char *to = s;
    for (; *s != '\0'; s++) {
        char c = *s == '+' ? ' ' : *s;
        if (c == '%') {
            int hi = percent_digit(s[1]),
                lo = hi < 0 ? -1 : percent_digit(s[2]);
            if (lo < 0 || hi + lo == 0) return false;
            c = (char)(hi << 4 | lo);
            s += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

#endif
