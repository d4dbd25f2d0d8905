/* SPDX-License-Identifier: Apache-2.0
 * Errors, the one convention: a function that can fail returns 0 or a negative
 * code; its last parameter is a struct ops_err, filled exactly when the return
 * is not 0. People get the sentence, programs the code. The codes and the
 * struct are public. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "opscope/err.h"
#include <stdbool.h>

/* Fills e (may be NULL) and returns code. The sentence may quote anything: what
 * may not stand on a screen becomes '?' (plain.h). */
int fail(struct ops_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts "context: " before the sentence; it is called once, where the context is
 * known. Where both are too long the context, a path, loses its middle: the
 * sentence stays. Returns e->code. */
int fail_in(struct ops_err *e, const char *context) __attribute__((cold));

/* Fills e with the one sentence for a failed allocation. Returns OPS_ELIMIT. */
int fail_oom(struct ops_err *e) __attribute__((cold));

/* Is it that sentence, whatever context stands before it? */
bool err_is_oom(const struct ops_err *e);

/* Returns from the caller with the error of the call, if there is one. */
#define TRY(call)                                                              \
    do {                                                                       \
        int try_rc_ = (call);                                                  \
        if (try_rc_ != 0) return try_rc_;                                      \
    } while (0)

#endif
