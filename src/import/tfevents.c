/* SPDX-License-Identifier: Apache-2.0
 * Event files of TensorBoard as a profile. Scalars become counters over wall
 * time. The RunMetadata that TensorFlow 1 puts beside them are files inside the
 * file: each comes back through import_bytes as a source of its own. What a
 * trace has no place for (histograms, images, text) is counted; `opscope
 * scalars` shows all of it, through the same reader (summary.h). */
#include "import/import.h"

#include "base/text/cut.h"
#include "model/trace_fill.h"
#include "scalars/summary.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_METAS = 64, META_TEXT = 300 };

static bool tfevents_sniff(struct bytes all) { return summary_sniff(all); }

/* Turns Unix seconds into ps since the epoch; INT64_MAX if out of range. */
static int64_t ps_since(double wall, int64_t epoch_ns) {
    double s = wall - (double)(epoch_ns / 1000000000) -
               (double)(epoch_ns % 1000000000) * 1e-9;
    return fabs(s) < 9e6 ? (int64_t)(s * (double)PS_PER_S) : INT64_MAX;
}

/* Makes scalars counters and the first texts facts; all else is counted. */
static void put_series(struct trace *t, uint32_t source,
                       const struct scalars *s) {
    size_t texts = 0;
    for (size_t i = 0; i < s->nseries && !t->oom; i++) {
        const struct series *v = &s->series[i];
        if (v->kind == SERIES_SCALAR) {
            uint32_t c = trace_counter(t, source, strs_bytes(&s->strs, v->tag),
                                       bytes_of(""), ROW_NONE);
            for (size_t k = 0; k < v->n && !t->oom; k++)
                trace_sample(t, c, ps_since(v->wall[k], t->epoch_ns),
                             v->value[k]);
            continue;
        }
        trace_note(t, NOTE_SUMMARY_SKIPPED, v->n);
        if (v->kind != SERIES_TEXT || texts++ >= TEXT_METAS) continue;
        char key[META_TEXT];
        cut_fmt(key, sizeof key, "text %.*s",
                CUT(200, strs_text(&s->strs, v->tag)));
        struct bytes text = bytes_of(v->text != NULL ? v->text : "");
        if (text.n > META_TEXT) text.n = META_TEXT;
        trace_meta(t, source, key, text);
    }
}

static void put_facts(struct trace *t, uint32_t source,
                      const struct scalars *s) {
    const struct scalar_file *f = &s->files[0];
    size_t blobs[BLOB_KINDS] = {0};
    char n[32];
    for (size_t i = 0; i < s->nblobs; i++) blobs[s->blobs[i].kind]++;
    static const char *const names[] = {
        [BLOB_GRAPH] = "graphs",
        [BLOB_META_GRAPH] = "meta graphs",
        [BLOB_RUN_METADATA] = "run metadata",
    };
    trace_meta(t, source, "event file version",
               strs_bytes(&s->strs, f->version));
    if (f->writer != 0)
        trace_meta(t, source, "event writer", strs_bytes(&s->strs, f->writer));
    for (int k = 0; k < BLOB_KINDS; k++) {
        if (blobs[k] == 0) continue;
        snprintf(n, sizeof n, "%zu", blobs[k]);
        trace_meta(t, source, names[k], bytes_of(n));
    }
}

/* Adds a RunMetadata inside the file as a source beside it. One that cannot be
 * read (TensorFlow 2 writes them without any node's time) is a note. No real
 * program writes an event file inside an event file. */
static int put_run_metadata(struct trace *t, uint32_t source,
                            const struct scalars *s,
                            const struct scalar_blob *b,
                            const struct import_opts *o, struct ops_err *e) {
    struct bytes all = t->sources[source].bytes;
    struct bytes body = {all.p + b->at, (size_t)b->n};
    char *path;
    if (summary_sniff(body)) {
        trace_note(t, NOTE_BAD_EVENT, 1);
        return 0;
    }
    if (asprintf(&path, "%s (%s)", t->sources[source].path,
                 strs_text(&s->strs, b->tag)) < 0)
        return fail_oom(e);
    struct ops_err inner = {0};
    size_t first = t->spans.n;
    int rc = import_bytes(body, path, t, o, &inner);
    free(path);
    for (size_t i = first; rc == 0 && i < t->spans.n; i++)
        trace_group_hint(t, (row_id)i, b->step); /* the event knows the step */
    if (rc == OPS_ELIMIT && e != NULL) *e = inner;
    if (rc == OPS_ELIMIT) return rc;
    if (rc != 0) trace_note(t, NOTE_RUN_METADATA_EMPTY, 1);
    return 0;
}

static int fill_trace(struct trace *t, uint32_t source, struct scalars *s,
                      const struct import_opts *o, struct ops_err *e) {
    struct source *src = &t->sources[source];
    if (scalars_file(s, src->path, ".") == UINT32_MAX) return fail_oom(e);
    summary_read(s, 0, src->bytes);
    if (s->oom) return fail_oom(e);
    const struct scalar_file *f = &s->files[0];
    if (f->records == 0 && f->bad_records > 0)
        return fail(e, OPS_EFORMAT,
                    "an event file in which no record's "
                    "checksum holds (%" PRIu64 " records)",
                    f->bad_records);
    src->events = f->records;
    double first = f->any ? f->first_wall : 0; /* Unix seconds */
    for (size_t i = 0; i < s->nblobs; i++)
        if (first == 0 || s->blobs[i].wall < first) first = s->blobs[i].wall;
    trace_epoch(t, source, fabs(first) < 9e9 ? (int64_t)(first * 1e9) : 0,
                true);
    put_facts(t, source, s);
    put_series(t, source, s);
    trace_note(t, NOTE_RECORD_BAD, f->bad_records);
    trace_note(t, NOTE_RECORD_LOST, f->lost_bytes);
    trace_note(t, NOTE_BAD_EVENT, f->bad_events);
    trace_note(t, NOTE_FILE_CUT, f->cut);
    trace_note(t, NOTE_RESTART, f->restarts);
    trace_note(t, NOTE_TAGS_SKIPPED, f->skipped);
    int rc = 0;
    for (size_t i = 0; i < s->nblobs && rc == 0; i++)
        if (s->blobs[i].kind == BLOB_RUN_METADATA)
            rc = put_run_metadata(t, source, s, &s->blobs[i], o, e);
    return rc;
}

static int tfevents_read(struct trace *t, uint32_t source,
                         const struct import_opts *o, struct ops_err *e) {
    struct scalars s;
    int rc = scalars_init(&s) ? fill_trace(t, source, &s, o, e) : fail_oom(e);
    scalars_free(&s);
    return rc;
}

const struct importer importer_tfevents = {
    .format =
        {
            .name = "tfevents",
            .role = ROLE_CURVES,
            .fix_all =
                "an event file tells of scalars only: give the profile of "
                "the same run, <logdir>/plugins/profile/<run>",
        },
    .help = "TensorBoard event files: scalars as counters, RunMetadata in them",
    .sniff = tfevents_sniff,
    .read = tfevents_read,
};
