/* SPDX-License-Identifier: Apache-2.0
 * To be preloaded: a wall clock that somebody sets, an hour forth and two back,
 * again and again. The other clocks are left alone. */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts) {
    static unsigned calls;
    long rc = syscall(SYS_clock_gettime, clock, ts);
    if (clock != CLOCK_REALTIME || rc != 0) return (int)rc;
    unsigned n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) / 16;
    ts->tv_sec += n % 2 ? 3600 : -3600 * (long)(n % 5);
    return 0;
}
