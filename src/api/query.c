/* SPDX-License-Identifier: Apache-2.0
 * Query strings are taken apart in place: decoded text is never longer. */
#include "api/query.h"

#include "base/text/percent.h"
#include <string.h>

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
    if (percent_decode(*name) && (*value == NULL || percent_decode(*value)))
        return 1;
    return fail(e, OPS_EUSAGE,
                "option '%s': '%%' must be followed by two "
                "hexadecimal digits, not 00",
                *name);
}
