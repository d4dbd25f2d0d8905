/* SPDX-License-Identifier: Apache-2.0
 * Query strings, taken apart in place: what is decoded is never longer. */
#include "api/query.h"

#include <string.h>

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Undoes escapes in place; false: a bad one. */
static bool decode(char *s) {
    char *to = s;
    for (; *s != '\0'; s++) {
        char c = *s == '+' ? ' ' : *s;
        if (c == '%') {
            int hi = hex(s[1]), lo = hi < 0 ? -1 : hex(s[2]);
            if (lo < 0 || hi + lo == 0) return false;
            c = (char)(hi << 4 | lo);
            s += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

int query_next(char **p, char **name, char **value, struct ops_err *e) {
    char *s = *p + strspn(*p, "&");
    if (*s == '\0') {
        *p = s;
        return 0;
    }
    size_t n = strcspn(s, "&");
    *p = s + n + (s[n] != '\0');
    s[n] = '\0';
    *name = s;
    *value = strchr(s, '=');
    if (*value != NULL) *(*value)++ = '\0';
    if (decode(*name) && (*value == NULL || decode(*value))) return 1;
    return fail(e, OPS_EUSAGE,
                "option '%s': '%%' must be followed by two "
                "hexadecimal digits, not 00",
                *name);
}
