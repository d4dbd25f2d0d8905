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

#include "base/array.h"
#include "base/crc32c.h"
#include "base/pb.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include <math.h>
#include <stdlib.h>

/* --- records: the frames of TensorFlow's files ---------------------------
 *
 *     u64 length | u32 masked CRC32C of it | data | u32 masked CRC32C of it
 *
 * Every checksum is verified. A length that fails its own cannot be trusted:
 * the next place where one holds is searched for. */
enum { HEAD = 12, TAIL = 4 };

enum tfrecord_state {
    TFRECORD_OK,   /* data is the record */
    TFRECORD_BAD,  /* the data failed its checksum; go on with the next */
    TFRECORD_LOST, /* so many bytes were no record; go on with the next */
    TFRECORD_CUT,  /* what is left is no whole record: cut, or not written
                      yet; offset still is where it begins */
    TFRECORD_END,
};

struct tfrecord {
    struct bytes all;
    uint64_t offset;   /* of the next record: set it to read on */
    struct bytes data; /* TFRECORD_OK: in all */
    uint64_t lost;     /* TFRECORD_LOST: bytes passed over; TFRECORD_CUT: that
                          are left */
};

static uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Is there a length at p whose checksum holds? HEAD bytes are there. */
static bool head_holds(const uint8_t *p, uint64_t *length) {
    memcpy(length, p, 8);
    return get32(p + 8) == crc32c_mask(crc32c(p, 8));
}

/* Returns the first place behind `at` where a whole record begins, or all.n.
 * The length is looked at before its checksum: almost no place has a possible
 * one. */
static uint64_t find_head(struct bytes all, uint64_t at) {
    for (at++; at + HEAD + TAIL <= all.n; at++) {
        uint64_t length;
        memcpy(&length, all.p + at, 8);
        if (length > all.n - at - HEAD - TAIL) continue;
        if (head_holds(all.p + at, &length)) return at;
    }
    return all.n;
}

/* Moves to the next record. A run over all of the file is O(bytes), whatever is
 * in it. */
static enum tfrecord_state tfrecord_next(struct tfrecord *r) {
    uint64_t left = r->all.n - r->offset, length;
    const uint8_t *p = r->all.p + r->offset;
    if (left == 0) return TFRECORD_END;
    r->lost = left;
    if (left < HEAD) return TFRECORD_CUT;
    if (!head_holds(p, &length)) {
        uint64_t next = find_head(r->all, r->offset);
        if (next == r->all.n) return TFRECORD_CUT;
        r->lost = next - r->offset;
        r->offset = next;
        return TFRECORD_LOST;
    }
    if (left < HEAD + TAIL || length > left - HEAD - TAIL) return TFRECORD_CUT;
    r->data = (struct bytes){p + HEAD, (size_t)length};
    r->offset += HEAD + length + TAIL;
    bool holds = get32(p + HEAD + length) ==
                 crc32c_mask(crc32c(r->data.p, r->data.n));
    return holds ? TFRECORD_OK : TFRECORD_BAD;
}

/* --- tensors ----------------------------------------------------------------
 *
 * TensorProto { 1 dtype, 2 tensor_shape, 4 tensor_content, and a list for each
 * family of types: 5 float, 6 double, 7 int, 8 string, 10 int64, 11 bool,
 * 13 half (bits, of half and bfloat16), 16 uint32, 17 uint64 }. Lists come
 * packed or one by one; content is the elements as they lie in memory. Numbers
 * of every type become doubles. */

enum { TENSOR_DIMS = 4, TENSOR_VALUES_MAX = 1 << 20 };

/* It is zeroed, then tensor_read fills it any number of times: the room for
 * values is used again, and freed by whoever made it. */
struct tensor {
    unsigned dtype; /* TensorFlow's DataType, 0: not given */
    bool is_text;   /* DT_STRING */
    unsigned ndims; /* of which TENSOR_DIMS are kept */
    uint64_t dims[TENSOR_DIMS];
    size_t n, cap;
    double *v;         /* the numbers as recorded: one may stand for
                                  all elements */
    struct bytes text; /* the first text */
    bool oom;
};

/* clang-format off */
/* enum DataType of TensorFlow. */
enum {
    DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 5,
    DT_INT8 = 6, DT_STRING = 7, DT_INT64 = 9, DT_BOOL = 10, DT_BFLOAT16 = 14,
    DT_UINT16 = 17, DT_HALF = 19, DT_UINT32 = 22, DT_UINT64 = 23,
};

/* Bytes of an element in the content; 0 for a type that has no numbers. */
static const uint8_t widths[] = {
    [DT_DOUBLE] = 8, [DT_INT64] = 8, [DT_UINT64] = 8,
    [DT_FLOAT] = 4, [DT_INT32] = 4, [DT_UINT32] = 4,
    [DT_INT16] = 2, [DT_UINT16] = 2, [DT_HALF] = 2, [DT_BFLOAT16] = 2,
    [DT_INT8] = 1, [DT_UINT8] = 1, [DT_BOOL] = 1,
};

enum field {
    F_DTYPE = 1, F_SHAPE = 2, F_CONTENT = 4, F_FLOAT = 5, F_DOUBLE = 6,
    F_INT = 7, F_STRING = 8, F_INT64 = 10, F_BOOL = 11, F_HALF = 13,
    F_UINT32 = 16, F_UINT64 = 17,
};

/* The fields that are lists of numbers, a bit for each. */
enum {
    LISTS = 1 << F_FLOAT | 1 << F_DOUBLE | 1 << F_INT | 1 << F_INT64 |
            1 << F_BOOL | 1 << F_HALF | 1 << F_UINT32 | 1 << F_UINT64,
};
/* clang-format on */

static void tensor_put(struct tensor *t, double v) {
    if (t->n >= TENSOR_VALUES_MAX) return;
    if (!VEC_ROOM(t->v, t->n, t->cap)) t->oom = true;
    else t->v[t->n++] = v;
}

static double float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
}

/* Reads an IEEE half: 1 sign, 5 exponent, 10 fraction. */
static double half_of(uint32_t bits) {
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent == 0
                   ? ldexp((double)fraction, -24)
                   : ldexp((double)(fraction + 1024), (int)exponent - 25);
    return bits & 0x8000 ? -v : v;
}

static double half_or_bfloat(const struct tensor *t, uint32_t bits) {
    return t->dtype == DT_BFLOAT16 ? float_of(bits << 16)
                                   : half_of(bits & 0xffff);
}

static size_t width_of(unsigned dtype) {
    return dtype < COUNT(widths) ? widths[dtype] : 0;
}

/* Returns one element of the content; w is its bytes as a number. */
static double element(const struct tensor *t, uint64_t w) {
    switch (t->dtype) {
    case DT_FLOAT: return float_of((uint32_t)w);
    case DT_DOUBLE: return pb_double(w);
    case DT_INT64: return (double)(int64_t)w;
    case DT_INT32: return (double)(int32_t)w;
    case DT_INT16: return (double)(int16_t)w;
    case DT_INT8: return (double)(int8_t)w;
    case DT_HALF:
    case DT_BFLOAT16: return half_or_bfloat(t, (uint32_t)w);
    default: return (double)w;
    }
}

static void tensor_content(struct tensor *t, struct bytes b) {
    size_t width = width_of(t->dtype);
    if (width == 0) return;
    for (; b.n >= width && t->n < TENSOR_VALUES_MAX; b.p += width) {
        uint64_t w = 0;
        memcpy(&w, b.p, width);
        tensor_put(t, element(t, w));
        b.n -= width;
    }
}

/* Adds one number of a list, from its varint or fixed bits. */
static void put_listed(struct tensor *t, uint32_t field, uint64_t v) {
    switch (field) {
    case F_FLOAT: tensor_put(t, float_of((uint32_t)v)); break;
    case F_DOUBLE: tensor_put(t, pb_double(v)); break;
    case F_HALF: tensor_put(t, half_or_bfloat(t, (uint32_t)v)); break;
    case F_INT: tensor_put(t, (double)(int32_t)v); break;
    case F_INT64: tensor_put(t, (double)(int64_t)v); break;
    default: tensor_put(t, (double)v); break;
    }
}

/* Reads a packed list: numbers without keys. Returns false if it is cut. */
static bool tensor_packed(struct tensor *t, const struct pb_field *f) {
    const uint8_t *p = f->bytes.p, *end = p + f->bytes.n;
    size_t width = f->num == F_DOUBLE ? 8 : f->num == F_FLOAT ? 4 : 0;
    while (p < end && t->n < TENSOR_VALUES_MAX && !t->oom) {
        uint64_t v = 0;
        if (width == 0) {
            p = pb_varint(p, end, &v);
            if (p == NULL) return false;
        } else {
            if ((size_t)(end - p) < width) return false;
            memcpy(&v, p, width);
            p += width;
        }
        put_listed(t, f->num, v);
    }
    return true;
}

/* Reads TensorShapeProto { 2 dim { 1 size }, 3 unknown_rank }. */
static bool tensor_shape(struct tensor *t, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f, size;
    while (pb_next(&r, &f)) {
        if (f.num != 2 || f.wire != PB_BYTES) continue;
        struct pb dim = pb_reader(f.bytes);
        uint64_t n = 0; /* a size of 0 is not written */
        while (pb_next(&dim, &size))
            if (size.num == 1 && size.wire == PB_VARINT) n = size.value;
        if (dim.bad) return false;
        if (t->ndims < TENSOR_DIMS) t->dims[t->ndims] = n;
        t->ndims++;
    }
    return !r.bad;
}

static bool tensor_field(struct tensor *t, const struct pb_field *f) {
    switch (f->num) {
    case F_DTYPE:
        if (f->wire != PB_VARINT) return false;
        t->dtype = (unsigned)f->value;
        t->is_text = t->dtype == DT_STRING;
        return true;
    case F_SHAPE: return f->wire == PB_BYTES && tensor_shape(t, f->bytes);
    case F_STRING:
        if (f->wire != PB_BYTES) return false;
        if (t->text.p == NULL) t->text = f->bytes;
        return true;
    default:
        if (f->num > F_UINT64 || !(LISTS >> f->num & 1)) return true;
        if (f->wire == PB_BYTES) return tensor_packed(t, f);
        put_listed(t, f->num, f->value);
        return true;
    }
}

/* Reads a tensor. Returns false if it is damaged, or of a type that has no
 * numbers and no texts. Costs one pass over the bytes. */
static bool tensor_read(struct tensor *t, struct bytes b) {
    struct bytes content = {b.p, 0};
    struct pb r = pb_reader(b);
    struct pb_field f;
    *t = (struct tensor){.v = t->v, .cap = t->cap};
    while (pb_next(&r, &f)) {
        if (f.num == F_CONTENT && f.wire == PB_BYTES) content = f.bytes;
        else if (!tensor_field(t, &f)) return false;
    }
    if (r.bad || t->oom) return false;
    if (content.n > 0) {
        t->n = 0;
        tensor_content(t, content); /* the type may stand behind it */
    }
    if (t->is_text) return true;
    if (width_of(t->dtype) == 0) return false;
    bool empty = false;
    for (unsigned i = 0; i < t->ndims && i < TENSOR_DIMS; i++)
        empty |= t->dims[i] == 0;
    if (t->n == 0 && !empty) tensor_put(t, 0); /* zeros need not be written */
    return !t->oom;
}

/* Is it one number, whatever its shape: [], [1], [1, 1]? */
static bool tensor_is_scalar(const struct tensor *t) {
    uint64_t elements = 1;
    for (unsigned i = 0; i < t->ndims && i < TENSOR_DIMS; i++)
        elements = t->dims[i] == 1 ? elements : 0;
    return !t->is_text && t->n == 1 && elements == 1;
}

/* --- events --------------------------------------------------------------- */

struct summary_reader {
    struct scalars *s;
    uint32_t file;
    struct bytes all;
    struct tensor tensor; /* room for numbers, used again and again */
    double wall;          /* of the present event */
    int64_t step;
};

enum session_status { SESSION_START = 1 };

/* Is it a field of that number and wire type? */
static bool field_is(const struct pb_field *f, uint32_t num,
                     enum pb_wire wire) {
    return f->num == num && f->wire == (uint32_t)wire;
}

/* Returns field `num` of a message, if it is bytes; else empty. */
static struct bytes field_of(struct bytes b, uint32_t num) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    struct bytes found = {b.p, 0};
    while (pb_next(&r, &f))
        if (field_is(&f, num, PB_BYTES)) found = f.bytes;
    return found;
}

static void put_point(struct summary_reader *r, struct bytes tag,
                      enum series_kind kind, double value) {
    struct series *v = scalars_series(r->s, r->file, tag, kind);
    if (v != NULL) scalars_point(r->s, v, r->step, r->wall, value);
}

static void put_histogram(struct summary_reader *r, struct bytes tag,
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
static void put_text(struct summary_reader *r, struct bytes tag,
                     struct bytes text) {
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

static void put_blob(struct summary_reader *r, enum blob_kind kind,
                     struct bytes tag, struct bytes body) {
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

/* Reads HistogramProto { 1 min, 2 max, 3 num, 4 sum, 5 sum_squares, 6
 * bucket_limit, 7 bucket }, the last two packed doubles. */
static bool read_histogram(struct summary_reader *r, struct bytes tag,
                           struct bytes b) {
    struct histogram h = {0};
    double *const at[] = {NULL, &h.min, &h.max, &h.num, &h.sum, &h.sum_squares};
    struct pb p = pb_reader(b);
    struct pb_field f;
    while (pb_next(&p, &f)) {
        if (f.num <= 5 && f.wire == PB_FIXED64) *at[f.num] = pb_double(f.value);
        else if (field_is(&f, 7, PB_BYTES)) h.buckets += f.bytes.n / 8;
        else if (field_is(&f, 7, PB_FIXED64)) h.buckets++;
    }
    if (!p.bad) put_histogram(r, tag, &h);
    return !p.bad;
}

/* Puts TensorFlow 2's histogram: rows of left edge, right edge, count. The
 * values inside a bucket are taken to lie in its middle. */
static void put_bucket_tensor(struct summary_reader *r, struct bytes tag,
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

/* Returns the kind that a plugin's name stands for; SERIES_OTHER if none
 * here. */
static enum series_kind plugin_kind(struct bytes plugin) {
    if (BYTES_IS(plugin, "scalars")) return SERIES_SCALAR;
    if (BYTES_IS(plugin, "histograms")) return SERIES_HISTOGRAM;
    if (BYTES_IS(plugin, "text")) return SERIES_TEXT;
    if (BYTES_IS(plugin, "images")) return SERIES_IMAGE;
    if (BYTES_IS(plugin, "audio")) return SERIES_AUDIO;
    if (BYTES_IS(plugin, "hparams")) return SERIES_HPARAMS;
    return SERIES_OTHER;
}

/* Returns what a tensor without a plugin's name is: what its tag was before,
 * else what it looks like. */
static enum series_kind guess_kind(const struct summary_reader *r,
                                   struct bytes tag) {
    enum series_kind known = scalars_kind_of(r->s, r->file, tag);
    if (known != SERIES_OTHER) return known;
    const struct tensor *t = &r->tensor;
    if (t->is_text) return SERIES_TEXT;
    if (tensor_is_scalar(t)) return SERIES_SCALAR;
    return is_buckets(t) ? SERIES_HISTOGRAM : SERIES_OTHER;
}

/* Returns false if the tensor is damaged. */
static bool read_tensor(struct summary_reader *r, struct bytes tag,
                        struct bytes b, struct bytes plugin) {
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

/* Reads one value of a summary. Returns false if it is damaged. */
static bool read_value(struct summary_reader *r, struct bytes b) {
    struct bytes tag = {b.p, 0}, plugin = {b.p, 0};
    struct pb_field f, what = {0};
    struct pb p = pb_reader(b);
    while (pb_next(&p, &f)) {
        if (field_is(&f, 1, PB_BYTES)) tag = f.bytes;
        else if (field_is(&f, 9, PB_BYTES))
            plugin = field_of(field_of(f.bytes, 1), 1);
        else if (field_is(&f, 2, PB_FIXED32) ||
                 (f.num >= 3 && f.num <= 8 && f.num != 7 && f.wire == PB_BYTES))
            what = f;
    }
    if (p.bad) return false;
    switch (what.num) {
    case 2:
        put_point(r, tag, SERIES_SCALAR, float_of((uint32_t)what.value));
        return true;
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

static str_id text_id(struct summary_reader *r, struct bytes b) {
    if (b.n > 256) b.n = 256;
    str_id id = strs_intern(&r->s->strs, b);
    if (id == STR_NONE) r->s->oom = true;
    return id == STR_NONE ? 0 : id;
}

/* Reads what an event says besides its time: one of these. */
static bool read_what(struct summary_reader *r, const struct pb_field *f) {
    struct scalar_file *file = &r->s->files[r->file];
    static const uint8_t none[1];
    struct bytes no_tag = {none, 0};
    struct pb p = pb_reader(f->bytes);
    struct pb_field in;
    bool sound = true;
    switch (f->num) {
    case 3: file->version = text_id(r, f->bytes); return true;
    case 4: put_blob(r, BLOB_GRAPH, no_tag, f->bytes); return true;
    case 5:
        while (pb_next(&p, &in))
            if (field_is(&in, 1, PB_BYTES)) sound &= read_value(r, in.bytes);
        return sound && !p.bad;
    case 7: /* SessionLog { 1 status }: a start makes later steps void */
        while (pb_next(&p, &in))
            if (field_is(&in, 1, PB_VARINT) && in.value == SESSION_START)
                scalars_restart(r->s, r->file, r->step);
        return true;
    case 8:
        put_blob(r, BLOB_RUN_METADATA, field_of(f->bytes, 1),
                 field_of(f->bytes, 2));
        return true;
    case 9: put_blob(r, BLOB_META_GRAPH, no_tag, f->bytes); return true;
    default: return true;
    }
}

/* The step may stand behind the summary, so all fields are read first. */
static bool read_event(struct summary_reader *r, struct bytes b) {
    struct pb p = pb_reader(b);
    struct pb_field f, what = {0};
    r->wall = 0;
    r->step = 0;
    while (pb_next(&p, &f)) {
        if (field_is(&f, 1, PB_FIXED64)) r->wall = pb_double(f.value);
        else if (field_is(&f, 2, PB_VARINT)) r->step = (int64_t)f.value;
        else if (f.num >= 3 && f.num <= 9 && f.wire == PB_BYTES) what = f;
        else if (field_is(&f, 10, PB_BYTES))
            r->s->files[r->file].writer = text_id(r, field_of(f.bytes, 1));
    }
    return !p.bad && (what.num == 0 || read_what(r, &what));
}

bool summary_sniff(struct bytes all) {
    struct tfrecord rec = {.all = all};
    uint64_t length;
    if (all.n < HEAD || !head_holds(all.p, &length)) return false;
    /* it is framed, and then cut or damaged: nothing else is framed so */
    if (tfrecord_next(&rec) != TFRECORD_OK) return true;
    struct pb p = pb_reader(rec.data);
    struct pb_field f;
    while (pb_next(&p, &f))
        if (f.num > 10) return false;
    return !p.bad;
}

void summary_read(struct scalars *s, uint32_t file, struct bytes all) {
    struct summary_reader r = {.s = s, .file = file, .all = all};
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
    free(r.tensor.v);
}
