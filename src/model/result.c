/* SPDX-License-Identifier: Apache-2.0
 * Results: rows are packed one behind the other, texts stand in an arena of
 * their own. A table may have a row for every few bytes of a file, and most of
 * its cells are empty, 0 or small. So a row is two bits for each cell, then the
 * cells that are neither empty nor 0: whole numbers as varints, the others as
 * their eight bytes. Sorting and filtering move the places of rows alone. */
#include "model/result.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/pb.h"
#include "base/pbw.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/plural.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/region.h"
#include "model/trace.h"
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DECIMALS = 3 };

void result_init(struct result *r, const char *analysis, const char *title) {
    *r = (struct result){.decimals = DEFAULT_DECIMALS};
    r->analysis = arena_str(&r->arena, analysis);
    r->title = arena_str(&r->arena, title);
    if (r->analysis == NULL || (title && r->title == NULL)) r->oom = true;
}

/* Frees the part that was given last. */
static void free_part(struct result_more *m) {
    if (m->part != NULL) result_free(m->part);
    free(m->part);
    m->part = NULL;
}

static void free_more(struct result_more *m) {
    for (struct result_more *then; m != NULL; m = then) {
        then = m->then;
        free_part(m);
        if (m->view != NULL) trace_region_done(m->view);
        m->free(m);
    }
}

void result_free(struct result *r) {
    free_more(r->more);
    arena_free(&r->arena);
    free(r->cols);
    free(r->packed);
    free(r->row_at);
    free(r->open);
    free(r->above);
    free(r->sources);
    free(r->remarks);
    map_free(&r->said);
    free(r->missing);
    free(r->notes);
    free(r->parts);
    free(r->wide);
    *r = (struct result){0};
}

/* Returns a copy of s in the result; NULL if s is NULL, or out of memory, which
 * sets oom. */
static char *keep(struct result *r, const char *s) {
    char *copy = arena_str(&r->arena, s);
    if (s != NULL && copy == NULL) r->oom = true;
    return copy;
}

/* Copies the texts of a column, so that it may come from another result. */
static struct column keep_col(struct result *r, struct column c) {
    c.name = keep(r, c.name);
    c.title = keep(r, c.title);
    c.unit = keep(r, c.unit);
    c.help = keep(r, c.help);
    return c;
}

void result_col(struct result *r, struct column c) {
    assert(r->nrows == 0 && c.name != NULL && r->ncols < RESULT_COLS);
    if (r->oom || !VEC_ROOM(r->cols, r->ncols, r->cap_cols)) {
        r->oom = true;
        return;
    }
    r->given[r->ncols] = c.name;
    r->cols[r->ncols++] = keep_col(r, c);
}

void result_cols(struct result *r, const struct column *cols, size_t n) {
    for (size_t i = 0; i < n; i++) result_col(r, cols[i]);
}

/* ---- packed rows ---- */

enum cell_form { CELL_NULL, CELL_ZERO, CELL_VALUE };
enum { FORMS_PER_BYTE = 4 };

static size_t forms_bytes(size_t ncols) {
    return (ncols + FORMS_PER_BYTE - 1) / FORMS_PER_BYTE;
}

static bool is_whole(enum col_type type) {
    return type != COL_TEXT && type != COL_FLOAT && type != COL_PERCENT;
}

/* Makes small numbers of either sign small unsigned ones. */
static uint64_t fold_sign(int64_t v) {
    return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static int64_t unfold_sign(uint64_t u) {
    return (int64_t)(u >> 1 ^ (u & 1 ? UINT64_MAX : 0));
}

/* Adds the row of cells. Returns false if out of memory. */
static bool pack_row(struct result *r, const struct cell *cells) {
    size_t forms = forms_bytes(r->ncols);
    size_t most = r->npacked + forms + r->ncols * PBW_VARINT_ROOM;
    if (most > r->cap_packed &&
        !vec_grow_(&r->packed, &r->cap_packed, most, sizeof *r->packed))
        return false;
    uint8_t *form = r->packed + r->npacked, *p = form + forms;
    memset(form, 0, forms);
    for (size_t c = 0; c < r->ncols; c++) {
        if (cells[c].null) continue;
        bool zero = cells[c].i == 0; /* of a float: the bits of +0 */
        form[c / FORMS_PER_BYTE] |= (uint8_t)((zero ? CELL_ZERO : CELL_VALUE)
                                              << c % FORMS_PER_BYTE * 2);
        if (zero) continue;
        if (is_whole(r->cols[c].type)) {
            p = pbw_varint(p, fold_sign(cells[c].i));
        } else {
            memcpy(p, &cells[c].i, sizeof cells[c].i);
            p += sizeof cells[c].i;
        }
    }
    r->npacked = (size_t)(p - r->packed);
    return true;
}

/* Reads the first ncells cells of a packed row, into cells if that is not NULL.
 * Returns the last one. */
static struct cell take_cells(const struct result *r, size_t row, size_t ncells,
                              struct cell *cells) {
    const uint8_t *form = r->packed + r->row_at[row];
    const uint8_t *p = form + forms_bytes(r->ncols);
    struct cell cell = {.null = true};
    for (size_t c = 0; c < ncells; c++) {
        unsigned is = form[c / FORMS_PER_BYTE] >> c % FORMS_PER_BYTE * 2 & 3;
        uint64_t v = 0;
        if (is == CELL_VALUE && is_whole(r->cols[c].type)) {
            p = pb_varint(p, r->packed + r->npacked, &v);
            v = (uint64_t)unfold_sign(v);
        } else if (is == CELL_VALUE) {
            memcpy(&v, p, sizeof v);
            p += sizeof v;
        }
        cell = (struct cell){.i = (int64_t)v, .null = is == CELL_NULL};
        if (cells != NULL) cells[c] = cell;
    }
    return cell;
}

static bool row_is_open(const struct result *r, size_t row) {
    return r->filling && row == r->nrows - 1;
}

struct cell result_cell(const struct result *r, size_t row, size_t col) {
    assert(row < r->nrows && col < r->ncols);
    if (row_is_open(r, row)) return r->open[col];
    return take_cells(r, row, col + 1, NULL);
}

void result_cells(const struct result *r, size_t row, struct cell *cells) {
    assert(row < r->nrows);
    if (row_is_open(r, row)) memcpy(cells, r->open, r->ncols * sizeof *cells);
    else take_cells(r, row, r->ncols, cells);
}

/* ---- filling ---- */

/* Packs the row that was being filled. */
static void end_row(struct result *r) {
    if (!r->filling || r->oom) return;
    r->filling = false;
    r->row_at[r->nrows - 1] = r->npacked;
    if (!pack_row(r, r->open)) r->oom = true;
}

void result_row(struct result *r) {
    end_row(r);
    if (r->oom) return;
    assert(r->ncols > 0);
    if (r->open == NULL) r->open = calloc(RESULT_COLS, sizeof *r->open);
    if (r->above == NULL) r->above = calloc(RESULT_COLS, sizeof *r->above);
    if (r->open == NULL || r->above == NULL ||
        !VEC_ROOM(r->row_at, r->nrows, r->cap_rows)) {
        r->oom = true;
        return;
    }
    r->total_rows = ++r->nrows;
    r->filling = true;
    r->nopen = 0;
    for (size_t c = 0; c < r->ncols; c++)
        r->open[c] = (struct cell){.null = true};
}

/* Returns the cell of that column in the row being filled; NULL when memory ran
 * out. `types` has a bit for each type that the column may have. */
static struct cell *cell_at(struct result *r, const char *col, unsigned types) {
    if (r->oom) return NULL;
    /* A literal has one address in a file: most cells cost a comparison. */
    while (r->nopen < r->ncols && r->given[r->nopen] != col) r->nopen++;
    if (r->nopen == r->ncols) r->nopen = (size_t)result_find_col(r, col);
    assert(r->filling && r->nopen < r->ncols);
    assert(types >> r->cols[r->nopen].type & 1);
    return &r->open[r->nopen++];
}

/* Keeps a text. What comes from a file need be no UTF-8, and may hold a NUL:
 * who takes results may count on UTF-8. */
static const char *keep_text(struct result *r, struct bytes b) {
    if (utf8_clean(b)) return arena_copy(&r->arena, b.p, b.n);
    uint8_t *text = b.n < SIZE_MAX / 4 ? arena_alloc(&r->arena, 3 * b.n + 1)
                                       : NULL;
    size_t mended = 0;
    if (text != NULL) text[utf8_mend(b, text, &mended)] = '\0';
    return (const char *)text;
}

void cell_str(struct result *r, const char *col, struct bytes b) {
    struct cell *c = cell_at(r, col, 1u << COL_TEXT);
    if (c == NULL) return;
    /* Devices, kinds and allocators repeat for thousands of rows: the text
     * above serves where it is the same. */
    const char **above = &r->above[c - r->open];
    if (*above == NULL || b.n == 0 || strlen(*above) != b.n ||
        memcmp(*above, b.p, b.n) != 0)
        *above = keep_text(r, b);
    r->oom = *above == NULL;
    *c = (struct cell){.s = *above};
}

void cell_text(struct result *r, const char *col, const char *s) {
    if (s != NULL) cell_str(r, col, bytes_of(s));
    else cell_at(r, col, 1u << COL_TEXT);
}

void cell_int(struct result *r, const char *col, int64_t v) {
    struct cell *c = cell_at(r, col,
                             1u << COL_INT | 1u << COL_TIME | 1u << COL_BYTES);
    /* a sum stopped here (base/sum.h) */
    r->full |= v == INT64_MAX || v == INT64_MIN;
    if (c != NULL) *c = (struct cell){.i = v};
}

void cell_float(struct result *r, const char *col, double v) {
    struct cell *c = cell_at(r, col, 1u << COL_FLOAT | 1u << COL_PERCENT);
    if (c != NULL)
        *c = isfinite(v) ? (struct cell){.f = v} : (struct cell){.null = true};
}

void cell_bool(struct result *r, const char *col, bool v) {
    struct cell *c = cell_at(r, col, 1u << COL_BOOL);
    if (c != NULL) *c = (struct cell){.i = v};
}

/* Adds a sentence unless it is there already. */
static void add_remark(struct result *r, const char *s) {
    uint32_t *at = map_at(&r->said, hash_bytes(s, strlen(s)));
    if (at == NULL || !VEC_ROOM(r->remarks, r->nremarks, r->cap_remarks)) {
        r->oom = true;
        return;
    }
    if (*at != MAP_NONE && strcmp(r->remarks[*at], s) == 0) return;
    char *copy = keep(r, s);
    if (copy == NULL) return;
    *at = (uint32_t)r->nremarks;
    r->remarks[r->nremarks++] = copy;
}

void result_remark(struct result *r, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    cut_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    add_remark(r, text);
}

void result_remark_n(struct result *r, uint64_t n, const char *fmt, ...) {
    char words[1024], text[1024];
    va_list ap;
    va_start(ap, fmt);
    cut_vfmt(text, sizeof text, plural_put(words, sizeof words, fmt, n), ap);
    va_end(ap);
    add_remark(r, text);
}

/* Adds what is missing, once; what matters to one caller matters. */
static void add_missing(struct result *r, const char *what, const char *why,
                        const char *fix, bool detail) {
    for (size_t i = 0; i < r->nmissing; i++)
        if (strcmp(r->missing[i].what, what) == 0 &&
            strcmp(r->missing[i].why, why) == 0) {
            r->missing[i].detail &= detail;
            return;
        }
    if (!VEC_ROOM(r->missing, r->nmissing, r->cap_missing)) {
        r->oom = true;
        return;
    }
    struct result_missing m = {keep(r, what), keep(r, why), keep(r, fix),
                               detail};
    if (!r->oom) r->missing[r->nmissing++] = m;
}

void result_missing(struct result *r, const char *what, const char *why,
                    const char *fix) {
    add_missing(r, what, why, fix, false);
}

void result_lacks(struct result *r, const char *what, const char *why,
                  const char *fix) {
    add_missing(r, what, why, fix, true);
}

void result_note(struct result *r, int note, uint64_t count) {
    assert(note >= 0 && note < NOTE_COUNT);
    if (count == 0) return;
    char text[NOTE_TEXT];
    size_t i = 0;
    while (i < r->nnotes && r->notes[i].note != note) i++;
    if (i == r->nnotes) {
        if (!VEC_ROOM(r->notes, r->nnotes, r->cap_notes)) {
            r->oom = true;
            return;
        }
        struct result_note n = {.id = keep(r, note_name(note)),
                                .note = note,
                                .detail = note_class(note) ==
                                          NOTE_CLASS_DETAIL};
        if (r->oom) return;
        r->notes[r->nnotes++] = n;
    }
    struct result_note *n = &r->notes[i];
    uint64_t before = n->count;
    n->count += count;
    if (before <= 1) n->text = keep(r, note_text(note, n->count, text));
}

void result_source(struct result *r, struct result_source s) {
    if (!VEC_ROOM(r->sources, r->nsources, r->cap_sources)) {
        r->oom = true;
        return;
    }
    s.path = keep(r, s.path);
    s.format = keep(r, s.format);
    s.host = keep(r, s.host);
    if (!r->oom) r->sources[r->nsources++] = s;
}

void result_from_trace(struct result *r, const struct trace *t) {
    r->origin = trace_origin(t);
    for (size_t i = 0; i < t->nsources; i++) {
        const struct source *s = &t->sources[i];
        result_source(r,
                      (struct result_source){
                          .path = s->path,
                          .format = s->format->name,
                          .host = s->host ? strs_text(&t->strs, s->host) : NULL,
                          .rank = s->rank,
                          .epoch_ns = t->epoch_ns,
                          .has_epoch = s->has_clock,
                      });
        if (i == 0 || s->decimals > r->decimals) r->decimals = s->decimals;
    }
    for (int i = 0; i < NOTE_COUNT; i++) result_note(r, i, t->notes[i]);
}

int result_done(struct result *r, struct ops_err *e) {
    end_row(r);
    if (r->full)
        add_remark(r, "A value is the largest that can be counted: a sum "
                      "stops there, and its parts need not sum to it.");
    return r->oom ? fail_oom(e) : 0;
}

int result_find_col(const struct result *r, const char *name) {
    for (size_t i = 0; i < r->ncols; i++)
        if (strcmp(r->cols[i].name, name) == 0) return (int)i;
    return -1;
}

struct order {
    const struct result *r;
    size_t col;
};

/* Returns less than 0 if a stands before b by value; 0 if they are equal. */
static int cell_order(enum col_type type, const struct cell *a,
                      const struct cell *b) {
    if (a->null || b->null) return (int)a->null - (int)b->null;
    switch (type) {
    case COL_TEXT: return strcmp(a->s, b->s);
    case COL_FLOAT:
    case COL_PERCENT: return (a->f < b->f) - (a->f > b->f);
    default: return (a->i < b->i) - (a->i > b->i);
    }
}

static int row_order(const void *pa, const void *pb, void *ctx) {
    const struct order *o = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    struct cell ca = result_cell(o->r, a, o->col);
    struct cell cb = result_cell(o->r, b, o->col);
    int d = cell_order(o->r->cols[o->col].type, &ca, &cb);
    return d ? d : (a > b) - (a < b);
}

/* Returns a key that sorts the largest first, nulls last. */
static struct sort_key top_key(const struct result *r, size_t row, int col) {
    struct cell c = result_cell(r, row, (size_t)col);
    uint64_t v = c.null ? 0 : sort_signed(c.i);
    return (struct sort_key){c.null, ~v, (uint32_t)row};
}

/* Puts the rows in their order by the column. Returns false if out of
 * memory. */
static bool order_rows(const struct result *r, int col, size_t *rows) {
    enum col_type type = r->cols[col].type;
    struct order o = {r, (size_t)col};
    for (size_t i = 0; i < r->nrows; i++) rows[i] = i;
    if (!is_whole(type) || r->nrows > UINT32_MAX) {
        qsort_r(rows, r->nrows, sizeof *rows, row_order, &o);
        return true;
    }
    struct sort_key *v = malloc(r->nrows * sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < r->nrows; i++) v[i] = top_key(r, i, col);
    bool ok = sort_keys(v, r->nrows);
    for (size_t i = 0; i < r->nrows; i++) rows[i] = v[i].row;
    free(v);
    return ok;
}

int result_sort(struct result *r, int col, struct ops_err *e) {
    assert(col >= 0 && (size_t)col < r->ncols);
    end_row(r);
    if (r->oom) return fail_oom(e);
    if (r->nrows < 2) return 0;
    size_t *rows = malloc(r->nrows * sizeof *rows);
    bool ok = rows != NULL && order_rows(r, col, rows);
    for (size_t i = 0; ok && i < r->nrows; i++) rows[i] = r->row_at[rows[i]];
    if (!ok) {
        free(rows);
        return fail_oom(e);
    }
    free(r->row_at);
    r->row_at = rows;
    r->cap_rows = r->nrows;
    return 0;
}

void result_filter(struct result *r,
                   bool (*want)(const struct result *, size_t, const void *),
                   const void *ctx) {
    end_row(r);
    if (r->oom) return;
    size_t n = 0;
    for (size_t i = 0; i < r->nrows; i++)
        if (want(r, i, ctx)) r->row_at[n++] = r->row_at[i];
    r->nrows = r->total_rows = n;
}

void result_top(struct result *r, size_t n) {
    if (n >= r->nrows) return;
    end_row(r);
    r->nrows = n;
}

int result_top_largest(struct result *r, int col, size_t n, struct ops_err *e) {
    if (n >= r->nrows || r->nrows > UINT32_MAX) return 0;
    end_row(r);
    assert(r->cols[col].type != COL_TEXT && r->cols[col].type != COL_FLOAT);
    struct sort_key *v = malloc(r->nrows * sizeof *v);
    if (v == NULL) return fail_oom(e);
    for (size_t i = 0; i < r->nrows; i++) v[i] = top_key(r, i, col);
    bool ok = sort_keys(v, r->nrows);
    for (size_t i = 0; ok && i < n; i++)
        v[i] = (struct sort_key){v[i].row, 0, v[i].row};
    ok = ok && sort_keys(v, n);
    for (size_t i = 0; ok && i < n; i++) r->row_at[i] = r->row_at[v[i].row];
    free(v);
    if (!ok) return fail_oom(e);
    result_top(r, n);
    return 0;
}

/* ---- rows that are made as they are asked for ---- */

/* How many rows are made at a time, and bytes of text in them. A row takes a
 * hundred times what the smallest event does in a file. */
enum { PART_ROWS = 1 << 14, PART_BYTES = 8 << 20 };

static void put_more(struct result *r, struct result_more *m) {
    m->put(m, r);
    m->at++;
    if (m->profile != NULL) cell_text(r, "profile", m->profile);
}

void result_fill(struct result *r, struct result_more *m) {
    size_t end = m->end - m->at < PART_ROWS ? m->end : m->at + PART_ROWS;
    size_t most = r->arena.used + PART_BYTES;
    while (m->at < end && !r->oom && r->arena.used < most) put_more(r, m);
}

const struct result *result_next(const struct result *r) {
    struct result_more *first = r->more, *m = first;
    while (m != NULL && m->at == m->end) m = m->then;
    if (m == NULL || first->oom) return NULL;
    free_part(first);
    first->part = malloc(sizeof *first->part);
    first->oom = first->part == NULL;
    if (first->oom) return NULL;
    result_init(first->part, r->analysis, NULL);
    result_cols(first->part, r->wide ? r->wide : r->cols,
                r->wide ? r->nwide : r->ncols);
    first->part->decimals = r->decimals;
    first->part->origin = m->origin;
    result_fill(first->part, m);
    if (r->wide && !first->part->oom)
        result_pick(first->part, r->picked, r->ncols, NULL);
    first->oom = first->part->oom;
    return first->oom ? NULL : first->part;
}

/* Copies b's rows behind a's; both have the same columns. */
static void copy_rows(struct result *a, const struct result *b) {
    for (size_t i = 0; i < b->nrows; i++) {
        result_row(a);
        if (a->oom) break;
        result_cells(b, i, a->open);
        for (size_t c = 0; c < b->ncols; c++)
            if (b->cols[c].type == COL_TEXT && !a->open[c].null)
                a->open[c].s = keep(a, a->open[c].s);
    }
}

/* Gathers rows of which some columns were chosen. */
static void gather_picked(struct result *r) {
    for (const struct result *p; (p = result_next(r)) != NULL;) {
        if (!VEC_ROOM(r->parts, r->nparts, r->cap_parts)) r->oom = true;
        if (r->oom) return;
        r->parts[r->nparts++] = (struct result_part){r->nrows, p->origin};
        copy_rows(r, p);
    }
    if (r->more->oom) r->oom = true;
}

int result_gather(struct result *r, struct ops_err *e) {
    size_t total = r->total_rows;
    if (r->more != NULL && r->wide != NULL) gather_picked(r);
    for (struct result_more *m = r->more; m != NULL; m = m->then) {
        if (m->at == m->end) continue;
        if (!VEC_ROOM(r->parts, r->nparts, r->cap_parts)) return fail_oom(e);
        r->parts[r->nparts++] = (struct result_part){r->nrows, m->origin};
        while (m->at < m->end && !r->oom) put_more(r, m);
    }
    free_more(r->more);
    r->more = NULL;
    if (total > r->total_rows) r->total_rows = total;
    return result_done(r, e);
}

int64_t result_origin(const struct result *r, size_t row) {
    size_t i;
    BOUND(i, 0, r->nparts, r->parts[i].first <= row);
    return i == 0 ? r->origin : r->parts[i - 1].origin;
}

int result_join(struct result *a, const struct result *b, struct ops_err *e) {
    if (a->ncols != b->ncols)
        return fail(e, OPS_EUNSUP, "%s: the profiles have different columns",
                    a->analysis);
    for (size_t i = 0; i < a->ncols; i++)
        if (strcmp(a->cols[i].name, b->cols[i].name) != 0)
            return fail(e, OPS_EUNSUP,
                        "%s: the profiles have different columns (%s, %s)",
                        a->analysis, a->cols[i].name, b->cols[i].name);
    size_t first = a->nrows;
    size_t total = a->total_rows + b->total_rows;
    copy_rows(a, b);
    a->total_rows = total;
    if (!VEC_ROOM(a->parts, a->nparts, a->cap_parts)) return fail_oom(e);
    a->parts[a->nparts++] = (struct result_part){first, b->origin};
    for (size_t i = 0; i < b->nsources; i++) result_source(a, b->sources[i]);
    for (size_t i = 0; i < b->nremarks; i++) add_remark(a, b->remarks[i]);
    for (size_t i = 0; i < b->nmissing; i++)
        add_missing(a, b->missing[i].what, b->missing[i].why, b->missing[i].fix,
                    b->missing[i].detail);
    for (size_t i = 0; i < b->nnotes; i++)
        result_note(a, b->notes[i].note, b->notes[i].count);
    if (b->decimals > a->decimals) a->decimals = b->decimals;
    return result_done(a, e);
}

int result_prefix(struct result *r, struct column c, const char *value,
                  struct ops_err *e) {
    assert(c.type == COL_TEXT && r->ncols < RESULT_COLS);
    end_row(r);
    struct cell cells[RESULT_COLS] = {{.s = keep(r, value)}};
    struct column *cols = malloc((r->ncols + 1) * sizeof *cols);
    if (cols != NULL) cols[0] = keep_col(r, c);
    if (cols == NULL || r->oom) {
        free(cols);
        return fail_oom(e);
    }
    memcpy(cols + 1, r->cols, r->ncols * sizeof *cols);
    cells[0].null = cells[0].s == NULL;
    struct result narrow = *r;
    r->cols = cols;
    r->cap_cols = ++r->ncols;
    r->packed = NULL;
    r->npacked = r->cap_packed = 0;
    for (size_t i = 0; i < r->nrows && !r->oom; i++) {
        result_cells(&narrow, i, cells + 1);
        r->row_at[i] = r->npacked;
        r->oom = !pack_row(r, cells);
    }
    free(r->above); /* it is by column */
    r->above = NULL;
    memset(r->given, 0, sizeof r->given);
    free(narrow.cols);
    free(narrow.packed);
    return result_done(r, e);
}

int result_pick(struct result *r, const uint8_t *pick, size_t n,
                struct ops_err *e) {
    assert(n > 0 && n <= r->ncols && r->wide == NULL);
    end_row(r);
    struct cell all[RESULT_COLS], cells[RESULT_COLS];
    struct column *cols = malloc(n * sizeof *cols);
    if (cols == NULL || r->oom) {
        r->oom = true;
        free(cols);
        return fail_oom(e);
    }
    for (size_t c = 0; c < n; c++) cols[c] = r->cols[pick[c]];
    struct result before = *r;
    r->cols = cols;
    r->ncols = r->cap_cols = n;
    r->packed = NULL;
    r->npacked = r->cap_packed = 0;
    for (size_t i = 0; i < r->nrows && !r->oom; i++) {
        result_cells(&before, i, all);
        for (size_t c = 0; c < n; c++) cells[c] = all[pick[c]];
        r->row_at[i] = r->npacked;
        r->oom = !pack_row(r, cells);
    }
    free(r->above); /* it is by column */
    r->above = NULL;
    memset(r->given, 0, sizeof r->given);
    free(before.packed);
    memcpy(r->picked, pick, n);
    r->wide = before.cols;
    r->nwide = before.ncols;
    return result_done(r, e);
}
