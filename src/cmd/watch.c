/* SPDX-License-Identifier: Apache-2.0
 * `opscope watch`: a running program, look by look, until it or the user ends.
 * The table is drawn in place on a terminal: the cursor goes up over what was
 * drawn, and everything from there on is written anew. So no line may wrap, and
 * no more may be drawn than the terminal has rows; what does not fit is
 * counted. Into a pipe go lines, or JSON or CSV. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/io/sink.h"
#include "base/text/cut.h"
#include "cmd/command.h"
#include "cmd/watch_target.h"
#include "import/import.h"
#include "load/runs.h"
#include "present/present.h"
#include "present/width.h"
#include "scalars/logdir.h"
#include "scalars/scalar_table.h"
#include "scalars/watch_table.h"
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROFILE_PAUSE_S 2.0
enum { NAME = 28, VALUE = 12, ROWS = 24 };
enum { METRIC, RUN, STEP, AMOUNT, UNIT, TREND }; /* columns of watch_table */

/* The profile that is being recorded into a log folder. */
struct watch_profile {
    struct watch_steps steps; /* as last read */
    char *path;               /* of the file, or NULL */
    int64_t size, mtime_ns;   /* of it, when it was read */
    double next_s;            /* not again before this (monotonic) */
};

struct watch_draw {
    bool in_place;   /* a terminal that can move its cursor */
    size_t lines;    /* drawn last time */
    char *last_line; /* in a pipe: the last one, to print changes only */
};

struct watch {
    struct watch_target target;
    struct watch_profile profile;
    struct logdir logs;     /* when has_logs */
    struct scalars nothing; /* when not */
    bool has_logs;
    struct watch_line rss;
    double cpu_s, at_s; /* of the last look; at_s 0: none yet */
    struct watch_draw draw;
};

static double now_s(void) { return (double)clock_ns(CLOCK_MONOTONIC) * 1e-9; }

/* --- the profile that grows ---------------------------------------------- */

static int64_t mtime_of(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* The newest file counts; a growing file counts more than a finished one. */
struct newest {
    const char *path;
    bool part;
    int64_t mtime;
};

static void try_file(struct newest *best, const char *path) {
    struct stat st;
    bool part = bytes_ends(bytes_of(path), ".part");
    if (strstr(path, ".xplane.pb") == NULL || stat(path, &st) != 0) return;
    int64_t mtime = mtime_of(&st);
    if (best->path != NULL &&
        (part != best->part ? !part : mtime <= best->mtime))
        return;
    *best = (struct newest){path, part, mtime};
}

/* Returns the profile to look at, which the caller frees; NULL if there is
 * none. */
static char *find_profile(const char *logdir) {
    struct run_list runs;
    struct newest best = {0};
    if (runs_find(logdir, &runs, NULL) != 0) return NULL;
    for (size_t i = 0; i < runs.n; i++)
        for (size_t k = 0; k < runs.v[i].n; k++)
            try_file(&best, runs.v[i].files[k].path);
    char *path = best.path ? strdup(best.path) : NULL;
    runs_free(&runs);
    return path;
}

/* Finds the newest <logdir>/[.../]plugins/profile/<run>/<name>.xplane.pb.part,
 * else the newest .xplane.pb, and reads it if it has grown: at most every two
 * seconds, and at most a fifth of the time. Whatever cannot be read leaves the
 * steps as they were. */
static void look_at_profile(struct watch_profile *p, const char *logdir) {
    struct stat st;
    double start = now_s();
    if (start < p->next_s) return;
    char *path = find_profile(logdir);
    bool other = path == NULL || p->path == NULL || strcmp(path, p->path) != 0;
    free(p->path);
    p->path = path;
    if (path != NULL && stat(path, &st) == 0 &&
        (other || st.st_size != p->size || mtime_of(&st) != p->mtime_ns)) {
        p->size = st.st_size;
        p->mtime_ns = mtime_of(&st);
        struct import_opts o = {0};
        struct trace *t = trace_new();
        if (t != NULL && import_file(p->path, t, &o, NULL) == 0 &&
            trace_seal(t, NULL) == 0) {
            struct watch_steps now = watch_profile_steps(t);
            if (now.have) p->steps = now;
        }
        trace_free(t);
    }
    double took = now_s() - start;
    p->next_s = start +
                (5 * took > PROFILE_PAUSE_S ? 5 * took : PROFILE_PAUSE_S);
}

/* --- the table ----------------------------------------------------------- */

static const char *text_at(const struct result *r, size_t row, int col) {
    struct cell c = result_cell(r, row, (size_t)col);
    return c.null ? NULL : c.s;
}

/* Writes "12.34 ms", or "-". */
static void put_amount(const struct result *r, size_t row, char *buf,
                       size_t cap) {
    struct cell c = result_cell(r, row, AMOUNT);
    const char *unit = text_at(r, row, UNIT);
    double size = fabs(c.null ? 0 : c.f);
    if (c.null) snprintf(buf, cap, "-");
    else
        snprintf(buf, cap, size >= 1000 && size < 1e9 ? "%.0f%s%s" : "%.4g%s%s",
                 c.f, unit ? " " : "", unit ? unit : "");
}

/* Writes name, value, course, run and step, fitted into width columns. */
static void watch_row(const struct result *r, size_t row, size_t width,
                      struct sink *out) {
    char amount[64], where[300] = "";
    const char *run = text_at(r, row, RUN), *trend = text_at(r, row, TREND);
    struct cell step = result_cell(r, row, STEP);
    struct sink line;
    sink_memory(&line);
    put_amount(r, row, amount, sizeof amount);
    if (run != NULL)
        cut_fmt(where, sizeof where, "%s%.*s%sstep %lld",
                strcmp(run, ".") ? "" : "",
                CUT(200, strcmp(run, ".") ? run : ""),
                strcmp(run, ".") ? "  " : "", (long long)step.i);
    const char *name = text_at(r, row, METRIC);
    text_put_fit(&line, name, NAME, "...");
    size_t wide = text_width(name);
    sink_repeat(&line, " ", wide < NAME ? NAME - wide : 0);
    sink_printf(&line, " %*s  %s", VALUE, amount, trend ? trend : "");
    size_t drawn = trend ? text_width(trend) : 0;
    if (where[0]) sink_repeat(&line, " ", drawn < 18 ? 18 - drawn : 1);
    sink_puts(&line, where);
    sink_putc(&line, '\0');
    if (!line.broken) text_put_fit(out, line.buf, width, "...");
    sink_putc(out, '\n');
    sink_free(&line);
}

/* Draws the whole picture over the last one. */
static void draw(struct watch_draw *d, const char *title,
                 const struct result *r, size_t width, struct sink *out) {
    struct winsize ws;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 3;
    size_t most = (known ? ws.ws_row : ROWS) - 1, rows = r->nrows;
    size_t said = r->nremarks;
    char up[32] = "";
    if (d->lines > 0) snprintf(up, sizeof up, "\033[%zuA", d->lines);
    sink_control(out, up);
    sink_control(out, "\r\033[J");
    text_put_fit(out, title, width, "...");
    sink_puts(out, "\n\n");
    d->lines = 2;
    if (rows + d->lines + 1 > most)
        rows = most > d->lines + 1 ? most - d->lines - 1 : 0;
    for (size_t i = 0; i < rows; i++) watch_row(r, i, width, out);
    d->lines += rows;
    if (rows < r->nrows) {
        sink_printf(out, "and %zu more\n", r->nrows - rows);
        d->lines++;
    }
    for (size_t i = 0; i < said && d->lines < most; i++, d->lines++) {
        text_put_fit(out, r->remarks[i], width, "...");
        sink_putc(out, '\n');
    }
}

/* Shows one look, `title` above the table. Returns OPS_EIO with an empty
 * sentence if nobody reads any more. */
static int watch_draw(struct watch_draw *d, const char *title,
                      const struct result *r, const struct opts *o,
                      struct ops_err *e) {
    if (!show_as(o)->terminal) return show_result(r, o, e);
    struct sink out;
    sink_screen(&out, STDOUT_FILENO);
    int width = show_width(o);
    if (d->in_place) draw(d, title, r, width > 0 ? (size_t)width : 200, &out);
    else {
        /* Into a pipe goes a line with the time, when anything is new. */
        struct sink line;
        sink_memory(&line);
        /* Everything is in one line: name value, name value, ... */
        for (size_t i = 0; i < r->nrows; i++) {
            char amount[64];
            const char *run = text_at(r, i, RUN);
            if (result_cell(r, i, AMOUNT).null && run == NULL) continue;
            put_amount(r, i, amount, sizeof amount);
            sink_puts(&line, line.n > 0 ? "  " : "");
            if (run != NULL && strcmp(run, ".") != 0) {
                text_put(&line, run);
                sink_putc(&line, '/');
            }
            text_put(&line, text_at(r, i, METRIC));
            sink_printf(&line, " %s", amount);
        }
        sink_putc(&line, '\0');
        if (!line.broken && line.n > 1 &&
            (d->last_line == NULL || strcmp(d->last_line, line.buf) != 0)) {
            time_t now = time(NULL);
            struct tm tm;
            char clock[16] = "";
            if (localtime_r(&now, &tm) != NULL)
                strftime(clock, sizeof clock, "%H:%M:%S", &tm);
            sink_printf(&out, "%s  %s\n", clock, line.buf);
            free(d->last_line);
            d->last_line = strdup(line.buf);
        }
        sink_free(&line);
    }
    int rc = sink_flush(&out, e);
    sink_free(&out);
    return rc;
}

/* --- look by look -------------------------------------------------------- */

/* Adds up the processes; processor time is a share of the time since the last
 * look. */
static struct watch_facts facts_of(struct watch *w) {
    struct watch_facts f = {.processes = w->target.nprocs,
                            .cpu_pct = NAN,
                            .profile = w->profile.steps,
                            .rss = &w->rss};
    double cpu = 0, now = now_s();
    for (size_t i = 0; i < w->target.nprocs; i++) {
        const struct proc_stat *p = &w->target.procs[i];
        f.rss_bytes += p->rss_pages * sysconf(_SC_PAGESIZE);
        f.threads += p->threads;
        cpu += (double)(p->user_ticks + p->sys_ticks) /
               (double)sysconf(_SC_CLK_TCK);
    }
    if (f.processes > 0) watch_line_add(&w->rss, (double)f.rss_bytes);
    if (w->at_s > 0 && now > w->at_s && cpu >= w->cpu_s)
        f.cpu_pct = 100 * (cpu - w->cpu_s) / (now - w->at_s);
    w->cpu_s = cpu;
    w->at_s = now;
    return f;
}

/* Reads what is new. For a folder that is gone it shows what was there. */
static int look(struct watch *w, const struct opts *o, struct ops_err *e) {
    struct ops_err gone;
    char title[512];
    struct result r;
    int rc = 0;
    watch_target_look(&w->target);
    if (w->has_logs) rc = logdir_refresh(&w->logs, &gone);
    else if (w->target.logdir != NULL)
        rc = logdir_open(&w->logs, w->target.logdir, &gone);
    if (rc == 0 && w->target.logdir != NULL) w->has_logs = true;
    if (rc == OPS_ELIMIT) {
        *e = gone;
        return rc;
    }
    if (w->target.logdir != NULL)
        look_at_profile(&w->profile, w->target.logdir);
    struct watch_facts f = facts_of(w);
    struct scalar_view v = {
        .run = opts_text(o, "run"),
        .tag = opts_text(o, "tag"),
        .ascii = show_as(o)->terminal &&
                 strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
    };
    TRY(watch_table(&f, w->has_logs ? &w->logs.scalars : &w->nothing, &v, &r,
                    e));
    if (w->has_logs) logdir_describe(&w->logs, true, &r);
    const struct watch_target *t = &w->target;
    char who[120] = "no program writes here now";
    if (t->nprocs == 1)
        cut_fmt(who, sizeof who, "%s (pid %d)", t->procs[0].name,
                t->procs[0].pid);
    else if (t->nprocs > 1)
        cut_fmt(who, sizeof who, "%zu processes of %s", t->nprocs,
                t->procs[0].name);
    else if (t->ended) cut_fmt(who, sizeof who, "the program has ended");
    cut_fmt(title, sizeof title, "%.*s  %s",
            CUT(300, t->logdir ? t->logdir : "no log folder is known"), who);
    rc = watch_draw(&w->draw, title, &r, o, e);
    result_free(&r);
    return rc;
}

static int watch_run(const struct opts *o, int argc, char **argv,
                     struct ops_err *e) {
    struct watch w = {0};
    struct until_signal turns;
    if (argc != 1)
        return fail(e, OPS_EUSAGE,
                    "watch needs one log folder or the number "
                    "of a process");
    until_signal_start(&turns, o);
    TRY(watch_target_open(&w.target, argv[0], e));
    const char *term = getenv("TERM");
    w.draw.in_place = isatty(STDOUT_FILENO) && term != NULL &&
                      strcmp(term, "dumb") != 0 && show_as(o)->terminal;
    int rc = scalars_init(&w.nothing) ? 0 : fail_oom(e);
    if (rc == 0) rc = look(&w, o, e);
    while (rc == 0 && !w.target.ended && until_signal_wait(&turns))
        rc = look(&w, o, e);
    if (w.has_logs) logdir_free(&w.logs);
    scalars_free(&w.nothing);
    free(w.profile.path);
    watch_target_free(&w.target);
    free(w.draw.last_line);
    return rc;
}

static const struct opt watch_opts[] = {
    {"tag", 0, OPT_TEXT, "GLOB", NULL,
     .help = "only scalars whose tag matches; --run likewise"},
    {"interval", 0, OPT_FLOAT, "S", "1", .help = "look every S seconds",
     .limits = {0.01, 86400}},
    {"count", 0, OPT_INT, "N", NULL, .help = "stop after N looks",
     .limits = {1, OPT_NO_END}},
    {0},
};

const struct command command_watch = {
    .name = "watch",
    .args = "LOGDIR|PID",
    .help = "a running program: step time, memory, loss, live in the terminal",
    .more = "Draws over itself on a terminal; in a pipe it prints a line when "
            "something is new. Ends with Ctrl-C, or when the program that "
            "writes into LOGDIR has ended. Columns of JSON and CSV: metric, "
            "run, step, value, unit, trend.",
    .opts = watch_opts,
    .run = watch_run,
};
