/* SPDX-License-Identifier: Apache-2.0
 * Commands that are not analyses, listed in commands.def; analyses become
 * commands by themselves. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include "base/err.h"
#include "base/opt.h"

/* Exit codes, fixed by the interface. */
enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_INPUT = 2, EXIT_FOUND = 3,
       EXIT_LIMIT = 4 };

struct command {
    const char *name;       /* "info" */
    const char *args;       /* "PATH..." */
    const char *help;       /* one line */
    const char *more;       /* a paragraph for help NAME and the man page */
    const struct opt *opts; /* its own options, or NULL */
    /* argv are the operands after options were taken out. Returns 0 or an
     * error; prints results to stdout, nothing else. */
    int (*run)(const struct opts *o, int argc, char **argv, struct ops_err *e);
};

extern const struct command *const commands[];

#endif
