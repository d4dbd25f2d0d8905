/* SPDX-License-Identifier: Apache-2.0
 * How much of the steps' wall time some event explains, and how much of the
 * devices' time belongs to an op. */
#ifndef ANALYZE_REPORT_COVER_TIME_H
#define ANALYZE_REPORT_COVER_TIME_H

#include "base/err.h"
#include "model/trace.h"

struct scope;

/* Time explained of a whole, and the step that is explained worst. */
struct cover_part {
    int64_t have, whole;             /* ps */
    int64_t worst_have, worst_whole; /* whole is 0: no step */
    int64_t worst;                   /* that step's number */
};

struct step_cover {
    struct cover_part any;     /* an event of the host or of the device runs */
    struct cover_part host;    /* an op, call or region runs on the host */
    struct cover_part *device; /* by device: work runs on it */
    size_t steps;
};

/* Steps in scope; a source with n devices counts n times in `any`. */
int step_cover_init(struct step_cover *c, const struct trace *t,
                    const struct scope *in, struct ops_err *e);
void step_cover_free(struct step_cover *c);

/* Device work by whether an op is known for it. */
enum work_owner {
    WORK_OP,        /* launched in an op, or the compiler wrote its op on it */
    WORK_FOREIGN,   /* launched outside every op */
    WORK_GRAPH,     /* the same, as a part of a CUDA graph */
    WORK_NO_LAUNCH, /* its launch was not recorded */
    WORK_OWNERS,
};

struct work_cover {
    int64_t count[WORK_OWNERS], time[WORK_OWNERS];
    str_id name[WORK_OWNERS]; /* the longest single one, or 0 */
    int64_t early;            /* began before its launching call did */
    int64_t early_most;       /* ps, at most */
    str_id early_name;
};

struct host_tree;

/* All device work in scope. Linear. */
void work_cover_init(struct work_cover *c, const struct host_tree *h,
                     const struct scope *in);

#endif
