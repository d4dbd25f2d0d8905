/* SPDX-License-Identifier: Apache-2.0
 * Errors, the one convention: a function that can fail returns 0 or a negative
 * code; its last parameter is a struct ops_err, filled exactly when the return
 * is not 0. People get the sentence, programs the code. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

enum ops_code {
    OPS_OK = 0,
    OPS_EIO = -1,     /* the system refused: open, read, write */
    OPS_EFORMAT = -2, /* the bytes are not what they claim to be */
    OPS_EUNSUP = -3,  /* understood, but not supported here */
    OPS_EUSAGE = -4,  /* the caller asked for something that is not there */
    OPS_ELIMIT = -5,  /* a limit was hit: memory, size, depth */
};

struct ops_err {
    int code;
    char text[512]; /* one sentence, no newline, always terminated */
};

/* Fills e (may be NULL) and returns code. */
int fail(struct ops_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts "context: " before the sentence; called once, where the context is
 * known. Returns e->code. */
int fail_in(struct ops_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The one sentence for a failed allocation. Returns OPS_ELIMIT. */
int fail_oom(struct ops_err *e) __attribute__((cold));

/* Passes an error up unchanged. */
#define TRY(call)                                                              \
    do {                                                                       \
        int try_rc_ = (call);                                                  \
        if (try_rc_ != 0) return try_rc_;                                      \
    } while (0)

#endif
