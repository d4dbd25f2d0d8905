/* SPDX-License-Identifier: Apache-2.0
 * `opscope scalars`: what the programs of a log folder logged. */
#include "analyze/analyze.h"
#include "base/array.h"
#include "cmd/command.h"
#include "present/present.h"
#include "present/width.h"
#include "scalars/logdir.h"
#include "scalars/scalar_table.h"
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARK_WIDTH = 16 };

/* Reads the options. Those that are about traces would do nothing here, so they
 * are refused. */
static int view_of(const struct opts *o, struct scalar_view *v,
                   struct ops_err *e) {
    static const char *const foreign[] = {"region", "instance", "host",
                                          "rank",   "min-us",   "min-bytes"};
    for (size_t i = 0; i < COUNT(foreign); i++)
        if (opts_given(o, foreign[i]))
            return fail(e, OPS_EUSAGE,
                        "scalars have no --%s; choose with "
                        "--run, --tag and --steps",
                        foreign[i]);
    *v = (struct scalar_view){.run = opts_text(o, "run"),
                              .tag = opts_text(o, "tag")};
    v->by_step = opts_range(o, "steps", &v->from, &v->to);
    v->window = (size_t)opts_int(o, "window");
    v->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    v->spark = show_as(o)->terminal ? SPARK_WIDTH : 0;
    return 0;
}

/* Shows the table, or with --points all points. */
static int show_table(const struct logdir *l, const struct scalar_view *v,
                      const struct opts *o, struct ops_err *e) {
    struct result r;
    bool points = opts_flag(o, "points");
    TRY(points ? scalar_points(&l->scalars, v, &r, e)
               : scalar_table(&l->scalars, v, &r, e));
    logdir_describe(l, opts_flag(o, "follow"), &r);
    int rc = result_refine(&r, o, points ? show_as(o)->top : 0, e);
    if (rc == 0) rc = result_columns(&r, o, e);
    if (rc == 0) rc = show_result(&r, o, e);
    result_free(&r);
    return rc;
}

/* Writes one line per new point, for people: run (where there are several),
 * tag, step, value. */
static void put_lines(const struct result *r, bool runs, struct sink *out) {
    int run = result_find_col(r, "run"), tag = result_find_col(r, "tag"),
        step = result_find_col(r, "step"), value = result_find_col(r, "value"),
        odd = result_find_col(r, "odd");
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell x = result_cell(r, i, (size_t)value);
        if (runs) text_put(out, result_cell(r, i, (size_t)run).s);
        sink_puts(out, runs ? "  " : "");
        text_put(out, result_cell(r, i, (size_t)tag).s);
        sink_printf(out, "  step %lld  ",
                    (long long)result_cell(r, i, (size_t)step).i);
        if (x.null) sink_puts(out, result_cell(r, i, (size_t)odd).s);
        else sink_printf(out, "%.6g", x.f);
        sink_putc(out, '\n');
    }
}

/* Prints what came since the last look. */
static int show_new(const struct logdir *l, const struct scalar_view *v,
                    struct scalar_cursor *seen, const struct opts *o,
                    struct ops_err *e) {
    struct result r;
    struct sink out;
    const struct presenter *p = show_as(o);
    TRY(scalar_new_points(&l->scalars, v, seen, &r, e));
    int rc = p->terminal ? 0 : result_columns(&r, o, e);
    sink_screen(&out, STDOUT_FILENO);
    if (r.nrows > 0 && rc == 0) {
        if (p->terminal) put_lines(&r, l->nfiles > 1, &out);
        else if (p->appends) {
            /* These are the rows without the line of names, which was printed
             * before. */
            struct sink all;
            sink_memory(&all);
            p->put(&r, &(struct text_style){0}, &all);
            const char *end = all.n > 0 ? memchr(all.buf, '\n', all.n) : NULL;
            if (end != NULL)
                sink_write(&out, end + 1, all.n - (size_t)(end + 1 - all.buf));
            sink_free(&all);
        } else p->put(&r, &(struct text_style){0}, &out);
    }
    if (rc == 0) rc = sink_flush(&out, e);
    sink_free(&out);
    result_free(&r);
    return rc;
}

/* Shows the table (the points so far where rows can be appended), then each new
 * point as it comes. */
static int follow(struct logdir *l, const struct scalar_view *v,
                  const struct opts *o, struct ops_err *e) {
    struct until_signal turns;
    struct scalar_cursor seen = {0};
    struct result r;
    until_signal_start(&turns, o);
    TRY(scalar_new_points(&l->scalars, v, &seen, &r, e));
    int rc = 0;
    if (show_as(o)->appends) {
        rc = result_columns(&r, o, e);
        if (rc == 0) rc = show_result(&r, o, e);
    } else rc = show_table(l, v, o, e);
    result_free(&r);
    while (rc == 0 && until_signal_wait(&turns)) {
        rc = logdir_refresh(l, e);
        if (rc == 0) rc = show_new(l, v, &seen, o, e);
    }
    scalar_cursor_free(&seen);
    return rc;
}

static int scalars_run(const struct opts *o, int argc, char **argv,
                       struct ops_err *e) {
    struct scalar_view v;
    struct logdir l;
    if (argc != 1)
        return fail(e, OPS_EUSAGE,
                    "scalars needs one log folder or event "
                    "file");
    TRY(view_of(o, &v, e));
    TRY(logdir_open(&l, argv[0], e));
    int rc = opts_flag(o, "follow") ? follow(&l, &v, o, e)
                                    : show_table(&l, &v, o, e);
    logdir_free(&l);
    return rc;
}

static const struct opt scalars_opts[] = {
    {"tag", 0, OPT_TEXT, "GLOB", NULL,
     .help = "only tags that match; --run likewise"},
    {"points", 0, OPT_FLAG, NULL, NULL, .help = "every point of the scalars"},
    {"window", 0, OPT_INT, "N", "20",
     .help = "points that the mean looks back over; 0: all",
     .limits = {0, OPT_NO_END}},
    {"follow", 'f', OPT_FLAG, NULL, NULL,
     .help = "go on, and print each new point, until Ctrl-C"},
    {"interval", 0, OPT_FLOAT, "S", "1",
     .help = "with --follow: look every S seconds", .limits = {0.01, 86400}},
    {"count", 0, OPT_INT, "N", NULL,
     .help = "with --follow: stop after N looks", .limits = {1, OPT_NO_END}},
    {0},
};

const struct command command_scalars = {
    .name = "scalars",
    .args = "LOGDIR",
    .help = "loss and other values that programs logged, from event files",
    .more = "Reads every file below LOGDIR with \"tfevents\" in its name, as "
            "TensorBoard does; a run is a folder. Columns: run, tag, kind, "
            "points, first_step, last_step, last, min, max, mean, per_s, odd, "
            "text; with --points: run, tag, step, wall_time, elapsed_s, value, "
            "odd.",
    .opts = scalars_opts,
    .filters = true,
    .run = scalars_run,
};
