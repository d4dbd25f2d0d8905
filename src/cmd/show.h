/* SPDX-License-Identifier: Apache-2.0
 * Results and pages go to stdout; what the program says of itself goes to
 * stderr. */
#ifndef CMD_SHOW_H
#define CMD_SHOW_H

#include "base/io/sink.h"
#include "base/opt.h"
#include "model/result.h"
#include <stdarg.h>

/* Prints a result as --format says. */
int show_result(const struct result *r, const struct opts *o,
                struct ops_err *e);

/* Does the same to another descriptor than stdout. */
int show_result_on(int fd, const struct result *r, const struct opts *o,
                   struct ops_err *e);

struct presenter; /* present/present.h */

/* Returns the presenter of --format. */
const struct presenter *show_as(const struct opts *o);

/* Returns the columns of the screen: --width, the terminal, COLUMNS, or 120; 0
 * for no limit. */
int show_width(const struct opts *o);

/* Writes one line to stderr, "opscope: ...". It may quote anything: see
 * base/text/plain.h. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vsay(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

#endif
