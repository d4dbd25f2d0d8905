/* SPDX-License-Identifier: Apache-2.0
 * Paths become sealed traces, and the results of several traces one result. The
 * command line and the library share this. */
#ifndef LOAD_PROFILES_H
#define LOAD_PROFILES_H

#include <stddef.h>

struct import_opts;
struct ops_err;
struct result;
struct run_skip;
struct trace;

struct profiles {
    struct profile {
        char *name;          /* for the column "profile" */
        struct trace *trace; /* sealed */
    } * v;
    size_t n;
    char *remark;          /* which of several runs it is, or NULL */
    struct run_skip *lost; /* files of the run that could not be read */
    size_t nlost, cap_lost;
};

/* Loads every path (of a log folder the run of that name; NULL: the newest). On
 * success the caller frees; on failure there is nothing to free. Returns
 * OPS_ECANCEL if io->progress returned false. */
int profiles_open(char *const *paths, size_t n, const char *run,
                  const struct import_opts *io, struct profiles *out,
                  struct ops_err *e);
void profiles_free(struct profiles *p);

/* Adds the result of profile i to all, which is empty for the first, with the
 * column "profile" when there are several profiles. Takes r. */
int profiles_join(const struct profiles *p, size_t i, struct result *all,
                  struct result *r, struct ops_err *e);

#endif
