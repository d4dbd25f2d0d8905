/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's profiler (Kineto): Chrome events whose category says what they
 * are. All three generations of its times and the spellings of 2021 are read.
 *
 *     cat            what                        where
 *     cpu_op         operator                    thread pid/tid
 *     user_annotation  record_function, steps    thread
 *     cuda_runtime, cuda_driver  API call        thread, args.correlation
 *     python_function  frame                     the thread's Python track
 *     kernel, gpu_memcpy, gpu_memset             args.device / args.stream
 *     gpu_user_annotation  made from the others: derived, never counted
 *     cpu_instant_event  [memory]: an allocation or free
 *
 * Launches are joined to device work by args.correlation. The file's own flow
 * arrows are passed over: half of them lead nowhere. */
#include "import/events.h"
#include "import/import.h"

#include "base/vec.h"
#include "model/demangle.h"
#include <stdio.h>
#include <stdlib.h>

enum where { ON_THREAD, ON_PYTHON, ON_STREAM, ON_DERIVED, ON_ASYNC, ON_OTHER };

struct cat_row {
    const char *name;
    uint8_t kind;
    enum where where;
};

/* clang-format off */
static const struct cat_row cats[] = {
    {"cpu_op",              SPAN_OP,         ON_THREAD},
    {"user_annotation",     SPAN_ANNOTATION, ON_THREAD},
    {"python_function",     SPAN_PYTHON,     ON_PYTHON},
    {"cuda_runtime",        SPAN_API,        ON_THREAD},
    {"kernel",              SPAN_KERNEL,     ON_STREAM},
    {"cuda_driver",         SPAN_API,        ON_THREAD},
    {"gpu_memcpy",          SPAN_COPY,       ON_STREAM},
    {"gpu_memset",          SPAN_MEMSET,     ON_STREAM},
    {"gpu_user_annotation", SPAN_ANNOTATION, ON_DERIVED},
    {"cuda_sync",           SPAN_SYNC,       ON_ASYNC},
    {"cuda_event",          SPAN_SYNC,       ON_ASYNC},
    {"overhead",            SPAN_OVERHEAD,   ON_OTHER},
    {"Trace",               SPAN_OTHER,      ON_OTHER},
    /* spellings of 2021 */
    {"Operator",            SPAN_OP,         ON_THREAD},
    {"operator",            SPAN_OP,         ON_THREAD},
    {"Runtime",             SPAN_API,        ON_THREAD},
    {"runtime",             SPAN_API,        ON_THREAD},
    {"Kernel",              SPAN_KERNEL,     ON_STREAM},
    {"Memcpy",              SPAN_COPY,       ON_STREAM},
    {"memcpy",              SPAN_COPY,       ON_STREAM},
    {"Memset",              SPAN_MEMSET,     ON_STREAM},
    {"memset",              SPAN_MEMSET,     ON_STREAM},
    {"Python",              SPAN_ANNOTATION, ON_THREAD},
    {"python",              SPAN_ANNOTATION, ON_THREAD},
    {"User Annotation",     SPAN_ANNOTATION, ON_THREAD},
    {"ProfilerStep",        SPAN_ANNOTATION, ON_THREAD},
    /* other devices */
    {"xpu_runtime",         SPAN_API,        ON_THREAD},
    {"xpu_driver",          SPAN_API,        ON_THREAD},
    {"xpu_sync",            SPAN_SYNC,       ON_ASYNC},
    {"mtia_runtime",        SPAN_API,        ON_THREAD},
    {"mtia_ccp_events",     SPAN_KERNEL,     ON_STREAM},
    {"mtia_insight",        SPAN_OTHER,      ON_DERIVED},
    {"glow_runtime",        SPAN_API,        ON_THREAD},
    {"privateuse1_runtime", SPAN_API,        ON_THREAD},
    {"privateuse1_driver",  SPAN_API,        ON_THREAD},
    {"hpu_op",              SPAN_KERNEL,     ON_STREAM},
    {"collective_comm",     SPAN_KERNEL,     ON_STREAM},
    {"cuda_profiler_range", SPAN_OTHER,      ON_DERIVED},
};
/* clang-format on */

static const struct cat_row *find_cat(struct bytes cat) {
    for (size_t i = 0; i < sizeof cats / sizeof *cats; i++)
        if (bytes_eq(cat, cats[i].name, strlen(cats[i].name)))
            return &cats[i];
    static const struct cat_row unknown = {"", SPAN_OTHER, ON_THREAD};
    return &unknown;
}

/* The arguments that place a device event or join a call to it. */
struct place {
    int64_t device, stream, correlation; /* -1: not there */
};

/* Reads as little of the args as it can: stops when all that is wanted, the
 * correlation and for device events the place, is found. */
static struct place read_place(const struct event *ev, bool device) {
    struct place pl = {-1, -1, -1};
    struct json args;
    struct json_str key;
    int wanted = device ? 3 : 1;
    if (!reader_args(ev, &args)) return pl;
    while (wanted > 0 && json_key(&args, &key)) {
        int64_t *to = NULL;
        if (BYTES_IS(key.raw, "correlation")) to = &pl.correlation;
        else if (device && BYTES_IS(key.raw, "device")) to = &pl.device;
        else if (device && BYTES_IS(key.raw, "stream")) to = &pl.stream;
        if (to == NULL) {
            json_skip(&args);
            continue;
        }
        struct json_num n = json_number(&args);
        if (!json_to_int(&n, to)) *to = -1;
        wanted--;
    }
    return pl;
}

/* "stream 7" -> 7, as tids were written in 2021. */
static int64_t stream_of_text(const struct event_id *id) {
    struct bytes b = id->text;
    if (!BYTES_STARTS(b, "stream ")) return id->v;
    int64_t v = 0;
    for (size_t i = 7; i < b.n && b.p[i] >= '0' && b.p[i] <= '9' && i < 24; i++)
        v = v * 10 + (b.p[i] - '0');
    return v;
}

/* The name of a device event: long C++ symbols may come mangled. */
static str_id device_name(struct reader *r, const struct event *ev) {
    if (!BYTES_STARTS(ev->name.raw, "_Z")) return reader_str(r, ev->name);
    return demangle_intern(r->t, ev->name.raw);
}

static row_id device_span(struct reader *r, const struct event *ev,
                          const struct cat_row *c) {
    struct place pl = read_place(ev, true);
    int64_t device = pl.device >= 0 ? pl.device : ev->pid.v;
    int64_t stream = pl.stream >= 0 ? pl.stream : stream_of_text(&ev->tid);
    enum track_kind kind = c->where == ON_STREAM    ? TRACK_STREAM
                           : c->where == ON_DERIVED ? TRACK_DERIVED
                                                    : TRACK_ASYNC;
    uint8_t flags = c->where == ON_STREAM    ? 0
                    : c->where == ON_DERIVED ? SPAN_DERIVED
                                             : SPAN_ASYNC;
    uint32_t track = reader_track(r, kind, device, stream);
    if (r->t->oom) return ROW_NONE;
    if (r->t->tracks[track].device == ROW_NONE)
        r->t->tracks[track].device =
            trace_device(r->t, r->source, DEVICE_GPU, device);
    row_id row =
        reader_span(r, ev, track, device_name(r, ev), c->kind, flags);
    if (c->where == ON_DERIVED) trace_note(r->t, NOTE_DERIVED_LINES, 1);
    if (c->where == ON_STREAM) {
        r->t->sources[r->source].has_device = true;
        if (pl.correlation >= 0)
            trace_link_device(r->t, r->source, (uint64_t)pl.correlation, row);
    }
    return row;
}

static row_id kineto_span(struct reader *r, const struct event *ev) {
    const struct cat_row *c = find_cat(ev->cat.raw);
    switch (c->where) {
    case ON_STREAM: case ON_DERIVED: case ON_ASYNC:
        return device_span(r, ev, c);
    case ON_PYTHON:
        return reader_span(r, ev,
                           reader_track(r, TRACK_PYTHON, ev->pid.v, ev->tid.v),
                           reader_str(r, ev->name), c->kind, 0);
    case ON_OTHER:
        return reader_span(r, ev,
                           reader_track(r, TRACK_OTHER, ev->pid.v, ev->tid.v),
                           reader_str(r, ev->name), c->kind, 0);
    case ON_THREAD:
        break;
    }
    uint32_t track = reader_track(r, TRACK_THREAD, ev->pid.v, ev->tid.v);
    row_id row =
        reader_span(r, ev, track, reader_str(r, ev->name), c->kind, 0);
    if (c->kind != SPAN_API) return row;
    struct place pl = read_place(ev, false);
    if (pl.correlation >= 0)
        trace_link_host(r->t, r->source, (uint64_t)pl.correlation, row);
    return row;
}

static bool kineto_instant(struct reader *r, const struct event *ev) {
    if (BYTES_IS(ev->name.raw, "[memory]")) {
        reader_memory(r, ev);
        return true;
    }
    /* Iteration Start, Record Window End (wrong by hours in old files): the
     * profiler's own marks, not part of the time window */
    if (ev->cat.raw.n == 0) {
        reader_span(r, ev,
                    reader_track(r, TRACK_OTHER, ev->pid.v, ev->tid.v),
                    reader_str(r, ev->name), SPAN_OTHER, SPAN_INSTANT);
        return true;
    }
    return false;
}

static bool kineto_skip_flow(const struct event *ev) {
    (void)ev;
    return true;
}

/* How far rounding may let a child end after its parent: whole microseconds
 * before 2024, doubles of absolute time in early 2024 (steps of 0.25 us at
 * 1.7e15), nanoseconds since. */
static int64_t rounding(const struct reader *r) {
    if (r->origin_us == 0) return PS_PER_NS;
    return PS_PER_US;
}

/* A piece of the profiler's own work, and the shortest host span around it. */
struct overhead {
    int64_t ts, end;
    row_id row, around;
};

static int by_start(const void *a, const void *b) {
    int64_t x = ((const struct overhead *)a)->ts;
    int64_t y = ((const struct overhead *)b)->ts;
    return x < y ? -1 : x > y;
}

/* Lets host span `row` claim the overheads that lie inside it and in no
 * shorter one. */
static void claim(const struct trace *t, row_id row, struct overhead *v,
                  size_t n) {
    const struct spans *s = &t->spans;
    int64_t ts = s->ts[row], end = ts + s->dur[row];
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].ts < ts) lo = mid + 1;
        else hi = mid;
    }
    for (; lo < n && v[lo].ts < end; lo++)
        if (v[lo].end <= end && (v[lo].around == ROW_NONE ||
                                 s->dur[row] < s->dur[v[lo].around]))
            v[lo].around = row;
}

/* CUPTI's buffer requests and the like happen inside the call that was made,
 * but the file puts them on a thread of their own. They go to the thread of
 * the innermost op or call around them, so that its self time is its own. */
static void place_overheads(struct reader *r) {
    struct trace *t = r->t;
    struct spans *s = &t->spans;
    size_t n = 0, cap = 0;
    struct overhead *v = NULL;
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < s->n; i++) {
        if (s->kind[i] != SPAN_OVERHEAD) continue;
        if (!VEC_ROOM(v, n, cap)) {
            t->oom = true;
            break;
        }
        v[n++] = (struct overhead){s->ts[i], s->ts[i] + s->dur[i], (row_id)i,
                                   ROW_NONE};
        if (s->dur[i] < shortest) shortest = s->dur[i];
    }
    if (n > 1) qsort(v, n, sizeof *v, by_start);
    for (size_t i = 0; n > 0 && i < s->n; i++) {
        uint8_t k = s->kind[i];
        if ((k == SPAN_OP || k == SPAN_API || k == SPAN_ANNOTATION) &&
            s->dur[i] >= shortest &&
            t->tracks[s->track[i]].kind == TRACK_THREAD)
            claim(t, (row_id)i, v, n);
    }
    for (size_t i = 0; i < n; i++)
        if (v[i].around != ROW_NONE) s->track[v[i].row] = s->track[v[i].around];
    free(v);
}

static void kineto_finish(struct reader *r) {
    place_overheads(r);
    struct source *src = &r->t->sources[r->source];
    src->slack = rounding(r);
    src->decimals = 3;
    /* the process: of the host threads, whose pid is no device */
    for (size_t i = 0; i < r->t->ntracks && src->pid < 0; i++)
        if (r->t->tracks[i].kind == TRACK_THREAD &&
            r->t->tracks[i].source == r->source)
            src->pid = r->t->tracks[i].pid;
}

static const struct policy kineto_policy = {
    .format = "kineto",
    .span = kineto_span,
    .instant = kineto_instant,
    .skip_flow = kineto_skip_flow,
    .top = reader_top,
    .finish = kineto_finish,
};

static bool sniff(struct bytes all, const char *path) {
    (void)path;
    struct events_sniff s = events_sniff(all);
    return s.events && s.kineto;
}

static int read_all(struct trace *t, uint32_t source,
                    const struct import_opts *o, struct ops_err *e) {
    return events_read(t, source, &kineto_policy, o, e);
}

const struct importer importer_kineto = {
    .name = "kineto",
    .help = "PyTorch profiler traces (.pt.trace.json, .json.gz)",
    .sniff = sniff,
    .read = read_all,
};
