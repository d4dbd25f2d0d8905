/* SPDX-License-Identifier: Apache-2.0
 * Splits a command line into options and operands. */
#include "cmd/args.h"

#include <stdio.h>
#include <string.h>

/* "--name=value" or "--name value" at argv[*i]; moves *i to the last word
 * used. */
static int long_option(struct opts *o, int argc, char **argv, int *i,
                       struct ops_err *e) {
    char name[64];
    const char *word = argv[*i] + 2, *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    if (n >= sizeof name)
        return fail(e, OPS_EUSAGE, "unknown option '--%.40s...'", word);
    memcpy(name, word, n);
    name[n] = '\0';
    const struct opt *p = opts_find(o, name);
    const char *value = eq ? eq + 1 : NULL;
    /* "--sort --top 3" forgot a value rather than named a column "--top". */
    if (p && !value && p->type != OPT_FLAG && *i + 1 < argc &&
        strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    return opts_set(o, name, value, e);
}

/* "-q", "-qv", "-o FILE" or "-oFILE" at argv[*i]. */
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

int args_command(const struct opts *o, int argc, char **argv, int *at,
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

int args_parse(struct opts *o, int argc, char **argv, int skip, int *n,
               struct ops_err *e) {
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        if (i == skip) continue;
        if (ended || !is_option(argv[i])) argv[kept++] = argv[i];
        else if (strcmp(argv[i], "--") == 0) ended = true;
        else TRY(one_option(o, argc, argv, &i, e));
    }
    *n = kept;
    return 0;
}

int args_parse_program(struct opts *o, int argc, char **argv, int skip, int *n,
                       struct ops_err *e) {
    int i = 0;
    for (; i < argc; i++) {
        if (i == skip) continue;
        if (!is_option(argv[i])) break;
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        TRY(one_option(o, argc, argv, &i, e));
    }
    *n = 0;
    for (; i < argc; i++)
        if (i != skip) argv[(*n)++] = argv[i];
    argv[*n] = NULL; /* as exec wants it; argv[argc] is one, too */
    return 0;
}
