/* SPDX-License-Identifier: Apache-2.0
 * Sums for a roofline: work is charged call by call with the peak of its own
 * device and type, so that a row may hold calls of several types and devices
 * and still have one roof.
 *
 *   compute_s  seconds that the operations take at the peaks
 *   memory_s   seconds that the bytes take at the memory's peak
 *
 * The larger of the two is the least that the work can take, and says what
 * binds it; against the time it took, that is the percentage of the roof. */
#ifndef ANALYZE_COST_ROOF_SUMS_H
#define ANALYZE_COST_ROOF_SUMS_H

#include "names/dtype.h"
#include <stdint.h>

struct device_peak;

/* One piece of work. -1: not known. */
struct roof_work {
    int64_t flops, bytes, time; /* time in ps */
    enum dtype type;            /* that it computes in */
    bool matrix;                /* products of matrices */
};

struct roof_sum {
    int64_t calls, time, flops, bytes;
};

struct roof {
    int64_t calls, time;          /* of all work */
    struct roof_sum both;         /* of that with both counts known */
    struct roof_sum flops, bytes; /* of that with one alone */
    double compute_s, memory_s;   /* of both */
    double matrix_s;              /* compute_s of products of matrices */
    bool no_peak;                 /* some of both has no peak */
    int64_t type_time[DTYPE_N];
};

void roof_add(struct roof *r, const struct roof_work *w,
              const struct device_peak *p);

/* What is known of it: of both, else of what has one count. */
const struct roof_sum *roof_known(const struct roof *r);

/* "compute", "memory" or "unknown". */
const char *roof_bound(const struct roof *r);

/* In percent of the roof that binds it; -1: not known. */
double roof_of_peak(const struct roof *r);

/* FLOP/s and bytes/s of its roofs, means over its work; 0: not known. */
double roof_peak_flops(const struct roof *r);
double roof_peak_bytes(const struct roof *r);

/* The type with most time. */
enum dtype roof_type(const struct roof *r);

#endif
