/* SPDX-License-Identifier: Apache-2.0
 * An analysis that another one reads is run as a user would run it: by name,
 * through its options. */
#include "analyze/shared/subresult.h"

#include "analyze/analyze.h"
#include "base/array.h"
#include <assert.h>

int subresult_run(struct subresult *p, const char *analysis, const char *opt,
                  const char *value, const struct trace *t,
                  const struct opts *o, struct ops_err *e) {
    static const char *const scope[] = {"steps", "host", "rank"};
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
