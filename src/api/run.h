/* SPDX-License-Identifier: Apache-2.0
 * Analyses over all profiles that are open: what the command line and the
 * library share. */
#ifndef API_RUN_H
#define API_RUN_H

#include <stddef.h>

struct analysis;
struct ops_err;
struct opts;
struct profiles;
struct result;

/* Runs an analysis over every profile and joins the results. out must not be
 * initialised; on success it is the caller's to free. */
int profiles_run(const struct profiles *p, const struct analysis *a,
                 const struct opts *o, size_t default_top, struct result *out,
                 struct ops_err *e);

#endif
