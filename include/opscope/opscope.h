/* SPDX-License-Identifier: Apache-2.0
 * opscope: reading profiles. Open one, run an analysis, read the table.
 *
 *     #include <opscope/opscope.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv) {
 *         struct ops_err err;
 *         struct ops_profile *p;
 *         struct ops_result *r;
 *         if (ops_open(&p, argc > 1 ? argv[1] : "logs", &err) != 0) {
 *             fprintf(stderr, "%s\n", err.text);
 *             return 1;
 *         }
 *         int rc = ops_run(p, "ops", "top=20", &r, &err);
 *         ops_close(p);
 *         if (rc != 0) {
 *             fprintf(stderr, "%s\n", err.text);
 *             return 1;
 *         }
 *         for (size_t i = 0; i < ops_result_rows(r); i++)
 *             puts(ops_result_cell_text(r, i, 0));
 *         ops_result_free(r);
 *         return 0;
 *     }
 *
 * cc app.c $(pkg-config --cflags --libs opscope)
 *
 * Ownership: ops_open pairs with ops_close, ops_run with ops_result_free. A
 * result stands alone: it may outlive its profile. `const char *` that a call
 * returns belongs to the result (or the library) and lives as long; `char *`
 * is yours, for ops_text_free. Arguments are borrowed for the call only.
 *
 * Errors: a call that can fail returns 0 or a negative enum ops_code and fills
 * *err exactly then; err may be NULL. Where a call failed, its out parameter is
 * NULL. NULL in place of a profile, a result or a name crashes nothing: calls
 * that can fail say OPS_EUSAGE, the others see an empty table.
 *
 * Lists: X_count() says how many there are, and X_name(i) and its neighbours
 * tell of the i-th; past the last they give NULL or 0.
 *
 * Threads: no global state. Different profiles and results may be used by
 * different threads at the same time, and one profile by several: a profile is
 * never changed once it is open. The library prints nothing and ends nothing,
 * and leaves signals alone unless ops_map_files() asks it not to.
 */
#ifndef OPSCOPE_OPSCOPE_H
#define OPSCOPE_OPSCOPE_H

#include "opscope/err.h"
#include "opscope/version.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ops_profile;
struct ops_result;

/* The types of columns. A cell of any type can be null: not recorded. */
enum ops_col_type {
    OPS_COL_TEXT,
    OPS_COL_INT,
    OPS_COL_FLOAT,
    OPS_COL_TIME, /* microseconds; exact picoseconds by _cell_ps */
    OPS_COL_BYTES,
    OPS_COL_PERCENT, /* 100 is all */
    OPS_COL_BOOL,
};

/* Returns the library's version, "0.1.0"; OPS_VERSION_MAJOR, ... are the
 * header's. */
OPS_API const char *ops_version(void);

/* The analyses, in the order of `opscope help`. */
OPS_API size_t ops_analysis_count(void);
OPS_API const char *ops_analysis_name(size_t i); /* "ops" */
OPS_API const char *ops_analysis_help(size_t i); /* one line */
OPS_API const char *ops_analysis_row(size_t i);  /* "one host thread" */
/* Returns the number of the analysis of that name, or -1. */
OPS_API int ops_analysis_find(const char *name);

/* What the value of an option looks like. */
enum ops_option_type {
    OPS_OPTION_FLAG,  /* 0 or 1 */
    OPS_OPTION_INT,   /* 20 */
    OPS_OPTION_FLOAT, /* 3.4 */
    OPS_OPTION_TEXT,
    OPS_OPTION_CHOICE, /* one of those that _arg lists: "op|module" */
    OPS_OPTION_BYTES,  /* 4096, 1M, 2.5GiB */
    OPS_OPTION_US,     /* microseconds: 12.5 */
    OPS_OPTION_RANGE,  /* 3..7, 3.., ..7, 5 */
};

/* The options of analysis i, for ops_run: its own, then those of all. */
OPS_API size_t ops_analysis_option_count(size_t i);
OPS_API const char *ops_analysis_option_name(size_t i, size_t k); /* "top" */
OPS_API enum ops_option_type ops_analysis_option_type(size_t i, size_t k);
OPS_API const char *ops_analysis_option_arg(size_t i, size_t k);     /* "N"; or
                                                                    NULL */
OPS_API const char *ops_analysis_option_default(size_t i, size_t k); /* or NULL:
                                                                there is none */
OPS_API const char *ops_analysis_option_help(size_t i, size_t k); /* one line */

/* Maps large files from now on instead of copying them to $TMPDIR before they
 * are read: quicker, and no disk space. A mapped file that another program cuts
 * short raises SIGBUS; this sets a handler that makes such reads zeros, and
 * hands every other fault to the handler that was there before. It is for
 * programs that have no handler of their own, or have set theirs earlier. */
OPS_API void ops_map_files(void);

/* Opens a profile file of any known format, a run folder or a log folder
 * (whose newest run is taken). Ranks of one job become one profile; files that
 * have nothing to do with each other stand side by side, and results then
 * begin with a column "profile". */
OPS_API int ops_open(struct ops_profile **out, const char *path,
                     struct ops_err *err);

/* More than a path. 0 is the default of each member. Members may be added at
 * the end: the struct is handed over with its size. */
struct ops_open_options {
    const char *run; /* this run of a log folder; NULL: the newest */
    int threads;     /* at most so many; 0: as many as pay */
    /* Is told now and then how far a file is, `done` of `all`, file after file;
     * 0 of 0 says that one is about to be opened. It is called in the thread
     * that opens. If it returns false, ops_open_with ends soon with
     * OPS_ECANCEL, and nothing is left of it. It is not asked while a file is
     * decompressed or copied, nor while events are sorted at the end. NULL if
     * nobody wants to know. */
    bool (*progress)(void *self, uint64_t done, uint64_t all);
    void *self; /* handed to progress */
};
/* Opens n paths as ops_open opens one. o may be NULL. */
static inline int ops_open_with(struct ops_profile **out,
                                const char *const *paths, size_t n,
                                const struct ops_open_options *o,
                                struct ops_err *err);
/* Does the same for callers without a C compiler; size is that of *o. */
OPS_API int ops_open_sized(struct ops_profile **out, const char *const *paths,
                           size_t n, const struct ops_open_options *o,
                           size_t size, struct ops_err *err);
OPS_API void ops_close(struct ops_profile *p); /* NULL is fine */

/* Runs an analysis. Options are written as in a URL,
 * "top=20&steps=3..7&name=conv%2A": those of the command line, without dashes.
 * NULL stands for all defaults, which here means all rows. */
OPS_API int ops_run(const struct ops_profile *p, const char *analysis,
                    const char *options, struct ops_result **out,
                    struct ops_err *err);
OPS_API void ops_result_free(struct ops_result *r); /* NULL is fine */

/* The table. Rows and columns past the end have no name and are null. */
OPS_API size_t ops_result_rows(const struct ops_result *r);
OPS_API size_t ops_result_total_rows(const struct ops_result *r); /* before
                                                            top= cut them */
OPS_API size_t ops_result_cols(const struct ops_result *r);
OPS_API const char *ops_result_col_name(const struct ops_result *r, size_t col);
OPS_API enum ops_col_type ops_result_col_type(const struct ops_result *r,
                                              size_t col);
OPS_API const char *ops_result_col_unit(const struct ops_result *r,
                                        size_t col); /* or NULL */
OPS_API const char *ops_result_col_help(const struct ops_result *r,
                                        size_t col); /* or NULL */

/* Returns the column of that name, or -1. */
OPS_API int ops_result_find_col(const struct ops_result *r, const char *name);

/* Cells. Where there is no such value they give 0 (NULL): ask _is_null, which
 * is true past the end, too.
 *     _text    of OPS_COL_TEXT
 *     _double  of all others: microseconds of a time, as the column's unit says
 *     _int     the same without what is behind the point, towards zero; more
 *              than 64 bits hold is the largest number there is
 *     _ps      of OPS_COL_TIME: exact picoseconds */
OPS_API bool ops_result_cell_is_null(const struct ops_result *r, size_t row,
                                     size_t col);
OPS_API const char *ops_result_cell_text(const struct ops_result *r, size_t row,
                                         size_t col);
OPS_API double ops_result_cell_double(const struct ops_result *r, size_t row,
                                      size_t col);
OPS_API int64_t ops_result_cell_int(const struct ops_result *r, size_t row,
                                    size_t col);
OPS_API int64_t ops_result_cell_ps(const struct ops_result *r, size_t row,
                                   size_t col);

/* The files that it was made from. */
OPS_API size_t ops_result_source_count(const struct ops_result *r);
OPS_API const char *ops_result_source_path(const struct ops_result *r,
                                           size_t i);
OPS_API const char *ops_result_source_format(const struct ops_result *r,
                                             size_t i); /* "kineto" */
OPS_API const char *ops_result_source_host(const struct ops_result *r,
                                           size_t i); /* or NULL */
OPS_API int64_t ops_result_source_rank(const struct ops_result *r,
                                       size_t i); /* -1: not recorded */

/* What the table alone does not say. */
OPS_API size_t ops_result_remark_count(const struct ops_result *r);
OPS_API const char *ops_result_remark_text(const struct ops_result *r,
                                           size_t i);

/* What was not recorded, why, and what to do about it (may be NULL). */
OPS_API size_t ops_result_missing_count(const struct ops_result *r);
OPS_API const char *ops_result_missing_what(const struct ops_result *r,
                                            size_t i);
OPS_API const char *ops_result_missing_why(const struct ops_result *r,
                                           size_t i);
OPS_API const char *ops_result_missing_fix(const struct ops_result *r,
                                           size_t i);

/* What the reader had to skip, mend or infer: id, how often, sentence. */
OPS_API size_t ops_result_note_count(const struct ops_result *r);
OPS_API const char *ops_result_note_id(const struct ops_result *r, size_t i);
OPS_API uint64_t ops_result_note_times(const struct ops_result *r, size_t i);
OPS_API const char *ops_result_note_text(const struct ops_result *r, size_t i);

/* Return the whole result as the command prints it with --format json, csv or
 * text (120 columns, no colours); NULL if out of memory, or there is no result.
 * *len (may be NULL) gets the length; a NUL stands behind it. */
OPS_API char *ops_result_json(const struct ops_result *r, size_t *len);
OPS_API char *ops_result_csv(const struct ops_result *r, size_t *len);
OPS_API char *ops_result_text(const struct ops_result *r, size_t *len);
OPS_API void ops_text_free(char *text);

static inline int ops_open_with(struct ops_profile **out,
                                const char *const *paths, size_t n,
                                const struct ops_open_options *o,
                                struct ops_err *err) {
    return ops_open_sized(out, paths, n, o, sizeof *o, err);
}

#ifdef __cplusplus
}
#endif

#endif
