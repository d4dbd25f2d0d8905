/* SPDX-License-Identifier: Apache-2.0
 * The manual page opscope(1), as roff with the man macros, from the tables. */
#include "cmd/help.h"

#include "analyze/analyze.h"
#include "cmd/command.h"
#include "import/import.h"
#include <string.h>

enum { TEXT_WIDTH = 70 };

/* Writes text; what roff would take for itself is made harmless, and long lines
 * are broken at blanks. */
static void man_text(struct sink *out, const char *s) {
    size_t col = 0;
    if (*s == '.' || *s == '\'') sink_puts(out, "\\&");
    for (; *s != '\0'; s++, col++) {
        bool blank = *s == ' ' || *s == '\n';
        if (blank && col + 1 + strcspn(s + 1, " ") > TEXT_WIDTH) {
            sink_putc(out, '\n');
            if (s[1] == '.' || s[1] == '\'') sink_puts(out, "\\&");
            col = 0;
        } else if (*s == '\\') sink_puts(out, "\\e");
        else if (*s == '-') sink_puts(out, "\\-");
        else sink_putc(out, blank ? ' ' : *s);
    }
}

/* Writes the arguments of a tag, if there are any. */
static void put_args(struct sink *out, const char *args) {
    if (args == NULL) return;
    sink_puts(out, " \\fI");
    man_text(out, args);
    sink_puts(out, "\\fR");
}

/* Writes one paragraph with a tag. */
static void put_item(struct sink *out, const char *tag, const char *args,
                     const char *text) {
    sink_puts(out, ".TP\n\\fB");
    man_text(out, tag);
    sink_puts(out, "\\fR");
    put_args(out, args);
    sink_putc(out, '\n');
    man_text(out, text);
    sink_putc(out, '\n');
}

static void put_options(struct sink *out, const struct opt *table) {
    for (const struct opt *p = table; p && p->name; p++) {
        sink_puts(out, ".TP\n");
        if (p->letter) sink_printf(out, "\\fB\\-%c\\fR, ", p->letter);
        sink_puts(out, "\\fB\\-\\-");
        man_text(out, p->name);
        sink_puts(out, "\\fR");
        put_args(out, p->arg);
        sink_putc(out, '\n');
        man_text(out, p->help);
        if (p->dflt != NULL) {
            sink_puts(out, " (default: ");
            man_text(out, p->dflt);
            sink_putc(out, ')');
        }
        sink_puts(out, ".\n");
    }
}

/* Writes an analysis: what a row is, its columns and its own options. */
static void put_analysis(struct sink *out, const struct analysis *a) {
    sink_puts(out, ".SS ");
    man_text(out, a->name);
    sink_putc(out, '\n');
    man_text(out, a->help);
    sink_puts(out, ".\nA row is ");
    man_text(out, a->row);
    sink_puts(out, ".\n");
    struct result r;
    if (help_columns(a, &r)) {
        for (size_t i = 0; i < r.ncols; i++)
            put_item(out, r.cols[i].name, NULL,
                     r.cols[i].help ? r.cols[i].help : r.cols[i].name);
        result_free(&r);
    }
    put_options(out, a->opts);
}

void man_put(struct sink *out) {
    sink_puts(out,
              ".TH OPSCOPE 1 \"\" \"opscope " OPS_VERSION "\" \"User "
              "Commands\"\n.SH NAME\nopscope \\- where the time and the memory "
              "of a deep\\-learning program go\n.SH SYNOPSIS\n");
    struct verb v;
    for (size_t i = 0; verb_at(i, &v); i++) {
        sink_puts(out, i ? ".br\n\\fBopscope " : "\\fBopscope ");
        man_text(out, v.name);
        bool before = v.command != NULL && v.command->program;
        sink_puts(out, before ? "\\fR [\\fIoptions\\fR] " : "\\fR ");
        man_text(out, v.args);
        sink_puts(out, before ? "\n" : " [\\fIoptions\\fR]\n");
    }
    sink_puts(out,
              ".SH DESCRIPTION\nopscope reads profiles of any known format and "
              "prints tables:\nas text for people, as JSON or CSV for "
              "programs.\nA value that was not recorded is shown as "
              "\\(lq\\-\\(rq, never as 0.\n");
    sink_puts(out, ".SH ANALYSES\n");
    for (size_t i = 0; analyses[i] != NULL; i++) put_analysis(out, analyses[i]);
    sink_puts(out, ".SH COMMANDS\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        put_item(out, commands[i]->name, commands[i]->args, commands[i]->help);
        if (commands[i]->opts == NULL) continue;
        sink_puts(out, ".RS\n");
        put_options(out, commands[i]->opts);
        sink_puts(out, ".RE\n");
    }
    sink_puts(out, ".SH OPTIONS\n.SS Of every command\n");
    put_options(out, program_opts);
    sink_puts(out, ".SS Of every analysis\n");
    put_options(out, analysis_common_opts);
    sink_puts(out, ".SH FORMATS\n");
    for (size_t i = 0; importers[i] != NULL; i++)
        put_item(out, importers[i]->format.name, NULL, importers[i]->help);
    char text[NOTE_TEXT];
    sink_puts(out, ".SH NOTES\n");
    for (int i = 0; i < NOTE_COUNT; i++)
        put_item(out, note_name(i), NULL, note_text(i, 2, text));
    sink_puts(out, ".SH EXIT STATUS\n");
    for (const struct exit_help *p = exit_helps; p->text != NULL; p++) {
        char code[2] = {(char)('0' + p->code), '\0'};
        put_item(out, code, NULL, p->text);
    }
}
