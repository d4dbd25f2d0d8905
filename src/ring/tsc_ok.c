/* SPDX-License-Identifier: Apache-2.0
 * See tsc_ok.h. The kernel measures at boot, and goes on watching, whether the
 * counters of all CPUs agree; it moves to another clock source when they do
 * not. That it still uses the TSC is therefore the best evidence there is;
 * CPUID's flag alone is not enough (many sockets, some hypervisors). Under
 * kvm-clock or Hyper-V's page the guest may be moved to a machine with another
 * rate, so there the answer is no too. */
#include "ring/tsc_ok.h"
#include "ring/procfile.h"

#include <stdio.h>
#include <string.h>

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

#include <cpuid.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool is_invariant(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d)) return false;
    return (d >> 8 & 1) != 0;
}

/* A process may have rdtsc raise SIGSEGV: asking first keeps it alive. */
static bool is_allowed(void) {
    int mode = PR_TSC_ENABLE;
    return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
}

bool tsc_usable(char *why, size_t cap) {
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/"
                               "current_clocksource";
    char source[64];
    if (procfile_read_line(AT_FDCWD, path, source, sizeof source) < 0)
        source[0] = '\0';
    return tsc_trusted(is_invariant(), is_allowed(), source, why, cap);
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
