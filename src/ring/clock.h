/* SPDX-License-Identifier: Apache-2.0
 * Ticks, and what time they are. The path of a call only reads ticks: the CPU's
 * time stamp counter where it runs evenly, else nanoseconds. Ticks become
 * picoseconds when the flusher writes them, by segments of a line that never
 * goes back and is bent once a second towards CLOCK_MONOTONIC: a wrong first
 * guess of the frequency heals without a jump, and old ticks keep the time that
 * was given to them. */
#ifndef RING_CLOCK_H
#define RING_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "ring/ring.h"

/* Says whether ticks are the CPU's; it is set once, before the first
 * session. */
extern bool rec_clock_tsc __attribute__((visibility("hidden")));

static inline bool rec_clock_is_tsc(void) { return REC_LOAD(&rec_clock_tsc); }

static inline uint64_t rec_mono_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns the CPU's ticks, for where rec_clock_tsc is set. */
static inline uint64_t rec_counter(void) {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return 0; /* never set */
#endif
}

static inline uint64_t rec_ticks(void) {
    if (__builtin_expect(rec_clock_is_tsc(), 1)) return rec_counter();
    return rec_mono_ns();
}

/* One instant on all clocks: the tightest of several readings. */
struct rec_instant {
    uint64_t tick, mono_ns;
    int64_t unix_ns;
};
struct rec_instant rec_clock_read(void);

/* May the CPU's own counter be the clock? It may only where the kernel itself
 * trusts it: it ticks at one rate whatever the CPU does, and alike on all CPUs.
 * On x86-64 it must be invariant (CPUID), allowed (prctl) and the kernel's
 * clock source; on aarch64 cntvct_el0 always is; elsewhere it may not. If not,
 * why[cap] says the reason, else it is "". */
bool tsc_usable(char *why, size_t cap);

/* The rule for x86: source is the kernel's current clock source, "" when the
 * kernel does not say (gVisor). */
bool tsc_trusted(bool invariant, bool allowed, const char *source, char *why,
                 size_t cap);

/* Takes the TSC unless it cannot be trusted or use_tsc is false. The counter is
 * measured from here to rec_clock_start, which waits until that is 2 ms: there
 * are things to do meanwhile. */
struct rec_instant rec_clock_begin(bool use_tsc);
/* Fills the head's clock fields and its first segment: time 0 is now. */
void rec_clock_start(struct rec_head *h, struct rec_seg *segs,
                     const struct rec_instant *first);

/* Bends the line when it is time to; only the flusher calls it. */
void rec_clock_bend(struct rec_head *h, struct rec_seg *segs);

/* Returns the time of a tick, in picoseconds since the start of the session;
 * ticks before the start are 0. Exact and monotone. *at is which segment was
 * used last, a hint that the caller keeps. */
static inline uint64_t rec_clock_ps(const struct rec_seg *segs, uint32_t n,
                                    uint32_t *at, uint64_t tick) {
    uint32_t i = *at;
    if (__builtin_expect(i >= n || tick < segs[i].tick ||
                             (i + 1 < n && tick >= segs[i + 1].tick),
                         0)) {
        i = n - 1;
        while (i > 0 && tick < segs[i].tick) i--;
        *at = i;
    }
    const struct rec_seg *s = &segs[i];
    if (tick < s->tick) return s->ps;
    return s->ps +
           (uint64_t)((unsigned __int128)(tick - s->tick) * s->mult >> 32);
}

#endif
