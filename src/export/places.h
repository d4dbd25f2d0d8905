/* SPDX-License-Identifier: Apache-2.0
 * Where tracks go in formats that know processes and threads: a process per
 * device and per host process, each number used once in the whole file, as
 * recorded where that is possible. The ranks of a job may have had the same
 * pids, and a device the number of a process. */
#ifndef EXPORT_PLACES_H
#define EXPORT_PLACES_H

#include "base/map.h"
#include "model/trace.h"

struct place {
    uint32_t process; /* index in places.processes */
    int64_t tid;      /* a Python track has that of its thread */
};

struct process {
    int64_t pid;
    uint32_t source, device; /* device: ROW_NONE for a host's */
    uint64_t next_tid;       /* above all that were recorded in it */
};

struct places {
    struct place *tracks; /* by track */
    struct process *processes;
    size_t n, cap;
    uint32_t *of_source; /* a host's process of each source, or ROW_NONE */
    uint32_t *of_device; /* that of each device, or ROW_NONE */
    struct map known, pids, tids; /* only while placing */
    uint64_t next_pid;
};

/* Places all tracks. Returns false if out of memory; p must be freed either
 * way. O(tracks). */
bool places_init(struct places *p, const struct trace *t);
void places_free(struct places *p);

static inline int64_t places_pid(const struct places *p, uint32_t track) {
    return p->processes[p->tracks[track].process].pid;
}

/* Returns a process for what has no track of its own: the device's, else the
 * source's, else 0. */
int64_t places_pid_of(const struct places *p, uint32_t source, uint32_t device);

#endif
