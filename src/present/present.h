/* SPDX-License-Identifier: Apache-2.0
 * A result becomes a screen; all forms show the same result. There is one
 * presenter per choice of --format, listed in presenters.def; presenters never
 * include each other. */
#ifndef PRESENT_PRESENT_H
#define PRESENT_PRESENT_H

#include "base/io/sink.h"
#include "model/result.h"

struct text_style {
    int width;    /* columns to fit into; 0: no limit */
    bool color;   /* ANSI colours */
    bool unicode; /* bars and arrows beyond ASCII */
    bool detail;  /* COL_DETAIL columns, all notes (-v) */
    bool quiet;   /* the table alone (-q) */
};

struct presenter {
    const char *name; /* "json": what --format calls it */
    size_t top;       /* rows shown where --top is not given; 0: all */
    bool brief;       /* COL_DETAIL columns are shown with -v alone */
    /* It is read on a terminal: courses are drawn, and `watch` and `scalars
     * --follow` print lines of their own in the place of tables. */
    bool terminal;
    /* The first line names the columns, each other line is a row: rows of later
     * results may follow without that line. */
    bool appends;
    /* Writes all of r; st is for those who care for it. */
    void (*put)(const struct result *r, const struct text_style *st,
                struct sink *out);
};

#define X(name) extern const struct presenter presenter_##name;
#include "present/presenters.def"
#undef X

/* All presenters; NULL ends the list. */
extern const struct presenter *const presenters[];

/* Returns the presenter of that name, or NULL. */
const struct presenter *presenter_find(const char *name);

/* Writes a time, a float or a truth as JSON and CSV have it; c is not null. */
void present_number(struct sink *out, const struct result *r, size_t col,
                    const struct cell *c);

#endif
