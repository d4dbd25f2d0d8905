/* SPDX-License-Identifier: Apache-2.0
 * A running program at a glance, as a result: step, step time, throughput,
 * memory, processor, and every scalar; each with its course so far. */
#ifndef SCALARS_WATCH_TABLE_H
#define SCALARS_WATCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct curves;
struct ops_err;
struct result;
struct scalar_view;
struct scalars;
struct trace;

enum { WATCH_LINE = 64 }; /* how far back courses go */

/* The last numbers of something, oldest first. */
struct watch_line {
    double v[WATCH_LINE];
    size_t n;
};

void watch_line_add(struct watch_line *l, double v);

/* How fast the program steps. */
struct watch_steps {
    bool have;
    int64_t step;           /* the last one */
    double step_s;          /* median of the last 20 */
    struct watch_line line; /* step times in s */
    const char *from;       /* "profile" or "scalars" */
};

/* Finds the steps of a sealed profile, by the source with the most steps. Steps
 * that the profile does not mark are not taken for steps. */
struct watch_steps watch_profile_steps(const struct trace *t);

/* Finds the steps by the times at which the scalars were written: the tag with
 * the most points. have is false if no tag has two steps. */
struct watch_steps watch_scalar_steps(const struct curves *c);

struct watch_facts {
    size_t processes; /* 0: none is known to write here */
    int64_t rss_bytes, threads;
    double cpu_pct; /* NAN: not known yet */
    const struct watch_line *rss;
    struct watch_steps profile; /* .have false: there is none */
};

/* Makes the columns metric, run, step, value, unit, trend (16 characters). Rows
 * without a value are not known. Of v, the globs run and tag and ascii are
 * used. r must not be initialised; on success it is the caller's. */
int watch_table(const struct watch_facts *f, const struct scalars *s,
                const struct scalar_view *v, struct result *r,
                struct ops_err *e);

#endif
