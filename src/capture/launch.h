/* SPDX-License-Identifier: Apache-2.0
 * Runs a program to its end, watching it and all its descendants. The program
 * notices nothing: it has our terminal, our descriptors and our process group,
 * and the signals' masks and dispositions that we were started with. */
#ifndef CAPTURE_LAUNCH_H
#define CAPTURE_LAUNCH_H

#include "base/err.h"
#include "capture/rundir.h"

#include <stdbool.h>

struct tree;

struct run_spec {
    char *const *argv;
    const char *steps; /* which steps to record, or NULL */
    const char *host;  /* the host's name in the profiles, or NULL: its own */
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
