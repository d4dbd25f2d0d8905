/* SPDX-License-Identifier: Apache-2.0
 * Signals are blocked and fetched, not handled: there is no state to share with
 * a handler, and a write is never interrupted. */
#include "cmd/until_signal.h"

#include <signal.h>
#include <time.h>

static void stop_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

int until_signal_start(struct until_signal *l, const struct opts *o,
                       struct ops_err *e) {
    sigset_t set;
    l->left = opts_given(o, "count") ? opts_int(o, "count") : -1;
    l->pause_s = opts_float(o, "interval");
    if (opts_given(o, "count") && l->left < 1)
        return fail(e, OPS_EUSAGE, "--count needs 1 or more");
    if (!(l->pause_s >= 0.01 && l->pause_s <= 86400))
        return fail(e, OPS_EUSAGE, "--interval needs 0.01 to 86400 seconds");
    stop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return 0;
}

bool until_signal_wait(struct until_signal *l) {
    sigset_t set;
    if (l->left > 0 && --l->left == 0) return false;
    stop_signals(&set);
    struct timespec pause = {
        .tv_sec = (time_t)l->pause_s,
        .tv_nsec = (long)((l->pause_s - (double)(time_t)l->pause_s) * 1e9),
    };
    /* another signal (a stop and a continue) only makes this look earlier */
    return sigtimedwait(&set, NULL, &pause) < 0;
}
