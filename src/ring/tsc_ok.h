/* SPDX-License-Identifier: Apache-2.0
 * May the CPU's own counter be the clock? Only where the kernel itself trusts
 * it: it ticks at one rate whatever the CPU does, and alike on all CPUs. */
#ifndef RING_TSC_OK_H
#define RING_TSC_OK_H

#include <stdbool.h>
#include <stddef.h>

/* x86-64: invariant (CPUID), allowed (prctl) and the kernel's clock source.
 * aarch64: cntvct_el0, always. Others: no. When not, why[cap] says the reason,
 * else it is "". */
bool tsc_usable(char *why, size_t cap);

/* The rule behind it, for x86: source is the kernel's current clock source,
 * "" when it does not say (gVisor). */
bool tsc_trusted(bool invariant, bool allowed, const char *source, char *why,
                 size_t cap);

#endif
