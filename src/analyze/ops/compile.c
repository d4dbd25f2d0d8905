/* SPDX-License-Identifier: Apache-2.0
 * compile: what was traced and compiled while the profile was taken, how often
 * and for how long. A step in which something is compiled is slow for a reason
 * that no kernel or op shows. The finding is in compile_find.c; here it is
 * added up within the scope. */
#include "analyze/analyze.h"
#include "analyze/ops/compile_find.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include <stdio.h>
#include <stdlib.h>

/* A group's sums within the scope. */
struct sums {
    int64_t count, again, total, first, in_step;
    const char *reasons[3]; /* the first different ones */
    bool seen;
};

static const struct column compile_cols[] = {
    {"name", NULL, NULL,
     "what is compiled: the function, or torch's frame number", COL_TEXT,
     COL_KEY},
    {"framework", NULL, NULL, "whose compiler", COL_TEXT, 0},
    {"kind", NULL, NULL,
     "trace (Python is run to record ops), lower, compile, autotune, guard "
     "check (a look-up, no compilation) or graph capture",
     COL_TEXT, 0},
    {"count", NULL, NULL, "how many times in the window", COL_INT, 0},
    {"recompiles", NULL, NULL,
     "of them, those of something that had been compiled before", COL_INT, 0},
    {"total_us", "total", "us",
     "time they take; what compilers on other threads do meanwhile is not "
     "added",
     COL_TIME, COL_MAIN},
    {"first_at_us", "first at", "us", "when the first one began", COL_TIME,
     COL_STAMP},
    {"in_step", NULL, NULL, "how many began inside a step", COL_INT,
     COL_DETAIL},
    {"reason", NULL, NULL, "what was different, where it is recorded", COL_TEXT,
     COL_BELOW},
    {"where", NULL, NULL, "the host or rank", COL_TEXT, COL_DETAIL},
};

static void add_up(const struct compiles *c, const struct selection *in,
                   struct sums *v) {
    for (size_t i = 0; i < c->nspans; i++) {
        const struct compile_span *s = &c->spans[i];
        struct sums *g = &v[s->group];
        if (!select_has(in, s->row)) continue;
        sat_inc(&g->total, s->own);
        if (!g->seen || s->ts < g->first) g->first = s->ts;
        g->seen = true;
        if (s->more) continue;
        g->count++;
        g->again += s->again;
        g->in_step += s->step != ROW_NONE;
        if (!s->again || !s->reason) continue;
        size_t k = 0;
        while (k < COUNT(g->reasons) && g->reasons[k] &&
               strcmp(g->reasons[k], s->reason) != 0)
            k++;
        if (k < COUNT(g->reasons)) g->reasons[k] = s->reason;
    }
}

static void put_compiled(struct result *r, const struct compiles *c,
                         const struct compile_group *g, const struct sums *s) {
    result_row(r);
    cell_text(r, "name", g->name);
    cell_text(r, "framework", g->framework);
    cell_text(r, "kind", compile_kind_name(g->kind));
    cell_int(r, "count", s->count);
    if (g->kind != COMPILE_GUARD) cell_int(r, "recompiles", s->again);
    cell_int(r, "total_us", s->total);
    cell_int(r, "first_at_us", s->first);
    cell_int(r, "in_step", s->in_step);
    char why[640];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(s->reasons) && s->reasons[i]; i++)
        n += cut_fmt(why + n, sizeof why - n, "%s%.*s", i > 0 ? "; " : "",
                     CUT(200, s->reasons[i]));
    if (n > 0) cell_text(r, "reason", why);
    cell_text(r, "where", label_source(r, c->t, g->source));
}

static void compile_say(struct result *r, const struct compiles *c,
                        const struct sums *v) {
    int64_t total = 0, again = 0;
    const struct compile_group *unsaid = NULL;
    bool guards = false, said = false;
    for (size_t i = 0; i < c->ngroups; i++) {
        const struct compile_group *g = &c->groups[i];
        if (!v[i].seen) continue;
        if (g->kind == COMPILE_GUARD) guards = true;
        else sat_inc(&total, v[i].total);
        if (g->kind == COMPILE_COMPILE) again += v[i].again;
        said |= v[i].reasons[0] != NULL;
        if (v[i].again > 0 && !v[i].reasons[0] && !unsaid) unsaid = g;
    }
    if (total == 0)
        result_remark(r,
                      "nothing was compiled or traced while this profile "
                      "was taken%s",
                      guards ? ": torch.compile only looked up what it had"
                             : "");
    char text[48];
    human_time(total, text, sizeof text);
    if (total > 0)
        result_remark(r, "compilers and tracers took %s of the window%s", text,
                      again > 0 ? ", in part for what had been compiled before"
                                : "");
    if (!unsaid) return;
    const char *fix = "run with TF_CPP_VMODULE=xla_compilation_cache=1";
    if (strcmp(unsaid->framework, "torch.compile") == 0)
        fix = "run with TORCH_LOGS=recompiles; with record_shapes=True the "
              "shapes that changed stand here";
    else if (strcmp(unsaid->framework, "jax") == 0)
        fix = "run with JAX_EXPLAIN_CACHE_MISSES=1 (or JAX_LOG_COMPILES=1)";
    /* where other rows have a reason: which one has none */
    char what[160];
    cut_fmt(what, sizeof what, "what made %.*s compile again",
            CUT(100, said ? unsaid->name : "it"));
    result_missing(r, what, "the compiler does not write it into the profile",
                   fix);
}

static int compile_run(const struct trace *t, const struct opts *o,
                       struct result *r, struct ops_err *e) {
    struct compiles c = {0};
    struct selection in = {0};
    struct sums *v = NULL;
    result_init(r, "compile", "Compilation");
    result_from_trace(r, t);
    result_cols(r, compile_cols, COUNT(compile_cols));
    int rc = select_init(&in, t, o, e);
    if (rc == 0) rc = compiles_init(&c, t, e);
    if (rc == 0) v = calloc(c.ngroups + 1, sizeof *v);
    if (rc == 0 && v == NULL) rc = fail_oom(e);
    if (rc == 0) {
        add_up(&c, &in, v);
        for (size_t i = 0; i < c.ngroups; i++)
            if (v[i].seen) put_compiled(r, &c, &c.groups[i], &v[i]);
        compile_say(r, &c, v);
        rc = result_done(r, e);
    }
    free(v);
    compiles_free(&c);
    select_free(&in);
    return rc;
}

const struct analysis analysis_compile = {
    .name = "compile",
    .help = "what was compiled or traced in the window, how often and why",
    .row = "one thing that was compiled",
    .run = compile_run,
};
