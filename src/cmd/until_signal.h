/* SPDX-License-Identifier: Apache-2.0
 * Commands that go on until they are told to stop wait here between two looks,
 * such that Ctrl-C ends the command in order, with exit status 0. */
#ifndef CMD_UNTIL_SIGNAL_H
#define CMD_UNTIL_SIGNAL_H

#include "base/opt.h"
#include <stdbool.h>

/* The looks that --count allows, and the pause between two that --interval asks
 * for. Both options must be in o's tables. */
struct until_signal {
    int64_t left; /* looks; -1: no end */
    double pause_s;
};

/* Blocks SIGINT and SIGTERM: until_signal_wait() takes them. */
int until_signal_start(struct until_signal *l, const struct opts *o,
                       struct ops_err *e);

/* Waits for the pause to pass. Returns false if that was the last look, or the
 * user wants to stop. */
bool until_signal_wait(struct until_signal *l);

#endif
