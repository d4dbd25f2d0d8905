/* SPDX-License-Identifier: Apache-2.0
 * PATH... on the command line becomes sealed traces. */
#ifndef CMD_LOAD_H
#define CMD_LOAD_H

#include "load/profiles.h"

struct opts;

/* Loads every path; shows a progress bar on a terminal. OPS_EUSAGE when no
 * path was given. On success the caller frees with profiles_free. */
int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e);

#endif
