/* SPDX-License-Identifier: Apache-2.0
 * trace: the spans as they were recorded, in order of time. The numbers of the
 * rows are known at once; a row is made when it is asked for. */
#include "analyze/analyze.h"
#include "base/array.h"
#include "base/text/glob.h"
#include "base/text/json_text.h"
#include "base/vec.h"
#include "model/args.h"
#include <stdlib.h>
#include <string.h>

/* The rows of a trace that were asked for. */
struct spans_wanted {
    struct result_more more;
    const struct trace *t;
    row_id *rows;
    size_t n, cap;
    bool args; /* with their arguments */
    struct sink scratch;
};

/* Marks the tracks of --track, by name (a glob) or by thread id. */
static int mark_tracks(const struct trace *t, const char *glob, bool *track_in,
                       struct ops_err *e) {
    bool any = glob == NULL;
    char *end = NULL;
    long long id = glob ? strtoll(glob, &end, 10) : 0;
    bool number = glob && *glob != '\0' && *end == '\0';
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *k = &t->tracks[i];
        track_in[i] = glob == NULL || (number && k->tid == id) ||
                      glob_match(glob, strs_text(&t->strs, k->name));
        any |= track_in[i];
    }
    if (any) return 0;
    return fail(e, OPS_EUSAGE, "no track is named '%s' or has that id", glob);
}

static int by_time(const void *pa, const void *pb, void *ctx) {
    const struct trace *t = ctx;
    row_id a = *(const row_id *)pa, b = *(const row_id *)pb;
    int64_t x = t->spans.ts[a], y = t->spans.ts[b];
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

/* Finds the rows that --from, --to, --track, --name and the common options ask
 * for. */
static int find_spans(struct spans_wanted *w, const struct opts *o,
                      const struct selection *in, const bool *track_in,
                      struct ops_err *e) {
    const struct trace *t = w->t;
    const char *name = opts_text(o, "name");
    int64_t from = INT64_MIN, to = INT64_MAX;
    if (opts_given(o, "from")) from = trace_given_time(t, opts_ps(o, "from"));
    if (opts_given(o, "to")) to = trace_given_time(t, opts_ps(o, "to"));
    for (size_t i = 0; i < t->spans.n; i++) {
        row_id r = (row_id)i;
        if (!track_in[t->spans.track[r]] || span_end(t, r) < from ||
            t->spans.ts[r] > to || !select_has(in, r) ||
            (name != NULL && !glob_match(name, span_name(t, r))))
            continue;
        if (!VEC_ROOM(w->rows, w->n, w->cap)) return fail_oom(e);
        w->rows[w->n++] = r;
    }
    if (w->n > 1) qsort_r(w->rows, w->n, sizeof *w->rows, by_time, (void *)t);
    return 0;
}

/* The arguments of a span on their way out. */
struct arg_writer {
    struct sink *out;
    bool json; /* the source is JSON: texts are escaped already */
    struct json_keys keys;
};

static bool put_arg(void *ctx, struct bytes key, const struct arg *a) {
    struct arg_writer *w = ctx;
    sink_puts(w->out, w->out->n > 1 ? ", " : "");
    json_put_key(w->out, &w->keys, key, w->json);
    sink_puts(w->out, ": ");
    args_put_json(w->out, a, w->json);
    return !w->out->broken;
}

/* Puts the arguments as one JSON object; the cell is null where there are
 * none. */
static void put_args(struct result *r, const struct trace *t, row_id row,
                     struct sink *s) {
    struct arg_writer w = {.out = s, .json = args_are_json(t, row)};
    s->n = 0;
    sink_putc(s, '{');
    args_each(t, row, put_arg, &w);
    sink_putc(s, '}');
    if (s->broken) r->oom = true;
    else if (s->n > 2)
        cell_str(r, "args", (struct bytes){(const uint8_t *)s->buf, s->n});
}

static void put_span(struct result_more *m, struct result *r) {
    struct spans_wanted *w = (struct spans_wanted *)m;
    const struct trace *t = w->t;
    const struct spans *s = &t->spans;
    row_id row = w->rows[m->at];
    uint32_t step = s->step[row];
    result_row(r);
    cell_int(r, "start_us", s->ts[row]);
    cell_int(r, "dur_us", s->dur[row]);
    cell_text(r, "track", strs_text(&t->strs, t->tracks[s->track[row]].name));
    cell_text(r, "kind", kind_name(s->kind[row]));
    cell_text(r, "cat", strs_text(&t->strs, t->cats[span_cat(t, row)].text));
    cell_text(r, "name", span_name(t, row));
    cell_int(r, "depth", s->depth[row]);
    if (step != ROW_NONE) cell_int(r, "step", t->steps[step].number);
    if (w->args) put_args(r, t, row, &w->scratch);
}

static void free_spans(struct result_more *m) {
    struct spans_wanted *w = (struct spans_wanted *)m;
    sink_free(&w->scratch);
    free(w->rows);
    free(w);
}

static int trace_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
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
        {"depth", NULL, NULL, "How many spans are around it.", COL_INT,
         COL_LESS},
        {"step", NULL, NULL, "The step it belongs to.", COL_INT, 0},
        {"args", NULL, NULL, "Its arguments, as a JSON object.", COL_TEXT,
         COL_DETAIL},
    };
    struct selection in;
    TRY(select_init(&in, t, o, e));
    result_init(r, "trace", "Spans");
    result_from_trace(r, t);
    result_cols(r, cols, COUNT(cols));
    r->in_order = true;
    bool *track_in = calloc(t->ntracks + 1, sizeof *track_in);
    struct spans_wanted *w = calloc(1, sizeof *w);
    int rc = track_in != NULL && w != NULL ? 0 : fail_oom(e);
    if (w != NULL) {
        *w = (struct spans_wanted){.more = {.origin = r->origin,
                                            .put = put_span,
                                            .free = free_spans},
                                   .t = t,
                                   .args = !o->brief};
        sink_memory(&w->scratch);
        r->more = &w->more;
    }
    if (rc == 0) rc = mark_tracks(t, opts_text(o, "track"), track_in, e);
    if (rc == 0) rc = find_spans(w, o, &in, track_in, e);
    if (rc == 0) w->more.end = w->n;
    if (rc == 0 && w->n == 0 && t->spans.n > 0)
        result_remark(r, "no span is among those that were asked for");
    select_free(&in);
    free(track_in);
    return rc;
}

static const struct opt trace_opts[] = {
    {"from", 0, OPT_US, "US", NULL,
     .help = "only spans that end at or after this: a start as JSON or text "
             "shows it"},
    {"to", 0, OPT_US, "US", NULL,
     .help = "only spans that begin at or before this, likewise"},
    {"track", 0, OPT_TEXT, "T", NULL,
     .help = "only tracks whose name matches this glob, or whose id it is"},
    {0},
};

const struct analysis analysis_trace = {
    .name = "trace",
    .help = "the raw spans, in order of time",
    .row = "one span",
    .opts = trace_opts,
    .run = trace_run,
};
