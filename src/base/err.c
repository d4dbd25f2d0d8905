/* SPDX-License-Identifier: Apache-2.0
 * Errors: see err.h for the convention. */
#include "base/err.h"

#include "base/text/cut.h"
#include "base/text/plain.h"
#include <stdarg.h>
#include <string.h>

int fail(struct ops_err *e, int code, const char *fmt, ...) {
    if (e == NULL) return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    cut_vfmt(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    plain_string(e->text);
    return code;
}

int fail_in(struct ops_err *e, const char *context) {
    enum {
        CONTEXT_LEAST = 160
    }; /* what is kept of it, whatever the sentence */
    if (e == NULL) return OPS_EIO;
    char old[sizeof e->text], where[sizeof e->text];
    size_t n = strnlen(e->text, sizeof old - 1);
    memcpy(old, e->text, n);
    old[n] = '\0';
    size_t room = sizeof where - strlen(": ");
    cut_middle(where,
               room - (n < room - CONTEXT_LEAST ? n : room - CONTEXT_LEAST),
               context);
    plain_string(where);
    cut_fmt(e->text, sizeof e->text, "%s: %s", where, old);
    return e->code;
}

static const char oom[] = "out of memory";

int fail_oom(struct ops_err *e) { return fail(e, OPS_ELIMIT, "%s", oom); }

bool err_is_oom(const struct ops_err *e) {
    size_t n = strlen(e->text), m = sizeof oom - 1;
    return e->code == OPS_ELIMIT && n >= m && strcmp(e->text + n - m, oom) == 0;
}
