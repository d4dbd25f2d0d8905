/* SPDX-License-Identifier: Apache-2.0
 * Events and their summaries.
 *
 *     Event { 1 wall_time, 2 step, 3 file_version, 4 graph_def, 5 summary,
 *         6 log_message, 7 session_log, 8 tagged_run_metadata,
 *         9 meta_graph_def, 10 source_metadata }
 *     Summary { 1 value }
 *     Value { 1 tag, 2 simple_value, 4 image, 5 histo, 6 audio, 8 tensor,
 *         9 metadata { 1 plugin_data { 1 plugin_name, 2 content }}}
 *
 * A scalar comes as simple_value (TensorFlow 1, PyTorch, tensorboardX) or as a
 * tensor of one number (TensorFlow 2). What a tensor is for its plugin says;
 * writers say it with the first value of a tag only, so that the kind of a tag
 * is remembered, and where a file begins without it the tensor's form tells. */
#include "scalars/summary.h"

#include "base/pb.h"
#include "base/text/utf8.h"
#include "scalars/tensor.h"
#include "scalars/tfrecord.h"
#include <math.h>
#include <stdlib.h>

struct reader {
    struct scalars *s;
    uint32_t file;
    struct bytes all;
    struct tensor tensor; /* room for numbers, used again and again */
    double wall;          /* of the present event */
    int64_t step;
};

enum session_status { SESSION_START = 1 };

/* A field of that number and wire type? */
static bool is(const struct pb_field *f, uint32_t num, enum pb_wire wire) {
    return f->num == num && f->wire == (uint32_t)wire;
}

/* Field `num` of a message, if it is bytes; else empty. */
static struct bytes field_of(struct bytes b, uint32_t num) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    struct bytes found = {b.p, 0};
    while (pb_next(&r, &f))
        if (is(&f, num, PB_BYTES)) found = f.bytes;
    return found;
}

static void put_point(struct reader *r, struct bytes tag, enum series_kind kind,
                      double value) {
    struct series *v = scalars_series(r->s, r->file, tag, kind);
    if (v != NULL) scalars_point(r->s, v, r->step, r->wall, value);
}

static void put_histogram(struct reader *r, struct bytes tag,
                          const struct histogram *h) {
    struct series *v = scalars_series(r->s, r->file, tag, SERIES_HISTOGRAM);
    if (v == NULL) return;
    v->last = *h;
    v->min = fmin(v->min, h->min);
    v->max = fmax(v->max, h->max);
    scalars_point(r->s, v, r->step, r->wall,
                  h->num > 0 ? h->sum / h->num : NAN);
}

/* Keeps the text, cut where it is long, as UTF-8. */
static void put_text(struct reader *r, struct bytes tag, struct bytes text) {
    struct series *v = scalars_series(r->s, r->file, tag, SERIES_TEXT);
    size_t mended = 0;
    if (v == NULL) return;
    if (text.n > TEXT_KEPT)
        for (text.n = TEXT_KEPT;
             text.n > TEXT_KEPT - 4 && (text.p[text.n] & 0xc0) == 0x80;)
            text.n--; /* not through a character */
    uint8_t *copy = malloc(3 * text.n + 1);
    if (copy == NULL) {
        r->s->oom = true;
        return;
    }
    copy[utf8_mend(text, copy, &mended)] = '\0';
    free(v->text);
    v->text = (char *)copy;
    scalars_point(r->s, v, r->step, r->wall, NAN);
}

static void put_blob(struct reader *r, enum blob_kind kind, struct bytes tag,
                     struct bytes body) {
    str_id id = strs_intern(&r->s->strs, tag);
    if (id == STR_NONE) r->s->oom = true;
    else
        scalars_blob(r->s,
                     &(struct scalar_blob){.file = r->file,
                                           .kind = kind,
                                           .tag = id,
                                           .step = r->step,
                                           .wall = r->wall,
                                           .at = (uint64_t)(body.p - r->all.p),
                                           .n = body.n});
}

/* HistogramProto { 1 min, 2 max, 3 num, 4 sum, 5 sum_squares, 6 bucket_limit,
 * 7 bucket }, the last two packed doubles. */
static bool read_histogram(struct reader *r, struct bytes tag, struct bytes b) {
    struct histogram h = {0};
    double *const at[] = {NULL, &h.min, &h.max, &h.num, &h.sum, &h.sum_squares};
    struct pb p = pb_reader(b);
    struct pb_field f;
    while (pb_next(&p, &f)) {
        if (f.num <= 5 && f.wire == PB_FIXED64) *at[f.num] = pb_double(f.value);
        else if (is(&f, 7, PB_BYTES)) h.buckets += f.bytes.n / 8;
        else if (is(&f, 7, PB_FIXED64)) h.buckets++;
    }
    if (!p.bad) put_histogram(r, tag, &h);
    return !p.bad;
}

/* TensorFlow 2's: rows of left edge, right edge, count. The values inside a
 * bucket are taken to lie in its middle. */
static void put_bucket_tensor(struct reader *r, struct bytes tag,
                              const struct tensor *t) {
    struct histogram h = {.min = NAN, .max = NAN, .sum_squares = NAN};
    for (size_t i = 0; i + 2 < t->n; i += 3) {
        double left = t->v[i], right = t->v[i + 1], count = t->v[i + 2];
        h.buckets++;
        if (!(count > 0)) continue;
        h.min = fmin(h.min, left);
        h.max = fmax(h.max, right);
        h.num += count;
        h.sum += count * (left + right) / 2;
    }
    put_histogram(r, tag, &h);
}

static bool is_buckets(const struct tensor *t) {
    return !t->is_text && t->ndims == 2 && t->dims[1] == 3 && t->n % 3 == 0;
}

/* The kind that a plugin's name stands for; SERIES_OTHER: of no kind here. */
static enum series_kind plugin_kind(struct bytes plugin) {
    if (BYTES_IS(plugin, "scalars")) return SERIES_SCALAR;
    if (BYTES_IS(plugin, "histograms")) return SERIES_HISTOGRAM;
    if (BYTES_IS(plugin, "text")) return SERIES_TEXT;
    if (BYTES_IS(plugin, "images")) return SERIES_IMAGE;
    if (BYTES_IS(plugin, "audio")) return SERIES_AUDIO;
    if (BYTES_IS(plugin, "hparams")) return SERIES_HPARAMS;
    return SERIES_OTHER;
}

/* What a tensor without a plugin's name is: what its tag was before, else what
 * it looks like. */
static enum series_kind guess_kind(const struct reader *r, struct bytes tag) {
    enum series_kind known = scalars_kind_of(r->s, r->file, tag);
    if (known != SERIES_OTHER) return known;
    const struct tensor *t = &r->tensor;
    if (t->is_text) return SERIES_TEXT;
    if (tensor_is_scalar(t)) return SERIES_SCALAR;
    return is_buckets(t) ? SERIES_HISTOGRAM : SERIES_OTHER;
}

/* False: the tensor is damaged. */
static bool read_tensor(struct reader *r, struct bytes tag, struct bytes b,
                        struct bytes plugin) {
    struct tensor *t = &r->tensor;
    bool readable = tensor_read(t, b);
    if (t->oom) r->s->oom = true;
    if (BYTES_STARTS(plugin, "graph_run_metadata") && readable) {
        put_blob(r, BLOB_RUN_METADATA, tag, t->text);
        return true;
    }
    enum series_kind kind = plugin.n > 0 ? plugin_kind(plugin)
                                         : guess_kind(r, tag);
    if (kind == SERIES_SCALAR && readable && tensor_is_scalar(t))
        put_point(r, tag, kind, t->v[0]);
    else if (kind == SERIES_HISTOGRAM && readable && is_buckets(t))
        put_bucket_tensor(r, tag, t);
    else if (kind == SERIES_TEXT && readable && t->is_text)
        put_text(r, tag, t->text);
    else if (kind == SERIES_IMAGE || kind == SERIES_AUDIO ||
             kind == SERIES_HPARAMS)
        put_point(r, tag, kind, NAN);
    else put_point(r, tag, SERIES_OTHER, NAN);
    return true;
}

static double simple(uint64_t bits) {
    uint32_t b = (uint32_t)bits;
    float v;
    memcpy(&v, &b, 4);
    return (double)v;
}

/* One value of a summary; false: damaged. */
static bool read_value(struct reader *r, struct bytes b) {
    struct bytes tag = {b.p, 0}, plugin = {b.p, 0};
    struct pb_field f, what = {0};
    struct pb p = pb_reader(b);
    while (pb_next(&p, &f)) {
        if (is(&f, 1, PB_BYTES)) tag = f.bytes;
        else if (is(&f, 9, PB_BYTES))
            plugin = field_of(field_of(f.bytes, 1), 1);
        else if (is(&f, 2, PB_FIXED32) ||
                 (f.num >= 3 && f.num <= 8 && f.num != 7 && f.wire == PB_BYTES))
            what = f;
    }
    if (p.bad) return false;
    switch (what.num) {
    case 2: put_point(r, tag, SERIES_SCALAR, simple(what.value)); return true;
    case 4: put_point(r, tag, SERIES_IMAGE, NAN); return true;
    case 5: return read_histogram(r, tag, what.bytes);
    case 6: put_point(r, tag, SERIES_AUDIO, NAN); return true;
    case 8: return read_tensor(r, tag, what.bytes, plugin);
    default:
        /* hyperparameters stand in the metadata, with no value at all */
        put_point(r, tag,
                  plugin_kind(plugin) == SERIES_HPARAMS ? SERIES_HPARAMS
                                                        : SERIES_OTHER,
                  NAN);
        return true;
    }
}

static bool read_summary(struct reader *r, struct bytes b) {
    struct pb p = pb_reader(b);
    struct pb_field f;
    bool sound = true;
    while (pb_next(&p, &f))
        if (is(&f, 1, PB_BYTES)) sound &= read_value(r, f.bytes);
    return sound && !p.bad;
}

/* SessionLog { 1 status }: a start makes later steps before it void. */
static void read_session(struct reader *r, struct bytes b) {
    struct pb p = pb_reader(b);
    struct pb_field f;
    while (pb_next(&p, &f))
        if (is(&f, 1, PB_VARINT) && f.value == SESSION_START)
            scalars_restart(r->s, r->file, r->step);
}

static str_id text_id(struct reader *r, struct bytes b) {
    if (b.n > 256) b.n = 256;
    str_id id = strs_intern(&r->s->strs, b);
    if (id == STR_NONE) r->s->oom = true;
    return id == STR_NONE ? 0 : id;
}

/* What an event says besides its time: one of these. */
static bool read_what(struct reader *r, const struct pb_field *f) {
    struct scalar_file *file = &r->s->files[r->file];
    static const uint8_t none[1];
    struct bytes no_tag = {none, 0};
    switch (f->num) {
    case 3: file->version = text_id(r, f->bytes); return true;
    case 4: put_blob(r, BLOB_GRAPH, no_tag, f->bytes); return true;
    case 5: return read_summary(r, f->bytes);
    case 6: file->messages++; return true;
    case 7: read_session(r, f->bytes); return true;
    case 8:
        put_blob(r, BLOB_RUN_METADATA, field_of(f->bytes, 1),
                 field_of(f->bytes, 2));
        return true;
    case 9: put_blob(r, BLOB_META_GRAPH, no_tag, f->bytes); return true;
    default: return true;
    }
}

/* The step may stand behind the summary: all fields first. */
static bool read_event(struct reader *r, struct bytes b) {
    struct pb p = pb_reader(b);
    struct pb_field f, what = {0};
    r->wall = 0;
    r->step = 0;
    while (pb_next(&p, &f)) {
        if (is(&f, 1, PB_FIXED64)) r->wall = pb_double(f.value);
        else if (is(&f, 2, PB_VARINT)) r->step = (int64_t)f.value;
        else if (f.num >= 3 && f.num <= 9 && f.wire == PB_BYTES) what = f;
        else if (is(&f, 10, PB_BYTES))
            r->s->files[r->file].writer = text_id(r, field_of(f.bytes, 1));
    }
    return !p.bad && read_what(r, &what);
}

bool summary_sniff(struct bytes all) {
    struct tfrecord rec = {.all = all};
    if (!tfrecord_sniff(all)) return false;
    enum tfrecord_state state = tfrecord_next(&rec);
    if (state != TFRECORD_OK)
        return true; /* framed, and then cut or damaged:
                                              nothing else is framed so */
    struct pb p = pb_reader(rec.data);
    struct pb_field f;
    while (pb_next(&p, &f))
        if (f.num > 10) return false;
    return !p.bad;
}

void summary_read(struct scalars *s, uint32_t file, struct bytes all) {
    struct reader r = {.s = s, .file = file, .all = all};
    struct tfrecord rec = {.all = all, .offset = s->files[file].offset};
    if (rec.offset > all.n) rec.offset = all.n;
    enum tfrecord_state state;
    s->files[file].cut = false;
    while (!s->oom && (state = tfrecord_next(&rec)) != TFRECORD_END) {
        /* points do not move the files, so that f stays good */
        struct scalar_file *f = &s->files[file];
        if (state == TFRECORD_CUT) {
            f->cut = true;
            break;
        }
        if (state == TFRECORD_LOST) f->lost_bytes += rec.lost;
        if (state == TFRECORD_BAD) f->bad_records++;
        if (state != TFRECORD_OK) continue;
        f->records++;
        if (!read_event(&r, rec.data)) f->bad_events++;
    }
    s->files[file].offset = rec.offset;
    tensor_free(&r.tensor);
}
