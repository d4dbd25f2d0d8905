/* SPDX-License-Identifier: Apache-2.0
 * What was asked for: ops_options with the defaults filled in, and before both
 * the environment, so that `opscope record` has the last word; but the first
 * three of those below have no say if the program asks for that (as_given).
 *
 *     OPSCOPE_LOGDIR      the log folder
 *     OPSCOPE_RUN         the run's folder in it
 *     OPSCOPE_STEPS       which steps
 *     OPSCOPE=1           start when the program is loaded; OPSCOPE=0: never
 *     OPSCOPE_FLIGHT=1    flight recorder
 *     OPSCOPE_SIGNAL      a number: dumps, or captures on demand
 *     OPSCOPE_RING_BYTES, OPSCOPE_MEMORY_BYTES
 *     OPSCOPE_SHM         the folder for rings, in memory
 *     OPSCOPE_LAUNCH      a number: which `opscope record` this is under
 *     OPSCOPE_MACHINE=0, OPSCOPE_TSC=0, OPSCOPE_FORK=0     switch off
 *     OPSCOPE_DEMAND=0    leaves the file opscope.capture to others */
#ifndef REC_SETTINGS_H
#define REC_SETTINGS_H

#include <limits.h>

#include "opscope/record.h"

/* Options with their strings copied, and what the environment says. */
struct settings {
    struct ops_options o;
    char logdir[PATH_MAX]; /* absolute once started */
    char steps[1024], host[256], run[256];
    char memory[PATH_MAX]; /* the folder for ring files; "": /dev/shm */
    uint64_t launch;       /* which `opscope record` we are under, or 0 */
    bool automatic;        /* started by the environment at load */
    bool child;            /* of a fork: named by its pid */
    const char *wrong;     /* a text that there is no room for; or NULL */
};

/* size is that of the caller's struct ops_options, older or newer. */
void settings_read(struct settings *set, const char *logdir,
                   const struct ops_options *o, size_t size);
/* Returns what is impossible in the settings; NULL if nothing is. */
const char *settings_wrong(const struct settings *set);
/* Makes the settings those of a child of fork: same run, no rank of its own. */
void settings_child(struct settings *set);
/* Does the environment ask for a start at load? */
bool settings_automatic(void);
/* Does the environment forbid recording? */
bool settings_forbidden(void);

#endif
