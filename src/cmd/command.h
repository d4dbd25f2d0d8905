/* SPDX-License-Identifier: Apache-2.0
 * Commands that are not analyses, listed in commands.def; analyses become
 * commands by themselves. And what commands share: loading profiles, showing
 * results, waiting. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include "base/io/sink.h"
#include "base/opt.h"
#include "model/result.h"
#include <stdarg.h>

/* Exit codes, fixed by the interface. */
/* The largest --width and --threads. */
enum { SHOW_WIDTH_MAX = 100000, LOAD_THREADS_MAX = 1024 };

enum {
    EXIT_DONE = 0,
    EXIT_USAGE = 1,
    EXIT_INPUT = 2,
    EXIT_FOUND = 3,
    EXIT_LIMIT = 4
};

struct command {
    const char *name;       /* "info" */
    const char *args;       /* "PATH..." */
    const char *help;       /* one line */
    const char *more;       /* a paragraph for help NAME and the man page */
    const struct opt *opts; /* its own options, or NULL */
    bool filters;           /* takes the options common to analyses too */
    bool program;           /* operands are a program and its arguments, which
                               are not ours to read: the first ends options */
    /* argv are the operands after options were taken out. Returns 0, an exit
     * code above 0 (EXIT_FOUND), or an error; prints only results to stdout. */
    int (*run)(const struct opts *o, int argc, char **argv, struct ops_err *e);
};

/* All commands, in the order of the help page; NULL ends the list. */
extern const struct command *const commands[];

/* The options of the whole program: --format, --run, --color, ... */
extern const struct opt program_opts[];

/* What can stand after "opscope": a command, or an analysis. */
struct verb {
    const char *name, *args, *help, *more; /* more may be NULL */
    const struct opt *opts;                /* its own, or NULL */
    bool filters;
    const struct command *command; /* one of these two */
    const struct analysis *analysis;
};

/* Gives the i-th verb, analyses first. Returns false past the end. */
bool verb_at(size_t i, struct verb *out);
bool verb_find(const char *name, struct verb *out);

/* Sets o up with the option tables that a verb takes: program, common, its
 * own. */
void verb_opts(const struct verb *v, struct opts *o);

/* Runs a verb. Returns what command.run does. */
int verb_run(const struct verb *v, const struct opts *o, int argc, char **argv,
             struct ops_err *e);

/* The progress bar of reading, on a terminal, for work that takes more than a
 * second. */
struct load_bar {
    int64_t start_ns, drawn_ns; /* monotonic; drawn_ns 0: never drawn */
    bool on;                    /* stderr is a terminal */
};

struct import_opts; /* import/import.h */

/* Returns how files are to be read, with the bar. It ends, and is wiped, by
 * load_bar_end(). */
struct import_opts load_bar_start(struct load_bar *bar, const struct opts *o);
void load_bar_end(struct load_bar *bar);

struct profiles;

/* Loads every path of a command line; shows a progress bar on a terminal.
 * Returns OPS_EUSAGE if no path was given. On success the caller frees with
 * profiles_free. */
int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e);

/* Results and pages go to stdout; what the program says of itself goes to
 * stderr (show.c). */

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

/* Commands that go on until they are told to stop wait here between two looks,
 * such that Ctrl-C ends the command in order, with exit status 0.
 *
 * left and pause_s are the looks that --count allows and the pause between two
 * that --interval asks for. Both options must be in o's tables. */
struct until_signal {
    int64_t left; /* looks; -1: no end */
    double pause_s;
};

/* Blocks SIGINT and SIGTERM: until_signal_wait() takes them. */
void until_signal_start(struct until_signal *l, const struct opts *o);

/* Waits for the pause to pass. Returns false if that was the last look, or the
 * user wants to stop. */
bool until_signal_wait(struct until_signal *l);

#endif
