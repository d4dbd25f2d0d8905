/* SPDX-License-Identifier: Apache-2.0
 * One profile after the other; their rows are joined. */
#include "api/run.h"

#include "analyze/analyze.h"
#include "load/profiles.h"
#include "model/result.h"
#include <stdlib.h>
#include <string.h>

/* Says in the title what several profiles are to each other: people take them
 * for compared, or for added up. */
static void say_side_by_side(struct result *r, size_t n) {
    const char *title = r->title ? r->title : r->analysis;
    r->title = arena_fmt(&r->arena,
                         "%s (%zu profiles side by side, by the column "
                         "profile; not added up, not compared)",
                         title, n);
    if (r->title == NULL) r->oom = true;
}

/* Returns the remark of the profile that says the same as `text`, which no name
 * stands before; SIZE_MAX: none does. */
static size_t same_remark(const struct result *r, const char *name, size_t from,
                          size_t to, const char *text) {
    size_t skip = strlen(name) + strlen(": ");
    for (size_t k = from; k < to; k++)
        if (r->remarks[k] != NULL && strlen(r->remarks[k]) > skip &&
            strcmp(r->remarks[k] + skip, text) == 0)
            return k;
    return SIZE_MAX;
}

/* Says once, and without a name, what is said of every profile. Those of
 * profile i are the remarks [first[i], first[i + 1]); the first one's end at
 * `own`. O(profiles x remarks of one, squared), which are few. */
static void fold_remarks(const struct profiles *p, struct result *r,
                         const size_t *first, size_t own) {
    for (size_t k = 0; k < own; k++) {
        char *text = r->remarks[k] + strlen(p->v[0].name) + strlen(": ");
        size_t i = 1;
        while (i < p->n && same_remark(r, p->v[i].name, first[i], first[i + 1],
                                       text) != SIZE_MAX)
            i++;
        if (i < p->n) continue;
        for (i = 1; i < p->n; i++)
            r->remarks[same_remark(r, p->v[i].name, first[i], first[i + 1],
                                   text)] = NULL;
        r->remarks[k] = text;
    }
    size_t n = 0;
    for (size_t k = 0; k < r->nremarks; k++)
        if (r->remarks[k] != NULL) r->remarks[n++] = r->remarks[k];
    r->nremarks = n;
    map_free(&r->said); /* it knows where they stood */
}

int profiles_run(const struct profiles *p, const struct analysis *a,
                 const struct opts *o, size_t default_top, struct result *out,
                 struct ops_err *e) {
    int rc = 0;
    bool later = false; /* a profile has rows that are not made yet */
    struct result_more *last = NULL;
    *out = (struct result){0};
    size_t own = 0, *first = calloc(p->n + 1, sizeof *first);
    if (first == NULL) return fail_oom(e);
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
        if (i == 0) own = r.nremarks;
        rc = profiles_join(p, i, out, &r, e);
        first[i + 1] = out->nremarks;
        later |= m != NULL && m->at < m->end;
        *(last != NULL ? &last->then : &out->more) = m;
        if (m != NULL) last = m;
    }
    if (rc == 0 && p->n > 1 && !out->oom) fold_remarks(p, out, first, own);
    free(first);
    if (rc == 0) rc = result_columns(out, o, e);
    if (rc == 0 && p->n > 1) say_side_by_side(out, p->n);
    if (rc != 0) result_free(out);
    return rc;
}
