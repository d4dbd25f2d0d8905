/* SPDX-License-Identifier: Apache-2.0
 * A result for reading: a title, aligned columns, then what the reader must
 * know (rows cut, remarks, what was not recorded, notes).
 *
 * Two passes over the cells: the first finds each column's unit and width, the
 * second prints. Between them fit() makes the table as wide as the screen:
 * names are shortened first, then columns are left out, the least important
 * first, and a line says which. A column has one unit, named in its heading,
 * so that its digits can be compared by eye. */
#include "present/present.h"

#include "base/text/number.h"
#include "present/width.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,         /* blanks between columns */
    BAR_WIDTH = 10,  /* columns of a share bar; full is 100 % */
    KEY_MIN = 28,    /* names are shortened down to this before columns go */
    SYMBOL_MIN = 40, /* the same for C++ names */
    TEXT_MIN = 12,   /* the same for other texts */
    NOTES_MAX = 4,   /* notes shown without -v */
    WIDE_MAX = 1000, /* with no limit on the width: a longer cell stands out,
                        or one name of a megabyte would pad every row to it */
};

/* How a column is shown. */
struct lane {
    bool shown, empty, bar;
    bool below; /* not in the table: on lines of its own under the row */
    bool zero;  /* times that are 0 in every row */
    struct scale scale; /* times, sizes and counts */
    int decimals;       /* floats and percents */
    size_t natural;     /* widest cell or the heading */
    size_t width;       /* what it gets */
    char heading[96];
};

struct table {
    const struct result *r;
    const struct text_style *st;
    struct sink *out;
    struct sink cell; /* scratch: the text of one cell */
    struct lane *lanes;
    size_t shown; /* rows */
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

/* Makes "host self" of "host_self_us": the unit is said apart. */
static void heading_of(const struct column *c, const char *unit, char *buf,
                       size_t n) {
    char name[48];
    snprintf(name, sizeof name, "%s", c->title ? c->title : c->name);
    if (c->title == NULL) {
        static const char *const tails[] = {"_us", "_bytes", "_pct"};
        for (size_t i = 0; i < 3; i++) {
            size_t len = strlen(name), tail = strlen(tails[i]);
            if (len > tail && strcmp(name + len - tail, tails[i]) == 0)
                name[len - tail] = '\0';
        }
        for (char *p = name; *p != '\0'; p++)
            if (*p == '_') *p = ' ';
        if (strcmp(name, "bytes") == 0) snprintf(name, sizeof name, "size");
    }
    snprintf(buf, n, "%s%s%s", name, unit && *unit ? " " : "",
             unit ? unit : "");
}

/* Returns the value of a time cell as shown: stamps count from the window's
 * start. */
static int64_t shown_int(const struct result *r, size_t row, size_t col,
                         struct cell c) {
    if (r->cols[col].type != COL_TIME || !(r->cols[col].flags & COL_STAMP))
        return c.i;
    int64_t from = result_origin(r, row);
    return (int64_t)((uint64_t)c.i - (uint64_t)from);
}

/* Returns the decimals that the column really has: a unit's decimals less those
 * that are zero in every row. */
static int used_decimals(const struct result *r, size_t col, struct scale s) {
    int used = 0;
    for (size_t i = 0; i < r->nrows && used < s.decimals; i++) {
        struct cell c = result_cell(r, i, col);
        if (c.null) continue;
        uint64_t part = magnitude(shown_int(r, i, col, c)) % (uint64_t)s.unit;
        uint64_t step = (uint64_t)s.unit;
        int need = 0;
        while (part > 0 && need < s.decimals) {
            step /= 10;
            part = step ? part % step : 0;
            need++;
        }
        if (need > used) used = need;
    }
    return used;
}

static uint64_t largest(const struct result *r, size_t col) {
    uint64_t most = 0;
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell c = result_cell(r, i, col);
        if (c.null) continue;
        uint64_t v = magnitude(shown_int(r, i, col, c));
        if (v > most) most = v;
    }
    return most;
}

/* Is it a time that is part of a whole beside it, where all parts have one
 * unit? */
static bool is_part(const struct result *r, size_t col) {
    return r->one_unit && r->cols[col].type == COL_TIME &&
           !(r->cols[col].flags & COL_STAMP);
}

/* Returns the unit of an integer column, by its largest value. */
static struct scale pick_scale(const struct result *r, size_t col,
                               const struct text_style *st) {
    const struct column *k = &r->cols[col];
    uint64_t most = largest(r, col);
    for (size_t c = 0; is_part(r, col) && c < r->ncols; c++) {
        uint64_t v = is_part(r, c) ? largest(r, c) : 0;
        if (v > most) most = v;
    }
    if (k->type == COL_TIME) {
        struct scale s = scale_time(most, st->unicode ? "µs" : "us");
        s.decimals = used_decimals(r, col, s);
        return s;
    }
    if (k->type == COL_BYTES) return scale_bytes(most);
    /* Counts stay whole unless they are a quantity with a unit (flops). */
    if (k->unit == NULL || most < 10000000) return (struct scale){1, 0, ""};
    return scale_count(most);
}

/* Returns the decimals of a float column: four digits of the largest value. */
static int pick_decimals(const struct result *r, size_t col) {
    double most = 0;
    bool whole = true;
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell c = result_cell(r, i, col);
        if (c.null) continue;
        if (fabs(c.f) > most) most = fabs(c.f);
        if (c.f != floor(c.f)) whole = false;
    }
    if (whole || most >= 1000) return 0;
    return most >= 100 ? 1 : most >= 10 ? 2 : 3;
}

/* Writes a float with fixed decimals, such that a value that is not 0 never
 * looks like 0; or (digits) with four digits that count, and all of those
 * before the point: bytes are read as such. */
static void put_float(struct sink *out, double v, int decimals, bool digits) {
    const double long_whole = 1e12;
    double least = pow(10, -decimals), size = fabs(v);
    bool whole = v == floor(v) || size >= 1000;
    if (digits)
        sink_printf(out, whole && size < long_whole ? "%.0f" : "%.4g", v);
    else if (v > 0 && v < least / 2) sink_printf(out, "<%.*f", decimals, least);
    else sink_printf(out, "%.*f", decimals, v);
}

/* Returns the blanks before a cell of a tree: two a level, if there is room. */
static size_t indent_of(const struct result *r, size_t row, size_t col) {
    enum { LEVEL = 2, MOST = 40 };
    if (!(r->cols[col].flags & COL_INDENT)) return 0;
    int depth = result_find_col(r, "depth");
    if (depth < 0) return 0;
    struct cell c = result_cell(r, row, (size_t)depth);
    if (c.null || c.i <= 0) return 0;
    return c.i > MOST / LEVEL ? MOST : (size_t)c.i * LEVEL;
}

/* Writes a cell's text into t->cell, names not yet shortened. */
static void cell_draw(struct table *t, size_t row, size_t col) {
    struct cell c = result_cell(t->r, row, col);
    const struct lane *l = &t->lanes[col];
    char num[NUMBER_MAX];
    t->cell.n = 0;
    if (c.null) {
        sink_putc(&t->cell, '-');
        return;
    }
    switch (t->r->cols[col].type) {
    case COL_TEXT:
        sink_repeat(&t->cell, " ", indent_of(t->r, row, col));
        text_put(&t->cell, c.s);
        break;
    case COL_INT:
    case COL_TIME:
    case COL_BYTES:
        sink_puts(&t->cell,
                  number_scaled(shown_int(t->r, row, col, c), l->scale, num));
        break;
    case COL_FLOAT:
    case COL_PERCENT:
        put_float(&t->cell, c.f, l->decimals,
                  t->r->cols[col].flags & COL_DIGITS);
        break;
    case COL_BOOL: sink_puts(&t->cell, c.i ? "yes" : "no"); break;
    }
}

/* Returns the scratch cell as a string; "" if memory ran out. */
static const char *cell_string(struct table *t) {
    sink_putc(&t->cell, '\0');
    if (t->cell.broken) return "";
    t->cell.n--;
    return t->cell.buf;
}

/* Finds unit, heading and natural width of a column. */
static void measure(struct table *t, size_t col) {
    const struct column *k = &t->r->cols[col];
    struct lane *l = &t->lanes[col];
    const char *unit = k->unit;
    char with_unit[24];
    if (k->type == COL_TIME || k->type == COL_BYTES || k->type == COL_INT) {
        l->scale = pick_scale(t->r, col, t->st);
        snprintf(with_unit, sizeof with_unit, "%s%s", l->scale.name,
                 k->type == COL_INT && k->unit ? k->unit : "");
        unit = with_unit;
    }
    if (k->type == COL_FLOAT) l->decimals = pick_decimals(t->r, col);
    if (k->type == COL_PERCENT) {
        l->decimals = 1;
        unit = "%";
    }
    heading_of(k, unit, l->heading, sizeof l->heading);
    l->natural = text_width(l->heading);
    l->empty = true;
    l->zero = k->type == COL_TIME;
    for (size_t i = 0; i < t->r->nrows; i++) {
        struct cell c = result_cell(t->r, i, col);
        if (!c.null) l->empty = false;
        if (!c.null && c.i != 0) l->zero = false;
        cell_draw(t, i, col);
        size_t w = text_width(cell_string(t));
        if (w > l->natural) l->natural = w;
    }
    l->width = l->natural;
    l->bar = k->type == COL_PERCENT && (k->flags & COL_BAR);
    /* a column with no value at all says nothing that "not recorded" below
     * does not say better */
    bool nothing = l->empty && t->r->nrows > 0 && !(k->flags & COL_KEY);
    bool wanted = !(k->flags & COL_DETAIL) || (k->flags & COL_ASKED);
    l->shown = t->st->detail || (wanted && !nothing);
    l->below = l->shown && !l->empty && (k->flags & COL_BELOW);
    if (k->flags & COL_BELOW) l->shown = false;
}

/* Returns the columns of the screen that the table takes now. */
static size_t table_width(const struct table *t) {
    size_t w = 0;
    for (size_t c = 0; c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        if (l->shown) w += l->width + (l->bar ? 1 + BAR_WIDTH : 0) + GAP;
    }
    return w > GAP ? w - GAP : 0;
}

/* Returns how narrow a column may become. */
static size_t least_width(const struct table *t, size_t col, size_t key_min) {
    const struct column *k = &t->r->cols[col];
    size_t floor_w = t->lanes[col].natural;
    if (k->type == COL_TEXT) {
        size_t m = k->flags & (COL_KEY | COL_SYMBOL) ? key_min : TEXT_MIN;
        if (k->flags & COL_WRAP) m = KEY_MIN;
        if (m == KEY_MIN && (k->flags & COL_SYMBOL)) m = SYMBOL_MIN;
        if (m < floor_w) floor_w = m;
    }
    return floor_w;
}

/* Takes columns of the screen from the widest texts until the table fits.
 * Returns false if it cannot. */
static bool shrink(struct table *t, size_t key_min) {
    size_t limit = (size_t)t->st->width;
    for (size_t c = 0; c < t->r->ncols; c++)
        t->lanes[c].width = t->lanes[c].natural;
    for (size_t now; (now = table_width(t)) > limit;) {
        size_t widest = t->r->ncols, slack = 0;
        for (size_t c = 0; c < t->r->ncols; c++) {
            const struct lane *l = &t->lanes[c];
            size_t least = least_width(t, c, key_min);
            if (!l->shown || l->width <= least || l->width <= slack) continue;
            widest = c;
            slack = l->width;
        }
        if (widest == t->r->ncols) return false;
        struct lane *l = &t->lanes[widest];
        size_t room = l->width - least_width(t, widest, key_min);
        size_t cut = now - limit;
        /* It takes small bites, so that two wide columns share the loss. */
        if (cut > room) cut = room;
        if (cut > 8) cut = cut / 2;
        l->width -= cut;
    }
    return true;
}

/* Returns how soon a column goes when the screen is too narrow; 0 for never. */
static int dispensable(const struct table *t, size_t col) {
    unsigned flags = t->r->cols[col].flags;
    const struct lane *l = &t->lanes[col];
    if (!l->shown || (flags & (COL_KEY | COL_MAIN | COL_ASKED))) return 0;
    if (l->empty) return 6;
    if (l->zero) return 5;
    if (flags & COL_DETAIL) return 4;
    if (flags & COL_BAR) return 1;
    return flags & COL_SIZE ? 2 : 3;
}

/* Leaves out the least important column, the rightmost of equals; bars go
 * before real columns. Returns false if nothing is left to leave out. */
static bool drop_one(struct table *t) {
    size_t victim = 0;
    int best = 0;
    for (size_t c = 0; c < t->r->ncols; c++) {
        int d = dispensable(t, c);
        if (d > 0 && d >= best) {
            best = d;
            victim = c;
        }
    }
    if (best < 4) {
        for (size_t c = 0; c < t->r->ncols; c++) {
            if (!t->lanes[c].shown || !t->lanes[c].bar) continue;
            t->lanes[c].bar = false;
            return true;
        }
    }
    if (best > 0) t->lanes[victim].shown = false;
    return best > 0;
}

/* Takes back columns that were left out and fit after all: a narrow column may
 * find room where a wide one did not. */
static void take_back(struct table *t) {
    for (size_t c = 0; c < t->r->ncols; c++) {
        struct lane *l = &t->lanes[c];
        bool detail = t->r->cols[c].flags & COL_DETAIL;
        if (l->shown || l->empty || l->zero || (detail && !t->st->detail) ||
            (t->r->cols[c].flags & COL_BELOW))
            continue;
        l->shown = true;
        if (!shrink(t, KEY_MIN)) l->shown = false;
    }
    shrink(t, KEY_MIN);
}

/* Makes the table fit the screen as well as it can. */
static void fit(struct table *t) {
    for (size_t c = 0; t->st->width <= 0 && c < t->r->ncols; c++)
        if (t->lanes[c].width > WIDE_MAX) t->lanes[c].width = WIDE_MAX;
    if (t->st->width <= 0) return;
    bool fits, dropped = false;
    while (!(fits = shrink(t, KEY_MIN)) && drop_one(t)) dropped = true;
    if (fits && dropped) take_back(t);
    if (!fits) shrink(t, 8);
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
        if (t->lanes[c].shown) return false;
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

static void put_heading(struct table *t) {
    color_on(t, DIM);
    for (size_t c = 0, first = 1; c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        if (!l->shown || (l->heading[0] == '\0' && is_last(t, c))) continue;
        if (!first) sink_repeat(t->out, " ", GAP);
        first = 0;
        put_padded(t, c, l->heading);
        if (l->bar && !is_last(t, c)) sink_repeat(t->out, " ", 1 + BAR_WIDTH);
    }
    color_off(t);
    sink_putc(t->out, '\n');
}

/* Shortens the scratch cell to its column. */
static void shorten(struct table *t, size_t row, size_t col) {
    struct cell c = result_cell(t->r, row, col);
    size_t width = t->lanes[col].width;
    if (t->r->cols[col].type != COL_TEXT || c.null || t->st->width <= 0 ||
        text_width(cell_string(t)) <= width)
        return;
    t->cell.n = 0;
    size_t indent = indent_of(t->r, row, col);
    if (indent > width / 2) indent = width / 2;
    sink_repeat(&t->cell, " ", indent);
    width -= indent;
    const char *dots = t->st->unicode ? "…" : "...";
    if (t->r->cols[col].flags & COL_SYMBOL)
        symbol_put_fit(&t->cell, c.s, width, dots);
    else text_put_fit(&t->cell, c.s, width, dots);
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
        if (!t->lanes[c].below || v.null) continue;
        color_on(t, DIM);
        sink_printf(t->out, "    %-9s", t->r->cols[c].name);
        color_off(t);
        put_indented(t, v.s, 13, 13);
    }
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
        if (!l->shown) continue;
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
    put_below(t, row);
}

/* Says which columns were left out for lack of room. */
static void put_hidden(struct table *t) {
    struct sink *s = &t->cell;
    s->n = 0;
    for (size_t c = 0; c < t->r->ncols; c++) {
        if (t->lanes[c].shown || t->lanes[c].empty ||
            (t->r->cols[c].flags & COL_BELOW) ||
            (!t->st->detail && (t->r->cols[c].flags & COL_DETAIL)))
            continue;
        sink_puts(s, s->n ? ", " : "not shown: ");
        sink_puts(s, t->r->cols[c].name);
    }
    if (s->n == 0) return;
    sink_puts(s, " (--width 0 shows them)");
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

/* Writes what stands below the table. */
static void put_footer(struct table *t) {
    const struct result *r = t->r;
    if (t->shown < r->total_rows)
        sink_printf(t->out, "%zu of %zu rows; --top 0 shows all\n", t->shown,
                    r->total_rows);
    put_hidden(t); /* leaves the scratch cell empty */
    if (r->nremarks + r->nmissing + r->nnotes > 0) sink_putc(t->out, '\n');
    for (size_t i = 0; i < r->nremarks; i++)
        put_indented(t, r->remarks[i], 0, 2);
    for (size_t i = 0; i < r->nmissing; i++) {
        const struct result_missing *m = &r->missing[i];
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
    for (size_t c = 0; c < r->ncols; c++) measure(&t, c);
    fit(&t);
    if (!st->quiet && r->title != NULL) {
        color_on(&t, BOLD);
        text_put(out, r->title);
        color_off(&t);
        sink_puts(out, "\n\n");
    }
    if (r->nrows == 0) {
        if (!st->quiet) sink_puts(out, "(no rows)\n");
    } else {
        put_heading(&t);
        /* later results are laid out as the first one */
        for (; t.r != NULL; t.r = result_next(r)) {
            for (size_t i = 0; i < t.r->nrows; i++) text_row(&t, i);
            t.shown += t.r->nrows;
        }
        t.r = r;
    }
    if (!st->quiet) put_footer(&t);
    if (t.cell.broken && !out->broken) out->broken = t.cell.broken;
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
