/* SPDX-License-Identifier: Apache-2.0
 * The tables of the command line: commands, the program's options, and verbs,
 * the one list in which commands and analyses look alike; and how commands
 * wait that go on until they are told to stop. */
#include "cmd/command.h"

#include "analyze/analyze.h"
#include "api/run.h"
#include "load/profiles.h"
#include "present/present.h"
#include <signal.h>
#include <string.h>
#include <time.h>

#define X(name) extern const struct command command_##name;
#include "cmd/commands.def"
#undef X

const struct command *const commands[] = {
#define X(name) &command_##name,
#include "cmd/commands.def"
#undef X
    NULL,
};

/* "|text|json|csv" */
static const char formats[] =
#define X(name) "|" #name
#include "present/presenters.def"
#undef X
    ;

const struct opt program_opts[] = {
    {"format", 0, OPT_CHOICE, &formats[1], "text",
     .help = "how to print results"},
    {"run", 0, OPT_TEXT, "NAME", NULL,
     .help = "this run of a log folder (else the newest)"},
    {"color", 0, OPT_CHOICE, "auto|always|never", "auto",
     .help = "colours in text; auto: on a terminal"},
    {"width", 0, OPT_INT, "N", NULL,
     .help =
         "columns of text to fit into; 0: no limit (else the terminal, or 120)",
     .limits = {0, SHOW_WIDTH_MAX}},
    {"threads", 0, OPT_INT, "N", "0",
     .help = "threads for reading; 0: as many as pay",
     .limits = {0, LOAD_THREADS_MAX}},
    {"quiet", 'q', OPT_FLAG, NULL, NULL,
     .help = "print the table alone; record prints nothing"},
    {"verbose", 'v', OPT_FLAG, NULL, NULL,
     .help = "print every column and every note"},
    {"help", 'h', OPT_FLAG, NULL, NULL,
     .help = "help on the command, and stop"},
    {"version", 'V', OPT_FLAG, NULL, NULL, .help = "the version, and stop"},
    {0},
};

bool verb_at(size_t i, struct verb *out) {
    size_t n = 0;
    while (analyses[n] != NULL) n++;
    if (i < n) {
        const struct analysis *a = analyses[i];
        *out = (struct verb){
            .name = a->name,
            .args = "PATH...",
            .help = a->help,
            .opts = a->opts,
            .filters = true,
            .analysis = a,
        };
        return true;
    }
    for (size_t k = 0; commands[k] != NULL; k++) {
        if (k != i - n) continue;
        const struct command *c = commands[k];
        *out = (struct verb){
            .name = c->name,
            .args = c->args,
            .help = c->help,
            .more = c->more,
            .opts = c->opts,
            .filters = c->filters,
            .command = c,
        };
        return true;
    }
    return false;
}

bool verb_find(const char *name, struct verb *out) {
    for (size_t i = 0; verb_at(i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
}

void verb_opts(const struct verb *v, struct opts *o) {
    opts_init(o, program_opts, v->filters ? analysis_common_opts : NULL,
              v->opts);
}

int verb_run(const struct verb *v, const struct opts *o, int argc, char **argv,
             struct ops_err *e) {
    if (v->analysis != NULL) {
        struct profiles p;
        TRY(profiles_load(o, argc, argv, &p, e));
        struct result all;
        int rc = profiles_run(&p, v->analysis, o, show_as(o)->top, &all, e);
        if (rc == 0) {
            rc = show_result(&all, o, e);
            if (rc == 0 && all.more != NULL && all.more->oom) rc = fail_oom(e);
            result_free(&all);
        }
        profiles_free(&p);
        return rc;
    }
    return v->command->run(o, argc, argv, e);
}

/* The signals that end a command in order. They are blocked and fetched, not
 * handled: there is no state to share with a handler, and a write is never
 * interrupted. */
static void stop_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

void until_signal_start(struct until_signal *l, const struct opts *o) {
    sigset_t set;
    l->left = opts_given(o, "count") ? opts_int(o, "count") : -1;
    l->pause_s = opts_float(o, "interval");
    stop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

bool until_signal_wait(struct until_signal *l) {
    sigset_t set;
    if (l->left > 0 && --l->left == 0) return false;
    stop_signals(&set);
    struct timespec pause = {
        .tv_sec = (time_t)l->pause_s,
        .tv_nsec = (long)((l->pause_s - (double)(time_t)l->pause_s) * 1e9),
    };
    /* another signal (a stop and a continue) only makes this look earlier */
    return sigtimedwait(&set, NULL, &pause) < 0;
}
