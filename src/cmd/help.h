/* SPDX-License-Identifier: Apache-2.0
 * Help pages, all printed from the tables: a new entry needs no words here. */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include "base/io/sink.h"
#include "base/opt.h"
#include "model/result.h"

int help_version(struct ops_err *e);

/* A few lines for who types "opscope" alone. */
int help_short(struct ops_err *e);

/* Everything there is, one line each. */
int help_all(struct ops_err *e);

/* One page: a command, an analysis, or one of help_topics. */
int help_topic(const char *topic, struct ops_err *e);

/* Pages that are neither commands nor analyses; ends with a NULL name. */
struct help_page {
    const char *name, *help;
    void (*put)(struct sink *out);
};
extern const struct help_page help_pages[];

/* The man page opscope(1) as roff. */
void man_put(struct sink *out);

/* The columns of an analysis, found by running it over an empty trace. False:
 * it cannot tell. The caller frees r on true. */
struct analysis;
bool help_columns(const struct analysis *a, struct result *r);

/* Exit codes and what they mean; ends with a NULL text. */
struct exit_help {
    int code;
    const char *text;
};
extern const struct exit_help exit_helps[];

#endif
