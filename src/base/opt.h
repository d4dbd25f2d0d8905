/* SPDX-License-Identifier: Apache-2.0
 * Options, from one row each: the row *is* the flag (--top 20), the query
 * parameter (top=20), the completion and the help line. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/err.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_type {
    OPT_FLAG,   /* --verbose: no value on the command line, 0 or 1 elsewhere */
    OPT_INT,    /* 20 */
    OPT_FLOAT,  /* 3.4 */
    OPT_TEXT,   /* any text */
    OPT_CHOICE, /* one of arg, which lists them: "text|json|csv" */
    OPT_BYTES,  /* 1M, 2.5GiB, 4096 */
    OPT_US,     /* microseconds, with decimals: 12.5 */
    OPT_RANGE,  /* 3..7, 3.., ..7, 5 */
};

struct opt {
    const char *name; /* without the dashes; {0} ends a table */
    char letter;      /* short form, or 0 */
    enum opt_type type;
    const char *arg;  /* the value's name in help, or the choices */
    const char *dflt; /* default as text, or NULL: not given */
    const char *help; /* one line, lower case, no full stop */
    struct limits {
        double least, most; /* of OPT_INT, OPT_FLOAT and OPT_US; both 0: any */
    } limits;
};

/* As the most: there is no end. */
#define OPT_NO_END ((double)INFINITY)

enum { OPTS_MAX = 48 };

/* Option values over up to three tables. Texts are borrowed: they must live as
 * long as the struct. It is zeroed, then set up by opts_init. */
struct opts {
    const struct opt *tables[3];
    struct {
        const struct opt *opt;
        const char *text;
    } given[OPTS_MAX];
    size_t n;
    bool brief; /* nobody will look at COL_DETAIL columns (model/result.h) */
};

/* Tables may be NULL. */
void opts_init(struct opts *o, const struct opt *a, const struct opt *b,
               const struct opt *c);

/* Return the row of that name (without dashes) or letter; NULL if none. */
const struct opt *opts_find(const struct opts *o, const char *name);
const struct opt *opts_find_letter(const struct opts *o, char letter);

/* Checks and stores a value; a later one replaces an earlier one. The sentence
 * of OPS_EUSAGE says what is wrong with the value and what is allowed. */
int opts_set(struct opts *o, const char *name, const char *value,
             struct ops_err *e);

/* Was the option given, or does it have its default? */
bool opts_given(const struct opts *o, const char *name);

/* Typed reads. Asking for a name that no table has is a bug (assert). */
bool opts_flag(const struct opts *o, const char *name);
int64_t opts_int(const struct opts *o, const char *name);
double opts_float(const struct opts *o, const char *name);
const char *opts_text(const struct opts *o, const char *name); /* or NULL; of
                                                 any type: as it was given */
int64_t opts_bytes(const struct opts *o, const char *name);    /* 0: none */
int64_t opts_ps(const struct opts *o, const char *name); /* OPT_US in ps */

/* Returns false if it was not given; open ends are INT64_MIN and INT64_MAX. */
bool opts_range(const struct opts *o, const char *name, int64_t *lo,
                int64_t *hi);

#endif
