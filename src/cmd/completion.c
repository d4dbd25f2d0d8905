/* SPDX-License-Identifier: Apache-2.0
 * `opscope completion SHELL`: a script for bash, zsh or fish, written from the
 * tables. */
#include "analyze/analyze.h"
#include "base/io/sink.h"
#include "cmd/command.h"
#include "cmd/help.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Calls each for every option that a verb takes. */
static void each_option(const struct verb *v,
                        void (*each)(struct sink *, const struct opt *),
                        struct sink *out) {
    struct opts o;
    verb_opts(v, &o);
    for (size_t i = 0; i < 3; i++)
        for (const struct opt *p = o.tables[i]; p && p->name; p++) each(out, p);
}

/* Writes a help line inside single quotes; characters that mean something to
 * zsh are escaped. */
static void put_quoted(struct sink *out, const char *s, const char *escape) {
    for (; *s != '\0'; s++) {
        if (*s == '\'') sink_puts(out, "'\\''");
        else {
            if (strchr(escape, *s) != NULL) sink_putc(out, '\\');
            sink_putc(out, *s);
        }
    }
}

static void bash_word(struct sink *out, const struct opt *p) {
    sink_printf(out, " --%s", p->name);
    if (p->letter) sink_printf(out, " -%c", p->letter);
}

/* Writes every choice of "a|b|c", with a blank between. */
static void put_choices(struct sink *out, const char *choices) {
    for (const char *p = choices; *p != '\0'; p++)
        sink_putc(out, *p == '|' ? ' ' : *p);
}

static void put_verbs(struct sink *out) {
    struct verb v;
    for (size_t i = 0; verb_at(i, &v); i++)
        sink_printf(out, "%s%s", i ? " " : "", v.name);
}

/* Are the operands words (topics of help, shells of completion), not paths? */
static bool has_operands(const struct verb *v) {
    return v->command && (strcmp(v->name, "help") == 0 || strchr(v->args, '|'));
}

static void put_operands(struct sink *out, const struct verb *v) {
    if (!has_operands(v)) return;
    if (strcmp(v->name, "help") != 0) {
        put_choices(out, v->args);
        return;
    }
    put_verbs(out);
    for (const struct help_page *p = help_pages; p->name != NULL; p++)
        sink_printf(out, " %s", p->name);
}

static void bash_value(struct sink *out, const struct opt *p) {
    if (p->type == OPT_FLAG) return;
    sink_printf(out, "    --%s) ", p->name);
    if (p->type == OPT_CHOICE) {
        sink_puts(out, "COMPREPLY=($(compgen -W '");
        put_choices(out, p->arg);
        sink_puts(out, "' -- \"$cur\")); ");
    }
    sink_puts(out, "return ;;\n");
}

static void put_bash(struct sink *out) {
    struct verb v;
    sink_puts(out, "# bash completion of opscope\n_opscope() {\n"
                   "  local cur=${COMP_WORDS[COMP_CWORD]} verb= word words=\n"
                   "  local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "  COMPREPLY=()\n"
                   "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                   "    case $word in -*) ;; *) verb=$word; break ;; esac\n"
                   "  done\n  case $prev in\n");
    for (const struct opt *p = program_opts; p->name; p++) bash_value(out, p);
    for (const struct opt *p = analysis_common_opts; p->name; p++)
        bash_value(out, p);
    sink_puts(out, "  esac\n  case $verb in\n");
    for (size_t i = 0; verb_at(i, &v); i++) {
        sink_printf(out, "    %s) words='", v.name);
        put_operands(out, &v);
        each_option(&v, bash_word, out);
        sink_puts(out, "' ;;\n");
    }
    sink_puts(out, "    '') words='");
    put_verbs(out);
    sink_puts(out, " --help --version' ;;\n  esac\n"
                   "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "  if [[ -n $verb && $cur != -* ]]; then\n"
                   "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n  fi\n}\n"
                   "complete -o filenames -F _opscope opscope\n");
}

static void zsh_option(struct sink *out, const struct opt *p) {
    sink_printf(out, "        '--%s%s[", p->name,
                p->type == OPT_FLAG ? "" : "=");
    put_quoted(out, p->help, "[]\\:");
    sink_putc(out, ']');
    if (p->type == OPT_CHOICE) {
        sink_puts(out, ":value:(");
        put_choices(out, p->arg);
        sink_putc(out, ')');
    } else if (p->type != OPT_FLAG) {
        sink_puts(out, ":value:");
    }
    sink_puts(out, "' \\\n");
}

static void put_zsh(struct sink *out) {
    struct verb v;
    sink_puts(out, "#compdef opscope\n_opscope() {\n  local -a verbs\n"
                   "  verbs=(\n");
    for (size_t i = 0; verb_at(i, &v); i++) {
        sink_printf(out, "    '%s:", v.name);
        put_quoted(out, v.help, "");
        sink_puts(out, "'\n");
    }
    sink_puts(out, "  )\n  if (( CURRENT == 2 )); then\n"
                   "    _describe command verbs\n    return\n  fi\n"
                   "  case $words[2] in\n");
    for (size_t i = 0; verb_at(i, &v); i++) {
        sink_printf(out, "    %s)\n      _arguments \\\n", v.name);
        each_option(&v, zsh_option, out);
        sink_puts(out, "        '*:path:");
        sink_puts(out, has_operands(&v) ? "(" : "_files");
        put_operands(out, &v);
        if (has_operands(&v)) sink_putc(out, ')');
        sink_puts(out, "' ;;\n");
    }
    sink_puts(out, "  esac\n}\n"
                   "if [ \"$funcstack[1]\" = _opscope ]; then _opscope \"$@\"\n"
                   "else compdef _opscope opscope\nfi\n");
}

/* Writes text inside double quotes. */
static void fish_text(struct sink *out, const char *s) {
    for (; *s != '\0'; s++) {
        if (strchr("\"\\$", *s) != NULL) sink_putc(out, '\\');
        sink_putc(out, *s);
    }
}

/* Writes one option for fish; `when` is its condition. */
static void fish_option(struct sink *out, const struct opt *p,
                        const char *when) {
    sink_printf(out, "complete -c opscope %s -l %s", when, p->name);
    if (p->letter) sink_printf(out, " -s %c", p->letter);
    if (p->type == OPT_CHOICE) {
        sink_puts(out, " -x -a '");
        put_choices(out, p->arg);
        sink_putc(out, '\'');
    } else if (p->type != OPT_FLAG) {
        sink_puts(out, " -x");
    }
    sink_puts(out, " -d \"");
    fish_text(out, p->help);
    sink_puts(out, "\"\n");
}

static void fish_verb(struct sink *out, const struct verb *v) {
    char when[96];
    snprintf(when, sizeof when, "-n \"__fish_seen_subcommand_from %s\"",
             v->name);
    sink_printf(out,
                "complete -c opscope -f -n __fish_use_subcommand -a %s "
                "-d \"",
                v->name);
    fish_text(out, v->help);
    sink_puts(out, "\"\n");
    for (const struct opt *p = analysis_common_opts; v->filters && p->name; p++)
        fish_option(out, p, when);
    for (const struct opt *p = v->opts; p && p->name; p++)
        fish_option(out, p, when);
    if (!has_operands(v)) return;
    sink_printf(out, "complete -c opscope %s -f -a '", when);
    put_operands(out, v);
    sink_puts(out, "'\n");
}

static void put_fish(struct sink *out) {
    struct verb v;
    sink_puts(out, "# fish completion of opscope\n");
    for (const struct opt *p = program_opts; p->name; p++)
        fish_option(out, p, "");
    for (size_t i = 0; verb_at(i, &v); i++) fish_verb(out, &v);
}

static int completion_run(const struct opts *o, int argc, char **argv,
                          struct ops_err *e) {
    static const struct {
        const char *shell;
        void (*put)(struct sink *);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    (void)o;
    for (size_t i = 0; argc == 1 && i < 3; i++) {
        if (strcmp(argv[0], shells[i].shell) != 0) continue;
        struct sink out;
        sink_screen(&out, STDOUT_FILENO);
        shells[i].put(&out);
        int rc = sink_flush(&out, e);
        sink_free(&out);
        return rc;
    }
    return fail(e, OPS_EUSAGE, "completion needs one shell: bash, zsh or fish");
}

const struct command command_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .help = "a completion script for your shell",
    .more = "bash: source <(opscope completion bash). zsh: the same with zsh, "
            "after compinit. fish: opscope completion fish | source.",
    .run = completion_run,
};
