/* SPDX-License-Identifier: Apache-2.0
 * A result as JSON, in the shape that the interface fixes: the same keys in
 * the same order, always all of them; a row on a line of its own. */
#include "present/present.h"

#include "base/text/json_text.h"
#include "base/text/number.h"

/* Integers past 2^53 are strings: a double cannot hold them. */
#define JSON_INT_LIMIT (INT64_C(1) << 53)

/* Writes a JSON string; NULL is null. */
static void put_string(struct sink *out, const char *s) {
    if (s == NULL) sink_puts(out, "null");
    else json_put(out, bytes_of(s));
}

/* Writes what stands before a text, and the text. */
static void put_member(struct sink *out, const char *before, const char *s) {
    sink_puts(out, before);
    put_string(out, s);
}

static void put_int(struct sink *out, int64_t v) {
    bool big = v > JSON_INT_LIMIT || v < -JSON_INT_LIMIT;
    if (big) sink_putc(out, '"');
    sink_int(out, v);
    if (big) sink_putc(out, '"');
}

static void json_cell(struct sink *out, const struct result *r, size_t col,
                      const struct cell *c) {
    if (c->null) {
        sink_puts(out, "null");
        return;
    }
    switch (r->cols[col].type) {
    case COL_TEXT: put_string(out, c->s); break;
    case COL_INT:
    case COL_BYTES: put_int(out, c->i); break;
    default: present_number(out, r, col, c);
    }
}

void present_number(struct sink *out, const struct result *r, size_t col,
                    const struct cell *c) {
    char num[NUMBER_MAX];
    const struct column *k = &r->cols[col];
    if (k->type == COL_BOOL) sink_puts(out, c->i ? "true" : "false");
    else if (k->type == COL_TIME)
        sink_puts(out,
                  number_us(c->i, k->flags & COL_MEAN ? 6 : r->decimals, num));
    else sink_puts(out, number_float(c->f, num));
}

/* Writes a separator before all but the first. */
static void put_comma(struct sink *out, size_t i, const char *indent) {
    if (i > 0) sink_putc(out, ',');
    sink_printf(out, "\n%s", indent);
}

static void put_sources(struct sink *out, const struct result *r) {
    sink_puts(out, " \"sources\": [");
    for (size_t i = 0; i < r->nsources; i++) {
        const struct result_source *s = &r->sources[i];
        put_comma(out, i, "  ");
        put_member(out, "{\"path\": ", s->path);
        put_member(out, ", \"format\": ", s->format);
        put_member(out, ", \"host\": ", s->host);
        sink_puts(out, ", \"rank\": ");
        if (s->rank < 0) sink_puts(out, "null");
        else put_int(out, s->rank);
        sink_puts(out, ", \"epoch_unix_ns\": ");
        if (s->has_epoch) sink_printf(out, "\"%lld\"", (long long)s->epoch_ns);
        else sink_puts(out, "null");
        sink_putc(out, '}');
    }
    sink_puts(out, "],\n");
}

static void json_columns(struct sink *out, const struct result *r) {
    static const char *const types[] = {"text",  "int",     "float", "time",
                                        "bytes", "percent", "bool"};
    sink_puts(out, " \"columns\": [");
    for (size_t i = 0; i < r->ncols; i++) {
        const struct column *c = &r->cols[i];
        put_comma(out, i, "  ");
        put_member(out, "{\"name\": ", c->name);
        sink_printf(out, ", \"type\": \"%s\", \"unit\": ", types[c->type]);
        put_string(out, c->unit);
        put_member(out, ", \"help\": ", c->help);
        sink_putc(out, '}');
    }
    sink_puts(out, "],\n");
}

static void json_rows(struct sink *out, const struct result *r) {
    size_t n = 0;
    sink_puts(out, " \"rows\": [");
    for (const struct result *p = r; p != NULL; p = result_next(r))
        for (size_t i = 0; i < p->nrows; i++) {
            struct cell cells[RESULT_COLS];
            result_cells(p, i, cells);
            put_comma(out, n++, "  [");
            for (size_t c = 0; c < p->ncols; c++) {
                if (c > 0) sink_puts(out, ", ");
                json_cell(out, p, c, &cells[c]);
            }
            sink_putc(out, ']');
        }
    sink_printf(out, "], \"total_rows\": %zu,\n", r->total_rows);
}

static void json_result(const struct result *r, const struct text_style *st,
                        struct sink *out) {
    (void)st;
    put_member(out, "{\"opscope\": \"" OPS_VERSION "\", \"analysis\": ",
               r->analysis);
    sink_puts(out, ",\n");
    put_sources(out, r);
    json_columns(out, r);
    json_rows(out, r);
    sink_puts(out, " \"remarks\": [");
    for (size_t i = 0; i < r->nremarks; i++) {
        put_comma(out, i, "  ");
        put_string(out, r->remarks[i]);
    }
    sink_puts(out, "],\n \"missing\": [");
    for (size_t i = 0; i < r->nmissing; i++) {
        put_comma(out, i, "  ");
        put_member(out, "{\"what\": ", r->missing[i].what);
        put_member(out, ", \"why\": ", r->missing[i].why);
        put_member(out, ", \"fix\": ", r->missing[i].fix);
        sink_putc(out, '}');
    }
    sink_puts(out, "],\n \"notes\": [");
    for (size_t i = 0; i < r->nnotes; i++) {
        uint64_t n = r->notes[i].count;
        put_comma(out, i, "  ");
        put_member(out, "{\"id\": ", r->notes[i].id);
        sink_puts(out, ", \"count\": ");
        put_int(out, n > INT64_MAX ? INT64_MAX : (int64_t)n);
        put_member(out, ", \"text\": ", r->notes[i].text);
        sink_putc(out, '}');
    }
    sink_puts(out, "]}\n");
}

const struct presenter presenter_json = {
    .name = "json",
    .put = json_result,
};
