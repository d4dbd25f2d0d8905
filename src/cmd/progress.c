/* SPDX-License-Identifier: Apache-2.0
 * The progress bar. */
#include "cmd/progress.h"

#include "base/io/sink.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, AGAIN_MS = 100, WIDTH = 30 };

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Draws over the line where the cursor is; none of it is from outside. */
static void draw(const char *line) {
    struct sink out;
    sink_screen(&out, STDERR_FILENO);
    sink_control(&out, line);
    sink_flush(&out, NULL);
    sink_free(&out);
}

void progress_start(struct progress *p) {
    *p = (struct progress){.start_ms = now_ms(), .on = isatty(STDERR_FILENO)};
}

bool progress_show(void *ctx, uint64_t done, uint64_t all) {
    struct progress *p = ctx;
    if (!p->on || all == 0) return true;
    int64_t now = now_ms();
    if (now - p->start_ms < FIRST_MS || now - p->drawn_ms < AGAIN_MS)
        return true;
    p->drawn_ms = now;
    double share = done >= all ? 1 : (double)done / (double)all;
    int n = (int)(share * WIDTH);
    char bar[WIDTH + 1];
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)n);
    bar[WIDTH] = '\0';
    char line[WIDTH + 32];
    snprintf(line, sizeof line, "\rreading [%s] %3d%% ", bar,
             (int)(share * 100));
    draw(line);
    return true;
}

void progress_end(struct progress *p) {
    if (p->drawn_ms == 0) return;
    char line[WIDTH + 32];
    snprintf(line, sizeof line, "\r%*s\r", WIDTH + 20, "");
    draw(line);
}
