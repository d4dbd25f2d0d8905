/* SPDX-License-Identifier: Apache-2.0
 * Scalars become results: one row per run and tag, or one per point. They come
 * from no trace, so this is no analysis; the command line and the server call
 * it with a store at hand. */
#ifndef SCALARS_SCALAR_TABLE_H
#define SCALARS_SCALAR_TABLE_H

#include "model/result.h"
#include "scalars/scalars.h"

/* What to show; a zeroed one shows everything. */
struct scalar_view {
    const char *run, *tag; /* globs, or NULL: all */
    bool by_step;          /* only steps from..to */
    int64_t from, to;
    size_t window; /* points that `mean` looks back over; 0: all */
    size_t spark;  /* characters of the column `trend`; 0: none */
    bool ascii;    /* it has no blocks */
};

/* Are that run and tag to be shown? */
bool scalar_view_has(const struct scalar_view *v, const struct curve *c);

enum { SPARK_CHARS = 64, SPARK_BYTES = 3 * SPARK_CHARS + 1 };

/* Writes a row of numbers as a line of text, in eight heights of blocks: n
 * numbers in at most `width` characters (at most SPARK_CHARS): the mean of as
 * many as share a place, from the smallest to the largest of these. 'x' is a
 * place with no number in it but NaN and infinities. ascii: without blocks.
 * Returns buf. O(n). */
char *spark_line(const double *v, size_t n, size_t width, bool ascii,
                 char buf[SPARK_BYTES]);

/* Ends the filling of a result: it is the caller's on success, else freed. */
int scalar_done(struct result *r, struct ops_err *e);

/* Makes one row per run and tag: points, first and last step, last value,
 * smallest, largest, mean of the last ones, points per second. NaN and
 * infinities, steps that a restart did again, and files written at the same
 * time are remarks. r must not be initialised; on success it is the caller's to
 * free. */
int scalar_table(const struct scalars *s, const struct scalar_view *v,
                 struct result *r, struct ops_err *e);

/* Makes one row per point of the scalars, by run and tag, in order of time. */
int scalar_points(const struct scalars *s, const struct scalar_view *v,
                  struct result *r, struct ops_err *e);

/* How many points of each series were shown already; zeroed for none. */
struct scalar_cursor {
    size_t *seen; /* by series of the store */
    size_t n, cap;
};

/* Gives the points that came since the last call, columns as above, in the
 * order of the files; moves the cursor. Restarts replace nothing here: it is a
 * log. */
int scalar_new_points(const struct scalars *s, const struct scalar_view *v,
                      struct scalar_cursor *seen, struct result *r,
                      struct ops_err *e);
void scalar_cursor_free(struct scalar_cursor *c);

#endif
