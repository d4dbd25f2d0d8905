/* SPDX-License-Identifier: Apache-2.0
 * A result on its way to the screen: how each column is drawn, and which of
 * them fit. layout.c fills it in, text.c prints it. */
#ifndef PRESENT_TABLE_H
#define PRESENT_TABLE_H

#include "base/arena.h"
#include "base/io/sink.h"
#include "base/text/number.h"
#include <stdbool.h>

struct cut;
struct result;
struct text_style;

enum {
    GAP = 2,        /* blanks between columns */
    BAR_WIDTH = 10, /* columns of a share bar; full is 100 % */
};

/* Where a column stands. */
enum place {
    PLACE_TABLE,  /* in the table */
    PLACE_UNDER,  /* wanted, and no room: under each row, with its name */
    PLACE_BELOW,  /* COL_BELOW: on lines of its own under the row */
    PLACE_SAME,   /* the same in every row: said once, below the table */
    PLACE_EMPTY,  /* wanted, and no row has a value: said below the table */
    PLACE_HIDDEN, /* no room: its name stands below the table */
    PLACE_NOT,    /* not asked for */
};

/* How a column is shown. */
struct lane {
    enum place place;
    bool empty; /* no row has a value */
    bool same;  /* all rows have the same value; there are two or more */
    bool bar;   /* a bar is drawn beside the figure */
    double sum; /* of a COL_PART: over all rows */
    struct scale scale; /* times, sizes and counts */
    int decimals;       /* floats and percents */
    size_t cells;       /* widest cell */
    size_t width;       /* what it gets */
    size_t split;       /* bytes of the heading in its first line of two */
    struct cut *cuts;   /* of the rows at hand, or NULL: none is cut */
    char unit[24];
    char heading[96]; /* with the unit */
};

struct table {
    const struct result *r;
    const struct text_style *st;
    struct sink *out;
    struct sink cell; /* scratch: the text of one cell */
    struct lane *lanes;
    bool two_lines;     /* headings stand in two lines */
    size_t first, end;  /* the rows at hand: cuts hold for them */
    struct arena arena; /* of their texts */
    size_t shown;       /* rows */
    struct tree_shape {
        size_t deepest; /* of the rows */
        size_t level;   /* blanks for each level ... */
        size_t most;    /* ... up to so many in all */
        bool numbers;   /* deeper rows have their depth before the name */
    } tree;             /* of a COL_INDENT column */
};

/* Writes a cell's text into t->cell, names not yet shortened. */
void cell_draw(struct table *t, size_t row, size_t col);

/* Returns the scratch cell as a string; "" if memory ran out. */
const char *cell_string(struct table *t);

enum { LEAD_MAX = 80 };

/* Writes what stands before the name of a row of a tree: blanks by its depth,
 * and its depth as a number where there is no room for more of them, so that no
 * row looks like a sister of its parent. Returns the columns that it takes. */
size_t cell_lead(const struct table *t, size_t row, size_t col,
                 char lead[LEAD_MAX]);

/* Has a row its depth as a number? */
bool table_has_numbers(const struct table *t);

/* Returns the columns of the screen that a heading takes. */
size_t heading_width(const struct table *t, size_t col);

/* Fills in all lanes: how columns are drawn, how wide they are, and where those
 * stand for which there is no room. */
void table_layout(struct table *t);

#endif
