/* SPDX-License-Identifier: Apache-2.0
 * The table of `opscope watch` on a terminal (drawn over itself), or as lines
 * in a pipe, or as JSON or CSV. */
#ifndef CMD_WATCH_DRAW_H
#define CMD_WATCH_DRAW_H

#include "base/opt.h"
#include "model/result.h"
#include <stdbool.h>

struct watch_draw {
    bool in_place;   /* a terminal that can move its cursor */
    size_t lines;    /* drawn last time */
    char *last_line; /* in a pipe: the last one, to print changes only */
};

void watch_draw_init(struct watch_draw *d, const struct opts *o);
void watch_draw_free(struct watch_draw *d);

/* One look: `title` above the table. Says OPS_EIO with an empty sentence when
 * nobody reads any more. */
int watch_draw(struct watch_draw *d, const char *title, const struct result *r,
               const struct opts *o, struct ops_err *e);

#endif
