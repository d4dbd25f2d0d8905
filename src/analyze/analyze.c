/* SPDX-License-Identifier: Apache-2.0
 * The table of analyses, and what all of them have in common: which rows of a
 * trace count (scope), and the filters, order and cut of the finished result.
 * An analysis itself knows nothing of --top, --sort or --name. */
#include "analyze/analyze.h"

#include "base/array.h"
#include "base/io/file.h"
#include "base/text/cut.h"
#include "base/text/glob.h"
#include "model/columns.h"
#include "model/region.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) extern const struct analysis analysis_##name;
#include "analyze/analyses.def"
#undef X

const struct analysis *const analyses[] = {
#define X(name) &analysis_##name,
#include "analyze/analyses.def"
#undef X
    NULL,
};

const struct opt analysis_common_opts[] = {
    {"top", 0, OPT_INT, "N", NULL,
     .help = "show the first N rows; 0 shows all (text: 20, JSON and CSV: all)",
     .limits = {0, OPT_NO_END}},
    {"sort", 0, OPT_TEXT, "COL", NULL,
     .help = "order by this column: numbers largest first, texts from A on"},
    {"columns", 0, OPT_TEXT, "A,B,...", NULL,
     .help =
         "these columns alone, in this order: names, or headings as printed"},
    {"name", 0, OPT_TEXT, "GLOB", NULL,
     .help = "only rows whose name matches, such as 'aten::*'"},
    {"steps", 0, OPT_RANGE, "A..B", NULL,
     .help = "only these steps, as the program counts them"},
    {"region", 0, OPT_TEXT, "GLOB", NULL,
     .help = "only what lies in regions of this name, each a step; "
             "'outer/inner': one "
             "in another"},
    {"instance", 0, OPT_RANGE, "A..B", NULL,
     .help = "of --region: only these of its instances, counted from 0"},
    {"host", 0, OPT_TEXT, "GLOB", NULL,
     .help = "only hosts whose name matches"},
    {"rank", 0, OPT_RANGE, "A..B", NULL, .help = "only these ranks"},
    {"min-us", 0, OPT_US, "US", NULL,
     .help = "only rows of at least so many microseconds",
     .limits = {0, OPT_NO_END}},
    {"min-bytes", 0, OPT_BYTES, "SIZE", NULL,
     .help = "only rows of at least so many bytes, such as 1M"},
    {0},
};

/* Which steps the user asked for. */
struct wanted_steps {
    const struct trace *t;
    bool by_step, by_instance;
    int64_t lo, hi;      /* steps, as the program counts them */
    int64_t first, last; /* instances of the region */
};

static struct wanted_steps wanted_steps(const struct trace *t,
                                        const struct opts *o) {
    struct wanted_steps w = {.t = t};
    w.by_step = opts_range(o, "steps", &w.lo, &w.hi);
    w.by_instance = opts_range(o, "instance", &w.first, &w.last);
    return w;
}

/* Was this step asked for? Of a region's instance it is asked in which step of
 * the program it begins. */
static bool is_step_wanted(const struct wanted_steps *w, size_t i) {
    const struct step *st = &w->t->steps[i];
    if (w->by_instance && (st->number < w->first || st->number > w->last))
        return false;
    if (!w->by_step) return true;
    if (w->t->base != NULL) {
        uint32_t own = w->t->base->spans.step[st->marker];
        if (own == ROW_NONE) return false;
        st = &w->t->base->steps[own];
    }
    return st->number >= w->lo && st->number <= w->hi;
}

const struct analysis *analysis_find(const char *name) {
    for (size_t i = 0; analyses[i] != NULL; i++)
        if (strcmp(analyses[i]->name, name) == 0) return analyses[i];
    return NULL;
}

/* What --name, --min-us and --min-bytes demand of a row. */
struct want {
    const char *name; /* glob, or NULL: least counts */
    int64_t least;    /* of column col */
    size_t col;
};

static bool is_wanted(const struct result *r, size_t row, const void *ctx) {
    const struct want *w = ctx;
    struct cell cell = result_cell(r, row, w->col);
    if (w->name == NULL) return !cell.null && cell.i >= w->least;
    for (size_t c = 0; c < r->ncols; c++) {
        if (!(r->cols[c].flags & COL_KEY)) continue;
        cell = result_cell(r, row, c);
        if (!cell.null && glob_match(w->name, cell.s)) return true;
    }
    return false;
}

/* Returns the first column of that type with one of the flags set, or -1. */
static int flagged(const struct result *r, enum col_type type, unsigned flag) {
    for (size_t c = 0; c < r->ncols; c++)
        if (r->cols[c].type == type && (r->cols[c].flags & flag)) return (int)c;
    return -1;
}

static int filter_name(struct result *r, const char *glob, struct ops_err *e) {
    if (flagged(r, COL_TEXT, COL_KEY) < 0)
        return fail(e, OPS_EUSAGE, "'%s' has no names that --name could match",
                    r->analysis);
    size_t before = r->nrows;
    result_filter(r, is_wanted, &(struct want){.name = glob});
    if (before > 0 && r->nrows == 0 && !glob_special(glob))
        result_remark(r, "no name is '%s'; --name '*%s*' matches a part", glob,
                      glob);
    return 0;
}

static int filter_least(struct result *r, int col, int64_t least,
                        const char *option, struct ops_err *e) {
    if (col < 0)
        return fail(e, OPS_EUSAGE, "'%s' has no column that --%s could look at",
                    r->analysis, option);
    result_filter(r, is_wanted,
                  &(struct want){.col = (size_t)col, .least = least});
    return 0;
}

static int order(struct result *r, const struct opts *o, struct ops_err *e) {
    const char *by = opts_text(o, "sort");
    if (by == NULL && r->in_order) return 0;
    int col = by != NULL ? result_match_col(r, by, strlen(by)) : -1;
    if (by != NULL && col < 0) return result_no_col(r, by, strlen(by), e);
    for (size_t c = 0; col < 0 && c < r->ncols; c++)
        if (r->cols[c].flags & COL_MAIN) col = (int)c;
    return col < 0 ? 0 : result_sort(r, col, e);
}

/* Returns how many rows are to be shown; 0 means all. */
static size_t read_top(const struct opts *o, size_t default_top) {
    return opts_given(o, "top") ? (size_t)opts_int(o, "top") : default_top;
}

/* Makes the rows of a result that makes them only when asked. Sets *done where
 * only --top was left to be applied: no row is made that is not shown. */
static int make_rows(struct result *r, const struct opts *o, size_t default_top,
                     bool *done, struct ops_err *e) {
    struct result_more *m = r->more;
    size_t top = read_top(o, default_top), total = m->end;
    *done = !opts_given(o, "sort") && !opts_given(o, "min-us") &&
            !opts_given(o, "min-bytes");
    if (!*done) return result_gather(r, e);
    if (top > 0 && top < m->end) m->end = top;
    result_fill(r, m);
    r->total_rows = total;
    return result_done(r, e);
}

int result_refine(struct result *r, const struct opts *o, size_t default_top,
                  struct ops_err *e) {
    bool done = false;
    size_t top = read_top(o, default_top);
    if (r->more != NULL) TRY(make_rows(r, o, default_top, &done, e));
    if (done) return 0;
    TRY(result_done(r, e));
    if (opts_given(o, "name")) TRY(filter_name(r, opts_text(o, "name"), e));
    if (opts_given(o, "min-us")) {
        int col = flagged(r, COL_TIME, COL_MAIN);
        /* where the main figure is not a time, the first duration counts */
        for (size_t c = 0; col < 0 && c < r->ncols; c++)
            if (r->cols[c].type == COL_TIME && !(r->cols[c].flags & COL_STAMP))
                col = (int)c;
        TRY(filter_least(r, col, opts_ps(o, "min-us"), "min-us", e));
    }
    if (opts_given(o, "min-bytes"))
        TRY(filter_least(r, flagged(r, COL_BYTES, COL_SIZE),
                         opts_bytes(o, "min-bytes"), "min-bytes", e));
    TRY(order(r, o, e));
    int main = r->top_largest && !opts_given(o, "sort")
                   ? flagged(r, COL_TIME, COL_MAIN)
                   : -1;
    if (top > 0 && main >= 0) TRY(result_top_largest(r, main, top, e));
    if (top > 0) result_top(r, top);
    return result_done(r, e);
}

int result_columns(struct result *r, const struct opts *o, struct ops_err *e) {
    const char *list = opts_text(o, "columns");
    return list != NULL ? result_choose(r, list, e) : 0;
}

/* Says why a table is empty, for analyses that have no sentence of their
 * own. */
static void say_why_empty(struct result *r, const struct analysis *a,
                          const struct trace *t, const struct opts *o) {
    bool any = r->nrows > 0 || (r->more != NULL && r->more->end > 0);
    if (any || r->nremarks + r->nmissing > 0) return;
    if (t->spans.n == 0 && t->mem.n == 0 && t->samples.n == 0)
        result_remark(r, "the profile has no events");
    else if (opts_given(o, "steps") || opts_given(o, "region") ||
             opts_given(o, "host") || opts_given(o, "rank"))
        result_remark(r,
                      "the steps, regions, hosts or ranks asked for have "
                      "none: a row is %s",
                      a->row);
    else result_remark(r, "this profile has none: a row is %s", a->row);
}

/* Sets *out to the view that --region asks for; to t where it does not. */
static int get_window(const struct trace *t, const struct opts *o,
                      const struct trace **out, struct ops_err *e) {
    const char *glob = opts_text(o, "region");
    *out = t;
    if (glob != NULL) return trace_region(t, glob, out, e);
    if (!opts_given(o, "instance") || t->base != NULL) return 0;
    return fail(e, OPS_EUSAGE,
                "--instance says which instances of a region: "
                "it needs --region");
}

/* Says what the window is. */
static void say_window(struct result *r, const struct opts *o,
                       const struct trace *view) {
    struct wanted_steps w = wanted_steps(view, o);
    const char *glob = opts_text(o, "region");
    size_t n = 0, overlaps = trace_region_overlaps(view);
    for (size_t i = 0; i < view->nsteps; i++) n += is_step_wanted(&w, i);
    if (n < view->nsteps)
        result_remark(r,
                      "Only what lies in region '%.*s' counts: %zu of its "
                      "%zu instances, each a step.",
                      CUT(200, glob), n, view->nsteps);
    else
        result_remark(r,
                      "Only what lies in region '%.*s' counts: %s%zu "
                      "instance%s, each a step.",
                      CUT(200, glob), n == 1 ? "" : "all ", n,
                      n == 1 ? "" : "s");
    if (overlaps > 0)
        result_remark_n(
            r, overlaps,
            "%zu instance[ begins|s begin] while another one runs: the time "
            "that [both|they] share counts in the one that began first; "
            "marker_us of 'steps' has the whole of each.",
            overlaps);
}

int analysis_run(const struct analysis *a, const struct trace *t,
                 const struct opts *o, size_t default_top, struct result *r,
                 struct ops_err *e) {
    assert(t->sealed);
    *r = (struct result){0};
    const struct trace *window;
    TRY(get_window(t, o, &window, e));
    int rc = a->run(window, o, r, e);
    if (window != t) {
        if (rc == 0) say_window(r, o, window);
        /* rows that are made later need it until then */
        if (rc == 0 && r->more != NULL) r->more->view = window;
        else trace_region_done(window);
    }
    /* these files became shorter only while this was worked out */
    uint64_t shrunk = 0, known = t->notes[NOTE_FILE_SHRANK];
    for (size_t i = 0; i < t->nsources; i++)
        shrunk += t->sources[i].file && file_tripped(t->sources[i].file);
    if (rc == 0 && shrunk > known)
        result_note(r, NOTE_FILE_SHRANK, shrunk - known);
    if (rc == 0) say_why_empty(r, a, t, o);
    if (rc == 0) rc = result_refine(r, o, a->all_rows ? 0 : default_top, e);
    if (rc != 0) result_free(r);
    return rc;
}

/* Finds which sources count, by --host and --rank. */
static int select_sources(struct selection *s, const struct opts *o,
                          struct ops_err *e) {
    const struct trace *t = s->t;
    const char *host = opts_text(o, "host");
    int64_t lo, hi;
    bool by_rank = opts_range(o, "rank", &lo, &hi), any = false;
    for (size_t i = 0; i < t->nsources; i++) {
        const struct source *src = &t->sources[i];
        bool in = !host || glob_match(host, strs_text(&t->strs, src->host));
        if (by_rank && (src->rank < 0 || src->rank < lo || src->rank > hi))
            in = false;
        s->source_in[i] = in;
        any |= in;
    }
    if (any || t->nsources == 0) return 0;
    return fail(e, OPS_EUSAGE,
                "no host or rank of this profile matches %s; "
                "'opscope info' lists them",
                host ? "--host" : "--rank");
}

/* Finds which steps count, by --steps, --instance and the sources. */
static int select_steps(struct selection *s, const struct opts *o,
                        struct ops_err *e) {
    const struct trace *t = s->t;
    struct wanted_steps w = wanted_steps(t, o);
    int64_t first = INT64_MAX, last = INT64_MIN;
    bool any = false;
    s->asked = w.by_step || w.by_instance;
    s->by_step = s->asked || t->base != NULL;
    for (size_t i = 0; i < t->nsteps; i++) {
        int64_t n = t->steps[i].number;
        bool in = s->source_in[t->steps[i].source];
        if (in && n < first) first = n;
        if (in && n > last) last = n;
        s->step_in[i] = in && is_step_wanted(&w, i);
        any |= s->step_in[i];
    }
    if (!s->asked || any || t->nsteps == 0) return 0;
    if (w.by_instance || t->base != NULL)
        return fail(e, OPS_EUSAGE,
                    "no instance of the region is in %s%s; it has instances "
                    "%lld..%lld",
                    w.by_step ? "--steps " : "",
                    opts_text(o, w.by_step ? "steps" : "instance"),
                    (long long)first, (long long)last);
    return fail(e, OPS_EUSAGE,
                "no step is in %s; this profile has steps %lld..%lld",
                opts_text(o, "steps"), (long long)first, (long long)last);
}

int select_init(struct selection *s, const struct trace *t,
                const struct opts *o, struct ops_err *e) {
    *s = (struct selection){.t = t};
    s->all = !opts_given(o, "steps") && !opts_given(o, "host") &&
             !opts_given(o, "rank") && t->base == NULL;
    s->source_in = calloc(t->nsources + 1, sizeof *s->source_in);
    s->step_in = calloc(t->nsteps + 1, sizeof *s->step_in);
    if (s->source_in == NULL || s->step_in == NULL) {
        select_free(s);
        return fail_oom(e);
    }
    int rc = select_sources(s, o, e);
    if (rc == 0) rc = select_steps(s, o, e);
    if (rc != 0) select_free(s);
    return rc;
}

void select_free(struct selection *s) {
    free(s->source_in);
    free(s->step_in);
    *s = (struct selection){0};
}

int mem_scope_init(struct mem_scope *m, const struct selection *s,
                   uint32_t source, bool *in, struct ops_err *e) {
    *m = (struct mem_scope){.all = s->all || !s->by_step};
    *in = s->all || s->source_in[source];
    if (m->all || !*in) return 0;
    const struct source *src = &s->t->sources[source];
    for (size_t i = src->step_first; i < src->step_end; i++) {
        int64_t from, to;
        if (!s->step_in[i]) continue;
        step_mem_time(s->t, &s->t->steps[i], &from, &to);
        if (!intervals_add(&m->times, from, to)) {
            mem_scope_free(m);
            return fail_oom(e);
        }
    }
    intervals_union(&m->times);
    return 0;
}

void mem_scope_free(struct mem_scope *m) { intervals_free(&m->times); }

bool mem_scope_has(const void *mem_scope, int64_t ts) {
    const struct mem_scope *m = mem_scope;
    return m->all || intervals_contain(&m->times, ts);
}

int subresult_run(struct subresult *p, const char *analysis, const char *opt,
                  const char *value, const struct trace *t,
                  const struct opts *o, struct ops_err *e) {
    static const char *const scope[] = {"steps", "instance", "host", "rank"};
    assert(t->base != NULL || !opts_given(o, "region"));
    const struct analysis *a = analysis_find(analysis);
    assert(a != NULL && !p->have);
    struct opts own;
    opts_init(&own, analysis_common_opts, a->opts, NULL);
    if (opt != NULL) TRY(opts_set(&own, opt, value, e));
    for (size_t i = 0; i < COUNT(scope); i++)
        if (opts_given(o, scope[i]))
            TRY(opts_set(&own, scope[i], opts_text(o, scope[i]), e));
    TRY(analysis_run(a, t, &own, 0, &p->r, e));
    p->have = true;
    return 0;
}

void subresult_free(struct subresult *p) {
    if (p->have) result_free(&p->r);
    p->have = false;
}

struct cell subresult_cell(const struct result *r, size_t row,
                           const char *col) {
    if (r == NULL || r->ncols == 0) return (struct cell){.null = true};
    int c = result_find_col(r, col);
    assert(c >= 0);
    if (row >= r->nrows) return (struct cell){.null = true};
    return result_cell(r, row, (size_t)c);
}

const char *label_source(struct result *r, const struct trace *t,
                         uint32_t source) {
    const struct source *s = &t->sources[source];
    const char *host = s->host ? strs_text(&t->strs, s->host) : NULL;
    if (s->rank < 0) return host;
    return arena_fmt(&r->arena, "%s%srank %lld", host ? host : "",
                     host ? " " : "", (long long)s->rank);
}

const char *label_device(struct result *r, const struct trace *t,
                         uint32_t source, uint32_t device) {
    const char *what = device < t->ndevices
                           ? strs_text(&t->strs, t->devices[device].label)
                           : "host";
    const char *on = t->nprocesses > 1 ? label_source(r, t, source) : NULL;
    return on == NULL ? what : arena_fmt(&r->arena, "%s %s", on, what);
}
