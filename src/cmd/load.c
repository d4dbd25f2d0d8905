/* SPDX-License-Identifier: Apache-2.0
 * Loading as the command line does it: options, and a progress bar on stderr,
 * drawn only on a terminal and for work that takes more than a second. */
#include "cmd/command.h"

#include "base/clock.h"
#include "base/io/sink.h"
#include "import/import.h"
#include "load/profiles.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS INT64_C(1000000000)
#define AGAIN_NS INT64_C(100000000)
enum { WIDTH = 30 };

/* Draws over the line where the cursor is; none of it is from outside. */
static void bar_draw(const char *line) {
    struct sink out;
    sink_screen(&out, STDERR_FILENO);
    sink_control(&out, line);
    sink_flush(&out, NULL);
    sink_free(&out);
}

/* Draws when it is time to; ctx is a struct load_bar. */
static bool bar_show(void *ctx, uint64_t done, uint64_t all) {
    struct load_bar *p = ctx;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!p->on || all == 0 || now - p->start_ns < FIRST_NS ||
        now - p->drawn_ns < AGAIN_NS)
        return true;
    p->drawn_ns = now;
    double share = done >= all ? 1 : (double)done / (double)all;
    char bar[WIDTH + 1] = {0}, line[WIDTH + 32];
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)(share * WIDTH));
    snprintf(line, sizeof line, "\rreading [%s] %3d%% ", bar,
             (int)(share * 100));
    bar_draw(line);
    return true;
}

struct import_opts load_bar_start(struct load_bar *bar, const struct opts *o) {
    *bar = (struct load_bar){.start_ns = clock_ns(CLOCK_MONOTONIC),
                             .on = isatty(STDERR_FILENO)};
    return (struct import_opts){
        .threads = (int)opts_int(o, "threads"),
        .progress = bar_show,
        .progress_ctx = bar,
    };
}

void load_bar_end(struct load_bar *bar) {
    char line[WIDTH + 32];
    if (bar->drawn_ns == 0) return;
    snprintf(line, sizeof line, "\r%*s\r", WIDTH + 20, "");
    bar_draw(line);
}

int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e) {
    if (argc == 0)
        return fail(e, OPS_EUSAGE,
                    "a PATH is missing: a profile file, a run "
                    "folder or a log folder");
    struct load_bar bar;
    struct import_opts io = load_bar_start(&bar, o);
    int rc = profiles_open(argv, (size_t)argc, opts_text(o, "run"), &io, out,
                           e);
    load_bar_end(&bar);
    return rc;
}
