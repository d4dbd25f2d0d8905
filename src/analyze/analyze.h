/* SPDX-License-Identifier: Apache-2.0
 * A trace becomes a result. There is one analysis per file, listed in
 * analyses.def: each is thereby a subcommand, a help page and (later) a URL, an
 * SQL table and a Python call. CONTRIBUTING.md says how to add one. */
#ifndef ANALYZE_ANALYZE_H
#define ANALYZE_ANALYZE_H

#include "analyze/shared/intervals.h"
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

/* Runs an analysis, over the window that --region names, adds a sentence when
 * it gave neither rows nor a reason, and applies the common options: --name,
 * --min-us, --min-bytes, --sort, then --top (default_top rows when not given;
 * 0: all). r must not be initialised; on success it is the caller's to free. */
int analysis_run(const struct analysis *a, const struct trace *t,
                 const struct opts *o, size_t default_top, struct result *r,
                 struct ops_err *e);

/* Does the second half of analysis_run, for results that a command made. */
int result_refine(struct result *r, const struct opts *o, size_t default_top,
                  struct ops_err *e);

/* Applies --columns, after all else that looks at columns. */
int result_columns(struct result *r, const struct opts *o, struct ops_err *e);

/* Which rows count, by --steps, --region, --host and --rank; it is set up once
 * per run. */
struct selection {
    const struct trace *t;
    bool all;        /* no restriction at all */
    bool by_step;    /* --steps or --region given: spans with no step are out */
    bool asked;      /* the user said which steps, or which instances */
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

/* Finds when memory events and samples are of a step: inside its time. Those of
 * a region's instance are inside its span: allocations are the host's, and the
 * device may be far behind. */
static inline void step_mem_time(const struct trace *t, const struct step *s,
                                 int64_t *from, int64_t *to) {
    *from = t->base != NULL ? s->marker_ts : s->ts;
    *to = *from + (t->base != NULL ? s->marker_dur : s->dur);
}

/* Which memory events count, by the same options: events belong to no span, so
 * those of a step are the ones inside its time. */
struct mem_scope {
    bool all;
    struct intervals times; /* of the steps that count */
};

/* Sets m up for one source; *in is false when none of the source counts. */
int mem_scope_init(struct mem_scope *m, const struct selection *s,
                   uint32_t source, bool *in, struct ops_err *e);
void mem_scope_free(struct mem_scope *m);

/* Does an event at ts count? */
bool mem_scope_has(const void *mem_scope, int64_t ts);

/* The result of another analysis over the same trace and scope, for those that
 * read them (overview, hints). A zeroed one is empty. */
struct subresult {
    struct result r;
    bool have; /* r is there, to be freed */
};

/* Runs the analysis as a user would: by name, with its own defaults, the scope
 * (--steps, --host, --rank) of o, and one more option: opt (NULL: none) gets
 * value. Where --region was given, t is the view already. */
int subresult_run(struct subresult *p, const char *analysis, const char *opt,
                  const char *value, const struct trace *t,
                  const struct opts *o, struct ops_err *e);
void subresult_free(struct subresult *p);

/* Returns the cell of a column, which must exist (asserted); a null cell if
 * there is no such row, or r is NULL or was never filled. */
struct cell subresult_cell(const struct result *r, size_t row, const char *col);

/* Where something ran, in words that live as long as the trace and the result.
 * With one source "GPU 0" says it all; with the ranks of a job it is
 * "rank 1 GPU 0". */

/* Returns "node3 rank 1", "rank 1" or "node3"; NULL if neither is recorded. */
const char *label_source(struct result *r, const struct trace *t,
                         uint32_t source);

/* Returns the label of a device of that source; ROW_NONE is the host. */
const char *label_device(struct result *r, const struct trace *t,
                         uint32_t source, uint32_t device);

#endif
