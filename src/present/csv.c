/* SPDX-License-Identifier: Apache-2.0
 * A result as CSV by RFC 4180: the column names, then the rows, lines end in
 * CR LF. What was not recorded is empty; an empty text is "".
 *
 * The same bytes go to a terminal, a pipe and a file, for a person, a script or
 * a spreadsheet. So a text is written such that it steers no terminal and is
 * no formula, and such that a script can have it back:
 *
 *   \u001b   what may not stand on a screen (base/text/plain.h), as in
 *            JSON; line feeds and tabs stay, but for a cell's first character
 *   \u005c   a backslash that would look like the above
 *   '=1+1    an apostrophe before what a spreadsheet would compute: = + - @
 *            (and their wide forms) at the beginning of a cell or behind a
 *            semicolon, at which spreadsheets of some countries split; blanks
 *            and apostrophes may stand between
 *
 * docs/output.md has the way back. */
#include "present/present.h"

#include "base/array.h"
#include "base/text/json_text.h"
#include "base/text/plain.h"
#include <string.h>

/* Would a spreadsheet compute a cell that begins like this, with or without
 * the apostrophes? */
static bool is_formula(const char *s) {
    static const char *const signs[] = {"=",  "+",  "-",  "@",
                                        "＝", "＋", "－", "＠"};
    s += strspn(s, "' ");
    for (size_t i = 0; i < COUNT(signs); i++)
        if (strncmp(s, signs[i], strlen(signs[i])) == 0) return true;
    return false;
}

/* Writes one character at s that may need more than itself. Returns its
 * length. */
static size_t put_odd(struct sink *out, const char *s, size_t n, bool first) {
    uint32_t c;
    size_t k = plain_take(s, n, &c);
    bool stays = plain_char(c) || (!first && (c == '\n' || c == '\t'));
    /* this backslash looks like the beginning of an escape of ours */
    if (c == '\\' && s[1] == 'u' && strspn(s + 2, "0123456789abcdef") >= 4)
        stays = false;
    if (c == PLAIN_BAD) sink_puts(out, "\xef\xbf\xbd");
    else if (stays) sink_write(out, s, k);
    else json_put_escape(out, c);
    if (c == '"') sink_putc(out, '"');
    return k;
}

static void csv_text(struct sink *out, const char *s) {
    const char *first = s, *end = s + strlen(s);
    bool quoted = *s == '\0' || strpbrk(s, "\",\n\t") != NULL;
    if (quoted) sink_putc(out, '"');
    while (s < end) {
        if ((s == first || s[-1] == ';') && is_formula(s)) sink_putc(out, '\'');
        size_t n = 0; /* bytes that are what they are, wherever they stand */
        while (s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\' &&
               s[n] != ';')
            n++;
        sink_write(out, s, n);
        s += n;
        if (s < end) s += put_odd(out, s, (size_t)(end - s), s == first);
    }
    if (quoted) sink_putc(out, '"');
}

static void csv_cell(struct sink *out, const struct result *r, size_t col,
                     const struct cell *c) {
    if (c->null) return;
    switch (r->cols[col].type) {
    case COL_TEXT: csv_text(out, c->s); break;
    case COL_INT:
    case COL_BYTES: sink_int(out, c->i); break;
    default: present_number(out, r, col, c);
    }
}

static void csv_result(const struct result *r, const struct text_style *st,
                       struct sink *out) {
    (void)st;
    for (size_t c = 0; c < r->ncols; c++) {
        if (c > 0) sink_putc(out, ',');
        csv_text(out, r->cols[c].name);
    }
    sink_puts(out, "\r\n");
    for (const struct result *p = r; p != NULL; p = result_next(r))
        for (size_t i = 0; i < p->nrows; i++) {
            struct cell cells[RESULT_COLS];
            result_cells(p, i, cells);
            for (size_t c = 0; c < p->ncols; c++) {
                if (c > 0) sink_putc(out, ',');
                csv_cell(out, p, c, &cells[c]);
            }
            sink_puts(out, "\r\n");
        }
}

const struct presenter presenter_csv = {
    .name = "csv",
    .appends = true,
    .put = csv_result,
};
