/* SPDX-License-Identifier: Apache-2.0
 * A result becomes a screen; all forms show the same result. */
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

void present_text(const struct result *r, const struct text_style *st,
                  struct sink *out);
void present_json(const struct result *r, struct sink *out);
void present_csv(const struct result *r, struct sink *out);

/* Writes a time, a float or a truth as JSON and CSV have it; c is not null. */
void present_number(struct sink *out, const struct result *r, size_t col,
                    const struct cell *c);

#endif
