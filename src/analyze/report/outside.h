/* SPDX-License-Identifier: Apache-2.0
 * What `opscope record` saw of a program from outside (source.outside), as far
 * as analyses share it. */
#ifndef ANALYZE_REPORT_OUTSIDE_H
#define ANALYZE_REPORT_OUTSIDE_H

#include "model/trace.h"

/* Is there nothing but such views: did no process record anything itself? */
bool outside_only(const struct trace *t);

/* A number that the view tells of the whole program ("cpu_us"), or -1. */
int64_t outside_fact(const struct trace *t, uint32_t source, const char *key);

/* Its text, or NULL. */
const char *outside_text(const struct trace *t, uint32_t source,
                         const char *key);

/* By source: the largest sample of a counter of that name, or -1. Yours to
 * free; NULL: out of memory. */
double *outside_peaks(const struct trace *t, const char *counter);

#endif
