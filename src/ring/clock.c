/* SPDX-License-Identifier: Apache-2.0
 * Reading, measuring and bending the clock.
 *
 * Whether the CPU's counter may be the clock: the kernel measures at boot, and
 * goes on watching, whether the counters of all CPUs agree; it moves to another
 * clock source when they do not. That it still uses the TSC is therefore the
 * best evidence there is; CPUID's flag alone is not enough (many sockets, some
 * hypervisors). Under kvm-clock or Hyper-V's page the guest may be moved to a
 * machine with another rate, so there the answer is no too. */
#include "ring/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ring/procfile.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/prctl.h>
#endif

bool rec_clock_tsc;

enum { READINGS = 9, CALIBRATE_NS = 2000000 };
#define NS_PS  1000u
#define SEC_NS 1000000000ull

/* --- may the CPU's counter be the clock? --------------------------------- */

static bool no(char *why, size_t cap, const char *text, const char *detail) {
    snprintf(why, cap, "%s%s", text, detail);
    return false;
}

bool tsc_trusted(bool invariant, bool allowed, const char *source, char *why,
                 size_t cap) {
    if (cap > 0) why[0] = '\0';
    if (!allowed) return no(why, cap, "reading the TSC is forbidden", "");
    if (!invariant)
        return no(why, cap, "the CPU does not promise a constant rate", "");
    if (source[0] == '\0')
        return no(why, cap, "the kernel does not say which clock it uses", "");
    if (strcmp(source, "tsc") != 0)
        return no(why, cap, "the kernel's clock source is ", source);
    return true;
}

#if defined(__x86_64__)

bool tsc_usable(char *why, size_t cap) {
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/"
                               "current_clocksource";
    char source[64];
    if (procfile_read_line(AT_FDCWD, path, source, sizeof source) < 0)
        source[0] = '\0';
    unsigned a, b, c, d = 0;
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
    /* A process may have rdtsc raise SIGSEGV: asking first keeps it alive. */
    int mode = PR_TSC_ENABLE;
    bool allowed = prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
    return tsc_trusted(invariant, allowed, source, why, cap);
}

#elif defined(__aarch64__)

bool tsc_usable(char *why, size_t cap) {
    if (cap > 0) why[0] = '\0';
    return true; /* the architecture promises one rate, the same everywhere */
}

#else

bool tsc_usable(char *why, size_t cap) {
    return no(why, cap, "no counter is known for this CPU", "");
}

#endif

/* --- reading it ---------------------------------------------------------- */

static int64_t unix_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * (int64_t)SEC_NS + ts.tv_nsec;
}

struct rec_instant rec_clock_read(void) {
    struct rec_instant best = {0, 0, 0};
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t t0 = rec_ticks(), m = rec_mono_ns();
        uint64_t t1 = rec_ticks();
        int64_t u = unix_ns();
        uint64_t m1 = rec_mono_ns();
        if (t1 - t0 >= width) continue;
        width = t1 - t0;
        best.tick = t0 + (t1 - t0) / 2;
        best.mono_ns = m;
        best.unix_ns = u - (int64_t)((m1 - m) / 2);
    }
    return best;
}

/* Returns ps per tick * 2^32 between two instants; 0 if they are too close. */
static uint64_t rate(const struct rec_instant *a, const struct rec_instant *b) {
    uint64_t ticks = b->tick - a->tick, ns = b->mono_ns - a->mono_ns;
    if (b->tick <= a->tick || b->mono_ns <= a->mono_ns) return 0;
    return (uint64_t)(((unsigned __int128)ns * NS_PS << 32) / ticks);
}

static void set_tsc(bool on) { REC_PUT(&rec_clock_tsc, on); }

struct rec_instant rec_clock_begin(bool use_tsc) {
    char why[128];
    set_tsc(use_tsc && tsc_usable(why, sizeof why));
    return rec_clock_read();
}

void rec_clock_start(struct rec_head *h, struct rec_seg *segs,
                     const struct rec_instant *first) {
    struct rec_instant start;
    uint64_t mult = 0;
    if (rec_clock_is_tsc()) {
        /* two instants on the CPU's counter, far enough apart */
        uint64_t gone = rec_mono_ns() - first->mono_ns;
        struct timespec ts = {0, (long)(CALIBRATE_NS - gone)};
        if (gone < CALIBRATE_NS) nanosleep(&ts, NULL);
        start = rec_clock_read();
        mult = rate(first, &start);
    }
    if (mult == 0) { /* the counter does not run, or is not to be used */
        set_tsc(false);
        start = rec_clock_read();
        mult = (uint64_t)NS_PS << 32;
    }
    h->tsc = rec_clock_is_tsc();
    h->start_tick = start.tick;
    h->start_mono_ns = start.mono_ns;
    h->start_unix_ns = start.unix_ns;
    /* least becomes the smallest step between two reads, in ticks: 1 on most
     * machines; where reading takes longer than a tick, the time of a read. */
    uint64_t least = UINT64_MAX, last = rec_ticks();
    for (int i = 0; i < 1000; i++) {
        uint64_t t = rec_ticks();
        if (t > last && t - last < least) least = t - last;
        last = t;
    }
    if (least == UINT64_MAX) least = 0;
    h->clock_resolution_ps = (uint64_t)((unsigned __int128)least * mult >> 32);
    segs[0] = (struct rec_seg){start.tick, 0, mult};
    REC_PUBLISH(&h->nsegs, 1);
}

/* Returns the time between two bends. It is short at first, when the guess is
 * rough; then a second, and after an hour or so longer and longer: the table is
 * finite, and by then the frequency is known to a part in 10^9. When the table
 * is full the line stays straight. */
static uint64_t bend_every_ns(uint32_t n) {
    if (n < 4) return (SEC_NS / 64) << (2 * n - 2);
    if (n < 256) return SEC_NS;
    return n < 1024 ? 10 * SEC_NS : 60 * SEC_NS;
}

void rec_clock_bend(struct rec_head *h, struct rec_seg *segs) {
    uint32_t n = h->nsegs, at = n - 1;
    if (!rec_clock_is_tsc() || n >= REC_SEGS) return;
    uint64_t ps = rec_clock_ps(segs, n, &at, rec_ticks());
    uint64_t every = bend_every_ns(n);
    if (ps - segs[n - 1].ps < every * NS_PS) return;

    struct rec_instant start = {h->start_tick, h->start_mono_ns, 0};
    struct rec_instant now = rec_clock_read();
    uint64_t mult = rate(&start, &now);
    if (mult == 0) return;
    struct rec_seg *s = &segs[n];
    s->tick = now.tick;
    s->ps = rec_clock_ps(segs, n, &at, now.tick);
    uint64_t truth = (now.mono_ns - h->start_mono_ns) * NS_PS;
    int64_t off = (int64_t)(truth - s->ps);
    if (off > (int64_t)(SEC_NS * NS_PS / 1000)) {
        s->ps = truth; /* the machine slept: a gap, not a slope */
        off = 0;
    }
    /* The line makes up for `off` until the next bend, by 1000 ppm at most. */
    double bend = (double)off / (double)(bend_every_ns(n + 1) * NS_PS);
    if (bend > 1e-3) bend = 1e-3;
    if (bend < -1e-3) bend = -1e-3;
    s->mult = (uint64_t)((double)mult * (1 + bend));
    REC_PUBLISH(&h->nsegs, n + 1);
}
