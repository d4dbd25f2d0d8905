/* SPDX-License-Identifier: Apache-2.0
 * The time of a clock of the system, as one number. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns nanoseconds of CLOCK_MONOTONIC, CLOCK_REALTIME, ... */
static inline int64_t clock_ns(clockid_t clock) {
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#endif
