/* SPDX-License-Identifier: Apache-2.0
 * The profile that is being recorded into a log folder, read again as it
 * grows. */
#ifndef CMD_WATCH_PROFILE_H
#define CMD_WATCH_PROFILE_H

#include "scalars/watch_table.h"

struct watch_profile {
    struct watch_steps steps; /* as last read */
    char *path;               /* of the file, or NULL */
    int64_t size, mtime_ns;   /* of it, when it was read */
    double next_s;            /* not again before this (monotonic) */
};

/* Finds the newest <logdir>/[.../]plugins/profile/<run>/<name>.xplane.pb.part,
 * else the newest .xplane.pb, and reads it if it has grown: at most every two
 * seconds, and at most a fifth of the time. Whatever cannot be read leaves the
 * steps as they were. */
void watch_profile_look(struct watch_profile *p, const char *logdir);

void watch_profile_free(struct watch_profile *p);

#endif
