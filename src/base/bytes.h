/* SPDX-License-Identifier: Apache-2.0
 * A borrowed run of bytes: the one currency between files and readers. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *p;
    size_t n;
};

/* Returns the bytes of a NUL-terminated string, the NUL left out. */
static inline struct bytes bytes_of(const char *s) {
    return (struct bytes){(const uint8_t *)s, strlen(s)};
}

static inline int bytes_eq(struct bytes a, const char *lit, size_t n) {
    return a.n == n && memcmp(a.p, lit, n) == 0;
}

/* Do the bytes end in that text, with something before it? */
static inline bool bytes_ends(struct bytes b, const char *end) {
    size_t n = strlen(end);
    return b.n > n && memcmp(b.p + b.n - n, end, n) == 0;
}

static inline bool byte_is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Are the bytes this string literal? Its length is known when compiling. */
#define BYTES_IS(b, lit) bytes_eq((b), "" lit, sizeof(lit) - 1)

/* Do the bytes start with this string literal? */
#define BYTES_STARTS(b, lit)                                                   \
    ((b).n >= sizeof(lit) - 1 && memcmp((b).p, "" lit, sizeof(lit) - 1) == 0)

#endif
