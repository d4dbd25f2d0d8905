/* SPDX-License-Identifier: Apache-2.0
 * Paths become sealed traces: folders are searched, and the ranks of one job
 * become one trace. */
#include "load/profiles.h"

#include "base/vec.h"
#include "import/import.h"
#include "load/runs.h"
#include "model/result.h"
#include "model/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The files that all paths stand for. */
struct files {
    struct run_file *v;
    size_t n, cap;
};

/* Adds the files of one path: of a folder, the run that is asked for or the
 * newest. A remark says which run it was when there were several. */
static int add_path(const char *path, const char *run_name, struct files *to,
                    struct profiles *out, struct ops_err *e) {
    struct run_list runs;
    const struct run *run;
    if (runs_find(path, &runs, e) != 0) return fail_in(e, path);
    int rc = runs_pick(&runs, run_name, &run, e);
    if (rc != 0) fail_in(e, path);
    if (rc == 0 && runs.n > 1 && run_name == NULL && out->remark == NULL &&
        asprintf(&out->remark,
                 "%zu runs in %s: this is the newest, %s; 'opscope runs' "
                 "lists them, --run NAME picks another.",
                 runs.n, path, run->name) < 0)
        out->remark = NULL;
    for (size_t i = 0; rc == 0 && i < run->n; i++) {
        char *copy = VEC_ROOM(to->v, to->n, to->cap)
                         ? strdup(run->files[i].path)
                         : NULL;
        if (copy == NULL) rc = fail_oom(e);
        else to->v[to->n++] = (struct run_file){copy, run->files[i].importer};
    }
    for (size_t i = 0; rc == 0 && i < run->nskips + runs.nshut; i++) {
        struct run_skip lost = i < run->nskips ? run->skips[i]
                                               : runs.shut[i - run->nskips];
        lost.path = VEC_ROOM(out->lost, out->nlost, out->cap_lost)
                        ? strdup(lost.path)
                        : NULL;
        if (lost.path == NULL) rc = fail_oom(e);
        else out->lost[out->nlost++] = lost;
    }
    runs_free(&runs);
    return rc;
}

/* Returns how many bytes at the start all names share, up to a slash: what is
 * behind them tells profiles apart. */
static size_t shared_prefix(char *const *v, size_t n) {
    size_t len = 0;
    for (size_t i = 0; n > 1 && v[0][i] != '\0'; i++) {
        for (size_t k = 1; k < n; k++)
            if (v[k][i] != v[0][i]) return len;
        if (v[0][i] == '/') len = i + 1;
    }
    return len;
}

/* Returns how many bytes at the end all names share: ".json.gz". */
static size_t shared_suffix(char *const *v, size_t n) {
    size_t len = 0;
    for (size_t i = 1; n > 1; i++) {
        for (size_t k = 0; k < n; k++) {
            size_t m = strlen(v[k]), first = strlen(v[0]);
            if (i >= m || i >= first || v[k][m - i] != v[0][first - i])
                return len;
        }
        if (v[0][strlen(v[0]) - i] == '.') len = i;
    }
    return len;
}

/* Hands the loaded traces over. */
static int take_loaded(struct loaded *l, struct profiles *out,
                       struct ops_err *e) {
    out->v = calloc(l->n + 1, sizeof *out->v);
    if (out->v == NULL) {
        loaded_free(l);
        return fail_oom(e);
    }
    size_t skip = shared_prefix(l->names, l->n);
    size_t cut = shared_suffix(l->names, l->n);
    for (size_t i = 0; i < l->n; i++)
        if (skip + cut >= strlen(l->names[i])) skip = cut = 0;
    for (size_t i = 0; i < l->n; i++) {
        size_t n = strlen(l->names[i]) - skip - cut;
        memmove(l->names[i], l->names[i] + skip, n);
        l->names[i][n] = '\0';
        out->v[out->n++] = (struct profile){l->names[i], l->v[i]};
    }
    free(l->v);
    free(l->names);
    return 0;
}

int profiles_open(char *const *paths, size_t n, const char *run,
                  const struct import_opts *io, struct profiles *out,
                  struct ops_err *e) {
    *out = (struct profiles){0};
    struct files files = {0};
    struct loaded l = {0};
    bool stop = false;
    struct import_opts own = *io;
    own.stop = &stop;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_path(paths[i], run, &files, out, e);
    if (rc == 0) rc = runs_load(files.v, files.n, &own, &l, e);
    if (rc == 0) rc = take_loaded(&l, out, e);
    for (size_t i = 0; i < files.n; i++) free(files.v[i].path);
    free(files.v);
    if (rc != 0) profiles_free(out);
    return rc;
}

void profiles_free(struct profiles *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].name);
        if (p->v[i].trace != NULL) trace_free(p->v[i].trace);
    }
    for (size_t i = 0; i < p->nlost; i++) free(p->lost[i].path);
    free(p->lost);
    free(p->v);
    free(p->remark);
    *p = (struct profiles){0};
}

int profiles_join(const struct profiles *p, size_t i, struct result *all,
                  struct result *r, struct ops_err *e) {
    static const struct column column = {
        .name = "profile",
        .help = "The profile that the row is from.",
        .type = COL_TEXT,
        .flags = COL_ANSWER,
    };
    int rc = p->n > 1 ? result_prefix(r, column, p->v[i].name, e) : 0;
    for (size_t k = 0; p->n > 1 && k < r->nremarks; k++) {
        /* the name of the profile that a remark is about stands before it */
        char *s = arena_fmt(&r->arena, "%s: %s", p->v[i].name, r->remarks[k]);
        if (s == NULL) r->oom = true;
        else r->remarks[k] = s;
    }
    if (i == 0 && p->remark) result_remark(r, "%s", p->remark);
    for (size_t k = 0; i == 0 && k < p->nlost; k++)
        result_missing(r, p->lost[k].path, p->lost[k].why, p->lost[k].fix);
    if (rc == 0 && i == 0) {
        *all = *r;
        return 0;
    }
    if (rc == 0) rc = result_join(all, r, e);
    result_free(r);
    return rc;
}
