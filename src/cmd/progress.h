/* SPDX-License-Identifier: Apache-2.0
 * A progress bar on stderr: only on a terminal, and only for work that takes
 * more than a second. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    int64_t start_ms, drawn_ms; /* monotonic; drawn_ms 0: never drawn */
    bool on;                    /* stderr is a terminal */
};

void progress_start(struct progress *p);

/* Draws when it is time to; ctx is a struct progress. Call it as often as you
 * like: it looks at the clock and returns true. One thread at a time. */
bool progress_show(void *ctx, uint64_t done, uint64_t all);

/* Wipes the bar, if one was drawn. */
void progress_end(struct progress *p);

#endif
