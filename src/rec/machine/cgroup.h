/* SPDX-License-Identifier: Apache-2.0
 * The control group of this process, version 1 or 2: the container's limits.
 *
 * A limit may be set at any level above the process; the tightest holds. Inside
 * a container the path in /proc/self/cgroup may be the host's, of which only
 * the lowest part is mounted: then the nearest level there is, is taken. */
#ifndef REC_MACHINE_CGROUP_H
#define REC_MACHINE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CGROUP_PATH = 1024 };

struct cgroup {
    char memory[CGROUP_PATH]; /* the folder with the figures; "": none */
    char cpu[CGROUP_PATH];    /* the lowest level with a quota; "": no quota */
    bool memory_v2, cpu_v2;
    uint64_t memory_limit; /* bytes; 0: none */
    double cpu_limit;      /* cores; 0: none */
};

/* Finds the group by the text of /proc/self/cgroup; root: "/sys/fs/cgroup". */
void cgroup_find(struct cgroup *g, const char *text, const char *root);

/* Finds the process's own group. */
void cgroup_self(struct cgroup *g);

/* Open the memory in use, and the throttling (of the level with a quota).
 * Return a descriptor, or -1. The unit of the latter: cpu.stat "throttled_usec"
 * (v2) or "throttled_time" in ns (v1). */
int cgroup_open_memory(const struct cgroup *g);
int cgroup_open_cpu(const struct cgroup *g);

/* Returns how many bytes the container still allows: also those that hold
 * copies of files, which the system drops when somebody needs memory. A
 * container that has read or written much is always full of them. UINT64_MAX if
 * there is no limit. */
uint64_t cgroup_memory_left(const struct cgroup *g);

#endif
