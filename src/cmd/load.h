/* SPDX-License-Identifier: Apache-2.0
 * PATH... on the command line becomes sealed traces. */
#ifndef CMD_LOAD_H
#define CMD_LOAD_H

#include "base/opt.h"
#include "model/result.h"
#include "model/trace.h"

struct profiles {
    struct profile {
        char *name;          /* for the column "profile" */
        struct trace *trace; /* sealed */
    } *v;
    size_t n;
    char *remark; /* which of several runs it is, or NULL */
};

/* Loads every path; shows a progress bar on a terminal. OPS_EUSAGE when no
 * path was given. On success the caller frees. */
int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e);
void profiles_free(struct profiles *p);

/* Adds the result of profile i to all (empty, for the first), with the column
 * "profile" when there are several. Takes r. */
int profiles_join(const struct profiles *p, size_t i, struct result *all,
                  struct result *r, struct ops_err *e);

#endif
