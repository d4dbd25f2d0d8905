/* SPDX-License-Identifier: Apache-2.0
 * `opscope runs`: what is in a log folder. Who still writes into it is found by
 * the files that programs have open: that works for every writer, in any
 * language. */
#include "analyze/analyze.h"
#include "base/array.h"
#include "base/vec.h"
#include "capture/proc.h"
#include "cmd/command.h"
#include "import/import.h"
#include "load/run_table.h"
#include "present/present.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS_MAX = 10000 }; /* more are not open for writing at once */

/* The folders below root in which a file is open for writing. */
struct written {
    char root[PATH_MAX];
    char **v;
    size_t n, cap;
};

/* Remembers the folder of a file; stops where there are too many. */
static bool take_file(void *ctx, const char *path) {
    struct written *w = ctx;
    const char *slash = strrchr(path, '/');
    size_t n = strlen(w->root);
    if (slash == NULL || strncmp(path, w->root, n) != 0 ||
        (path[n] != '/' && n > 1))
        return true;
    if (w->n == FOLDERS_MAX || !VEC_ROOM(w->v, w->n, w->cap)) return false;
    char *copy = strndup(path, (size_t)(slash - path));
    if (copy != NULL) w->v[w->n++] = copy;
    return copy != NULL;
}

static void try_process(void *ctx, int32_t pid) {
    if (pid != getpid()) proc_each_written(pid, take_file, ctx);
}

static void written_free(struct written *w) {
    for (size_t i = 0; i < w->n; i++) free(w->v[i]);
    free(w->v);
}

static bool is_written(void *ctx, const char *folder) {
    const struct written *w = ctx;
    char real[PATH_MAX];
    if (w->n == 0 || realpath(folder, real) == NULL) return false;
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i], real) == 0) return true;
    return false;
}

/* Options that are about what is inside of a profile would do nothing here. */
static int refuse_foreign(const struct opts *o, struct ops_err *e) {
    static const char *const foreign[] = {"run",  "steps", "region", "instance",
                                          "host", "rank",  "min-us"};
    for (size_t i = 0; i < COUNT(foreign); i++)
        if (opts_given(o, foreign[i]))
            return fail(e, OPS_EUSAGE,
                        "runs have no --%s; choose with --name and "
                        "--min-bytes",
                        foreign[i]);
    return 0;
}

static int runs_run(const struct opts *o, int argc, char **argv,
                    struct ops_err *e) {
    static const char *const words[] = {"small", "all", "none"};
    if (argc != 1) return fail(e, OPS_EUSAGE, "runs needs one log folder");
    TRY(refuse_foreign(o, e));
    struct load_bar bar;
    struct import_opts io = load_bar_start(&bar, o);
    struct written w = {0};
    struct run_table_ask ask = {.io = &io, .is_written = is_written, .ctx = &w};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(opts_text(o, "read"), words[i]) == 0)
            ask.reading = (enum run_reading)i;
    struct result r;
    if (realpath(argv[0], w.root) != NULL) proc_list(0, try_process, &w);
    int rc = run_table(argv[0], &ask, &r, e);
    written_free(&w);
    load_bar_end(&bar);
    if (rc != 0) return rc;
    rc = result_refine(&r, o, show_as(o)->top, e);
    if (rc == 0) rc = result_columns(&r, o, e);
    if (rc == 0) rc = show_result(&r, o, e);
    result_free(&r);
    return rc;
}

static const struct opt runs_opts[] = {
    {"read", 0, OPT_CHOICE, "small|all|none", "small",
     .help = "which runs are read, for hosts, ranks and steps: small ones, up "
             "to 32 "
             "MiB "
             "of files"},
    {0},
};

const struct command command_runs = {
    .name = "runs",
    .args = "LOGDIR",
    .help =
        "the runs of a log folder: when, what, hosts, steps, who writes them",
    .more =
        "The newest comes first; its name is what --run takes. Columns: run, "
        "taken, formats, files, bytes, hosts, ranks, steps, step_us, state "
        "(finished, running, died, unfinished, cut, unreadable), profiles, "
        "taken_unix_s.",
    .opts = runs_opts,
    .filters = true,
    .run = runs_run,
};
