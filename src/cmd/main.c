/* SPDX-License-Identifier: Apache-2.0
 * opscope, the command: finds the verb, parses its options, runs it, and turns
 * an error into one line on stderr and an exit code. No other file of cmd/
 * exits. */
#include "analyze/analyze.h"
#include "base/io/file.h"
#include "base/text/cut.h"
#include "base/text/suggest.h"
#include "cmd/command.h"
#include "cmd/help.h"
#include "present/present.h"
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* --- the words of a command line: options may stand before or after operands,
 * "--opt value" and "--opt=value" are the same, short letters may be joined,
 * "--" ends options ------------------------------------------------------- */

/* Takes "--name=value" or "--name value" at argv[*i]; moves *i to the last word
 * used. */
static int long_option(struct opts *o, int argc, char **argv, int *i,
                       struct ops_err *e) {
    char name[64];
    const char *word = argv[*i] + 2, *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    if (n >= sizeof name)
        return fail(e, OPS_EUSAGE, "unknown option '--%.*s...'", CUT(40, word));
    memcpy(name, word, n);
    name[n] = '\0';
    const struct opt *p = opts_find(o, name);
    const char *value = eq ? eq + 1 : NULL;
    /* In "--sort --top 3" a value was forgotten: no column is called
     * "--top". */
    if (p && !value && p->type != OPT_FLAG && *i + 1 < argc &&
        strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    return opts_set(o, name, value, e);
}

/* Takes "-q", "-qv", "-o FILE" or "-oFILE" at argv[*i]. */
static int short_options(struct opts *o, int argc, char **argv, int *i,
                         struct ops_err *e) {
    for (const char *s = argv[*i] + 1; *s != '\0'; s++) {
        const struct opt *p = opts_find_letter(o, *s);
        if (p == NULL) return fail(e, OPS_EUSAGE, "unknown option '-%c'", *s);
        if (p->type == OPT_FLAG) {
            TRY(opts_set(o, p->name, NULL, e));
            continue;
        }
        const char *value = s[1] ? s + 1 : NULL;
        if (!value && *i + 1 < argc) value = argv[++*i];
        return opts_set(o, p->name, value, e);
    }
    return 0;
}

/* Is it an option? A dash alone is an operand: standard input. */
static bool is_option(const char *s) { return s[0] == '-' && s[1] != '\0'; }

static int one_option(struct opts *o, int argc, char **argv, int *i,
                      struct ops_err *e) {
    return argv[*i][1] == '-' ? long_option(o, argc, argv, i, e)
                              : short_options(o, argc, argv, i, e);
}

/* Finds the first operand, which names the command: argc if there is none. The
 * options before it must be in o's tables (they are not stored). */
static int args_command(const struct opts *o, int argc, char **argv, int *at,
                        struct ops_err *e) {
    struct opts scratch = *o;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) i++;
        else if (is_option(argv[i])) {
            TRY(one_option(&scratch, argc, argv, &i, e));
            continue;
        }
        *at = i < argc ? i : argc;
        return 0;
    }
    *at = argc;
    return 0;
}

/* Takes options out of argv[0..argc) and stores them in o; the operands stay,
 * in order, and *n tells how many. argv[skip] is left out altogether (-1:
 * none). In a program's command line the first operand ends the options. NULL
 * stands behind the last operand, as exec wants it; argv[argc] is one, too. */
static int args_parse(struct opts *o, int argc, char **argv, int skip,
                      bool program, int *n, struct ops_err *e) {
    bool ended = false;
    *n = 0;
    for (int i = 0; i < argc; i++) {
        if (i == skip) continue;
        if (ended || !is_option(argv[i])) {
            argv[(*n)++] = argv[i];
            ended |= program;
        } else if (strcmp(argv[i], "--") == 0) {
            ended = true;
        } else {
            TRY(one_option(o, argc, argv, &i, e));
        }
    }
    argv[*n] = NULL;
    return 0;
}

/* --- the command --------------------------------------------------------- */

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

static int run_command(int argc, char **argv, struct ops_err *e) {
    struct opts o;
    int at, n;
    opts_init(&o, program_opts, analysis_common_opts, NULL);
    TRY(args_command(&o, argc, argv, &at, e));
    if (at == argc) {
        /* There is no command word: --version, --help, or nothing at all. */
        TRY(args_parse(&o, argc, argv, -1, false, &n, e));
        if (opts_flag(&o, "version")) return help_version(e);
        if (argc == 0) return help_short(e);
        if (opts_flag(&o, "help")) return help_all(e);
        return fail(e, OPS_EUSAGE,
                    "a command is missing; 'opscope help' lists them");
    }
    struct verb v;
    if (!verb_find(argv[at], &v)) return unknown_command(argv[at], e);
    verb_opts(&v, &o);
    bool program = v.command != NULL && v.command->program;
    TRY(args_parse(&o, argc, argv, at, program, &n, e));
    if (opts_flag(&o, "version")) return help_version(e);
    if (opts_flag(&o, "help")) return help_topic(v.name, e);
    bool columns = v.filters && opts_given(&o, "columns");
    o.brief = show_as(&o)->brief && !opts_flag(&o, "verbose") && !columns;
    return verb_run(&v, &o, n, argv, e);
}

static void on_signal(int sig) { (void)sig; }

/* Turns two signals into errors of write() (sink.h): a reader that leaves
 * (SIGPIPE) and a file that may not become so large (SIGXFSZ, ulimit -f) must
 * not end the program. It is not SIG_IGN, which a program that we start would
 * inherit. */
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
    int rc = argc > 0 ? run_command(argc - 1, argv + 1, &e) : 0;
    if (rc < 0 && e.text[0] == '\0') return EXIT_DONE;
    if (rc < 0) say("%s", e.text);
    if (rc >= 0) return rc;
    switch (rc) {
    case OPS_EUSAGE: return EXIT_USAGE;
    case OPS_ELIMIT: return EXIT_LIMIT;
    default: return EXIT_INPUT;
    }
}
