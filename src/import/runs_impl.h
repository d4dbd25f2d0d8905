/* SPDX-License-Identifier: Apache-2.0
 * What the files that put traces together share. Not for others. */
#ifndef IMPORT_RUNS_IMPL_H
#define IMPORT_RUNS_IMPL_H

#include "model/trace.h"

/* A trace that is not sealed yet, and what decides where it belongs. */
struct part {
    struct trace *t;
    const char *path;
    int64_t lo, hi; /* window, ps from the trace's epoch */
    bool taken;
};

/* Do both have a clock, and do their windows overlap? */
bool parts_overlap(const struct part *a, const struct part *b);

bool part_is_snapshot(const struct part *p);

/* Memory snapshots join the traces of their processes; those without one stay
 * what they are. */
int parts_join_snapshots(struct part *v, size_t n, struct ops_err *e);

/* What `opscope record` saw of a program from outside stands beside what the
 * program recorded itself, if it did. */
int parts_join_outside(struct part *v, size_t n, struct ops_err *e);

#endif
