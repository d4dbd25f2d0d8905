/* SPDX-License-Identifier: Apache-2.0
 * A path that people type becomes the profile files that they mean: a file, a
 * run folder, or a log folder with runs anywhere below it. What a file is its
 * first bytes say; names only tell hosts, ranks and which run is the newest.
 *
 *     <logdir>/[<sub>/]plugins/profile/<run>/<host>.xplane.pb   TensorBoard
 *     <logdir>/<worker>[.<time>].pt.trace.json[.gz]             PyTorch
 */
#ifndef LOAD_RUNS_H
#define LOAD_RUNS_H

#include "model/trace.h"

struct import_opts;
struct importer;

/* The profiles of one folder. */
struct run {
    char *name; /* "train/2026_11_15_03_29_38": the folder below the one
                     that was searched, without plugins/profile */
    struct run_file {
        char *path;
        const struct importer *importer; /* NULL: not looked at yet */
    } * files;                           /* sorted by path */
    size_t n, cap;
    int64_t time;  /* when it was taken: by its name, else its newest file's
                      time; ns */
    int64_t bytes; /* of its files, as they lie on disk */
    struct run_skip {
        char *path;
        const char *why, *fix;
    } * skips; /* named like a profile, but nothing to be made of */
    size_t nskips, cap_skips;
    bool scalars; /* only event files, mostly curves */
    bool plain;   /* only Chrome JSON, which may be any tool's output, or
                      event files, which seldom hold a profile */
};

struct run_list {
    struct run *v; /* plain ones first, then oldest first */
    size_t n, cap;
    size_t folders, files; /* how much was looked at */
    size_t curves;         /* folders with curves alone that are no runs */
    char *bad;             /* a file named like a profile where no run is */
    struct run_skip *shut; /* folders that may not be read */
    size_t nshut, cap_shut;
};

/* Finds all runs at or below path. Returns OPS_EIO if path cannot be read,
 * OPS_EFORMAT if it is a folder with no profile in it: the sentence says what
 * was looked for and where. On success the caller frees. */
int runs_find(const char *path, struct run_list *out, struct ops_err *e);
void runs_free(struct run_list *l);

/* Picks the run called name (or whose last part is name); NULL: the newest. The
 * sentence of OPS_EUSAGE names the runs that there are. */
int runs_pick(const struct run_list *l, const char *name,
              const struct run **out, struct ops_err *e);

/* Sealed traces made from files. */
struct loaded {
    struct trace **v;
    char **names; /* what tells them apart: the first file's path */
    size_t n, cap;
};

/* Imports all files. Those that are ranks or hosts of one job (host or rank
 * differ, windows overlap) become one trace; others become one each. */
int runs_load(const struct run_file *files, size_t n,
              const struct import_opts *o, struct loaded *out,
              struct ops_err *e);
void loaded_free(struct loaded *l);

#endif
