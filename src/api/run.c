/* SPDX-License-Identifier: Apache-2.0
 * One profile after the other; their rows are joined. */
#include "api/run.h"

#include "analyze/analyze.h"
#include "load/profiles.h"
#include "model/result.h"

int profiles_run(const struct profiles *p, const struct analysis *a,
                 const struct opts *o, size_t default_top, struct result *out,
                 struct ops_err *e) {
    int rc = 0;
    bool later = false; /* a profile has rows that are not made yet */
    struct result_more *last = NULL;
    *out = (struct result){0};
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        struct result r;
        rc = analysis_run(a, p->v[i].trace, o, default_top, &r, e);
        if (rc != 0) break;
        struct result_more *m = r.more;
        r.more = NULL;
        if (m != NULL) m->profile = p->n > 1 ? p->v[i].name : NULL;
        if (later) { /* its first rows, too, stand behind those */
            result_top(&r, 0);
            m->at = 0;
        }
        rc = profiles_join(p, i, out, &r, e);
        later |= m != NULL && m->at < m->end;
        *(last != NULL ? &last->then : &out->more) = m;
        if (m != NULL) last = m;
    }
    if (rc != 0) result_free(out);
    return rc;
}
