/* SPDX-License-Identifier: Apache-2.0
 * Help pages, all printed from the tables: a new entry needs no words here. */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include "base/io/sink.h"
#include "model/result.h"

int help_version(struct ops_err *e);

/* Prints a few lines for users who type "opscope" alone. */
int help_short(struct ops_err *e);

/* Prints everything there is, one line each. */
int help_all(struct ops_err *e);

/* Prints one page: a command, an analysis, or one of help_topics. */
int help_topic(const char *topic, struct ops_err *e);

/* Pages that are neither commands nor analyses; a NULL name ends them. A page
 * has a function, or a text. */
struct help_page {
    const char *name, *help;
    void (*put)(struct sink *out);
    const char *text;
};
extern const struct help_page help_pages[];

/* Sections of docs/how-to-record.md; tools/pages.sh makes them. */
extern const char help_recording[], help_record_torch[],
    help_record_tensorflow[], help_record_keras[], help_record_jax[];

/* Writes the man page opscope(1) as roff. */
void man_put(struct sink *out);

/* Finds the columns of an analysis by running it over an empty trace. Returns
 * false if it cannot tell. The caller frees r on true. */
struct analysis;
bool help_columns(const struct analysis *a, struct result *r);

/* Exit codes and what they mean; a NULL text ends them. */
struct exit_help {
    int code;
    const char *text;
};
extern const struct exit_help exit_helps[];

#endif
