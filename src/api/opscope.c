/* SPDX-License-Identifier: Apache-2.0
 * The public reading interface: a few lines each over profiles and results. */
#include "opscope/opscope.h"

#include "analyze/analyze.h"
#include "api/query.h"
#include "api/run.h"
#include "base/sized.h"
#include "import/import.h"
#include "load/profiles.h"
#include "present/present.h"
#include <stdlib.h>
#include <string.h>

struct ops_profile {
    struct profiles p;
};

struct ops_result {
    struct result r;
};

_Static_assert((int)OPS_COL_TEXT == COL_TEXT && (int)OPS_COL_INT == COL_INT &&
                   (int)OPS_COL_FLOAT == COL_FLOAT &&
                   (int)OPS_COL_TIME == COL_TIME &&
                   (int)OPS_COL_BYTES == COL_BYTES &&
                   (int)OPS_COL_PERCENT == COL_PERCENT &&
                   (int)OPS_COL_BOOL == COL_BOOL,
               "enum ops_col_type is enum col_type");

const char *ops_version(void) { return OPS_VERSION; }

void ops_map_files(void) { file_guard(); }

int ops_open(struct ops_profile **out, const char *path, struct ops_err *err) {
    return ops_open_with(out, &path, 1, NULL, err);
}

/* Opens a profile; the caller frees *p also after a failure. */
static int open_profile(struct ops_profile **p, const char *const *paths,
                        size_t n, const struct ops_open_options *o,
                        struct ops_err *err) {
    struct import_opts io = {.threads = o->threads > 0 ? o->threads : 0,
                             .progress = o->progress,
                             .progress_ctx = o->self};
    if (n == 0 || paths == NULL)
        return fail(err, OPS_EUSAGE, "no path was given");
    for (size_t i = 0; i < n; i++)
        if (paths[i] == NULL)
            return fail(err, OPS_EUSAGE, "no path was given: it is NULL");
    *p = calloc(1, sizeof **p);
    if (*p == NULL) return fail_oom(err);
    /* profiles_open changes none of the paths */
    return profiles_open((char *const *)paths, n, o->run, &io, &(*p)->p, err);
}

int ops_open_sized(struct ops_profile **out, const char *const *paths, size_t n,
                   const struct ops_open_options *o, size_t size,
                   struct ops_err *err) {
    struct ops_open_options own = {0};
    struct ops_profile *p = NULL;
    if (out == NULL) return fail(err, OPS_EUSAGE, "no place for the profile");
    *out = NULL;
    copy_sized(&own, sizeof own, o, size);
    int rc = open_profile(&p, paths, n, &own, err);
    if (rc == 0) *out = p;
    else free(p);
    return rc;
}

void ops_close(struct ops_profile *p) {
    if (p == NULL) return;
    profiles_free(&p->p);
    free(p);
}

int ops_run(const struct ops_profile *p, const char *analysis,
            const char *options, struct ops_result **out, struct ops_err *err) {
    const struct analysis *a = analysis ? analysis_find(analysis) : NULL;
    if (out == NULL) return fail(err, OPS_EUSAGE, "no place for the result");
    *out = NULL;
    if (p == NULL)
        return fail(err, OPS_EUSAGE,
                    "no profile was given: it is NULL, which "
                    "ops_open leaves behind when it fails");
    if (a == NULL)
        return fail(err, OPS_EUSAGE, "no analysis is called '%s'",
                    analysis ? analysis : "");
    struct opts o;
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    struct ops_result *r = calloc(1, sizeof *r);
    /* the text is taken apart in place, and lives as long as o */
    char *text = strdup(options ? options : ""), *left = text, *name, *value;
    int rc = r && text ? 0 : fail_oom(err);
    while (rc == 0 && (rc = query_next(&left, &name, &value, err)) > 0)
        rc = opts_set(&o, name, value, err);
    if (rc == 0) rc = profiles_run(&p->p, a, &o, 0, &r->r, err);
    if (rc == 0) rc = result_gather(&r->r, err);
    free(text);
    if (rc == 0) *out = r;
    else ops_result_free(r);
    return rc;
}

void ops_result_free(struct ops_result *r) {
    if (r == NULL) return;
    result_free(&r->r);
    free(r);
}

/* What is read where NULL was given for a result. */
static const struct ops_result nothing;

static const struct result *table(const struct ops_result *r) {
    return r != NULL ? &r->r : &nothing.r;
}

size_t ops_result_rows(const struct ops_result *r) { return table(r)->nrows; }

size_t ops_result_total_rows(const struct ops_result *r) {
    return table(r)->total_rows;
}

size_t ops_result_cols(const struct ops_result *r) { return table(r)->ncols; }

/* Returns the column; NULL past the last. */
static const struct column *column(const struct ops_result *r, size_t col) {
    return col < table(r)->ncols ? &table(r)->cols[col] : NULL;
}

const char *ops_result_col_name(const struct ops_result *r, size_t col) {
    const struct column *c = column(r, col);
    return c ? c->name : NULL;
}

enum ops_col_type ops_result_col_type(const struct ops_result *r, size_t col) {
    const struct column *c = column(r, col);
    return c ? (enum ops_col_type)c->type : OPS_COL_TEXT;
}

const char *ops_result_col_unit(const struct ops_result *r, size_t col) {
    const struct column *c = column(r, col);
    return c ? c->unit : NULL;
}

const char *ops_result_col_help(const struct ops_result *r, size_t col) {
    const struct column *c = column(r, col);
    return c ? c->help : NULL;
}

int ops_result_find_col(const struct ops_result *r, const char *name) {
    return r != NULL && name != NULL ? result_find_col(&r->r, name) : -1;
}

/* Returns the cell and the type of its column; a null cell past the last. */
static struct cell cell(const struct ops_result *r, size_t row, size_t col,
                        enum col_type *type) {
    const struct result *t = table(r);
    *type = COL_TEXT;
    if (row >= t->nrows || col >= t->ncols) return (struct cell){.null = true};
    *type = t->cols[col].type;
    return result_cell(t, row, col);
}

bool ops_result_cell_is_null(const struct ops_result *r, size_t row,
                             size_t col) {
    enum col_type type;
    return cell(r, row, col, &type).null;
}

const char *ops_result_cell_text(const struct ops_result *r, size_t row,
                                 size_t col) {
    enum col_type type;
    struct cell c = cell(r, row, col, &type);
    return !c.null && type == COL_TEXT ? c.s : NULL;
}

static bool is_float(enum col_type type) {
    return type == COL_FLOAT || type == COL_PERCENT;
}

/* Gives the double that is nearest to a time in microseconds, which is what
 * reading the decimals of JSON gives. Dividing does as long as the picoseconds
 * themselves fit a double; the start of a span often does not. */
static double nearest_us(int64_t ps) {
    const int64_t fits = INT64_C(1) << 53;
    if (ps >= -fits && ps <= fits) return (double)ps / PS_PER_US;
    uint64_t n = ps < 0 ? -(uint64_t)ps : (uint64_t)ps;
    /* as many binary places as make 53 bits of it */
    int places = 53 - (64 - __builtin_clzll(n / PS_PER_US));
    unsigned __int128 wide = (unsigned __int128)n << places;
    uint64_t q = (uint64_t)(wide / PS_PER_US);
    uint64_t twice = 2 * (uint64_t)(wide % PS_PER_US);
    if (twice > PS_PER_US || (twice == PS_PER_US && (q & 1))) q++;
    double us = (double)q / (double)(UINT64_C(1) << places);
    return ps < 0 ? -us : us;
}

double ops_result_cell_double(const struct ops_result *r, size_t row,
                              size_t col) {
    enum col_type type;
    struct cell c = cell(r, row, col, &type);
    if (c.null || type == COL_TEXT) return 0;
    if (is_float(type)) return c.f;
    return type == COL_TIME ? nearest_us(c.i) : (double)c.i;
}

int64_t ops_result_cell_int(const struct ops_result *r, size_t row,
                            size_t col) {
    enum col_type type;
    struct cell c = cell(r, row, col, &type);
    if (c.null || type == COL_TEXT) return 0;
    if (!is_float(type)) return type == COL_TIME ? c.i / PS_PER_US : c.i;
    /* a double outside int64 has no such value */
    if (c.f != c.f) return 0;
    if (c.f >= 9223372036854775808.0) return INT64_MAX;
    return c.f < -9223372036854775808.0 ? INT64_MIN : (int64_t)c.f;
}

int64_t ops_result_cell_ps(const struct ops_result *r, size_t row, size_t col) {
    enum col_type type;
    struct cell c = cell(r, row, col, &type);
    return !c.null && type == COL_TIME ? c.i : 0;
}

/* Returns the source; NULL past the last. */
static const struct result_source *source(const struct ops_result *r,
                                          size_t i) {
    return i < table(r)->nsources ? &table(r)->sources[i] : NULL;
}

size_t ops_result_source_count(const struct ops_result *r) {
    return table(r)->nsources;
}

const char *ops_result_source_path(const struct ops_result *r, size_t i) {
    const struct result_source *s = source(r, i);
    return s ? s->path : NULL;
}

const char *ops_result_source_format(const struct ops_result *r, size_t i) {
    const struct result_source *s = source(r, i);
    return s ? s->format : NULL;
}

const char *ops_result_source_host(const struct ops_result *r, size_t i) {
    const struct result_source *s = source(r, i);
    return s ? s->host : NULL;
}

int64_t ops_result_source_rank(const struct ops_result *r, size_t i) {
    const struct result_source *s = source(r, i);
    return s ? s->rank : -1;
}

size_t ops_result_remark_count(const struct ops_result *r) {
    return table(r)->nremarks;
}

const char *ops_result_remark_text(const struct ops_result *r, size_t i) {
    return i < table(r)->nremarks ? table(r)->remarks[i] : NULL;
}

size_t ops_result_missing_count(const struct ops_result *r) {
    return table(r)->nmissing;
}

const char *ops_result_missing_what(const struct ops_result *r, size_t i) {
    return i < table(r)->nmissing ? table(r)->missing[i].what : NULL;
}

const char *ops_result_missing_why(const struct ops_result *r, size_t i) {
    return i < table(r)->nmissing ? table(r)->missing[i].why : NULL;
}

const char *ops_result_missing_fix(const struct ops_result *r, size_t i) {
    return i < table(r)->nmissing ? table(r)->missing[i].fix : NULL;
}

size_t ops_result_note_count(const struct ops_result *r) {
    return table(r)->nnotes;
}

const char *ops_result_note_id(const struct ops_result *r, size_t i) {
    return i < table(r)->nnotes ? table(r)->notes[i].id : NULL;
}

uint64_t ops_result_note_times(const struct ops_result *r, size_t i) {
    return i < table(r)->nnotes ? table(r)->notes[i].count : 0;
}

const char *ops_result_note_text(const struct ops_result *r, size_t i) {
    return i < table(r)->nnotes ? table(r)->notes[i].text : NULL;
}

/* Returns the result as p writes it, terminated. Returns NULL and a length of 0
 * for no result, and when out of memory. */
static char *printed(const struct ops_result *r, size_t *len,
                     const struct presenter *p) {
    static const struct text_style style = {.width = 120, .unicode = true};
    struct sink s;
    if (len != NULL) *len = 0;
    if (r == NULL) return NULL;
    sink_screen(&s, -1);
    p->put(&r->r, &style, &s);
    sink_flush(&s, NULL);
    sink_putc(&s, '\0');
    if (s.broken) sink_free(&s);
    else if (len != NULL) *len = s.n - 1;
    return s.buf;
}

char *ops_result_json(const struct ops_result *r, size_t *len) {
    return printed(r, len, &presenter_json);
}

char *ops_result_csv(const struct ops_result *r, size_t *len) {
    return printed(r, len, &presenter_csv);
}

char *ops_result_text(const struct ops_result *r, size_t *len) {
    return printed(r, len, &presenter_text);
}

void ops_text_free(char *text) { free(text); }
