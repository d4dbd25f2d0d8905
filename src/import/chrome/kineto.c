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

#include "base/array.h"
#include "base/sort.h"
#include "base/vec.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include "names/name_class.h"
#include "names/pattern.h"
#include <setjmp.h>
#include <stdlib.h>

struct cat_row {
    const char *name;
    uint8_t kind;
    enum track_kind track; /* on a device: STREAM, DERIVED, ASYNC */
};

/* clang-format off */
static const struct cat_row cats[] = {
    {"cpu_op",              SPAN_OP,         TRACK_THREAD},
    {"user_annotation",     SPAN_ANNOTATION, TRACK_THREAD},
    {"python_function",     SPAN_PYTHON,     TRACK_PYTHON},
    {"cuda_runtime",        SPAN_API,        TRACK_THREAD},
    {"kernel",              SPAN_KERNEL,     TRACK_STREAM},
    {"cuda_driver",         SPAN_API,        TRACK_THREAD},
    {"gpu_memcpy",          SPAN_COPY,       TRACK_STREAM},
    {"gpu_memset",          SPAN_MEMSET,     TRACK_STREAM},
    {"gpu_user_annotation", SPAN_ANNOTATION, TRACK_DERIVED},
    {"cuda_sync",           SPAN_SYNC,       TRACK_ASYNC},
    {"cuda_event",          SPAN_SYNC,       TRACK_ASYNC},
    {"overhead",            SPAN_OVERHEAD,   TRACK_OTHER},
    {"Trace",               SPAN_OTHER,      TRACK_OTHER},
    /* spellings of 2021 */
    {"Operator",            SPAN_OP,         TRACK_THREAD},
    {"operator",            SPAN_OP,         TRACK_THREAD},
    {"Runtime",             SPAN_API,        TRACK_THREAD},
    {"runtime",             SPAN_API,        TRACK_THREAD},
    {"Kernel",              SPAN_KERNEL,     TRACK_STREAM},
    {"Memcpy",              SPAN_COPY,       TRACK_STREAM},
    {"memcpy",              SPAN_COPY,       TRACK_STREAM},
    {"Memset",              SPAN_MEMSET,     TRACK_STREAM},
    {"memset",              SPAN_MEMSET,     TRACK_STREAM},
    {"Python",              SPAN_ANNOTATION, TRACK_THREAD},
    {"python",              SPAN_ANNOTATION, TRACK_THREAD},
    {"User Annotation",     SPAN_ANNOTATION, TRACK_THREAD},
    {"ProfilerStep",        SPAN_ANNOTATION, TRACK_THREAD},
    /* other devices */
    {"xpu_runtime",         SPAN_API,        TRACK_THREAD},
    {"xpu_driver",          SPAN_API,        TRACK_THREAD},
    {"xpu_sync",            SPAN_SYNC,       TRACK_ASYNC},
    {"mtia_runtime",        SPAN_API,        TRACK_THREAD},
    {"mtia_ccp_events",     SPAN_KERNEL,     TRACK_STREAM},
    {"mtia_insight",        SPAN_OTHER,      TRACK_DERIVED},
    {"glow_runtime",        SPAN_API,        TRACK_THREAD},
    {"privateuse1_runtime", SPAN_API,        TRACK_THREAD},
    {"privateuse1_driver",  SPAN_API,        TRACK_THREAD},
    {"hpu_op",              SPAN_KERNEL,     TRACK_STREAM},
    {"collective_comm",     SPAN_KERNEL,     TRACK_STREAM},
    {"cuda_profiler_range", SPAN_OTHER,      TRACK_DERIVED},
};
/* clang-format on */

static const struct cat_row *find_cat(struct bytes cat) {
    for (size_t i = 0; i < COUNT(cats); i++)
        if (bytes_eq(cat, cats[i].name, strlen(cats[i].name))) return &cats[i];
    static const struct cat_row unknown = {"", SPAN_OTHER, TRACK_THREAD};
    return &unknown;
}

/* The arguments that place a device event or join a call to it. */
struct place {
    int64_t device, stream, correlation; /* -1: not there */
};

/* Reads as little of the args as it can: it stops when it has found all that is
 * wanted, the correlation and for device events the place. */
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
        *to = reader_int(&args, -1);
        wanted--;
    }
    return pl;
}

/* Returns 7 for "stream 7", as tids were written in 2021. */
static int64_t stream_of_text(const struct event_id *id) {
    struct bytes b = id->text;
    if (!BYTES_STARTS(b, "stream ")) return id->v;
    int64_t v = 0;
    for (size_t i = 7; i < b.n && b.p[i] >= '0' && b.p[i] <= '9' && i < 24; i++)
        v = v * 10 + (b.p[i] - '0');
    return v;
}

/* These are functions of libiberty (the demangler of binutils and gdb), whose
 * header clashes with libc's. A symbol of 250 bytes can stand for a gigabyte of
 * text (each substitution doubles it), and the demangler has no limit: longjmp
 * leaves it when the text gets too long. It keeps all it has on the stack, so
 * nothing leaks. */
int cplus_demangle_v3_callback(const char *mangled, int options,
                               void (*put)(const char *, size_t, void *),
                               void *ctx);

enum {
    DEMANGLE_PARAMS = 1 << 0,
    DEMANGLE_ANSI = 1 << 1,
    LONGEST = 16384, /* a symbol or text beyond this is shown as it is */
};

struct words {
    char text[LONGEST];
    size_t n;
    jmp_buf too_long;
};

static void put_words(const char *s, size_t n, void *ctx) {
    struct words *w = ctx;
    if (n > sizeof w->text - w->n) longjmp(w->too_long, 1);
    memcpy(w->text + w->n, s, n);
    w->n += n;
}

/* Returns false if it is no C++ symbol, or too long in words. */
static bool demangle(const char *symbol, struct words *w) {
    w->n = 0;
    if (setjmp(w->too_long) != 0) return false;
    return cplus_demangle_v3_callback(symbol, DEMANGLE_PARAMS | DEMANGLE_ANSI,
                                      put_words, w) != 0;
}

/* Returns the id of the symbol in words, or of the symbol itself if it is not
 * of C++. The symbol is looked up first: the same kernel comes again and
 * again. */
static str_id demangle_intern(struct trace *t, struct bytes symbol) {
    str_id raw = trace_str(t, symbol);
    uint32_t *known = map_at(&t->demangled, raw);
    if (known == NULL) {
        t->oom = true;
        return raw;
    }
    if (*known != MAP_NONE) return *known;
    *known = raw;
    if (symbol.n > LONGEST) return raw;
    struct words *w = malloc(sizeof *w);
    if (w == NULL) {
        t->oom = true;
        return raw;
    }
    str_id id = raw;
    if (demangle(strs_text(&t->strs, raw), w))
        id = trace_str(t, (struct bytes){(uint8_t *)w->text, w->n});
    free(w);
    map_set(&t->demangled, raw, id);
    return id;
}

/* Returns what an event of a device is. MTIA has one category for all that its
 * queues do: there the name tells waits and transfers from work. */
static uint8_t device_kind(const struct event *ev, const struct cat_row *c) {
    if (!BYTES_IS(ev->cat.raw, "mtia_ccp_events")) return c->kind;
    switch (queue_word_of(ev->name.raw)) {
    case QUEUE_WAIT: return SPAN_SYNC;
    case QUEUE_COPY: return SPAN_COPY;
    default: return c->kind;
    }
}

static row_id device_span(struct chrome_reader *r, const struct event *ev,
                          const struct cat_row *c) {
    struct place pl = read_place(ev, true);
    int64_t device = pl.device >= 0 ? pl.device : ev->pid.v;
    int64_t stream = pl.stream >= 0 ? pl.stream : stream_of_text(&ev->tid);
    uint8_t flags = c->track == TRACK_STREAM    ? 0
                    : c->track == TRACK_DERIVED ? SPAN_DERIVED
                                                : SPAN_ASYNC;
    uint32_t track = reader_track(r, c->track, device, stream);
    if (r->t->oom) return ROW_NONE;
    if (r->t->tracks[track].device == ROW_NONE)
        r->t->tracks[track].device = trace_device(r->t, r->source, DEVICE_GPU,
                                                  device);
    str_id name = BYTES_STARTS(ev->name.raw, "_Z")
                      ? demangle_intern(r->t, ev->name.raw)
                      : reader_str(r, ev->name);
    row_id row = reader_span(r, ev, track, name, device_kind(ev, c), flags);
    if (c->track == TRACK_DERIVED) trace_note(r->t, NOTE_DERIVED_LINES, 1);
    if (c->track == TRACK_STREAM) {
        r->t->sources[r->source].has_device = true;
        if (pl.correlation >= 0)
            trace_link_device(r->t, r->source, (uint64_t)pl.correlation, row);
    }
    return row;
}

/* Is it one of torch's own regions, ProfilerStep#3 or Optimizer.step#SGD.step?
 * In 2021 they had the category of ops. */
static bool is_region_of_2021(const struct cat_row *c, struct bytes name) {
    return c->kind == SPAN_OP && !BYTES_IS(bytes_of(c->name), "cpu_op") &&
           memchr(name.p, '#', name.n) != NULL;
}

static row_id kineto_span(struct chrome_reader *r, const struct event *ev) {
    const struct cat_row *c = find_cat(ev->cat.raw);
    if (c->track == TRACK_STREAM || c->track == TRACK_DERIVED ||
        c->track == TRACK_ASYNC)
        return device_span(r, ev, c);
    uint32_t track = reader_track(r, c->track, ev->pid.v, ev->tid.v);
    uint8_t kind = is_region_of_2021(c, ev->name.raw) ? SPAN_ANNOTATION
                                                      : c->kind;
    row_id row = reader_span(r, ev, track, reader_str(r, ev->name), kind, 0);
    if (c->kind != SPAN_API) return row;
    struct place pl = read_place(ev, false);
    if (pl.correlation >= 0)
        trace_link_host(r->t, r->source, (uint64_t)pl.correlation, row);
    return row;
}

static bool kineto_instant(struct chrome_reader *r, const struct event *ev) {
    if (reader_memory(r, ev)) return true;
    if (ev->cat.raw.n > 0) return false;
    /* Iteration Start and Record Window End (wrong by hours in old files) are
     * the profiler's own marks, not part of the time window */
    reader_span(r, ev, reader_track(r, TRACK_OTHER, ev->pid.v, ev->tid.v),
                reader_str(r, ev->name), SPAN_OTHER, SPAN_INSTANT);
    return true;
}

/* Launches are joined by correlation ids; of the arrows only those from an op
 * to its backward are needed: "fwdbwd", before 2022 "forward_backward". */
static bool kineto_skip_flow(const struct event *ev) {
    return !BYTES_IS(ev->cat.raw, "fwdbwd") &&
           !BYTES_IS(ev->cat.raw, "forward_backward");
}

/* Rows with the key that they are sorted by. */
struct keyed {
    struct sort_key *v;
    size_t n, cap;
};

static void keyed_add(struct trace *t, struct keyed *k, uint64_t key,
                      row_id row) {
    if (!VEC_ROOM(k->v, k->n, k->cap)) t->oom = true;
    else k->v[k->n++] = (struct sort_key){key, 0, row};
}

/* Gives a span the overheads inside it that no shorter span has taken: next[i]
 * leads from overhead i towards the first such one. An overhead that begins in
 * many spans and outlives them all, as in no real file, is given up. */
static void take_overheads(struct trace *t, row_id span,
                           const struct keyed *over, uint32_t *next,
                           uint8_t *outlived) {
    struct spans *s = &t->spans;
    int64_t end = span_end(t, span);
    size_t i;
    BOUND(i, 0, over->n, s->ts[over->v[i].row] < s->ts[span]);
    for (;; i++) {
        while (next[i] != i) i = next[i] = next[next[i]];
        if (i == over->n || s->ts[over->v[i].row] >= end) return;
        bool inside = span_end(t, over->v[i].row) <= end;
        if (inside) s->track[over->v[i].row] = s->track[span];
        if (inside || ++outlived[i] == UINT8_MAX) next[i] = (uint32_t)i + 1;
    }
}

/* CUPTI's buffer requests and the like happen inside the call that was made,
 * but the file puts them on a thread of their own. This moves them to the
 * thread of the shortest op, call or annotation around them, so that the self
 * time of that span is its own. O((spans + overheads) log). */
static void place_overheads(struct trace *t) {
    const struct spans *s = &t->spans;
    struct keyed over = {0}, around = {0}; /* by start; by duration */
    for (row_id i = 0; i < s->n; i++)
        if (s->kind[i] == SPAN_OVERHEAD)
            keyed_add(t, &over, sort_signed(s->ts[i]), i);
    uint32_t *next = vec_alloc(over.n + 1, sizeof *next);
    uint8_t *outlived = calloc(over.n + 1, 1);
    bool ok = next && outlived && sort_keys(over.v, over.n);
    for (row_id i = 0; ok && over.n > 0 && i < s->n; i++) {
        uint8_t kind = s->kind[i];
        size_t k;
        if ((kind != SPAN_OP && kind != SPAN_API && kind != SPAN_ANNOTATION) ||
            t->tracks[s->track[i]].kind != TRACK_THREAD)
            continue;
        BOUND(k, 0, over.n, over.v[k].hi < sort_signed(s->ts[i]));
        if (k < over.n && over.v[k].hi < sort_signed(span_end(t, i)))
            keyed_add(t, &around, (uint64_t)s->dur[i], i);
    }
    ok = ok && sort_keys(around.v, around.n);
    for (size_t i = 0; ok && i <= over.n; i++) next[i] = (uint32_t)i;
    for (size_t i = 0; ok && i < around.n; i++)
        take_overheads(t, around.v[i].row, &over, next, outlived);
    if (!ok) t->oom = true;
    free(over.v);
    free(around.v);
    free(next);
    free(outlived);
}

/* Does this argument of a range say where it is, not what it counted? */
static bool is_place(struct bytes key) {
    static const char *const names[] = {"device",  "stream",      "correlation",
                                        "context", "External id", NULL};
    return pattern_in(names, key);
}

/* Adds the counters of a range, as samples at ts. */
static void range_samples(struct chrome_reader *r, row_id row, int64_t ts,
                          bool launched) {
    struct trace *t = r->t;
    struct json j;
    struct json_str key;
    uint32_t source, device = t->tracks[t->spans.track[row]].device;
    struct bytes b = trace_args(t, row, &source);
    if (b.n == 0) return;
    j = json_reader(b);
    if (!json_enter(&j, '{')) return;
    while (json_key(&j, &key)) {
        struct json_num n = {0};
        bool number = json_peek(&j) != '"' && json_peek(&j) != '[' &&
                      json_peek(&j) != '{';
        if (number) n = json_number(&j);
        else json_skip(&j);
        if (!number || is_place(key.raw)) continue;
        str_id name = reader_str(r, key);
        uint32_t c = trace_counter(t, r->source, strs_bytes(&t->strs, name),
                                   bytes_of(""), device);
        if (c == ROW_NONE) return;
        t->counters[c].ranges = true;
        t->counters[c].launched = launched;
        trace_sample(t, c, ts, json_to_double(&n));
    }
}

/* Lists the rows of CUPTI's ranges, and the launches from the first one's
 * start to the last one's end, both by time. */
static bool find_ranges(struct chrome_reader *r, struct keyed *ranges,
                        struct keyed *launches) {
    struct trace *t = r->t;
    const struct spans *s = &t->spans;
    int64_t from = INT64_MAX, end = INT64_MIN;
    str_id cat = trace_str(t, bytes_of("cuda_profiler_range"));
    for (row_id i = 0; i < s->n; i++) {
        if (t->tracks[s->track[i]].source != r->source ||
            t->cats[span_cat(t, i)].text != cat)
            continue;
        keyed_add(t, ranges, sort_signed(s->ts[i]), i);
        if (s->ts[i] < from) from = s->ts[i];
        if (span_end(t, i) > end) end = span_end(t, i);
    }
    for (row_id i = 0; ranges->n > 0 && i < s->n; i++)
        if (s->kind[i] == SPAN_API && s->ts[i] >= from && s->ts[i] < end &&
            t->tracks[s->track[i]].source == r->source &&
            (name_classify(strs_bytes(&t->strs, s->name[i])) & CLASS_LAUNCH))
            keyed_add(t, launches, sort_signed(s->ts[i]), i);
    return sort_keys(ranges->v, ranges->n) &&
           sort_keys(launches->v, launches->n);
}

/* CUPTI's range profiler counts for every kernel, but it cannot tell when: the
 * file spreads the ranges evenly over the recording. Where there are as many
 * launches in that time, the n-th range is that of the n-th launch, and its
 * counters stand there. */
static void take_ranges(struct chrome_reader *r) {
    struct keyed ranges = {0}, launches = {0};
    if (!find_ranges(r, &ranges, &launches)) r->t->oom = true;
    bool same = ranges.n == launches.n;
    for (size_t i = 0; i < ranges.n && !r->t->oom; i++) {
        row_id at = same ? launches.v[i].row : ranges.v[i].row;
        range_samples(r, ranges.v[i].row, r->t->spans.ts[at], same);
    }
    free(ranges.v);
    free(launches.v);
}

/* Calls devices what the file calls them: "MTIA 9", "HPU 0". */
static void label_devices(struct chrome_reader *r) {
    struct trace *t = r->t;
    for (size_t i = 0; i < r->nlabels; i++) {
        const struct track_label *l = &r->labels[i];
        if (!l->device) continue;
        uint32_t d = trace_device_find(t, r->source, DEVICE_GPU, l->pid);
        str_id label = d == ROW_NONE ? 0 : reader_str(r, l->name);
        if (label == 0 || label == t->devices[d].label) continue;
        t->devices[d].label = label;
        t->devices[d].labelled = true;
    }
}

/* Does torch say that this one had not ended when its profiler stopped? */
static bool is_open(const struct trace *t, row_id row) {
    uint32_t source;
    struct json_str key;
    struct json j = json_reader(trace_args(t, row, &source));
    if (!json_enter(&j, '{')) return false;
    while (json_key(&j, &key)) {
        if (BYTES_IS(key.raw, "finished")) return json_peek(&j) == 'f';
        json_skip(&j);
    }
    return false;
}

/* Is it on a thread of this file? */
static bool is_on_thread(const struct chrome_reader *r, row_id row) {
    const struct track *tr = &r->t->tracks[r->t->spans.track[row]];
    return tr->kind == TRACK_THREAD && tr->source == r->source;
}

/* What still ran when the profiler stopped ends where torch was done with that:
 * behind the program's last event by as long as it took, which is no time of
 * the program. It ends with that event instead. */
static void end_open_regions(struct chrome_reader *r) {
    struct trace *t = r->t;
    struct spans *s = &t->spans;
    int64_t stopped = INT64_MIN, last = INT64_MIN;
    struct keyed open = {0};
    for (row_id i = 0; i < s->n; i++)
        if (is_on_thread(r, i) && span_end(t, i) > stopped)
            stopped = span_end(t, i);
    for (row_id i = 0; i < s->n; i++) {
        if (!is_on_thread(r, i)) continue;
        if (span_end(t, i) >= stopped - PS_PER_US && is_open(t, i))
            keyed_add(t, &open, 0, i);
        else if (span_end(t, i) > last) last = span_end(t, i);
    }
    for (size_t k = 0; k < open.n && last != INT64_MIN; k++) {
        row_id i = open.v[k].row;
        s->dur[i] = last > s->ts[i] ? last - s->ts[i] : 0;
        trace_note(t, NOTE_REGION_CUT, 1);
    }
    free(open.v);
}

static void kineto_finish(struct chrome_reader *r) {
    end_open_regions(r);
    place_overheads(r->t);
    label_devices(r);
    take_ranges(r);
    struct source *src = &r->t->sources[r->source];
    /* how far rounding may let a child end after its parent: whole us before
     * 2024, doubles of absolute time in early 2024 (steps of 0.25 us at
     * 1.7e15), ns since */
    src->rounding_ps = r->origin_us == 0 ? PS_PER_NS : PS_PER_US;
    src->decimals = r->decimals > 3 ? r->decimals : 3;
    /* the process is that of the host threads, whose pid is no device */
    for (size_t i = 0; i < r->t->ntracks && src->pid < 0; i++)
        if (r->t->tracks[i].kind == TRACK_THREAD &&
            r->t->tracks[i].source == r->source)
            src->pid = r->t->tracks[i].pid;
}

static const struct chrome_format kineto_format = {
    .span = kineto_span,
    .instant = kineto_instant,
    .skip_flow = kineto_skip_flow,
    .flow_word = "w", /* in both spellings; arrows of launches have none */
    .top = reader_top,
    .finish = kineto_finish,
};

static bool kineto_sniff(struct bytes all) {
    struct events_sniff s = events_sniff(all);
    return s.events && s.kineto;
}

static int kineto_read(struct trace *t, uint32_t source,
                       const struct import_opts *o, struct ops_err *e) {
    return events_read(t, source, &kineto_format, o, e);
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
    .sniff = kineto_sniff,
    .read = kineto_read,
};
/* clang-format on */
