/* SPDX-License-Identifier: Apache-2.0
 * A result as CSV by RFC 4180: the column names, then the rows, lines end in
 * CR LF. What was not recorded is empty; an empty text is "". */
#include "present/present.h"

#include "base/number.h"
#include <string.h>

static void put_text(struct sink *out, const char *s) {
    if (*s != '\0' && strpbrk(s, "\",\r\n") == NULL) {
        sink_puts(out, s);
        return;
    }
    sink_putc(out, '"');
    for (; *s != '\0'; s++) {
        if (*s == '"') sink_putc(out, '"');
        sink_putc(out, *s);
    }
    sink_putc(out, '"');
}

static void put_cell(struct sink *out, const struct result *r, size_t col,
                     const struct cell *c) {
    char num[NUMBER_MAX];
    const struct column *k = &r->cols[col];
    if (c->null) return;
    switch (k->type) {
    case COL_TEXT: put_text(out, c->s); break;
    case COL_INT:
    case COL_BYTES: sink_printf(out, "%lld", (long long)c->i); break;
    case COL_FLOAT:
    case COL_PERCENT: sink_puts(out, number_float(c->f, num)); break;
    case COL_TIME:
        sink_puts(out, number_us(c->i, k->flags & COL_MEAN ? 6 : r->decimals,
                                 num));
        break;
    case COL_BOOL: sink_puts(out, c->i ? "true" : "false"); break;
    }
}

void present_csv(const struct result *r, struct sink *out) {
    for (size_t c = 0; c < r->ncols; c++) {
        if (c > 0) sink_putc(out, ',');
        put_text(out, r->cols[c].name);
    }
    sink_puts(out, "\r\n");
    for (const struct result *p = r; p != NULL; p = result_next(r))
        for (size_t i = 0; i < p->nrows; i++) {
            for (size_t c = 0; c < p->ncols; c++) {
                if (c > 0) sink_putc(out, ',');
                put_cell(out, p, c, result_cell(p, i, c));
            }
            sink_puts(out, "\r\n");
        }
}
