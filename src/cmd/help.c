/* SPDX-License-Identifier: Apache-2.0
 * `opscope help [TOPIC]`, and what --help prints. */
#include "cmd/help.h"

#include "analyze/analyze.h"
#include "base/text/suggest.h"
#include "cmd/command.h"
#include "export/export.h"
#include "import/import.h"
#include "present/width.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct exit_help exit_helps[] = {
    {EXIT_DONE, "done"},
    {EXIT_USAGE, "wrong usage"},
    {EXIT_INPUT, "the input cannot be read"},
    {EXIT_FOUND, "a check found something"},
    {EXIT_LIMIT, "a limit was hit: memory, or a size that cannot be right"},
    {0, NULL},
};

enum { NAME_WIDTH = 12, TOPIC_WIDTH = 19, OPTION_WIDTH = 27, TEXT_WIDTH = 79 };

/* Writes a text from column `at` on, wrapped, ended by a newline. */
static void put_text(struct sink *out, const char *s, size_t at) {
    text_put_wrapped(out, s, at, at, TEXT_WIDTH);
}

/* Writes "  name      text", the text wrapped in its column. */
static void put_entry(struct sink *out, const char *name, const char *text,
                      size_t width) {
    size_t n = strlen(name);
    sink_printf(out, "  %s", name);
    if (n + 1 > width) {
        sink_putc(out, '\n');
        sink_repeat(out, " ", width + 2);
    } else {
        sink_repeat(out, " ", width - n);
    }
    put_text(out, text, width + 2);
}

static void put_options(struct sink *out, const char *title,
                        const struct opt *table) {
    if (table == NULL || table->name == NULL) return;
    sink_printf(out, "\n%s\n", title);
    for (const struct opt *p = table; p->name != NULL; p++) {
        char left[96], text[256];
        char letter[8] = "";
        if (p->letter) snprintf(letter, sizeof letter, "-%c, ", p->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, p->name,
                 p->arg ? " " : "", p->arg ? p->arg : "");
        snprintf(text, sizeof text, "%s%s%s%s", p->help,
                 p->dflt ? " (default: " : "", p->dflt ? p->dflt : "",
                 p->dflt ? ")" : "");
        put_entry(out, left, text, OPTION_WIDTH);
    }
}

static void put_option_page(struct sink *out) {
    sink_puts(out, "Options stand before or after the paths; \"--\" ends them."
                   "\n");
    put_options(out, "Of every command:", program_opts);
    put_options(out, "Of every analysis:", analysis_common_opts);
}

static void put_formats(struct sink *out) {
    sink_puts(out, "Formats that opscope reads, plain or compressed (gzip, "
                   "zstd).\nThe contents decide, not the file's name.\n\n");
    for (size_t i = 0; importers[i] != NULL; i++)
        put_entry(out, importers[i]->format.name, importers[i]->help,
                  NAME_WIDTH);
}

static void put_exports(struct sink *out) {
    sink_puts(out, "Formats that opscope convert writes; .gz behind the suffix "
                   "compresses.\n\n");
    for (size_t i = 0; exporters[i] != NULL; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s (%s)", exporters[i]->name,
                 exporters[i]->suffix);
        put_entry(out, name, exporters[i]->help, OPTION_WIDTH);
    }
}

static void put_notes(struct sink *out) {
    char text[NOTE_TEXT];
    sink_puts(out, "Everything that was skipped, mended or inferred is counted "
                   "in a note.\n\n");
    for (int i = 0; i < NOTE_COUNT; i++)
        put_entry(out, note_name(i), note_text(i, 2, text), OPTION_WIDTH);
}

static void put_exits(struct sink *out) {
    sink_puts(out, "Exit codes:\n\n");
    for (const struct exit_help *p = exit_helps; p->text != NULL; p++) {
        char code[8];
        snprintf(code, sizeof code, "%d", p->code);
        put_entry(out, code, p->text, 4);
    }
}

static void put_paths(struct sink *out) {
    put_text(out,
             "PATH is a profile file of any known format, compressed or not; a "
             "run folder (plugins/profile/<run>); or a log folder, of which "
             "the newest run is taken, or the one of --run NAME. Several "
             "paths are the ranks of one job where their ranks or hosts "
             "differ and their times overlap; else they are profiles side by "
             "side, and each row names its profile.",
             0);
}

const struct help_page help_pages[] = {
    {"paths", "what PATH may be", put_paths, NULL},
    {"options", "options of every command and analysis", put_option_page, NULL},
    {"formats", "profile formats that can be read", put_formats, NULL},
    {"exports", "profile formats that can be written", put_exports, NULL},
    {"notes", "what the notes below a table mean", put_notes, NULL},
    {"exit", "exit codes", put_exits, NULL},
    {"recording", "what makes a profile good", NULL, help_recording},
    {"record-torch", "how to take one with PyTorch", NULL, help_record_torch},
    {"record-tensorflow", "how to take one with TensorFlow", NULL,
     help_record_tensorflow},
    {"record-keras", "how to take one with Keras", NULL, help_record_keras},
    {"record-jax", "how to take one with JAX", NULL, help_record_jax},
    {NULL, NULL, NULL, NULL},
};

bool help_columns(const struct analysis *a, struct result *r) {
    struct trace *t = trace_new();
    if (t == NULL) return false;
    struct ops_err e;
    struct opts o;
    opts_init(&o, program_opts, analysis_common_opts, a->opts);
    bool ok = trace_seal(t, &e) == 0 && analysis_run(a, t, &o, 0, r, &e) == 0;
    trace_free(t);
    return ok;
}

/* Writes the page of a command or an analysis. */
static void put_verb(struct sink *out, const struct verb *v) {
    bool any = v->filters || v->opts;
    bool before = v->command != NULL && v->command->program;
    sink_printf(out, "opscope %s%s %s%s\n\n", v->name,
                any && before ? " [options]" : "", v->args,
                any && !before ? " [options]" : "");
    put_text(out, v->help, 0);
    struct result r = {0};
    if (v->analysis != NULL)
        sink_printf(out, "A row is %s.\n", v->analysis->row);
    if (v->analysis != NULL && help_columns(v->analysis, &r))
        sink_puts(out, "\nColumns:\n");
    for (size_t i = 0; i < r.ncols; i++)
        put_entry(out, r.cols[i].name, r.cols[i].help ? r.cols[i].help : "",
                  20);
    result_free(&r);
    if (v->more != NULL) {
        sink_putc(out, '\n');
        put_text(out, v->more, 0);
    }
    put_options(out, "Its own options:", v->opts);
    if (v->filters) put_options(out, "Which rows:", analysis_common_opts);
    put_options(out, "Common options:", program_opts);
    if (v->analysis != NULL)
        sink_printf(out,
                    "\nExample:\n  opscope %s logs --top 5\n"
                    "  opscope %s trace.json.gz --format json\n",
                    v->name, v->name);
}

static void put_verbs(struct sink *out, bool want_analyses) {
    struct verb v;
    for (size_t i = 0; verb_at(i, &v); i++)
        if ((v.analysis != NULL) == want_analyses)
            put_entry(out, v.name, v.help, NAME_WIDTH);
}

/* Flushes a page to stdout. */
static int finish(struct sink *out, struct ops_err *e) {
    int rc = sink_flush(out, e);
    sink_free(out);
    return rc;
}

int help_version(struct ops_err *e) {
    struct sink out;
    sink_screen(&out, STDOUT_FILENO);
    sink_puts(&out, "opscope " OPS_VERSION "\n");
    return finish(&out, e);
}

int help_short(struct ops_err *e) {
    struct sink out;
    sink_screen(&out, STDOUT_FILENO);
    sink_puts(&out, "opscope: where the time and the memory of a deep-learning "
                    "program go\n\n"
                    "  opscope ANALYSIS PATH... [options]\n\nAnalyses:\n");
    put_verbs(&out, true);
    sink_puts(&out, "\nOther commands:\n");
    put_verbs(&out, false);
    sink_puts(&out, "\nExamples:\n"
                    "  opscope info trace.pt.trace.json.gz      what is in it\n"
                    "  opscope info logs --format json          for programs\n"
                    "  opscope trace logs --name '*conv*'       raw spans\n"
                    "  opscope help                             everything\n");
    return finish(&out, e);
}

int help_all(struct ops_err *e) {
    struct sink out;
    sink_screen(&out, STDOUT_FILENO);
    sink_puts(&out, "opscope " OPS_VERSION ": where the time and the memory of "
                    "a deep-learning program go\n\n"
                    "  opscope ANALYSIS PATH... [options]\n"
                    "  opscope COMMAND ...\n\nAnalyses:\n");
    put_verbs(&out, true);
    sink_puts(&out, "\nCommands:\n");
    put_verbs(&out, false);
    put_options(&out, "Options of every command:", program_opts);
    put_options(&out, "Options of every analysis:", analysis_common_opts);
    sink_puts(&out, "\nMore: opscope help TOPIC, where TOPIC is an analysis, a "
                    "command, or\n");
    for (const struct help_page *p = help_pages; p->name != NULL; p++)
        put_entry(&out, p->name, p->help, TOPIC_WIDTH);
    return finish(&out, e);
}

int help_topic(const char *topic, struct ops_err *e) {
    struct sink out;
    struct verb v;
    const struct help_page *p = help_pages;
    while (p->name != NULL && strcmp(p->name, topic) != 0) p++;
    if (p->name == NULL && !verb_find(topic, &v)) {
        struct suggest s = suggest_for(topic);
        for (size_t i = 0; verb_at(i, &v); i++) suggest_try(&s, v.name);
        for (p = help_pages; p->name != NULL; p++) suggest_try(&s, p->name);
        const char *near = suggest_best(&s);
        return fail(e, OPS_EUSAGE, "no help on '%s'; %s%s%s", topic,
                    near ? "did you mean '"
                         : "'opscope help' lists what there is",
                    near ? near : "", near ? "'?" : "");
    }
    sink_screen(&out, STDOUT_FILENO);
    if (p->name != NULL && p->put != NULL) p->put(&out);
    else if (p->name != NULL) sink_puts(&out, p->text);
    else put_verb(&out, &v);
    return finish(&out, e);
}

static int help_run(const struct opts *o, int argc, char **argv,
                    struct ops_err *e) {
    if (opts_flag(o, "man")) {
        struct sink out;
        sink_screen(&out, STDOUT_FILENO);
        man_put(&out);
        return finish(&out, e);
    }
    if (argc > 1) return fail(e, OPS_EUSAGE, "help takes one TOPIC at a time");
    return argc == 0 ? help_all(e) : help_topic(argv[0], e);
}

static const struct opt help_opts[] = {
    {"man", 0, OPT_FLAG, NULL, NULL,
     .help = "the manual page as roff, for man -l -"},
    {0},
};

const struct command command_help = {
    .name = "help",
    .args = "[TOPIC]",
    .help = "help on a command, an analysis or a topic",
    .opts = help_opts,
    .run = help_run,
};
