/* SPDX-License-Identifier: Apache-2.0
 * One profile after the other; their rows are joined. */
#include "api/run.h"

#include "analyze/analyze.h"
#include "load/profiles.h"

int profiles_run(const struct profiles *p, const struct analysis *a,
                 const struct opts *o, size_t default_top, struct result *out,
                 struct ops_err *e) {
    int rc = 0;
    *out = (struct result){0};
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        struct result r;
        rc = analysis_run(a, p->v[i].trace, o, default_top, &r, e);
        if (rc == 0) rc = profiles_join(p, i, out, &r, e);
    }
    if (rc != 0) result_free(out);
    return rc;
}
