/* SPDX-License-Identifier: Apache-2.0
 * leaks: sites whose blocks stay, step after step. The finding is done in
 * leak_find.c; this is its table. */
#include "analyze/analyze.h"
#include "analyze/memory/leak_find.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/label.h"
#include "analyze/shared/missing.h"
#include "base/text/number.h"

static void put_columns(struct result *r) {
    static const struct column cols[] = {
        {"op", NULL, NULL, "the operation that allocates what stays", COL_TEXT,
         COL_KEY},
        {"stack", NULL, NULL, "where it is called from, innermost frame first",
         COL_TEXT, COL_SYMBOL},
        {"bytes_per_step", "per step", "bytes",
         "what a step leaves behind, on average", COL_BYTES, 0},
        {"steps_seen", "steps", NULL, "in so many steps it left some", COL_INT,
         0},
        {"total_bytes", "total", "bytes",
         "left behind by all steps and still there after the last", COL_BYTES,
         COL_MAIN | COL_SIZE},
        {"device", NULL, NULL, "whose memory it is", COL_TEXT, 0},
        {"blocks", NULL, NULL, "in so many blocks", COL_INT, 0},
        {"scope", NULL, NULL, "the named regions around the operation",
         COL_TEXT, COL_DETAIL},
        {"module", NULL, NULL, "the innermost nn.Module around it", COL_TEXT,
         COL_DETAIL},
        {"allocator", NULL, NULL, "the allocator's own name", COL_TEXT,
         COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

static void put_text(struct result *r, const struct mem_sites *s,
                     const struct mem_site *at, size_t event, enum mem_key by) {
    char buf[MEM_TEXT_MAX];
    size_t n = mem_site_text(s, at, event, by, buf, sizeof buf);
    result_text(r, n > 0 ? buf : NULL);
}

static void put_site(struct result *r, const struct mem_sites *s,
                     const struct leak_site *leak) {
    const struct trace *t = s->t;
    struct mem_site at = mem_site_of(s, leak->event);
    const struct allocator *a = &t->allocators[t->mem.allocator[leak->event]];
    result_row(r);
    put_text(r, s, &at, leak->event, MEM_BY_OP);
    put_text(r, s, &at, leak->event, MEM_BY_STACK);
    result_int(r, leak->bytes_per_step);
    result_int(r, leak->steps_seen);
    result_int(r, leak->total_bytes);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    result_int(r, leak->blocks);
    put_text(r, s, &at, leak->event, MEM_BY_SCOPE);
    put_text(r, s, &at, leak->event, MEM_BY_MODULE);
    result_str(r, strs_bytes(&t->strs, a->name));
}

/* What was found, or that nothing was, with the levels to judge by. */
static void say_level(struct result *r, const struct trace *t,
                      const struct leak_level *l) {
    const char *name = strs_text(&t->strs, t->allocators[l->allocator].name);
    char first[NUMBER_MAX], last[NUMBER_MAX], each[NUMBER_MAX];
    if (l->steps < LEAK_STEPS) {
        result_remark(r,
                      "%s: %zu steps are too few to tell a leak from a "
                      "start; %d or more are needed",
                      name, l->steps, (int)LEAK_STEPS);
        return;
    }
    human_bytes(l->first, first, sizeof first);
    human_bytes(l->last, last, sizeof last);
    if (l->sites > 0)
        result_remark(r,
                      "%s: %zu %s behind %s per step; in use at the "
                      "end of step %lld: %s, of step %lld: %s",
                      name, l->sites,
                      l->sites > 1 ? "sites leave" : "site leaves",
                      human_bytes(l->bytes_per_step, each, sizeof each),
                      (long long)l->first_step, first, (long long)l->last_step,
                      last);
    else
        result_remark(r,
                      "%s: nothing grows %s; in use at the end of step "
                      "%lld: %s, of step %lld: %s%s",
                      name,
                      l->last > l->first ? "in every step"
                                         : "from step to step",
                      (long long)l->first_step, first, (long long)l->last_step,
                      last,
                      l->last / 2 > l->first
                          ? ". It grew all the same: `allocs` has what was "
                            "not freed"
                          : "");
}

static int leaks_fill(const struct mem_sites *s, const struct scope *scope,
                      struct result *r, struct ops_err *e) {
    struct leaks found;
    TRY(leaks_find(&found, s, scope, e));
    for (size_t i = 0; i < found.n; i++) put_site(r, s, &found.v[i]);
    for (size_t i = 0; i < found.nlevels; i++)
        say_level(r, s->t, &found.levels[i]);
    leaks_free(&found);
    return 0;
}

static int leaks_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    struct scope scope = {0};
    struct mem_sites sites = {0};
    result_init(r, "leaks", "Memory that grows from step to step");
    result_from_trace(r, t);
    put_columns(r);
    if (missing_say(r, t, MISSING_MEMORY) && t->stacks.n == 0)
        missing_say(r, t, MISSING_STACKS);
    int rc = scope_init(&scope, t, o, e);
    if (rc == 0) rc = mem_sites_init(&sites, t, e);
    if (rc == 0) rc = leaks_fill(&sites, &scope, r, e);
    if (rc == 0) rc = result_done(r, e);
    mem_sites_free(&sites);
    scope_free(&scope);
    return rc;
}

const struct analysis analysis_leaks = {
    .name = "leaks",
    .help = "what stays in memory after each step and grows",
    .row = "one site that keeps growing",
    .run = leaks_run,
};
