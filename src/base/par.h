/* SPDX-License-Identifier: Apache-2.0
 * Two pieces of work at once, where a second thread pays. */
#ifndef BASE_PAR_H
#define BASE_PAR_H

#include <stdbool.h>

/* One piece of work; it returns false if it ran out of memory. */
struct work {
    bool (*run)(void *ctx);
    void *ctx;
};

/* Runs both, the second in a thread of its own when threads > 1 (and one can be
 * had). Returns true if both succeed. They must not touch the same data. */
bool par_both(struct work a, struct work b, int threads);

#endif
