/* SPDX-License-Identifier: Apache-2.0
 * A result for reading: a title, aligned columns, then what the reader must
 * know (rows cut, columns left out, remarks, what was not recorded, notes).
 *
 * Two passes over the cells: the first finds each column's unit and width and
 * makes the table as wide as the screen (layout.c), the second prints. A column
 * has one unit, named in its heading, so that its digits can be compared by
 * eye. */
#include "present/table.h"

#include "model/columns.h"
#include "present/apart.h"
#include "present/present.h"
#include "present/width.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTES_MAX = 4,      /* notes shown without -v */
    CUT_ROWS = 1 << 14, /* rows whose names are compared with each other */
};

#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define YELLOW "\033[33m"
#define CYAN   "\033[36m"

/* Starts a colour; end with color_off. */
static void color_on(struct table *t, const char *code) {
    if (t->st->color) sink_control(t->out, code);
}

static void color_off(struct table *t) {
    if (t->st->color) sink_control(t->out, "\033[0m");
}

/* Writes a bar of pct percent, BAR_WIDTH columns, in eighths if possible. */
static void put_bar(struct table *t, struct cell c, bool last) {
    static const char *const eighths[] = {"",  "▏", "▎", "▍",
                                          "▌", "▋", "▊", "▉"};
    double pct = c.null || !(c.f > 0) ? 0 : c.f > 100 ? 100 : c.f;
    int n = (int)(pct / 100 * BAR_WIDTH * 8 + 0.5);
    int whole = t->st->unicode ? n / 8 : (n + 4) / 8;
    int part = t->st->unicode ? n % 8 : 0;
    if (last && whole + part == 0) return;
    sink_putc(t->out, ' ');
    color_on(t, CYAN);
    sink_repeat(t->out, t->st->unicode ? "█" : "#", (size_t)whole);
    sink_puts(t->out, eighths[part]);
    color_off(t);
    if (!last)
        sink_repeat(t->out, " ", (size_t)(BAR_WIDTH - whole - (part > 0)));
}

static bool is_last(const struct table *t, size_t col) {
    for (size_t c = col + 1; c < t->r->ncols; c++)
        if (t->lanes[c].place == PLACE_TABLE) return false;
    return true;
}

/* Writes text into its column: texts to the left, numbers to the right; no
 * blanks at the end of a line. */
static void put_padded(struct table *t, size_t col, const char *s) {
    const struct lane *l = &t->lanes[col];
    size_t w = text_width(s), pad = l->width > w ? l->width - w : 0;
    bool left = t->r->cols[col].type == COL_TEXT;
    if (!left) sink_repeat(t->out, " ", pad);
    sink_puts(t->out, s);
    if (left && !is_last(t, col)) sink_repeat(t->out, " ", pad);
}

/* Writes one line of the headings. With two of them, headings of one line stand
 * in the lower. */
static void put_heading_line(struct table *t, bool upper) {
    size_t blanks = 0; /* that are due before the next heading */
    for (size_t c = 0, first = 1; c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        size_t split = t->two_lines ? l->split : 0, n = upper ? split : 0;
        if (l->place != PLACE_TABLE) continue;
        const char *s = l->heading;
        if (!upper) {
            s += split + (split > 0);
            n = strlen(s);
        }
        if (!first) blanks += GAP;
        first = 0;
        size_t w = text_width_n(s, n), pad = l->width > w ? l->width - w : 0;
        bool left = t->r->cols[c].type == COL_TEXT;
        if (n > 0) {
            sink_repeat(t->out, " ", blanks + (left ? 0 : pad));
            sink_write(t->out, s, n);
            blanks = left ? pad : 0;
        } else blanks += pad;
        if (l->bar) blanks += 1 + BAR_WIDTH;
    }
    sink_putc(t->out, '\n');
}

static void put_heading(struct table *t) {
    bool two = false;
    for (size_t c = 0; t->two_lines && c < t->r->ncols; c++)
        two |= t->lanes[c].place == PLACE_TABLE && t->lanes[c].split > 0;
    color_on(t, DIM);
    if (two) put_heading_line(t, true);
    put_heading_line(t, false);
    color_off(t);
}

static const char *dots_of(const struct table *t) {
    return t->st->unicode ? "…" : "...";
}

/* Does the text of a cell have to be cut? The scratch cell has it. */
static bool is_too_wide(struct table *t, size_t row, size_t col) {
    return t->r->cols[col].type == COL_TEXT && t->st->width > 0 &&
           !result_cell(t->r, row, col).null &&
           text_width(cell_string(t)) > t->lanes[col].width;
}

/* Returns what is left of a cell for its name. */
static size_t name_room(const struct table *t, size_t row, size_t col) {
    char lead[LEAD_MAX];
    size_t n = cell_lead(t, row, col, lead), width = t->lanes[col].width;
    return n < width ? width - n : 0;
}

/* Writes the text of a cell into out, cut to its column less the indent. */
static void put_cut(struct table *t, struct sink *out, size_t row, size_t col) {
    struct cell c = result_cell(t->r, row, col);
    size_t width = name_room(t, row, col);
    if (t->r->cols[col].flags & COL_SYMBOL)
        symbol_put_fit(out, c.s, width, dots_of(t));
    else text_put_fit(out, c.s, width, dots_of(t));
}

/* Cuts the texts of a column, such that those which differ look different.
 * Returns false if memory ran out. */
static bool cut_column(struct table *t, size_t col) {
    struct lane *l = &t->lanes[col];
    size_t n = t->end - t->first;
    l->cuts = calloc(n, sizeof *l->cuts);
    if (l->cuts == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        size_t row = t->first + i;
        cell_draw(t, row, col);
        if (!is_too_wide(t, row, col)) continue;
        t->cell.n = 0;
        put_cut(t, &t->cell, row, col);
        const char *shown = cell_string(t);
        shown = arena_copy(&t->arena, shown, strlen(shown));
        if (shown == NULL) return false;
        l->cuts[i] = (struct cut){
            .full = result_cell(t->r, row, col).s,
            .shown = shown,
            .width = name_room(t, row, col),
        };
    }
    return cuts_apart(l->cuts, n, t->r->cols[col].flags & COL_SYMBOL,
                      dots_of(t), &t->arena);
}

static void free_cuts(struct table *t) {
    for (size_t c = 0; c < t->r->ncols; c++) {
        free(t->lanes[c].cuts);
        t->lanes[c].cuts = NULL;
    }
    arena_free(&t->arena);
    t->first = t->end = 0;
}

/* Cuts the texts of the rows from `first` on, as many as are held at once. */
static void cut_rows(struct table *t, size_t first) {
    free_cuts(t);
    t->first = first;
    t->end = t->r->nrows - first < CUT_ROWS ? t->r->nrows : first + CUT_ROWS;
    for (size_t c = 0; t->st->width > 0 && c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        const struct column *k = &t->r->cols[c];
        if (k->type == COL_TEXT && l->place == PLACE_TABLE &&
            !(k->flags & COL_WRAP) && !cut_column(t, c))
            t->cell.broken = ENOMEM;
    }
}

/* Shortens the scratch cell to its column. */
static void shorten(struct table *t, size_t row, size_t col) {
    const struct cut *cuts = t->lanes[col].cuts;
    if (!is_too_wide(t, row, col)) return;
    char lead[LEAD_MAX];
    t->cell.n = 0;
    cell_lead(t, row, col, lead);
    sink_puts(&t->cell, lead);
    if (cuts != NULL && cuts[row - t->first].full != NULL)
        sink_puts(&t->cell, cuts[row - t->first].shown);
    else put_cut(t, &t->cell, row, col);
}

/* Writes a paragraph wrapped at the screen's width (text_put_wrapped). */
static void put_indented(struct table *t, const char *s, size_t col,
                         size_t indent) {
    text_put_wrapped(t->out, s, col, indent,
                     t->st->width > 20 ? (size_t)t->st->width : SIZE_MAX);
}

/* Writes the scratch cell as a paragraph below the table. */
static void put_paragraph(struct table *t, const char *color) {
    color_on(t, color);
    put_indented(t, cell_string(t), 0, 2);
    color_off(t);
    t->cell.n = 0;
}

/* Writes the cells that stand under their row, each with its name before it. */
static void put_below(struct table *t, size_t row) {
    for (size_t c = 0; c < t->r->ncols; c++) {
        struct cell v = result_cell(t->r, row, c);
        if (t->lanes[c].place != PLACE_BELOW || v.null) continue;
        color_on(t, DIM);
        sink_printf(t->out, "    %-9s", t->r->cols[c].name);
        color_off(t);
        put_indented(t, v.s, 13, 13);
    }
}

/* Adds "heading value unit" of a cell to the sentence in the scratch cell; the
 * second and later ones behind a comma. */
static void add_pair(struct table *t, struct sink *line, size_t row,
                     size_t col) {
    char name[48];
    const char *unit = t->lanes[col].unit;
    column_heading(&t->r->cols[col], name, sizeof name);
    cell_draw(t, row, col);
    const char *value = cell_string(t);
    value += strspn(value, " "); /* of a tree */
    if (line->n > 0) sink_puts(line, ", ");
    sink_printf(line, "%s%s%s%s%s", *name != '\0' ? name : "",
                *name != '\0' ? " " : "", value, *unit != '\0' ? " " : "",
                unit);
}

/* Writes the cells for which the table has no room under their row. */
static void put_under(struct table *t, size_t row) {
    struct sink line;
    sink_memory(&line);
    for (size_t c = 0; c < t->r->ncols; c++)
        if (t->lanes[c].place == PLACE_UNDER && !result_cell(t->r, row, c).null)
            add_pair(t, &line, row, c);
    sink_putc(&line, '\0');
    if (line.broken) t->cell.broken = line.broken;
    else if (line.n > 1) {
        sink_puts(t->out, "    ");
        put_indented(t, line.buf, 4, 4);
    }
    sink_free(&line);
}

/* Returns how many bytes of s go on a line of that width: whole words if one
 * fits. So many bytes that no text of people's needs them are cut as well: a
 * word may have a million, and be measured again for each of its lines. */
static size_t words_that_fit(const char *s, size_t width) {
    size_t most = strnlen(s, 16 * width + 64), fit = 0;
    for (size_t n = 0, w = 0; n < most && w <= width;) {
        const char *space = memchr(s + n, ' ', most - n);
        size_t k = space != NULL ? (size_t)(space - s) : most;
        w += text_width_n(s + n, k - n);
        if (fit == 0 || w <= width) fit = k;
        n = k + strspn(s + k, " ");
        w += n - k;
    }
    if (text_width_n(s, fit) > width) fit = width > 0 ? width : 1;
    /* what is too long is cut between two characters */
    while (((uint8_t)s[fit] & 0xc0) == 0x80) fit++;
    return fit;
}

/* Wraps a cell: its first line stays in the scratch cell. Returns the rest;
 * NULL if all of it fits. */
static const char *wrap_cell(struct table *t, size_t row, size_t col) {
    struct cell c = result_cell(t->r, row, col);
    size_t width = t->lanes[col].width;
    if (!(t->r->cols[col].flags & COL_WRAP) || c.null || t->st->width <= 0 ||
        text_width(cell_string(t)) <= width)
        return NULL;
    size_t n = words_that_fit(c.s, width);
    t->cell.n = 0;
    text_put_n(&t->cell, c.s, n);
    return c.s + n + strspn(c.s + n, " ");
}

static void text_row(struct table *t, size_t row) {
    const char *rest = NULL;
    size_t rest_col = 0, rest_at = 0, at = 0;
    for (size_t c = 0, first = 1; c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        if (l->place != PLACE_TABLE) continue;
        if (!first) sink_repeat(t->out, " ", GAP);
        at += first ? 0 : GAP;
        first = 0;
        cell_draw(t, row, c);
        const char *more = wrap_cell(t, row, c);
        if (more != NULL) {
            rest = more;
            rest_col = c;
            rest_at = at;
        }
        at += l->width;
        if (more == NULL) shorten(t, row, c);
        bool main = t->r->cols[c].flags & COL_MAIN;
        if (main) color_on(t, BOLD);
        put_padded(t, c, cell_string(t));
        if (main) color_off(t);
        if (l->bar) put_bar(t, result_cell(t->r, row, c), is_last(t, c));
    }
    sink_putc(t->out, '\n');
    while (rest != NULL &&
           *rest != '\0') { /* further lines of a wrapped cell */
        size_t n = words_that_fit(rest, t->lanes[rest_col].width);
        sink_repeat(t->out, " ", rest_at);
        text_put_n(t->out, rest, n);
        sink_putc(t->out, '\n');
        rest += n + strspn(rest + n, " ");
    }
    put_under(t, row);
    put_below(t, row);
}

/* Says what is the same in every row and stands in no column. */
static void put_same(struct table *t) {
    struct sink line;
    sink_memory(&line);
    for (size_t c = 0; c < t->r->ncols; c++)
        if (t->lanes[c].place == PLACE_SAME) add_pair(t, &line, 0, c);
    sink_putc(&line, '\0');
    t->cell.n = 0;
    if (line.broken) t->cell.broken = line.broken;
    else if (line.n > 1) {
        const char *rows = t->shown < t->r->total_rows ? "these rows"
                                                       : "every row";
        sink_printf(&t->cell, "in %s: %s", rows, line.buf);
        put_indented(t, cell_string(t), 0, 2);
        t->cell.n = 0;
    }
    sink_free(&line);
}

/* Lists the columns of a place behind some words. */
static void put_names(struct table *t, enum place place, const char *before,
                      const char *behind) {
    struct sink *s = &t->cell;
    s->n = 0;
    for (size_t c = 0; c < t->r->ncols; c++) {
        if (t->lanes[c].place != place) continue;
        sink_puts(s, s->n ? ", " : before);
        sink_puts(s, t->r->cols[c].name);
    }
    if (s->n == 0) return;
    sink_puts(s, behind);
    put_indented(t, cell_string(t), 0, 2);
    s->n = 0;
}

static void put_notes(struct table *t) {
    size_t left = 0, shown = 0;
    for (size_t i = 0; i < t->r->nnotes; i++) {
        const struct result_note *n = &t->r->notes[i];
        bool brief = !t->st->detail;
        if (brief && n->detail) continue;
        if (brief && shown++ >= NOTES_MAX) {
            left++;
            continue;
        }
        sink_printf(&t->cell, "note: %llu %s", (unsigned long long)n->count,
                    n->text);
        put_paragraph(t, DIM);
    }
    if (left > 0) sink_printf(t->out, "note: %zu more; -v shows all\n", left);
}

/* Does any sentence stand below the table? */
static bool has_words(const struct table *t) {
    const struct result *r = t->r;
    bool all = t->st->detail, any = r->nremarks > 0;
    for (size_t i = 0; i < r->nmissing; i++)
        any |= all || !r->missing[i].detail;
    for (size_t i = 0; i < r->nnotes; i++) any |= all || !r->notes[i].detail;
    return any;
}

/* Writes what stands below the table. */
static void put_footer(struct table *t) {
    const struct result *r = t->r;
    if (t->shown < r->total_rows)
        sink_printf(t->out, "%zu of %zu rows; --top 0 shows all\n", t->shown,
                    r->total_rows);
    if (table_has_numbers(t))
        put_indented(t, "[N]: so deep is a row that cannot be indented further",
                     0, 2);
    put_same(t); /* these leave the scratch cell empty */
    if (r->nrows > 0) put_names(t, PLACE_EMPTY, "no value in any row: ", "");
    put_names(t, PLACE_HIDDEN,
              "not shown: ", " (-v shows them, --columns A,B chooses)");
    if (has_words(t)) sink_putc(t->out, '\n');
    for (size_t i = 0; i < r->nremarks; i++)
        put_indented(t, r->remarks[i], 0, 2);
    for (size_t i = 0; i < r->nmissing; i++) {
        const struct result_missing *m = &r->missing[i];
        if (m->detail && !t->st->detail) continue;
        sink_printf(&t->cell, "not recorded: %s: %s%s%s", m->what, m->why,
                    m->fix ? "; " : "", m->fix ? m->fix : "");
        put_paragraph(t, YELLOW);
    }
    put_notes(t);
}

static void text_result(const struct result *r, const struct text_style *st,
                        struct sink *out) {
    struct table t = {.r = r, .st = st, .out = out};
    sink_memory(&t.cell);
    t.lanes = calloc(r->ncols + 1, sizeof *t.lanes);
    if (t.lanes == NULL) {
        out->broken = ENOMEM;
        return;
    }
    table_layout(&t);
    if (!st->quiet && r->title != NULL) {
        color_on(&t, BOLD);
        put_indented(&t, r->title, 0, 2);
        color_off(&t);
        sink_putc(out, '\n');
    }
    if (r->nrows == 0) {
        if (!st->quiet) sink_puts(out, "(no rows)\n");
    } else {
        put_heading(&t);
        /* later results are laid out as the first one */
        for (; t.r != NULL; t.r = result_next(r)) {
            for (size_t i = 0; i < t.r->nrows; i++) {
                if (i % CUT_ROWS == 0) cut_rows(&t, i);
                text_row(&t, i);
            }
            t.shown += t.r->nrows;
        }
        t.r = r;
    }
    if (!st->quiet) put_footer(&t);
    if (t.cell.broken && !out->broken) out->broken = t.cell.broken;
    free_cuts(&t);
    sink_free(&t.cell);
    free(t.lanes);
}

const struct presenter presenter_text = {
    .name = "text",
    .top = 20,
    .brief = true,
    .terminal = true,
    .put = text_result,
};
