/* SPDX-License-Identifier: Apache-2.0
 * Which columns stand on the screen, and how wide they are.
 *
 * Names are shortened first. If that is not enough, columns that say nothing go
 * (no value, or the same in every row: a line below says which), then bars,
 * then headings take two lines; then columns go, the least important first:
 * what the analysis says is less, small parts of a whole, then from the right;
 * what it says is the answer goes last. What was asked for (-v, --columns) and
 * does not fit stands under its row. */
#include "present/table.h"

#include "model/columns.h"
#include "present/present.h"
#include "present/width.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_MIN = 28,    /* names are shortened down to this before columns go */
    SYMBOL_MIN = 40, /* the same for C++ names */
    TEXT_MIN = 16,   /* the same for other texts */
    ANSWER_MIN = 20, /* the same for texts that are the answer */
    NAME_LEAST = 8,  /* when nothing else helps */
    WIDE_MAX = 1000, /* with no limit on the width: a longer cell stands out,
                        or one name of a megabyte would pad every row to it */
};

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

/* Returns the depth of a row of a tree, 0 of any other. */
static size_t row_depth(const struct result *r, size_t row, size_t col) {
    if (!(r->cols[col].flags & COL_INDENT)) return 0;
    int depth = result_find_col(r, "depth");
    if (depth < 0) return 0;
    struct cell c = result_cell(r, row, (size_t)depth);
    return c.null || c.i <= 0 ? 0 : (size_t)c.i;
}

size_t cell_lead(const struct table *t, size_t row, size_t col,
                 char lead[LEAD_MAX]) {
    const struct tree_shape *s = &t->tree;
    size_t depth = row_depth(t->r, row, col);
    bool fits = s->level == 0 || depth <= s->most / s->level;
    int blanks = (int)(fits ? depth * s->level : s->most);
    int n = snprintf(lead, LEAD_MAX, "%*s", blanks, "");
    if (!fits && s->numbers)
        n += snprintf(lead + n, LEAD_MAX - (size_t)n, "[%zu] ", depth);
    return (size_t)n;
}

bool table_has_numbers(const struct table *t) {
    const struct tree_shape *s = &t->tree;
    return s->numbers && s->level > 0 && s->deepest > s->most / s->level;
}

enum { INDENT_MAX = 40 };

/* Sees how deep the rows are; while there is room two blanks are a level. */
static void measure_tree(struct table *t) {
    t->tree = (struct tree_shape){0, 2, INDENT_MAX, true};
    for (size_t c = 0; c < t->r->ncols; c++)
        for (size_t i = 0;
             (t->r->cols[c].flags & COL_INDENT) && i < t->r->nrows; i++) {
            size_t depth = row_depth(t->r, i, c);
            if (depth > t->tree.deepest) t->tree.deepest = depth;
        }
}

/* Indents by what is left of a column that is narrower than its cells: one
 * blank a level where two are too much, and never more than half of it. */
static void shape_tree(struct table *t, const struct lane *l) {
    struct tree_shape *s = &t->tree;
    if (l->width >= l->cells) return;
    size_t half = l->width / 2;
    if (s->deepest * 2 > half) s->level = 1;
    s->most = half < INDENT_MAX ? half : INDENT_MAX;
    if (s->deepest * s->level <= s->most) return;
    size_t number = 3; /* "[12] " */
    for (size_t d = s->deepest; d > 0; d /= 10) number++;
    s->numbers = number <= half;
    if (s->numbers && s->most + number > half) s->most = half - number;
}

void cell_draw(struct table *t, size_t row, size_t col) {
    struct cell c = result_cell(t->r, row, col);
    const struct lane *l = &t->lanes[col];
    char num[NUMBER_MAX], lead[LEAD_MAX];
    t->cell.n = 0;
    if (c.null) {
        sink_putc(&t->cell, '-');
        return;
    }
    switch (t->r->cols[col].type) {
    case COL_TEXT:
        cell_lead(t, row, col, lead);
        sink_puts(&t->cell, lead);
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

const char *cell_string(struct table *t) {
    sink_putc(&t->cell, '\0');
    if (t->cell.broken) return "";
    t->cell.n--;
    return t->cell.buf;
}

/* Finds the unit of a column, and with it its heading. */
static void find_unit(struct table *t, size_t col) {
    const struct column *k = &t->r->cols[col];
    struct lane *l = &t->lanes[col];
    char name[48];
    if (k->type == COL_TIME || k->type == COL_BYTES || k->type == COL_INT) {
        l->scale = pick_scale(t->r, col, t->st);
        snprintf(l->unit, sizeof l->unit, "%s%s", l->scale.name,
                 k->type == COL_INT && k->unit ? k->unit : "");
    } else if (k->type == COL_PERCENT) {
        l->decimals = 1;
        snprintf(l->unit, sizeof l->unit, "%%");
    } else if (k->unit != NULL) {
        snprintf(l->unit, sizeof l->unit, "%s", k->unit);
    }
    if (k->type == COL_FLOAT) l->decimals = pick_decimals(t->r, col);
    column_heading(k, name, sizeof name);
    snprintf(l->heading, sizeof l->heading, "%s%s%s", name,
             *l->unit != '\0' ? " " : "", l->unit);
}

/* Finds where the heading parts into two lines that are as narrow as can be. */
static void split_heading(struct lane *l) {
    size_t least = text_width(l->heading), all = strlen(l->heading);
    for (size_t i = 1; i < all; i++) {
        if (l->heading[i] != ' ') continue;
        size_t w = text_width_n(l->heading, i);
        size_t below = text_width(l->heading + i + 1);
        if (below > w) w = below;
        if (w >= least) continue;
        least = w;
        l->split = i;
    }
}

size_t heading_width(const struct table *t, size_t col) {
    const struct lane *l = &t->lanes[col];
    if (!t->two_lines || l->split == 0) return text_width(l->heading);
    size_t a = text_width_n(l->heading, l->split);
    size_t b = text_width(l->heading + l->split + 1);
    return a > b ? a : b;
}

static bool is_equal(enum col_type type, struct cell a, struct cell b) {
    if (a.null || b.null) return a.null && b.null;
    if (type == COL_TEXT) return strcmp(a.s, b.s) == 0;
    if (type == COL_FLOAT || type == COL_PERCENT) return a.f == b.f;
    return a.i == b.i;
}

/* Looks at all cells of a column. */
static void measure(struct table *t, size_t col) {
    const struct result *r = t->r;
    const struct column *k = &r->cols[col];
    struct lane *l = &t->lanes[col];
    find_unit(t, col);
    split_heading(l);
    l->empty = true;
    l->same = r->nrows > 1 && r->more == NULL;
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell c = result_cell(r, i, col);
        if (!c.null) l->empty = false;
        if (l->same && i > 0)
            l->same = is_equal(k->type, c, result_cell(r, 0, col));
        if (!c.null && (k->flags & COL_PART)) l->sum += fabs((double)c.i);
        cell_draw(t, i, col);
        size_t w = text_width(cell_string(t));
        if (w > l->cells) l->cells = w;
    }
    if (l->empty) l->same = false;
    l->bar = k->type == COL_PERCENT && (k->flags & COL_BAR);
}

/* Is the column wanted whatever it says? */
static bool is_asked(const struct table *t, size_t col) {
    return t->st->detail || (t->r->cols[col].flags & COL_ASKED);
}

/* Decides where a column stands while there is room for all. */
static void place(struct table *t, size_t col) {
    unsigned flags = t->r->cols[col].flags;
    struct lane *l = &t->lanes[col];
    /* a column with no value at all says nothing that "not recorded" below
     * does not say better */
    bool nothing = l->empty && t->r->nrows > 0;
    bool wanted = is_asked(t, col) || !((flags & COL_DETAIL) || nothing);
    l->place = !wanted                ? PLACE_NOT
               : !(flags & COL_BELOW) ? PLACE_TABLE
               : l->empty             ? PLACE_NOT
                                      : PLACE_BELOW;
}

static bool in_table(const struct table *t, size_t col) {
    return t->lanes[col].place == PLACE_TABLE;
}

/* Returns the columns of the screen that the table takes now. */
static size_t table_width(const struct table *t) {
    size_t w = 0;
    for (size_t c = 0; c < t->r->ncols; c++) {
        const struct lane *l = &t->lanes[c];
        if (in_table(t, c)) w += l->width + (l->bar ? 1 + BAR_WIDTH : 0) + GAP;
    }
    return w > GAP ? w - GAP : 0;
}

static size_t natural_width(const struct table *t, size_t col) {
    size_t heading = heading_width(t, col), cells = t->lanes[col].cells;
    return heading > cells ? heading : cells;
}

/* Is it the first of the columns that name a row? */
static bool is_first_key(const struct table *t, size_t col) {
    for (size_t c = 0; c < col; c++)
        if ((t->r->cols[c].flags & COL_KEY) && in_table(t, c)) return false;
    return t->r->cols[col].flags & COL_KEY;
}

/* How far texts are shortened. */
enum tight {
    LOOSE, /* while there is something else to give up */
    TIGHT, /* before columns go */
    LAST,  /* when nothing else helps */
};

/* Returns how narrow a column may become. */
static size_t least_width(const struct table *t, size_t col, enum tight tight) {
    const struct column *k = &t->r->cols[col];
    size_t natural = natural_width(t, col), least = TEXT_MIN;
    size_t heading = heading_width(t, col);
    if (k->type != COL_TEXT) return natural;
    if (k->flags & COL_ANSWER) least = ANSWER_MIN;
    if (is_first_key(t, col) || (k->flags & COL_WRAP)) least = KEY_MIN;
    if (k->flags & COL_SYMBOL) least = SYMBOL_MIN;
    /* on a narrow screen a name leaves more than half of it to the figures */
    size_t share = (size_t)t->st->width * 2 / 5;
    if (least > share && least > TEXT_MIN)
        least = share > TEXT_MIN ? share : TEXT_MIN;
    if (tight == LOOSE) least += least / 2;
    if (tight == LAST) least = NAME_LEAST;
    if (least < heading) least = heading;
    return least < natural ? least : natural;
}

/* Takes columns of the screen from the widest texts until the table fits.
 * Returns false if it cannot. */
static bool shrink(struct table *t, enum tight tight) {
    size_t limit = (size_t)t->st->width;
    for (size_t c = 0; c < t->r->ncols; c++)
        t->lanes[c].width = natural_width(t, c);
    for (size_t now; (now = table_width(t)) > limit;) {
        size_t widest = t->r->ncols, slack = 0;
        for (size_t c = 0; c < t->r->ncols; c++) {
            const struct lane *l = &t->lanes[c];
            if (!in_table(t, c) || l->width <= slack ||
                l->width <= least_width(t, c, tight))
                continue;
            widest = c;
            slack = l->width;
        }
        if (widest == t->r->ncols) return false;
        struct lane *l = &t->lanes[widest];
        size_t room = l->width - least_width(t, widest, tight);
        size_t cut = now - limit;
        /* It takes small bites, so that two wide columns share the loss. */
        if (cut > room) cut = room;
        if (cut > 8) cut = cut / 2;
        l->width -= cut;
    }
    return true;
}

/* How soon columns go when the screen is too narrow: the highest first. */
enum loss {
    LOSS_NEVER,
    LOSS_ASKED, /* it goes under its row */
    LOSS_ANSWER,
    LOSS_SHARE,
    LOSS_SIZE,
    LOSS_PLAIN,
    LOSS_SMALL, /* a small part of a whole */
    LOSS_LESS,
    LOSS_DETAIL,
    LOSS_SAME,
    LOSS_EMPTY,
};

/* Is it less than an even share of the parts beside it? */
static bool is_small_part(const struct table *t, size_t col) {
    double all = 0;
    size_t n = 0;
    if (!(t->r->cols[col].flags & COL_PART)) return false;
    for (size_t c = 0; c < t->r->ncols; c++) {
        if (!(t->r->cols[c].flags & COL_PART)) continue;
        all += t->lanes[c].sum;
        n++;
    }
    return t->lanes[col].sum * (double)n < all;
}

static enum loss loss_of(const struct table *t, size_t col) {
    unsigned flags = t->r->cols[col].flags;
    const struct lane *l = &t->lanes[col];
    if (l->empty) return LOSS_EMPTY;
    if (l->same && !(flags & COL_KEY)) return LOSS_SAME;
    if (flags & COL_ASKED) return LOSS_ASKED;
    if (flags & COL_DETAIL) return LOSS_DETAIL;
    if (flags & (COL_KEY | COL_MAIN)) return LOSS_NEVER;
    if (flags & COL_LESS) return LOSS_LESS;
    if (is_small_part(t, col)) return LOSS_SMALL;
    if (flags & (COL_ANSWER | COL_PART)) return LOSS_ANSWER;
    if (flags & COL_BAR) return LOSS_SHARE;
    return flags & COL_SIZE ? LOSS_SIZE : LOSS_PLAIN;
}

/* Returns where a column goes for which there is no room. */
static enum place place_without(const struct table *t, size_t col) {
    if (t->lanes[col].same) return PLACE_SAME;
    if (t->lanes[col].empty) return PLACE_EMPTY;
    return is_asked(t, col) ? PLACE_UNDER : PLACE_HIDDEN;
}

/* Leaves out the column that says least, the rightmost of equals, the smallest
 * of small parts; only one that goes as soon as `from` or sooner. Returns false
 * if there is none. */
static bool drop_one(struct table *t, enum loss from) {
    size_t victim = t->r->ncols;
    enum loss most = from;
    for (size_t c = 0; c < t->r->ncols; c++) {
        enum loss loss = in_table(t, c) ? loss_of(t, c) : LOSS_NEVER;
        if (loss < most) continue;
        if (loss == most && loss == LOSS_SMALL && victim < t->r->ncols &&
            t->lanes[c].sum > t->lanes[victim].sum)
            continue;
        most = loss;
        victim = c;
    }
    if (victim == t->r->ncols) return false;
    t->lanes[victim].place = place_without(t, victim);
    return true;
}

static bool drop_bar(struct table *t) {
    for (size_t c = 0; c < t->r->ncols; c++) {
        if (!in_table(t, c) || !t->lanes[c].bar) continue;
        t->lanes[c].bar = false;
        return true;
    }
    return false;
}

/* Takes back columns that were left out and fit after all, what says most
 * first: a narrow column may find room where a wide one did not. */
static void take_back(struct table *t) {
    for (int loss = LOSS_ASKED; loss <= LOSS_SAME; loss++) {
        for (size_t c = 0; c < t->r->ncols; c++) {
            struct lane *l = &t->lanes[c];
            enum place was = l->place;
            bool out = was == PLACE_HIDDEN || was == PLACE_UNDER ||
                       was == PLACE_SAME;
            if (!out || (int)loss_of(t, c) != loss) continue;
            l->place = PLACE_TABLE;
            if (!shrink(t, TIGHT)) l->place = was;
        }
    }
    shrink(t, TIGHT);
}

/* Puts all but the first column under the rows, from the right, until the rest
 * fits: only on a screen that is narrower than the figures. */
static void drop_all(struct table *t) {
    for (size_t c = t->r->ncols; c-- > 1 && !shrink(t, LAST);)
        if (in_table(t, c)) t->lanes[c].place = PLACE_UNDER;
}

/* Makes the table fit the screen as well as it can. */
static void fit(struct table *t) {
    if (shrink(t, LOOSE)) return;
    while (drop_one(t, LOSS_SAME))
        if (shrink(t, LOOSE)) return;
    while (drop_bar(t))
        if (shrink(t, LOOSE)) return;
    t->two_lines = true;
    if (shrink(t, LOOSE)) return;
    bool fits, dropped = false;
    while (!(fits = shrink(t, TIGHT)) && drop_one(t, LOSS_ASKED))
        dropped = true;
    if (!fits) {
        drop_all(t);
        return;
    }
    if (dropped) take_back(t);
    t->two_lines = false; /* if that does for what is left */
    if (shrink(t, LOOSE)) return;
    t->two_lines = true;
    shrink(t, TIGHT);
}

void table_layout(struct table *t) {
    bool any = false;
    measure_tree(t);
    for (size_t c = 0; c < t->r->ncols; c++) measure(t, c);
    for (size_t c = 0; c < t->r->ncols; c++) {
        struct lane *l = &t->lanes[c];
        place(t, c);
        l->width = natural_width(t, c);
        if (t->st->width <= 0 && l->width > WIDE_MAX) l->width = WIDE_MAX;
        any |= in_table(t, c);
    }
    /* rows that nothing names are still rows */
    if (!any && t->r->ncols > 0) t->lanes[0].place = PLACE_TABLE;
    if (t->st->width > 0) fit(t);
    for (size_t c = 0; c < t->r->ncols; c++)
        if (t->r->cols[c].flags & COL_INDENT) shape_tree(t, &t->lanes[c]);
}
