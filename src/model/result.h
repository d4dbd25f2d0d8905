/* SPDX-License-Identifier: Apache-2.0
 * A result: a small typed table that stands alone. It copies what it needs and
 * outlives its trace. Every screen (text, JSON, CSV, later SQL and web) shows
 * this and nothing else.
 *
 * Filling:   result_init(r, "ops", "Operations");
 *            result_col(r, (struct column){.name = "name", .type = COL_TEXT});
 *            ... then per row: result_row(r), and cell_text(r, "name", s) for
 *            each cell that has a value; the others are null.
 * Nothing fails while filling: when memory runs out r->oom is set, which
 * result_done() turns into an error. */
#ifndef MODEL_RESULT_H
#define MODEL_RESULT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io/sink.h"
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct result;
struct trace;

enum col_type {
    COL_TEXT,
    COL_INT,
    COL_FLOAT,
    COL_TIME,    /* int64 ps; shown in us with the source's decimals */
    COL_BYTES,   /* int64 */
    COL_PERCENT, /* double, 100 is all */
    COL_BOOL,
};

enum col_flag {
    COL_KEY = 1,       /* what --name matches */
    COL_MAIN = 2,      /* the figure that matters: default order, --min-us */
    COL_BAR = 4,       /* text: draw a bar of this share (a COL_PERCENT) */
    COL_DETAIL = 8,    /* text: only with -v; JSON and CSV: always */
    COL_MEAN = 16,     /* a COL_TIME worked out by division: 6 decimals */
    COL_SIZE = 32,     /* what --min-bytes looks at */
    COL_SYMBOL = 64,   /* text: a long C++ name: shorten in the middle */
    COL_ASKED = 256,   /* an option asked for it: text never leaves it out */
    COL_WRAP = 2048,   /* text: goes on in further lines, never shortened */
    COL_BELOW = 512,   /* text: on lines of its own under its row, wrapped */
    COL_INDENT = 1024, /* text: indented by the row's column "depth" */
    COL_DIGITS = 4096, /* text: a COL_FLOAT whose rows have nothing to do with
                          each other: four digits that count, in each row */
    COL_ANSWER = 8192, /* text: what the table is read for: goes last where the
                          screen is narrow ... */
    COL_LESS = 16384,  /* ... and what goes before others */
    COL_PART = 32768,  /* text: a COL_TIME that is a part of a whole beside
                          others: of those the small ones go first */
    COL_STAMP = 128,   /* COL_TIME since the epoch: text shows it from the
                          window's start (result.origin) */
};

struct column {
    const char *name;  /* fixed by the interface: host_self_us */
    const char *title; /* text heading, short: "self"; NULL: from name */
    const char *unit;  /* "us", "bytes", "%", "GB/s" or NULL */
    const char *help;  /* one sentence for a newcomer */
    enum col_type type;
    unsigned flags; /* enum col_flag */
};

struct cell {
    union {
        int64_t i;     /* COL_INT, COL_TIME, COL_BYTES, COL_BOOL */
        double f;      /* COL_FLOAT, COL_PERCENT */
        const char *s; /* COL_TEXT, in the result's arena */
    };
    bool null; /* not recorded: JSON null, text "-", CSV empty */
};

enum { RESULT_COLS = 64 }; /* no result has more columns */

struct result_source {
    const char *path, *format, *host; /* host may be NULL */
    int64_t rank;                     /* -1: not recorded */
    int64_t epoch_ns;
    bool has_epoch;
};

/* Rows that are too many to be held at once; the first of them stand in the
 * result. A printer asks for the others with result_next(); code that needs
 * them in place calls result_gather(). They are made from the trace, which must
 * live until the last was asked for. */
struct result_more {
    size_t at, end;      /* the next row to be made, and how many there are */
    int64_t origin;      /* as result.origin */
    const char *profile; /* the value of the column "profile"; NULL: none */
    /* Puts row number `at` into r, by result_row() and cell_*(). */
    void (*put)(struct result_more *m, struct result *r);
    void (*free)(struct result_more *m);
    const struct trace *view; /* of a trace, given back with the rows; or NULL
                                 (region.h) */
    struct result_more *then; /* those of the profile behind this one */
    struct result *part;      /* of the first: what result_next() gave last */
    bool oom;                 /* of the first: memory ran out for the rest */
};

struct result {
    struct arena arena;
    const char *analysis; /* "ops" */
    const char *title;    /* heading of the text form */
    struct column *cols;
    size_t ncols, cap_cols;
    const char *given[RESULT_COLS]; /* their names where result_col() saw them:
                                       compared, never read */
    uint8_t *packed;
    size_t npacked, cap_packed; /* rows: result.c */
    size_t *row_at;
    size_t cap_rows;    /* where each row begins there */
    struct cell *open;  /* RESULT_COLS cells of the row being filled */
    const char **above; /* RESULT_COLS: the last text of each column */
    bool filling;       /* the last row stands in open, not yet packed */
    size_t nopen;       /* the column after the last one that was put */
    size_t nrows;       /* rows here */
    size_t total_rows;  /* rows before --top cut them */
    struct result_source *sources;
    size_t nsources, cap_sources;
    char **remarks;
    size_t nremarks, cap_remarks;
    struct map said; /* their hashes: each is said once */
    struct result_missing {
        char *what, *why, *fix;
        bool detail; /* the table answers its question without it: text shows
                        it with -v, and `coverage` has it */
    } * missing;
    size_t nmissing, cap_missing;
    struct result_note {
        char *id, *text; /* which reads well behind the count */
        uint64_t count;
        int note;    /* enum note_id */
        bool detail; /* no loss and nothing mended: text shows it with -v */
    } * notes;
    size_t nnotes, cap_notes;
    int decimals;   /* of a microsecond, in COL_TIME columns */
    int64_t origin; /* ps: where text output counts COL_STAMP from */
    struct result_part {
        size_t first;   /* joined results: first row of each ... */
        int64_t origin; /* ... and its own origin */
    } * parts;
    size_t nparts, cap_parts;
    bool one_unit;    /* text: all times but stamps in the same unit, so
                             that parts can be added up by eye */
    bool in_order;    /* rows stand in an order of their own, such as time:
                             COL_MAIN does not sort them */
    bool top_largest; /* in_order, and --top keeps the rows that are largest
                             by COL_MAIN: a tree's parents before its leaves */
    bool full;        /* an integer is at the end of its range: a remark
                             says so */
    struct result_more *more; /* rows that are not made yet, or NULL */
    struct column *wide;      /* with more: the columns before result_pick() */
    size_t nwide;             /* chose some of them, or NULL */
    uint8_t picked[RESULT_COLS]; /* which: indexes into wide */
    bool oom;
};

void result_init(struct result *r, const char *analysis, const char *title);
void result_free(struct result *r);

void result_col(struct result *r, struct column c);
void result_cols(struct result *r, const struct column *cols, size_t n);

/* Starts a row, all of whose cells are null. */
void result_row(struct result *r);

/* Put a value into the column of that name, which must exist and have the type
 * (both asserted). To fill columns in their own order is the fastest. */
void cell_text(struct result *r, const char *col,
               const char *s); /* copied; NULL: null */
void cell_str(struct result *r, const char *col, struct bytes b); /* copied */
void cell_int(struct result *r, const char *col, int64_t v); /* bytes, time */
/* Also for percent; a value that is not finite becomes null. */
void cell_float(struct result *r, const char *col, double v);
void cell_bool(struct result *r, const char *col, bool v);

/* Adds one sentence for the reader. */
void result_remark(struct result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, with words that agree with a count of n: see base/text/plural.h. */
void result_remark_n(struct result *r, uint64_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Says what was not recorded. The second is for what the table can do without:
 * see result_missing.detail. */
void result_missing(struct result *r, const char *what, const char *why,
                    const char *fix);
void result_lacks(struct result *r, const char *what, const char *why,
                  const char *fix);

/* Adds to a note (enum note_id of trace.h), made when new; a count of 0 is no
 * note. This and the next are for results that come from no trace. */
void result_note(struct result *r, int note, uint64_t count);

/* Adds a source; copies its texts. */
void result_source(struct result *r, struct result_source s);

/* Copies sources, decimals, origin and the trace's notes with a count. */
void result_from_trace(struct result *r, const struct trace *t);

/* Returns OPS_ELIMIT if memory ran out while filling, else 0. */
int result_done(struct result *r, struct ops_err *e);

struct cell result_cell(const struct result *r, size_t row, size_t col);

/* Gives all cells of a row; cells has room for RESULT_COLS. */
void result_cells(const struct result *r, size_t row, struct cell *cells);

/* Puts the next rows of m into r, as many as may be held at once. */
void result_fill(struct result *r, struct result_more *m);

/* Returns a result of the same columns with the next rows behind r's, which
 * lives until the next call; NULL after the last, or where r->more->oom. */
const struct result *result_next(const struct result *r);

/* Puts all rows into r itself. */
int result_gather(struct result *r, struct ops_err *e);

/* Returns the index of the column, or -1. */
int result_find_col(const struct result *r, const char *name);

/* Orders rows by a column: numbers largest first, texts from A on; nulls last;
 * equal rows keep their order. */
int result_sort(struct result *r, int col, struct ops_err *e);

/* Keeps rows for which keep(row) is true; total_rows follows. */
void result_filter(struct result *r,
                   bool (*keep)(const struct result *, size_t, const void *),
                   const void *ctx);

/* Shows only the first n rows; total_rows still tells how many there were. */
void result_top(struct result *r, size_t n);

/* Keeps the n rows that are largest in that column, in the order they stand in;
 * of equal ones the first. */
int result_top_largest(struct result *r, int col, size_t n, struct ops_err *e);

/* Adds b's rows, sources, remarks, missing and notes to a, for profiles side by
 * side; the columns must be the same. */
int result_join(struct result *a, const struct result *b, struct ops_err *e);

/* Keeps n of the columns, in that order: cols has their indexes, each once.
 * Rows that are made later follow. It is the last thing that happens to a
 * result. */
int result_pick(struct result *r, const uint8_t *cols, size_t n,
                struct ops_err *e);

/* Returns where COL_STAMP counts from in that row. O(log profiles). */
int64_t result_origin(const struct result *r, size_t row);

/* Puts a text column before all others, with the same value in each row. */
int result_prefix(struct result *r, struct column c, const char *value,
                  struct ops_err *e);

#endif
