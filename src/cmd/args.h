/* SPDX-License-Identifier: Apache-2.0
 * The words of a command line: options may stand before or after operands,
 * "--opt value" and "--opt=value" are the same, short letters may be joined,
 * "--" ends options. */
#ifndef CMD_ARGS_H
#define CMD_ARGS_H

#include "base/opt.h"

/* Index of the first operand, which names the command; argc when there is
 * none. The options before it must be in o's tables (they are not stored). */
int args_command(const struct opts *o, int argc, char **argv, int *at,
                 struct ops_err *e);

/* Takes options out of argv[0..argc) and stores them in o; the operands stay,
 * in order, and *n tells how many. argv[skip] is left out altogether (-1:
 * none). */
int args_parse(struct opts *o, int argc, char **argv, int skip, int *n,
               struct ops_err *e);

/* The same for operands that are another program's command line: the first of
 * them ends the options, and NULL stands behind the last. */
int args_parse_program(struct opts *o, int argc, char **argv, int skip, int *n,
                       struct ops_err *e);

#endif
