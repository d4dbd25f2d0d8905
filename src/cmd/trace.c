/* SPDX-License-Identifier: Apache-2.0
 * `opscope trace`: the spans as they were recorded, in order of time. Only the
 * rows that will be shown are made: row numbers of the others are enough. Where
 * these are very many, a part of them is made at a time, as they are printed:
 * a row takes a hundred times what the smallest event does in a file. */
#include "analyze/analyze.h"
#include "base/text/glob.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "cmd/load.h"
#include "cmd/show.h"
#include "model/args.h"
#include "model/format.h"
#include "model/kind.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What --from, --to, --track and --name ask for. */
struct want {
    const struct trace *t;
    struct scope scope;
    int64_t from, to; /* ps since the epoch */
    const char *name;
    bool *track_in; /* by track */
};

struct rows {
    row_id *v;
    size_t n, cap;
};

/* Marks the tracks of --track: by name (a glob) or by thread id. */
static int want_tracks(struct want *w, const char *glob, struct ops_err *e) {
    const struct trace *t = w->t;
    bool any = false;
    w->track_in = calloc(t->ntracks + 1, sizeof *w->track_in);
    if (w->track_in == NULL) return fail_oom(e);
    char *end = NULL;
    long long id = glob ? strtoll(glob, &end, 10) : 0;
    bool number = glob && *glob != '\0' && *end == '\0';
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *k = &t->tracks[i];
        w->track_in[i] = glob == NULL || (number && k->tid == id) ||
                         glob_match(glob, strs_text(&t->strs, k->name));
        any |= w->track_in[i];
    }
    if (any || glob == NULL) return 0;
    return fail(e, OPS_EUSAGE, "no track is named '%s' or has that id", glob);
}

static bool is_wanted(const struct want *w, row_id r) {
    const struct trace *t = w->t;
    return w->track_in[t->spans.track[r]] && span_end(t, r) >= w->from &&
           t->spans.ts[r] <= w->to && scope_has(&w->scope, r) &&
           (w->name == NULL || glob_match(w->name, span_name(t, r)));
}

static int by_time(const void *pa, const void *pb, void *ctx) {
    const struct trace *t = ctx;
    row_id a = *(const row_id *)pa, b = *(const row_id *)pb;
    int64_t x = t->spans.ts[a], y = t->spans.ts[b];
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

static int find_rows(const struct want *w, struct rows *out,
                     struct ops_err *e) {
    for (size_t r = 0; r < w->t->spans.n; r++) {
        if (!is_wanted(w, (row_id)r)) continue;
        if (!VEC_ROOM(out->v, out->n, out->cap)) return fail_oom(e);
        out->v[out->n++] = (row_id)r;
    }
    if (out->n > 1)
        qsort_r(out->v, out->n, sizeof *out->v, by_time, (void *)w->t);
    return 0;
}

static void put_columns(struct result *r) {
    static const struct column cols[] = {
        {"start_us", "start", "us", "When it began, since the epoch.", COL_TIME,
         COL_STAMP},
        {"dur_us", NULL, "us", "How long it took.", COL_TIME, COL_MAIN},
        {"track", NULL, NULL, "The thread or stream it ran on.", COL_TEXT, 0},
        {"kind", NULL, NULL, "What it is: op, api, kernel, copy, ...", COL_TEXT,
         0},
        {"cat", NULL, NULL, "The category that the source gave it.", COL_TEXT,
         COL_DETAIL},
        {"name", NULL, NULL, "Its name.", COL_TEXT, COL_KEY | COL_SYMBOL},
        {"depth", NULL, NULL, "How many spans are around it.", COL_INT, 0},
        {"step", NULL, NULL, "The step it belongs to.", COL_INT, 0},
        {"args", NULL, NULL, "Its arguments, as a JSON object.", COL_TEXT,
         COL_DETAIL},
    };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
    r->in_order = true;
}

/* The arguments of a span on their way out. */
struct arg_writer {
    struct sink *out;
    bool json; /* the source is JSON: texts are escaped already */
    struct json_keys keys;
};

static bool put_arg(void *ctx, struct bytes key, const struct arg *a) {
    struct arg_writer *w = ctx;
    struct sink *s = w->out;
    char num[NUMBER_MAX];
    sink_puts(s, s->n > 1 ? ", " : "");
    json_put_key(s, &w->keys, key, w->json);
    sink_puts(s, ": ");
    switch (a->type) {
    case ARG_INT: sink_printf(s, "%" PRId64, a->i); break;
    case ARG_UINT: sink_printf(s, "%" PRIu64, a->u); break;
    case ARG_BOOL: sink_puts(s, a->i ? "true" : "false"); break;
    case ARG_TEXT:
        if (w->json) json_put_raw(s, a->text);
        else json_put(s, a->text);
        break;
    case ARG_JSON: json_put_value(s, a->text); break;
    case ARG_FLOAT:
        sink_puts(s, isfinite(a->f) ? number_float(a->f, num) : "null");
        break;
    case ARG_NONE: sink_puts(s, "null"); break;
    }
    return !s->broken;
}

/* The arguments as one JSON object, null when there are none. */
static void put_args(struct result *r, const struct trace *t, row_id row,
                     struct sink *s) {
    uint32_t source = t->tracks[t->spans.track[row]].source;
    struct arg_writer w = {.out = s,
                           .json = t->sources[source].format->args_each ==
                                   NULL};
    s->n = 0;
    sink_putc(s, '{');
    args_each(t, row, put_arg, &w);
    sink_putc(s, '}');
    if (s->broken) r->oom = true;
    else if (s->n == 2) result_null(r);
    else result_str(r, (struct bytes){(const uint8_t *)s->buf, s->n});
}

static void put_span(struct result *r, const struct trace *t, row_id row,
                     bool args, struct sink *scratch) {
    const struct spans *s = &t->spans;
    const struct track *k = &t->tracks[s->track[row]];
    uint32_t step = s->step[row];
    result_row(r);
    result_int(r, s->ts[row]);
    result_int(r, s->dur[row]);
    result_text(r, strs_text(&t->strs, k->name));
    result_text(r, kind_name(s->kind[row]));
    result_text(r, strs_text(&t->strs, t->cats[span_cat(t, row)].text));
    result_text(r, span_name(t, row));
    result_int(r, s->depth[row]);
    result_int_if(r, step != ROW_NONE,
                  step != ROW_NONE ? t->steps[step].number : 0);
    if (args) put_args(r, t, row, scratch);
    else result_null(r);
}

/* Text shows arguments with -v alone; they are not read for nothing. */
static bool wants_args(const struct opts *o) {
    return strcmp(opts_text(o, "format"), "text") != 0 ||
           opts_flag(o, "verbose");
}

/* How many rows need be made: all when something else may reorder or drop
 * them. */
static size_t rows_needed(const struct opts *o, size_t n) {
    if (opts_given(o, "sort") || opts_given(o, "min-us") ||
        opts_given(o, "min-bytes"))
        return n;
    size_t top = show_default_top(o);
    if (opts_given(o, "top") && opts_int(o, "top") >= 0)
        top = (size_t)opts_int(o, "top");
    return top > 0 && top < n ? top : n;
}

/* Rows made at a time, and bytes of text in them. */
enum { PART_ROWS = 1 << 14, PART_BYTES = 8 << 20 };

/* The rows of a profile that are still to be made. */
struct rest {
    const struct trace *t;
    struct rows rows;
    size_t at, end;
    bool args; /* with their arguments */
};

/* What is printed part by part. */
struct stream {
    const struct profiles *p;
    struct rest *rest; /* by profile */
    size_t i;          /* the profile at hand */
    struct result part;
    const struct result *all;
    struct sink scratch;
    bool oom;
};

/* Puts rows from x->at on into r, as many as one part has. */
static void put_part(struct result *r, struct rest *x, struct sink *scratch) {
    size_t end = x->end - x->at < PART_ROWS ? x->end : x->at + PART_ROWS;
    size_t most = r->arena.used + PART_BYTES;
    for (; x->at < end && !r->oom && r->arena.used < most; x->at++)
        put_span(r, x->t, x->rows.v[x->at], x->args, scratch);
}

static const struct result *next_part(void *ctx) {
    struct stream *s = ctx;
    struct ops_err e;
    result_free(&s->part);
    while (s->i < s->p->n && s->rest[s->i].at == s->rest[s->i].end) s->i++;
    if (s->i == s->p->n || s->oom) return NULL;
    struct rest *x = &s->rest[s->i];
    result_init(&s->part, "trace", NULL);
    put_columns(&s->part);
    s->part.decimals = s->all->decimals;
    s->part.origin = trace_origin(x->t);
    put_part(&s->part, x, &s->scratch);
    s->oom = s->part.oom || profiles_prefix(s->p, s->i, &s->part, &e) != 0;
    return s->oom ? NULL : &s->part;
}

/* The rows that are wanted, the first of them in r; x has what is to follow.
 * wait: all of them are, since those of a profile before it are. */
static int fill(const struct want *w, const struct opts *o, bool wait,
                struct result *r, struct rest *x, struct ops_err *e) {
    struct sink scratch;
    TRY(find_rows(w, &x->rows, e));
    size_t all = x->rows.n, n = rows_needed(o, all);
    bool whole = opts_given(o, "sort") || opts_given(o, "min-us") ||
                 opts_given(o, "min-bytes");
    *x = (struct rest){.t = w->t,
                       .rows = x->rows,
                       .end = n,
                       .args = wants_args(o)};
    sink_memory(&scratch);
    if (!whole && !wait) put_part(r, x, &scratch);
    for (; whole && x->at < x->end && !r->oom; x->at++)
        put_span(r, w->t, x->rows.v[x->at], x->args, &scratch);
    sink_free(&scratch);
    if (r->oom) return fail_oom(e);
    if (x->at == x->end) TRY(result_refine(r, o, show_default_top(o), e));
    if (n < all || x->at < x->end) r->total_rows = all;
    return 0;
}

/* The spans of one trace as a result. */
static int trace_result(const struct trace *t, const struct opts *o, bool wait,
                        struct result *r, struct rest *x, struct ops_err *e) {
    struct want w = {.t = t,
                     .from = INT64_MIN,
                     .to = INT64_MAX,
                     .name = opts_text(o, "name")};
    if (opts_given(o, "from")) w.from = trace_given_time(t, opts_ps(o, "from"));
    if (opts_given(o, "to")) w.to = trace_given_time(t, opts_ps(o, "to"));
    TRY(scope_init(&w.scope, t, o, e));
    result_init(r, "trace", "Spans");
    result_from_trace(r, t);
    put_columns(r);
    int rc = want_tracks(&w, opts_text(o, "track"), e);
    if (rc == 0) rc = fill(&w, o, wait, r, x, e);
    scope_free(&w.scope);
    free(w.track_in);
    if (rc != 0) result_free(r);
    return rc;
}

static int run(const struct opts *o, int argc, char **argv, struct ops_err *e) {
    struct profiles p;
    TRY(profiles_load(o, argc, argv, &p, e));
    struct result all = {0};
    struct stream s = {.p = &p, .all = &all};
    s.rest = calloc(p.n + 1, sizeof *s.rest);
    int rc = s.rest != NULL ? 0 : fail_oom(e);
    bool more = false;
    for (size_t i = 0; i < p.n && rc == 0; i++) {
        struct result r;
        rc = trace_result(p.v[i].trace, o, more, &r, &s.rest[i], e);
        if (rc == 0) rc = profiles_join(&p, i, &all, &r, e);
        more |= s.rest[i].at < s.rest[i].end;
    }
    sink_memory(&s.scratch);
    all.next = more ? next_part : NULL;
    all.next_ctx = &s;
    if (rc == 0) rc = show_result(&all, o, e);
    if (rc == 0 && s.oom) rc = fail_oom(e);
    sink_free(&s.scratch);
    result_free(&s.part);
    result_free(&all);
    for (size_t i = 0; s.rest != NULL && i < p.n; i++) free(s.rest[i].rows.v);
    free(s.rest);
    profiles_free(&p);
    return rc;
}

static const struct opt trace_opts[] = {
    {"from", 0, OPT_US, "US", NULL,
     "only spans that end at or after this: a start as JSON or text shows it"},
    {"to", 0, OPT_US, "US", NULL,
     "only spans that begin at or before this, likewise"},
    {"track", 0, OPT_TEXT, "T", NULL,
     "only tracks whose name matches this glob, or whose id it is"},
    {.name = NULL},
};

extern const struct command command_trace;
const struct command command_trace = {
    .name = "trace",
    .args = "PATH...",
    .help = "the raw spans, in order of time",
    .more = "Columns: start_us, dur_us, track, kind, cat, name, depth, "
            "step, args (a JSON object).",
    .opts = trace_opts,
    .filters = true,
    .run = run,
};
