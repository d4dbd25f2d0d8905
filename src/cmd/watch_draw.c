/* SPDX-License-Identifier: Apache-2.0
 * Drawing in place: the cursor goes up over what was drawn, and everything from
 * there on is written anew. So no line may wrap, and no more be drawn than the
 * terminal has rows; what does not fit is counted. */
#include "cmd/watch_draw.h"

#include "base/io/sink.h"
#include "cmd/show.h"
#include "present/present.h"
#include "present/width.h"
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 28, VALUE = 12, ROWS = 24 };
enum { METRIC, RUN, STEP, AMOUNT, UNIT, TREND }; /* columns of watch_table */

void watch_draw_init(struct watch_draw *d, const struct opts *o) {
    const char *term = getenv("TERM");
    *d = (struct watch_draw){0};
    d->in_place = isatty(STDOUT_FILENO) && term != NULL &&
                  strcmp(term, "dumb") != 0 &&
                  strcmp(opts_text(o, "format"), "text") == 0;
}

void watch_draw_free(struct watch_draw *d) {
    free(d->last_line);
    *d = (struct watch_draw){0};
}

static size_t terminal_rows(void) {
    struct winsize ws;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 3)
        return ws.ws_row;
    return ROWS;
}

static const char *text_at(const struct result *r, size_t row, int col) {
    struct cell c = result_cell(r, row, (size_t)col);
    return c.null ? NULL : c.s;
}

/* 12.34 ms, or "-". */
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

/* name, value, course, run and step: fitted into width columns. */
static void put_row(const struct result *r, size_t row, size_t width,
                    struct sink *out) {
    char amount[64], where[300] = "";
    const char *run = text_at(r, row, RUN), *trend = text_at(r, row, TREND);
    struct cell step = result_cell(r, row, STEP);
    struct sink line;
    sink_memory(&line);
    put_amount(r, row, amount, sizeof amount);
    if (run != NULL)
        snprintf(where, sizeof where, "%s%.200s%sstep %lld",
                 strcmp(run, ".") ? "" : "", strcmp(run, ".") ? run : "",
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

/* The whole picture over the last one. */
static void draw(struct watch_draw *d, const char *title,
                 const struct result *r, size_t width, struct sink *out) {
    size_t most = terminal_rows() - 1, rows = r->nrows, said = r->nremarks;
    char up[32] = "";
    if (d->lines > 0) snprintf(up, sizeof up, "\033[%zuA", d->lines);
    sink_control(out, up);
    sink_control(out, "\r\033[J");
    text_put_fit(out, title, width, "...");
    sink_puts(out, "\n\n");
    d->lines = 2;
    if (rows + d->lines + 1 > most)
        rows = most > d->lines + 1 ? most - d->lines - 1 : 0;
    for (size_t i = 0; i < rows; i++) put_row(r, i, width, out);
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

/* Everything in one line: name value, name value, ... */
static void put_line(const struct result *r, struct sink *out) {
    for (size_t i = 0; i < r->nrows; i++) {
        char amount[64];
        const char *run = text_at(r, i, RUN);
        if (result_cell(r, i, AMOUNT).null && run == NULL) continue;
        put_amount(r, i, amount, sizeof amount);
        sink_puts(out, out->n > 0 ? "  " : "");
        if (run != NULL && strcmp(run, ".") != 0) {
            text_put(out, run);
            sink_putc(out, '/');
        }
        text_put(out, text_at(r, i, METRIC));
        sink_printf(out, " %s", amount);
    }
}

/* In a pipe: a line with the time, when anything is new. */
static void put_changed(struct watch_draw *d, const struct result *r,
                        struct sink *out) {
    struct sink line;
    sink_memory(&line);
    put_line(r, &line);
    sink_putc(&line, '\0');
    if (!line.broken && line.n > 1 &&
        (d->last_line == NULL || strcmp(d->last_line, line.buf) != 0)) {
        time_t now = time(NULL);
        struct tm tm;
        char clock[16] = "";
        if (localtime_r(&now, &tm) != NULL)
            strftime(clock, sizeof clock, "%H:%M:%S", &tm);
        sink_printf(out, "%s  %s\n", clock, line.buf);
        free(d->last_line);
        d->last_line = strdup(line.buf);
    }
    sink_free(&line);
}

int watch_draw(struct watch_draw *d, const char *title, const struct result *r,
               const struct opts *o, struct ops_err *e) {
    if (strcmp(opts_text(o, "format"), "text") != 0)
        return show_result(r, o, e);
    struct sink out;
    sink_screen(&out, STDOUT_FILENO);
    int width = show_width(o);
    if (d->in_place) draw(d, title, r, width > 0 ? (size_t)width : 200, &out);
    else put_changed(d, r, &out);
    int rc = sink_flush(&out, e);
    sink_free(&out);
    return rc;
}
