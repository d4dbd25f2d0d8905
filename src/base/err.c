/* SPDX-License-Identifier: Apache-2.0
 * Errors: see err.h for the convention. */
#include "base/err.h"

#include "base/text/plain.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(struct ops_err *e, int code, const char *fmt, ...) {
    if (e == NULL) return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    plain_string(e->text);
    return code;
}

int fail_in(struct ops_err *e, const char *fmt, ...) {
    if (e == NULL) return OPS_EIO;
    char old[sizeof e->text];
    memcpy(old, e->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    plain_string(e->text); /* which may make it shorter */
    if (n < 0 || (size_t)n >= sizeof e->text - 3) return e->code;
    n = (int)strlen(e->text);
    size_t room = sizeof e->text - (size_t)n - 2, m = strnlen(old, sizeof old);
    if (m >= room) m = room - 1;
    memcpy(e->text + n, ": ", 2);
    memcpy(e->text + n + 2, old, m);
    e->text[(size_t)n + 2 + m] = '\0';
    plain_string(e->text); /* a character may be cut at the end */
    return e->code;
}

static const char oom[] = "out of memory";

int fail_oom(struct ops_err *e) { return fail(e, OPS_ELIMIT, "%s", oom); }

bool err_is_oom(const struct ops_err *e) {
    size_t n = strlen(e->text), m = sizeof oom - 1;
    return e->code == OPS_ELIMIT && n >= m && strcmp(e->text + n - m, oom) == 0;
}
