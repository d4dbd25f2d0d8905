/* SPDX-License-Identifier: Apache-2.0
 * Who keeps whom waiting. A rank is late to a collective when it comes last,
 * by the time from the last but one rank's arrival to its own; a rank waits
 * from its own arrival to that of the last. Clock offsets are removed. What
 * `ranks` and the hint on stragglers stand on. */
#ifndef ANALYZE_COMM_LATENESS_H
#define ANALYZE_COMM_LATENESS_H

#include "analyze/shared/intervals.h"
#include "base/bytes.h"

struct collectives;
struct ops_err;
struct scope;

/* One member, over the steps in scope. */
struct late_member {
    struct intervals late; /* on its own clock; a union */
    int64_t wait;          /* ps, a union */
    int64_t steps;         /* in scope */
    int64_t step_time;     /* ps, their sum */
    int64_t matched;       /* collectives with a counterpart ... */
    int64_t last;          /* ... to which it came last */
    int64_t worst_steps;   /* steps to which nobody was later */
    bool straggler;
};

struct lateness {
    const struct collectives *c;
    struct late_member *v; /* by member */
    int64_t all;           /* ps: lateness of all members together */
    uint32_t straggler;    /* member, or ROW_NONE */
};

/* O(collectives log collectives). */
int lateness_init(struct lateness *l, const struct collectives *c,
                  const struct scope *scope, struct ops_err *e);
void lateness_free(struct lateness *l);

/* The collectives to which a member was late by most: their name, how many,
 * how late to all of them together. */
struct late_where {
    struct bytes name; /* empty: it never was late */
    int64_t calls, late;
};

/* False: out of memory. */
bool lateness_where(const struct lateness *l, const struct scope *scope,
                    uint32_t member, struct late_where *out);

#endif
