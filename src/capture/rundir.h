/* SPDX-License-Identifier: Apache-2.0
 * The run's folder, <logdir>/plugins/profile/<run>: TensorBoard's form, into
 * which every process of the program writes files of its own. */
#ifndef CAPTURE_RUNDIR_H
#define CAPTURE_RUNDIR_H

#include "base/err.h"

struct rundir {
    char *logdir; /* absolute */
    char *path;   /* absolute: of the run's folder */
    char *name;   /* of the run */
    int made;     /* how many of the folders of path are new: the last ones */
};

/* Makes the folders that are not there. With name NULL it makes a run of its
 * own, named by the local time as TensorFlow does, with "_2" behind it where
 * there is one by that name: two at the same moment get two folders. A name
 * that was given may exist already: the hosts of a job write into one run. On
 * success the caller frees. */
int rundir_make(const char *logdir, const char *name, struct rundir *out,
                struct ops_err *e);
void rundir_free(struct rundir *d);

/* Removes the folders again that rundir_make made, as far as they are empty:
 * there was nothing to record. */
void rundir_unmake(const struct rundir *d);

#endif
