/* SPDX-License-Identifier: Apache-2.0
 * Which form a result takes, and what the terminal can do. */
#include "cmd/command.h"

#include "present/present.h"
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIPE_WIDTH = 120 };

const struct presenter *show_as(const struct opts *o) {
    return presenter_find(opts_text(o, "format"));
}

/* Returns the width of the screen that fd is. */
static int width_of(const struct opts *o, int fd) {
    if (opts_given(o, "width")) return (int)opts_int(o, "width");
    struct winsize ws;
    if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0) return ws.ws_col;
    const char *env = getenv("COLUMNS");
    int w = env ? atoi(env) : 0;
    return w > 0 && w <= SHOW_WIDTH_MAX ? w : PIPE_WIDTH;
}

int show_width(const struct opts *o) { return width_of(o, STDOUT_FILENO); }

static bool want_color(const struct opts *o, int fd) {
    const char *color = opts_text(o, "color");
    if (strcmp(color, "auto") != 0) return strcmp(color, "always") == 0;
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

int show_result(const struct result *r, const struct opts *o,
                struct ops_err *e) {
    return show_result_on(STDOUT_FILENO, r, o, e);
}

int show_result_on(int fd, const struct result *r, const struct opts *o,
                   struct ops_err *e) {
    struct sink out;
    sink_screen(&out, fd);
    struct text_style st = {
        .width = width_of(o, fd),
        .color = want_color(o, fd),
        .unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .detail = opts_flag(o, "verbose"),
        .quiet = opts_flag(o, "quiet"),
    };
    show_as(o)->put(r, &st, &out);
    int rc = sink_flush(&out, e);
    sink_free(&out);
    return rc;
}

/* A line is one write: lines of two processes do not mix. No memory is asked
 * for, since the line may say that there is none. */
void vsay(const char *fmt, va_list ap) {
    char line[8192] = "opscope: ";
    size_t n = strlen(line), room = sizeof line - n - 1; /* the line feed */
    int k = vsnprintf(line + n, room, fmt, ap);
    if (k > 0) n += (size_t)k < room ? (size_t)k : room - 1;
    sink_line(STDERR_FILENO, line, n);
}

void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
}
