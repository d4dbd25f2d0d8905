/* SPDX-License-Identifier: Apache-2.0
 * opscope, the command: finds the verb, parses its options, runs it, and turns
 * an error into one line on stderr and an exit code. The only exit there is. */
#include "analyze/analyze.h"
#include "base/io/file.h"
#include "base/text/suggest.h"
#include "cmd/args.h"
#include "cmd/command.h"
#include "cmd/help.h"
#include "cmd/say.h"
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Says what the unknown word might have been. */
static int unknown_command(const char *word, struct ops_err *e) {
    const char *first = analysis_find("overview") ? "overview" : "info";
    if (strchr(word, '/') != NULL || access(word, F_OK) == 0)
        return fail(e, OPS_EUSAGE,
                    "'%s' is not a command; did you mean "
                    "'opscope %s %s'?",
                    word, first, word);
    struct suggest s = suggest_for(word);
    struct verb v;
    for (size_t i = 0; verb_at(i, &v); i++) suggest_try(&s, v.name);
    const char *near = suggest_best(&s);
    if (near != NULL)
        return fail(e, OPS_EUSAGE, "unknown command '%s'; did you mean '%s'?",
                    word, near);
    return fail(e, OPS_EUSAGE,
                "unknown command '%s'; 'opscope help' lists "
                "them",
                word);
}

/* No command word: --version, --help, or nothing at all. */
static int run_bare(struct opts *o, int argc, char **argv, struct ops_err *e) {
    int n;
    TRY(args_parse(o, argc, argv, -1, &n, e));
    if (opts_flag(o, "version")) return help_version(e);
    if (argc == 0) return help_short(e);
    if (opts_flag(o, "help")) return help_all(o, e);
    return fail(e, OPS_EUSAGE,
                "a command is missing; 'opscope help' lists "
                "them");
}

static int run(int argc, char **argv, struct ops_err *e) {
    struct opts o;
    int at, n;
    opts_init(&o, program_opts, analysis_common_opts, NULL);
    TRY(args_command(&o, argc, argv, &at, e));
    if (at == argc) return run_bare(&o, argc, argv, e);
    struct verb v;
    if (!verb_find(argv[at], &v)) return unknown_command(argv[at], e);
    verb_opts(&v, &o);
    if (v.command != NULL && v.command->program)
        TRY(args_parse_program(&o, argc, argv, at, &n, e));
    else TRY(args_parse(&o, argc, argv, at, &n, e));
    if (opts_flag(&o, "version")) return help_version(e);
    if (opts_flag(&o, "help")) return help_topic(v.name, &o, e);
    return verb_run(&v, &o, n, argv, e);
}

static void on_signal(int sig) { (void)sig; }

/* A reader that leaves (SIGPIPE) and a file that may not become so large
 * (SIGXFSZ, ulimit -f) are errors of write() (sink.h), nothing to die of. Not
 * by SIG_IGN, which a program that we start would inherit. */
static void survive(int sig) {
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction old;
    sigemptyset(&sa.sa_mask);
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(sig, &sa, NULL);
}

int main(int argc, char **argv) {
    setlocale(LC_CTYPE, "");
    survive(SIGPIPE);
    survive(SIGXFSZ);
    file_guard();
    struct ops_err e = {0};
    int rc = argc > 0 ? run(argc - 1, argv + 1, &e) : 0;
    if (rc < 0 && e.text[0] == '\0') return EXIT_DONE;
    if (rc < 0) say("%s", e.text);
    if (rc >= 0) return rc;
    switch (rc) {
    case OPS_EUSAGE: return EXIT_USAGE;
    case OPS_ELIMIT: return EXIT_LIMIT;
    default: return EXIT_INPUT;
    }
}
