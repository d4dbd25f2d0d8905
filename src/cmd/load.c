/* SPDX-License-Identifier: Apache-2.0
 * Paths become sealed traces, one each. */
#include "cmd/load.h"

#include "cmd/progress.h"
#include "import/import.h"
#include <stdlib.h>
#include <string.h>

/* Imports and seals one path. */
static int load_one(const char *path, const struct import_opts *io,
                    struct profile *out, struct ops_err *e) {
    *out = (struct profile){strdup(path), trace_new()};
    if (out->name == NULL || out->trace == NULL) return fail_oom(e);
    int rc = import_file(path, out->trace, io, e);
    if (rc == 0) rc = trace_seal(out->trace, e);
    return rc ? fail_in(e, "%s", path) : 0;
}

int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e) {
    *out = (struct profiles){0};
    if (argc == 0)
        return fail(e, OPS_EUSAGE, "a PATH is missing: a profile file, a run "
                    "folder or a log folder");
    out->v = calloc((size_t)argc, sizeof *out->v);
    if (out->v == NULL) return fail_oom(e);
    struct progress bar;
    progress_start(&bar);
    struct import_opts io = {
        .threads = (int)opts_int(o, "threads"),
        .progress = progress_show,
        .progress_ctx = &bar,
    };
    int rc = 0;
    for (int i = 0; i < argc && rc == 0; i++)
        rc = load_one(argv[i], &io, &out->v[out->n++], e);
    progress_end(&bar);
    if (rc != 0) profiles_free(out);
    return rc;
}

void profiles_free(struct profiles *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].name);
        if (p->v[i].trace != NULL) trace_free(p->v[i].trace);
    }
    free(p->v);
    *p = (struct profiles){0};
}

int profiles_join(const struct profiles *p, size_t i, struct result *all,
                  struct result *r, struct ops_err *e) {
    static const struct column column = {
        .name = "profile",
        .help = "The profile that the row is from.",
        .type = COL_TEXT,
    };
    int rc = 0;
    if (p->n > 1) rc = result_prefix(r, column, p->v[i].name, e);
    if (rc == 0 && i == 0) {
        *all = *r;
        return 0;
    }
    if (rc == 0) rc = result_join(all, r, e);
    result_free(r);
    return rc;
}
