/* SPDX-License-Identifier: Apache-2.0
 * Runs a program to its end, watching it and all its descendants. The program
 * notices nothing: it has our terminal, our descriptors and our process group,
 * and the signals' masks and dispositions that we were started with. What it
 * records goes into the run's folder. */
#ifndef CAPTURE_LAUNCH_H
#define CAPTURE_LAUNCH_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree;

/* The run's folder, <logdir>/plugins/profile/<run>: TensorBoard's form, into
 * which every process of the program writes files of its own (rundir.c). */
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

/* What the processes of a program recorded themselves, in that folder: profiles
 * that they closed, and rings of those that died (see ring/ring.h), which a
 * pointer file "<stem>.ring" beside the profile leads to. */

/* Returns how many processes of the tree live and record into this folder. */
size_t recover_run_live(const char *dir, const struct tree *tree);

/* Did any process begin to record into this folder? */
bool recover_run_any(const char *dir);

struct run_recovered {
    size_t profiles; /* files that processes wrote, the saved ones included */
    size_t saved;    /* recordings that were finished for a dead process */
    size_t failed;   /* those that could not be; the first one: */
    char why[300];
    uint64_t events; /* in the saved ones */
    uint64_t rest;   /* of these: taken from memory, not yet in a file */
    uint64_t drops;  /* that the dead processes had counted */
};

/* Finishes the recordings that dead processes left in the folder, and adds them
 * to out. Rings of living processes are left alone, and, unless the folder is
 * `alone` for this tree, those of others. While the program runs this gives
 * back the memory of processes that have ended. */
void recover_run_dead(const char *dir, const struct tree *tree, bool alone,
                      struct run_recovered *out);
/* Does the same for the last time, and counts what there is. */
void recover_run_all(const char *dir, const struct tree *tree, bool alone,
                     struct run_recovered *out);

struct run_spec {
    char *const *argv;
    const char *steps;   /* which steps to record, or NULL */
    const char *host;    /* the host's name in the profiles, or NULL: its own */
    const char *traced;  /* what a framework's tracer is to record besides
                            time: "memory,stacks"; or NULL */
    const char *seconds; /* how long it may run, or NULL */
    bool flight;
    bool alone;        /* the run's folder is for this program only */
    int64_t linger_ms; /* how long to wait for descendants that outlive the
                          program and are still recording */
};

struct launch_end {
    int errnum;               /* not 0: the program was not started, and why */
    int status;               /* of the program, as wait() gives it */
    int64_t t0, t1;           /* when it ran; CLOCK_MONOTONIC, ns */
    int64_t unix_ns;          /* CLOCK_REALTIME at t0 */
    size_t left;              /* descendants that still run */
    size_t recording;         /* of these: still recording */
    int64_t waited;           /* for them, ns */
    struct run_recovered got; /* of processes that ended meanwhile */
};

/* Is that a text by which the recorder can tell which steps to record? NULL is
 * one and stands for all. The sentence of OPS_EUSAGE names what is wrong with
 * it. */
int launch_check_steps(const char *steps, struct ops_err *e);

/* Runs the program; out and tree (zeroed) are set, the caller frees tree. It
 * fails only when memory runs out: a program that cannot be run is
 * out->errnum. */
int launch_run(const struct run_spec *l, const struct rundir *dir,
               struct tree *tree, struct launch_end *out, struct ops_err *e);

/* Writes what was seen of the program from outside as a profile of its own,
 * <run>/<host>_record.xplane.pb (profile.c). A file that is there is never
 * replaced: the next one is "<host>_record_2". The caller frees *path. */
int profile_write(const struct tree *tree, const struct run_spec *l,
                  const struct launch_end *end, const struct rundir *dir,
                  char **path, struct ops_err *e);

#endif
