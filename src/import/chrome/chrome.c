/* SPDX-License-Identifier: Apache-2.0
 * Any Chrome trace: object or bare list, all phases. What its writers are known
 * for is understood, too:
 *   - XProf, JAX and TensorFlow write processes named /device:GPU:0 whose
 *     threads are streams and derived lines, Python frames named "$file:line",
 *     steps with a step_num, and correlation_id on both sides of a launch;
 *   - TensorFlow 1's timeline class writes ops with category "Op";
 *   - opscope itself (src/export/chrome.c) writes what kind each span and
 *     track is, and PyTorch's keys beside the events.
 * "displayTimeUnit" is a hint for viewers: times are microseconds always. */
#include "import/chrome/events.h"

#include "base/array.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include <stdlib.h>

enum { MAX_STEP_ARGS = 4096 }; /* args longer than this mark no step */

/* Returns the step number in an event's args, or -1. */
static int64_t step_num(const struct event *ev) {
    if (ev->args == NULL) return -1;
    size_t n = (size_t)(ev->args_end - ev->args);
    if (n > MAX_STEP_ARGS || !memmem(ev->args, n, "\"step_num\"", 10))
        return -1;
    struct json args;
    reader_args(ev, &args);
    int64_t v = reader_find_int(&args, "step_num");
    return v >= 0 ? v : -1;
}

/* Adds a span whose kind opscope wrote down. */
static row_id kind_span(struct chrome_reader *r, const struct event *ev,
                        uint8_t kind, uint8_t flags) {
    bool python = kind == SPAN_PYTHON ||
                  (kind == SPAN_OVERHEAD && BYTES_STARTS(ev->name.raw, "$"));
    uint32_t track = reader_track(r, python ? TRACK_PYTHON : TRACK_THREAD,
                                  ev->pid.v, ev->tid.v);
    row_id row = reader_span(r, ev, track, reader_str(r, ev->name), kind,
                             flags);
    int64_t step = flags & SPAN_STEPMARK ? step_num(ev) : -1;
    if (step >= 0 && row != ROW_NONE) trace_step_hint(r->t, row, step);
    if (flags & SPAN_DERIVED) trace_note(r->t, NOTE_DERIVED_LINES, 1);
    if (ev->launch.n > 0 && row != ROW_NONE) reader_launch(r, ev, row);
    return row;
}

static row_id chrome_span(struct chrome_reader *r, const struct event *ev) {
    bool python = BYTES_STARTS(ev->name.raw, "$");
    uint8_t kind = SPAN_OTHER, flags;
    if (reader_kind(ev, &kind, &flags)) return kind_span(r, ev, kind, flags);
    if (python) kind = SPAN_PYTHON;
    else if (BYTES_IS(ev->cat.raw, "Op")) kind = SPAN_OP;
    uint32_t track = reader_track(r, python ? TRACK_PYTHON : TRACK_THREAD,
                                  ev->pid.v, ev->tid.v);
    row_id row = reader_span(r, ev, track, reader_str(r, ev->name), kind, 0);
    int64_t step = python ? -1 : step_num(ev);
    if (step >= 0 && row != ROW_NONE) {
        r->t->spans.kind[row] = SPAN_ANNOTATION;
        trace_step_hint(r->t, row, step);
    }
    return row;
}

static bool chrome_instant(struct chrome_reader *r, const struct event *ev) {
    uint8_t kind, flags;
    if (BYTES_IS(ev->cat.raw, "cpu_instant_event") && reader_memory(r, ev))
        return true;
    if (!reader_kind(ev, &kind, &flags)) return false;
    kind_span(r, ev, kind, flags | SPAN_INSTANT);
    return true;
}

/* Skips the arrows that opscope draws for launches: they stand in
 * correlation_id, too. */
static bool chrome_skip_flow(const struct event *ev) {
    return BYTES_IS(ev->cat.raw, "launch");
}

/* Reads the key that opscope's own files begin with: how exact times are. */
static bool chrome_top(struct chrome_reader *r, struct bytes top) {
    struct source *src = &r->t->sources[r->source];
    struct json_str key;
    if (!BYTES_IS(top, "opscope")) return reader_top(r, top);
    if (!json_enter(&r->j, '{')) return false;
    r->kinds = true;
    while (json_key(&r->j, &key)) {
        bool decimals = BYTES_IS(key.raw, "decimals");
        if (!decimals && !BYTES_IS(key.raw, "slack_ps")) {
            json_skip(&r->j);
            continue;
        }
        int64_t v = reader_int(&r->j, -1);
        if (decimals && v >= 0 && v <= 6) src->decimals = (int)v;
        if (!decimals && v >= 0 && v <= PS_PER_MS) src->rounding_ps = v;
    }
    return true;
}

struct device_name {
    enum device_kind kind;
    int64_t ordinal;
    struct bytes label; /* that the program gave; mostly empty */
};

/* Reads "... /device:GPU:0 ...", or "... /device:OTHER:1:npu 0" with the label
 * "npu 0", which opscope writes for any kind. Returns false if the text names
 * no device. TensorFlow 1 names the host /device:CPU:0 in the same way: that is
 * no device here. */
static bool parse_device(struct bytes name, struct device_name *d) {
    const uint8_t *p = memmem(name.p, name.n, "/device:", 8);
    if (p == NULL) return false;
    struct bytes rest = {p + 8, name.n - (size_t)(p + 8 - name.p)};
    *d = (struct device_name){.label = {name.p, 0}};
    if (BYTES_STARTS(rest, "GPU:")) d->kind = DEVICE_GPU;
    else if (BYTES_STARTS(rest, "TPU:")) d->kind = DEVICE_TPU;
    else if (BYTES_STARTS(rest, "OTHER:")) d->kind = DEVICE_OTHER;
    else return false;
    size_t i = d->kind == DEVICE_OTHER ? 6 : 4;
    for (; i < rest.n && rest.p[i] >= '0' && rest.p[i] <= '9'; i++)
        if (i < 20) d->ordinal = d->ordinal * 10 + (rest.p[i] - '0');
    if (i < rest.n && rest.p[i] == ':' && !memchr(rest.p + i, '\\', rest.n - i))
        d->label = (struct bytes){rest.p + i + 1, rest.n - i - 1};
    return true;
}

/* Did a viewer make this line from others? On a TPU "XLA Ops" are the kernels
 * themselves. */
static bool is_derived(struct bytes line, enum device_kind kind) {
    /* clang-format off */
    static const char *const names[] = {
        "Steps", "XLA Modules", "XLA Ops", "Async XLA Ops", "Framework",
        "Launch Stats", "Source code", "Source", "XLA TraceMe", "Overlay",
        "Host Offload", "Sparse Core", "Tensor Core Sync",
    };
    /* clang-format on */
    if (kind == DEVICE_TPU && BYTES_STARTS(line, "XLA Ops")) return false;
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t n = strlen(names[i]);
        if (line.n >= n && memcmp(line.p, names[i], n) == 0) return true;
    }
    return false;
}

/* Returns a label, its escapes undone: "\/device:GPU:0" is a device, too. */
static struct bytes label_text(struct chrome_reader *r,
                               const struct track_label *l) {
    return strs_bytes(&r->t->strs, reader_str(r, l->name));
}

/* Turns the threads of devices' processes into streams or derived lines. by_pid
 * tells which label names a process as a device. */
static void mark_tracks(struct chrome_reader *r, const struct map *by_pid) {
    struct trace *t = r->t;
    for (size_t i = 0; i < t->ntracks; i++) {
        struct track *tr = &t->tracks[i];
        struct device_name d;
        if (tr->source != r->source || (tr->kind != TRACK_THREAD && !r->kinds))
            continue;
        uint32_t k = map_get(by_pid, (uint64_t)tr->pid);
        if (k == MAP_NONE || !parse_device(label_text(r, &r->labels[k]), &d))
            continue;
        tr->device = trace_device(t, r->source, d.kind, d.ordinal);
        if (r->kinds) continue; /* see label_tracks */
        tr->kind = is_derived(strs_bytes(&t->strs, tr->name), d.kind)
                       ? TRACK_DERIVED
                       : TRACK_STREAM;
    }
}

/* Returns the correlation_id in a row's arguments; -1 if they have none. */
static int64_t correlation_of(const struct trace *t, row_id row) {
    uint32_t source;
    struct bytes b = trace_args(t, row, &source);
    if (b.n == 0) return -1;
    struct json j = json_reader(b);
    json_skip(&j);
    j = json_reader((struct bytes){b.p, (size_t)(j.p - b.p)});
    return json_enter(&j, '{') ? reader_find_int(&j, "correlation_id") : -1;
}

/* Turns rows on a device's tracks into kernels, copies or derived spans, and
 * joins both sides of launches. */
static void mark_rows(struct chrome_reader *r) {
    struct trace *t = r->t;
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct track *tr = &t->tracks[t->spans.track[i]];
        row_id row = (row_id)i;
        if (tr->kind == TRACK_DERIVED) {
            t->spans.flags[i] |= SPAN_DERIVED;
            trace_note(t, NOTE_DERIVED_LINES, 1);
            continue;
        }
        if (tr->kind == TRACK_PYTHON) continue;
        int64_t id = correlation_of(t, row);
        if (tr->kind == TRACK_STREAM) {
            struct bytes name = strs_bytes(&t->strs, t->spans.name[i]);
            t->spans.kind[i] = BYTES_STARTS(name, "Memcpy")   ? SPAN_COPY
                               : BYTES_STARTS(name, "Memset") ? SPAN_MEMSET
                                                              : SPAN_KERNEL;
            t->spans.flags[i] &= (uint8_t)~SPAN_INSTANT;
            if (id >= 0) trace_link_device(t, r->source, (uint64_t)id, row);
        } else if (id >= 0) {
            t->spans.kind[i] = SPAN_API;
            trace_link_host(t, r->source, (uint64_t)id, row);
        }
    }
}

/* Takes the line "Steps" of the first device that has one for the markers,
 * where the host has none. */
static void mark_steps(struct chrome_reader *r) {
    struct trace *t = r->t;
    uint32_t line = ROW_NONE;
    int64_t n = 0;
    for (uint32_t i = 0; i < t->ntracks && line == ROW_NONE; i++)
        if (t->tracks[i].source == r->source &&
            t->tracks[i].kind == TRACK_DERIVED &&
            BYTES_IS(strs_bytes(&t->strs, t->tracks[i].name), "Steps"))
            line = i;
    if (t->step_hints.n > 0 || line == ROW_NONE) return;
    for (row_id i = 0; i < t->spans.n; i++) {
        if (t->spans.track[i] != line) continue;
        struct bytes name = strs_bytes(&t->strs, t->spans.name[i]);
        int64_t number = 0;
        size_t k = 0;
        for (; k < name.n && k < 18 && name.p[k] >= '0' && name.p[k] <= '9';
             k++)
            number = number * 10 + (name.p[k] - '0');
        t->spans.kind[i] = SPAN_ANNOTATION;
        t->spans.flags[i] |= SPAN_STEPMARK;
        trace_step_hint(t, i, k > 0 && k == name.n ? number : n);
        n++;
    }
}

/* Gives tracks of a file that opscope wrote the kinds that the file says. */
static void label_tracks(struct chrome_reader *r) {
    struct trace *t = r->t;
    for (size_t i = 0; i < r->nlabels; i++) {
        const struct track_label *l = &r->labels[i];
        bool thread = !l->process && !l->device;
        uint32_t k = thread ? trace_track_find(t, r->source, TRACK_THREAD,
                                               l->pid, l->tid)
                            : ROW_NONE;
        if (k == ROW_NONE || l->kind.n == 0) continue;
        if (BYTES_IS(l->kind, "stream")) t->tracks[k].kind = TRACK_STREAM;
        else if (BYTES_IS(l->kind, "derived"))
            t->tracks[k].kind = TRACK_DERIVED;
        else if (BYTES_IS(l->kind, "other")) t->tracks[k].kind = TRACK_OTHER;
        str_id name = reader_str(r, l->name);
        trace_track_name(t, k, strs_bytes(&t->strs, name));
    }
}

/* Joins launches of a file that opscope wrote: both sides have one number. */
static void link_rows(struct chrome_reader *r) {
    struct trace *t = r->t;
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct track *tr = &t->tracks[t->spans.track[i]];
        int64_t id = correlation_of(t, (row_id)i);
        if (id < 0) continue;
        if (tr->device != ROW_NONE)
            trace_link_device(t, r->source, (uint64_t)id, (row_id)i);
        else trace_link_host(t, r->source, (uint64_t)id, (row_id)i);
    }
}

static void chrome_finish(struct chrome_reader *r) {
    struct map by_pid = {0};
    struct source *src = &r->t->sources[r->source];
    for (size_t i = 0; i < r->nlabels; i++) {
        const struct track_label *l = &r->labels[i];
        struct device_name name;
        if (!l->process || !parse_device(label_text(r, l), &name) ||
            map_get(&by_pid, (uint64_t)l->pid) != MAP_NONE)
            continue;
        uint32_t d = trace_device(r->t, r->source, name.kind, name.ordinal);
        if (d != ROW_NONE && name.label.n > 0) {
            r->t->devices[d].label = trace_str(r->t, name.label);
            r->t->devices[d].labelled = true;
        }
        src->has_device = true;
        if (!map_set(&by_pid, (uint64_t)l->pid, (uint32_t)i)) r->t->oom = true;
    }
    if (r->kinds) label_tracks(r);
    if (by_pid.n > 0) {
        mark_tracks(r, &by_pid);
        if (r->kinds) {
            link_rows(r);
        } else {
            mark_rows(r);
            mark_steps(r);
        }
    }
    map_free(&by_pid);
    if (!r->kinds) {
        src->decimals = 6;
        src->rounding_ps = r->origin_us ? PS_PER_US : PS_PER_NS;
    } else if (src->decimals < r->decimals) {
        src->decimals = r->decimals; /* edited since opscope wrote it */
    }
    /* the cap of XProf's and JAX's JSON writer (one million events) */
    if (r->events >= 1000000 && r->events < 1000000 + 2 * r->nlabels + 16 &&
        r->t->spans.n == 1000000)
        trace_note(r->t, NOTE_CAPPED_AT_SOURCE, 1);
}

static const struct chrome_format chrome_format = {
    .span = chrome_span,
    .instant = chrome_instant,
    .skip_flow = chrome_skip_flow,
    .top = chrome_top,
    .finish = chrome_finish,
};

static bool chrome_sniff(struct bytes all) { return events_sniff(all).events; }

static int chrome_read(struct trace *t, uint32_t source,
                       const struct import_opts *o, struct ops_err *e) {
    return events_read(t, source, &chrome_format, o, e);
}

const struct importer importer_chrome = {
    .format =
        {
            .name = "chrome",
            .role = ROLE_PLAIN,
        },
    .help = "Chrome trace event JSON of any program (.json, .json.gz)",
    .sniff = chrome_sniff,
    .read = chrome_read,
};
