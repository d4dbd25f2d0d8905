/* SPDX-License-Identifier: Apache-2.0
 * A trace becomes a result. There is one analysis per file, listed in
 * analyses.def: each is thereby a subcommand, a help page and (later) a URL, an
 * SQL table and a Python call. CONTRIBUTING.md says how to add one. */
#ifndef ANALYZE_ANALYZE_H
#define ANALYZE_ANALYZE_H

#include "base/opt.h"
#include "model/result.h"
#include "model/trace.h"

struct analysis {
    const char *name;       /* "ops" */
    const char *help;       /* one line for a newcomer */
    const char *row;        /* what one row is: "one framework operation" */
    const struct opt *opts; /* its own options, or NULL */
    bool all_rows;          /* text, too, shows every row unless --top says */
    int (*run)(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e);
};

/* All analyses in the order of the help page; NULL ends the list. */
extern const struct analysis *const analyses[];

/* The options that every analysis takes: --top, --sort, --name, ... */
extern const struct opt analysis_common_opts[];

/* Returns the analysis of that name, or NULL. */
const struct analysis *analysis_find(const char *name);

/* Runs an analysis, adds a sentence when it gave neither rows nor a reason, and
 * applies the common options: --name, --min-us, --min-bytes, --sort, then --top
 * (default_top rows when not given; 0: all). r must not be initialised; on
 * success it is the caller's to free. */
int analysis_run(const struct analysis *a, const struct trace *t,
                 const struct opts *o, size_t default_top, struct result *r,
                 struct ops_err *e);

/* Does the second half of analysis_run, for results that a command made. */
int result_refine(struct result *r, const struct opts *o, size_t default_top,
                  struct ops_err *e);

/* Which rows count, by --steps, --host and --rank; it is set up once per
 * run. */
struct selection {
    const struct trace *t;
    bool all;        /* no restriction at all */
    bool by_step;    /* --steps given: spans with no step are out */
    bool *source_in; /* by source; filled in also when all count */
    bool *step_in;   /* by step, likewise */
};

int select_init(struct selection *s, const struct trace *t,
                const struct opts *o, struct ops_err *e);
void select_free(struct selection *s);

/* Does this span count? */
static inline bool select_has(const struct selection *s, row_id r) {
    if (s->all) return true;
    const struct trace *t = s->t;
    if (!s->source_in[t->tracks[t->spans.track[r]].source]) return false;
    if (!s->by_step) return true;
    uint32_t step = t->spans.step[r];
    return step != ROW_NONE && s->step_in[step];
}

#endif
