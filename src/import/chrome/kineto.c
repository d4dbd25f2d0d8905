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
 *     cpu_instant_event  [memory]: an allocation or free; [OutOfMemory]: one
 *                                  that failed
 *
 * Launches are joined to device work by args.correlation. The file's own flow
 * arrows are passed over: half of them lead nowhere. */
#include "import/chrome/events.h"
#include "import/import.h"

#include "base/sort.h"
#include "base/vec.h"
#include "import/chrome/demangle.h"
#include "model/trace_fill.h"
#include <assert.h>
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
        if (bytes_eq(cat, cats[i].name, strlen(cats[i].name))) return &cats[i];
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
        r->t->tracks[track].device = trace_device(r->t, r->source, DEVICE_GPU,
                                                  device);
    row_id row = reader_span(r, ev, track, device_name(r, ev), c->kind, flags);
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
    case ON_STREAM:
    case ON_DERIVED:
    case ON_ASYNC: return device_span(r, ev, c);
    case ON_PYTHON:
        return reader_span(r, ev,
                           reader_track(r, TRACK_PYTHON, ev->pid.v, ev->tid.v),
                           reader_str(r, ev->name), c->kind, 0);
    case ON_OTHER:
        return reader_span(r, ev,
                           reader_track(r, TRACK_OTHER, ev->pid.v, ev->tid.v),
                           reader_str(r, ev->name), c->kind, 0);
    case ON_THREAD: break;
    }
    uint32_t track = reader_track(r, TRACK_THREAD, ev->pid.v, ev->tid.v);
    row_id row = reader_span(r, ev, track, reader_str(r, ev->name), c->kind, 0);
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
    if (BYTES_IS(ev->name.raw, "[OutOfMemory]")) {
        reader_oom(r, ev);
        return true;
    }
    /* Iteration Start, Record Window End (wrong by hours in old files): the
     * profiler's own marks, not part of the time window */
    if (ev->cat.raw.n == 0) {
        reader_span(r, ev, reader_track(r, TRACK_OTHER, ev->pid.v, ev->tid.v),
                    reader_str(r, ev->name), SPAN_OTHER, SPAN_INSTANT);
        return true;
    }
    return false;
}

/* Launches are joined by correlation ids; of the arrows only those from an op
 * to its backward are needed: "fwdbwd", before 2022 "forward_backward". */
static bool kineto_skip_flow(const struct event *ev) {
    return !BYTES_IS(ev->cat.raw, "fwdbwd") &&
           !BYTES_IS(ev->cat.raw, "forward_backward");
}

/* How far rounding may let a child end after its parent: whole microseconds
 * before 2024, doubles of absolute time in early 2024 (steps of 0.25 us at
 * 1.7e15), nanoseconds since. */
static int64_t rounding(const struct reader *r) {
    if (r->origin_us == 0) return PS_PER_NS;
    return PS_PER_US;
}

/* A piece of the profiler's own work. */
struct overhead {
    int64_t ts, end;
    row_id row;
};

static int by_start(const void *a, const void *b) {
    int64_t x = ((const struct overhead *)a)->ts;
    int64_t y = ((const struct overhead *)b)->ts;
    return x < y ? -1 : x > y;
}

/* Host spans that an overhead begins in, and a tree over their ends (the last
 * end is number 1): best[i] is the shortest of those that were added among the
 * numbers that i stands for, as in a Fenwick tree. */
struct hosts {
    struct sort_key *v; /* by start */
    uint64_t *ends;     /* sorted */
    row_id *best;       /* n + 1; ROW_NONE: none yet */
    size_t n, cap;
};

/* How many spans end at `end` or later. */
static size_t ends_from(const struct hosts *h, int64_t end) {
    size_t lo = 0, hi = h->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->ends[mid] < sort_signed(end)) lo = mid + 1;
        else hi = mid;
    }
    return h->n - lo;
}

/* The shorter of two spans, the first one of equals. */
static row_id shorter(const struct spans *s, row_id a, row_id b) {
    if (a == ROW_NONE || b == ROW_NONE) return a == ROW_NONE ? b : a;
    if (s->dur[a] != s->dur[b]) return s->dur[a] < s->dur[b] ? a : b;
    return a < b ? a : b;
}

static void add_host(const struct spans *s, struct hosts *h, row_id row) {
    size_t i = ends_from(h, s->ts[row] + s->dur[row]);
    assert(i > 0); /* its own end is one of them */
    for (; i <= h->n; i += i & -i) h->best[i] = shorter(s, h->best[i], row);
}

/* The shortest span added so far that ends at `end` or later. */
static row_id best_host(const struct spans *s, const struct hosts *h,
                        int64_t end) {
    row_id best = ROW_NONE;
    for (size_t i = ends_from(h, end); i > 0; i -= i & -i)
        best = shorter(s, best, h->best[i]);
    return best;
}

/* Does one of the overheads begin in [ts, end)? They are few: most spans are
 * done with here. */
static bool one_begins(const struct overhead *v, size_t n, int64_t ts,
                       int64_t end) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].ts < ts) lo = mid + 1;
        else hi = mid;
    }
    return lo < n && v[lo].ts < end;
}

/* False: out of memory. */
static bool find_hosts(const struct trace *t, const struct overhead *v,
                       size_t n, struct hosts *h) {
    const struct spans *s = &t->spans;
    for (size_t i = 0; i < s->n; i++) {
        uint8_t k = s->kind[i];
        if ((k != SPAN_OP && k != SPAN_API && k != SPAN_ANNOTATION) ||
            t->tracks[s->track[i]].kind != TRACK_THREAD ||
            !one_begins(v, n, s->ts[i], s->ts[i] + s->dur[i]))
            continue;
        if (!VEC_ROOM(h->v, h->n, h->cap)) return false;
        h->v[h->n++] = (struct sort_key){sort_signed(s->ts[i]), 0, (row_id)i};
    }
    h->ends = vec_alloc(h->n, sizeof *h->ends);
    h->best = vec_alloc(h->n + 1, sizeof *h->best);
    if (h->ends == NULL || h->best == NULL) return false;
    for (size_t i = 0; i < h->n; i++) {
        row_id r = h->v[i].row;
        h->ends[i] = sort_signed(s->ts[r] + s->dur[r]);
    }
    memset(h->best, 0xff, (h->n + 1) * sizeof *h->best); /* all ROW_NONE */
    return sort_keys(h->v, h->n) && sort_numbers(h->ends, h->n);
}

/* Moves overheads, sorted by start, to the thread of the shortest span around
 * each. O((spans + overheads) log). */
static bool move_overheads(struct trace *t, const struct overhead *v,
                           size_t n) {
    struct spans *s = &t->spans;
    struct hosts h = {0};
    bool ok = find_hosts(t, v, n, &h);
    for (size_t i = 0, k = 0; ok && i < n; i++) {
        while (k < h.n && h.v[k].hi <= sort_signed(v[i].ts))
            add_host(s, &h, h.v[k++].row);
        /* one of no length at a span's end is not in it */
        int64_t end = v[i].end > v[i].ts ? v[i].end : v[i].ts + 1;
        row_id around = best_host(s, &h, end);
        if (around != ROW_NONE) s->track[v[i].row] = s->track[around];
    }
    free(h.v);
    free(h.ends);
    free(h.best);
    return ok;
}

/* CUPTI's buffer requests and the like happen inside the call that was made,
 * but the file puts them on a thread of their own. They go to the thread of
 * the innermost op or call around them, so that its self time is its own. */
static void place_overheads(struct reader *r) {
    struct trace *t = r->t;
    const struct spans *s = &t->spans;
    size_t n = 0, cap = 0;
    struct overhead *v = NULL;
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++) {
        if (s->kind[i] != SPAN_OVERHEAD) continue;
        ok = VEC_ROOM(v, n, cap);
        if (ok)
            v[n++] = (struct overhead){s->ts[i], s->ts[i] + s->dur[i],
                                       (row_id)i};
    }
    if (n > 1) qsort(v, n, sizeof *v, by_start);
    if (!ok || (n > 0 && !move_overheads(t, v, n))) t->oom = true;
    free(v);
}

static void kineto_finish(struct reader *r) {
    place_overheads(r);
    struct source *src = &r->t->sources[r->source];
    src->slack = rounding(r);
    src->decimals = r->decimals > 3 ? r->decimals : 3;
    /* the process: of the host threads, whose pid is no device */
    for (size_t i = 0; i < r->t->ntracks && src->pid < 0; i++)
        if (r->t->tracks[i].kind == TRACK_THREAD &&
            r->t->tracks[i].source == r->source)
            src->pid = r->t->tracks[i].pid;
}

static const struct policy kineto_policy = {
    .span = kineto_span,
    .instant = kineto_instant,
    .skip_flow = kineto_skip_flow,
    .flow_word = "w", /* in both spellings; arrows of launches have none */
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

/* clang-format off */
const struct importer importer_kineto = {
    .format = {
        .name = "kineto",
        .writer = WRITER_TORCH,
        .fix = {
            [MISSING_DEVICE] = "add ProfilerActivity.CUDA (or XPU, ...) to the "
                               "profiler's activities",
            [MISSING_MEMORY] = "profile with profile_memory=True",
            [MISSING_SHAPES] = "profile with record_shapes=True",
            [MISSING_STACKS] = "profile with with_stack=True",
        },
    },
    .help = "PyTorch profiler traces (.pt.trace.json, .json.gz)",
    .sniff = sniff,
    .read = read_all,
};
/* clang-format on */
