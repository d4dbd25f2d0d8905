/* SPDX-License-Identifier: Apache-2.0
 * The file around the events: its frame, broken places, and several threads.
 *
 * Threads: the list is cut at places that look like the start of an event.
 * Each piece is read into a trace of its own. A cut was right exactly when the
 * piece before it ends there; if not (the text only looked like an event), that
 * piece's reader goes on to the end and the later pieces are thrown away. So
 * the result never depends on the number of threads. */
#include "import/chrome/events.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/vec.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 8 << 20, /* smaller lists are read by one thread */
    MAX_PIECES = 8,
    MAX_REREADS = 16, /* of the whole file, looking for a way on */
    SNIFF_BYTES = 1 << 16,
    PROGRESS_EVERY = 16384, /* events */
    BYTES_PER_EVENT = 300,  /* of the events that become rows */
    ORIGIN_LOOKS = 1000,    /* times looked at to find the file's origin */
};

/* Larger times (us) cannot count from a start or a three-month grid: they are
 * absolute. */
static const int64_t absolute_us = INT64_C(8600000000000);

static const uint8_t *find_text(const uint8_t *p, const uint8_t *end,
                                const char *word) {
    if (p >= end) return NULL;
    return memmem(p, (size_t)(end - p), word, strlen(word));
}

/* Returns where an event seems to begin: the brace before the next "ph". */
static const uint8_t *find_event(const uint8_t *p, const uint8_t *end) {
    const uint8_t *ph = p;
    while ((ph = find_text(ph, end, "\"ph\"")) != NULL) {
        for (const uint8_t *q = ph; q > p; q--)
            if (q[-1] == '{') return q - 1;
        ph += 4;
        p = ph;
    }
    return NULL;
}

/* Moves on to the next event after damage. Returns false if there is none. How
 * much text is gone over again is bounded: a bad event may swallow megabytes,
 * and the next one the same megabytes. */
static bool resync(struct chrome_reader *r, const uint8_t *start) {
    trace_note(r->t, NOTE_BAD_EVENT, 1);
    r->wasted += (uint64_t)(r->j.p - start);
    if (r->wasted / MAX_REREADS > (uint64_t)(r->j.end - r->base) + PIECE_BYTES)
        return false;
    const uint8_t *next = find_event(start + 1, r->j.end);
    if (next == NULL) return false;
    r->j.mended++;
    r->j.p = next;
    r->j.bad = false;
    r->j.first = true;
    return true;
}

/* Reads list items until r->stop, the list's end (then r->closed) or hopeless
 * damage. Returns true if it ended exactly at r->stop or, without one, at the
 * bracket. What comes after damage depends on what came before it, so a piece
 * leaves that to the main reader. */
static bool read_list(struct chrome_reader *r, const struct import_opts *o) {
    const uint8_t *stop = r->stop ? r->stop : r->j.end;
    if (stop > r->j.p)
        trace_reserve(r->t, (size_t)(stop - r->j.p) / BYTES_PER_EVENT);
    while (json_item(&r->j)) {
        const uint8_t *start = r->j.p;
        if (r->stop != NULL && start >= r->stop) return start == r->stop;
        if (!events_one(r)) {
            r->give_up = r->piece;
            if (!r->piece && !resync(r, start)) break;
        }
        if (r->give_up || r->t->oom) return false;
        if (r->events % PROGRESS_EVERY != 0) continue;
        if (!r->piece)
            import_told(o, (uint64_t)(r->j.p - r->base),
                        (uint64_t)(stop - r->base));
        if (import_stopped(o)) return false;
    }
    r->closed = !r->j.bad;
    if (r->closed) return r->stop == NULL;
    trace_note(r->t, NOTE_FILE_CUT, 1);
    return false;
}

static void free_reader(struct chrome_reader *r) {
    free(r->labels);
    free(r->odd);
    free(r->open);
    free(r->scratch);
    map_free(&r->open_map);
}

/* One piece of the list, read by its own thread into its own trace. */
struct piece {
    struct chrome_reader r;
    const struct import_opts *o;
    bool whole; /* ended exactly where the next one begins */
    pthread_t thread;
    bool started;
};

static void *read_piece(void *arg) {
    struct piece *p = arg;
    p->whole = read_list(&p->r, p->o);
    return NULL;
}

/* Starts a thread on [at, stop) with a reader like `like`. A piece that
 * cannot be started is read later, in order. */
static void start_piece(struct piece *p, const struct chrome_reader *like,
                        const uint8_t *at, const uint8_t *stop) {
    assert(stop == NULL || at < stop);
    const struct source *src = &like->t->sources[like->source];
    struct trace *t = trace_new();
    p->r = (struct chrome_reader){
        .j = like->j,
        .t = t,
        .format = like->format,
        .base = like->base,
        .args_base = like->args_base,
        .origin_us = like->origin_us,
        .stop = stop,
        .piece = true,
        .last_end = INT64_MIN,
    };
    p->r.j.p = at;
    p->r.j.mended = 0;
    p->r.j.first = true;
    if (t == NULL) return;
    p->r.source = trace_source(t, src->path, src->format, NULL, src->bytes);
    if (p->r.source == ROW_NONE) return;
    t->sources[p->r.source].args_base = like->args_base;
    t->sources[p->r.source].decimals = 0; /* the whole file's reader knows */
    p->started = pthread_create(&p->thread, NULL, read_piece, p) == 0;
}

/* Moves a finished piece behind what the main reader has. */
static int take_piece(struct chrome_reader *r, struct piece *p,
                      struct ops_err *e) {
    for (size_t i = 0; i < p->r.nlabels; i++) {
        if (!VEC_ROOM(r->labels, r->nlabels, r->cap_labels)) return fail_oom(e);
        r->labels[r->nlabels++] = p->r.labels[i];
    }
    for (size_t i = 0; i < p->r.nodd; i++) {
        if (!VEC_ROOM(r->odd, r->nodd, r->cap_odd)) return fail_oom(e);
        r->odd[r->nodd++] = p->r.odd[i];
    }
    r->events += p->r.events;
    r->j.mended += p->r.j.mended;
    r->j.p = p->r.j.p;
    r->j.bad = p->r.j.bad;
    r->closed = p->r.closed;
    if (p->r.last_end > r->last_end) r->last_end = p->r.last_end;
    if (p->r.decimals > r->decimals) r->decimals = p->r.decimals;
    struct trace *t = p->r.t;
    p->r.t = NULL;
    return trace_append(r->t, t, e);
}

/* Joins pieces [1, n) while each begins where the one before it ended; *done
 * tells whether that held to the last. */
static int join_pieces(struct chrome_reader *r, struct piece *v, size_t n,
                       bool *done, struct ops_err *e) {
    int rc = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i].started) pthread_join(v[i].thread, NULL);
    for (size_t i = 1; i < n; i++) {
        if (*done && rc == 0) {
            *done = v[i].started && !v[i].r.give_up;
            if (*done) {
                rc = take_piece(r, &v[i], e);
                *done = v[i].whole;
            }
        }
        trace_free(v[i].r.t);
        free_reader(&v[i].r);
    }
    return rc;
}

/* Reads the whole list: this thread reads the first piece, others the rest;
 * what a wrong cut left over is read in order. */
static int read_events(struct chrome_reader *r, const struct import_opts *o,
                       struct ops_err *e) {
    const uint8_t *cut[MAX_PIECES + 1] = {r->j.p};
    long cpus = o->threads > 0 ? o->threads : sysconf(_SC_NPROCESSORS_ONLN);
    size_t want = cpus < 1 ? 1 : cpus < MAX_PIECES ? (size_t)cpus : MAX_PIECES;
    size_t all = (size_t)(r->j.end - r->j.p), n = 1;
    if (want > all / PIECE_BYTES) want = all / PIECE_BYTES;
    for (size_t i = 1; i < want; i++) {
        const uint8_t *at = find_event(r->j.p + all / want * i, r->j.end);
        if (at == NULL) break;
        if (at > cut[n - 1]) cut[n++] = at;
    }
    struct piece *v = calloc(n, sizeof *v);
    if (v == NULL) return fail_oom(e);
    for (size_t i = 1; i < n; i++) {
        v[i].o = o;
        start_piece(&v[i], r, cut[i], i + 1 < n ? cut[i + 1] : NULL);
    }
    r->stop = n > 1 ? cut[1] : NULL;
    bool done = read_list(r, o);
    int rc = join_pieces(r, v, n, &done, e);
    free(v);
    r->stop = NULL;
    r->j.first = true; /* the comma was read before the cut was found wrong */
    if (rc == 0 && !done && !r->closed && !r->j.bad && !r->t->oom &&
        !import_stopped(o))
        read_list(r, o);
    r->closed = false;
    if (rc == 0 && r->t->oom) rc = fail_oom(e);
    return rc;
}

/* Old files count from 1970: too far for picoseconds in 64 bits. If most of the
 * first times are like that, the smallest that is near their median, cut to
 * seconds, becomes the origin: so a few broken times move nothing. */
static int64_t find_origin(struct bytes all) {
    const uint8_t *p = all.p, *end = all.p + all.n;
    int64_t v[ORIGIN_LOOKS];
    size_t n = 0, i = 0;
    while (n < ORIGIN_LOOKS && (p = find_text(p, end, "\"ts\"")) != NULL) {
        struct json j = {p += 4, end, 0, false, false};
        int64_t ts = json_enter(&j, ':') ? reader_int(&j, -1) : -1;
        if (ts >= 0) v[n++] = ts; /* whole us */
    }
    if (n == 0) return 0;
    qsort(v, n, sizeof *v, sort_by_value);
    int64_t middle = v[n / 2];
    if (middle <= absolute_us || middle > INT64_MAX / 4) return 0;
    while (v[i] < middle - absolute_us / 2) i++;
    return v[i] / 1000000 * 1000000;
}

/* Names the tracks of two kinds. Returns false if there are none. */
static bool apply_label(struct chrome_reader *r, const struct track_label *l,
                        const enum track_kind kinds[2]) {
    bool found = false;
    for (int k = 0; k < 2; k++) {
        uint32_t tr = trace_track_find(r->t, r->source, kinds[k], l->pid,
                                       l->tid);
        if (tr == ROW_NONE) continue;
        str_id id = reader_str(r, l->name);
        trace_track_name(r->t, tr, strs_bytes(&r->t->strs, id));
        found = true;
    }
    return found;
}

/* Gives tracks the names that the file gave them. "stream 7" names a device's
 * stream, other names a host thread, even where the numbers clash. */
static void apply_labels(struct chrome_reader *r) {
    static const enum track_kind host[] = {TRACK_THREAD, TRACK_PYTHON};
    static const enum track_kind device[] = {TRACK_STREAM, TRACK_DERIVED};
    for (size_t i = 0; i < r->nlabels; i++) {
        const struct track_label *l = &r->labels[i];
        if (l->process || l->device) continue;
        bool stream = BYTES_STARTS(l->name.raw, "stream ");
        if (!apply_label(r, l, stream ? device : host) && stream)
            apply_label(r, l, host);
    }
}

/* Returns the device that "GPU 0 Counters" or "/device:GPU:0" names, if the
 * file has it; else ROW_NONE. */
static uint32_t counters_device(const struct chrome_reader *r,
                                struct bytes name) {
    const uint8_t *p = memmem(name.p, name.n, "GPU", 3);
    int64_t ordinal = 0;
    if (p == NULL) return ROW_NONE;
    const uint8_t *end = name.p + name.n;
    p += 3;
    if (p == end || (*p != ' ' && *p != ':')) return ROW_NONE;
    if (++p == end || *p < '0' || *p > '9') return ROW_NONE;
    for (; p < end && *p >= '0' && *p <= '9' && ordinal < 1000000; p++)
        ordinal = ordinal * 10 + (*p - '0');
    return trace_device_find(r->t, r->source, DEVICE_GPU, ordinal);
}

/* Gives counters the names of their processes, and their devices by these. */
static void label_counters(struct chrome_reader *r) {
    struct trace *t = r->t;
    struct map by_pid = {0};
    for (size_t i = 0; i < r->nlabels && t->ncounters > 0; i++)
        if (r->labels[i].process &&
            !map_set(&by_pid, (uint64_t)r->labels[i].pid, (uint32_t)i))
            t->oom = true;
    for (size_t i = 0; i < t->ncounters; i++) {
        struct counter *c = &t->counters[i];
        if (c->source != r->source || c->pid == NO_PID) continue;
        uint32_t k = map_get(&by_pid, (uint64_t)c->pid);
        if (k != MAP_NONE) c->process = reader_str(r, r->labels[k].name);
        if (c->device == ROW_NONE && c->process != 0)
            c->device = counters_device(r, strs_bytes(&t->strs, c->process));
    }
    map_free(&by_pid);
}

/* Keeps a key beside the events that the format did not want, as text. */
static void keep_meta(struct chrome_reader *r, struct json_str key) {
    char name[128];
    size_t n = key.raw.n < sizeof name - 1 ? key.raw.n : sizeof name - 1;
    memcpy(name, key.raw.p, n);
    name[n] = '\0';
    struct json_str s;
    json_space(&r->j);
    const uint8_t *start = r->j.p;
    if (json_peek(&r->j) == '"' && json_string(&r->j, &s)) {
        str_id id = reader_str(r, s);
        trace_meta(r->t, r->source, name, strs_bytes(&r->t->strs, id));
        return;
    }
    json_skip(&r->j);
    size_t len = (size_t)(r->j.p - start);
    if (len < 4096)
        trace_meta(r->t, r->source, name, (struct bytes){start, len});
}

/* Reads {"traceEvents": [...], ...}: keys in any order, some behind the
 * list. */
static int read_object(struct chrome_reader *r, const struct import_opts *o,
                       struct ops_err *e) {
    struct json_str key;
    bool found = false;
    while (json_key(&r->j, &key)) {
        if (BYTES_IS(key.raw, "traceEvents") && json_enter(&r->j, '[')) {
            found = true;
            TRY(read_events(r, o, e));
        } else if (!r->format->top(r, key.raw)) {
            keep_meta(r, key);
        }
        if (r->j.bad) break;
    }
    if (r->j.bad && !found)
        return fail(e, OPS_EFORMAT,
                    "the JSON breaks off or is damaged at "
                    "offset %zu, before any event",
                    (size_t)(r->j.p - r->base));
    if (r->j.bad && r->t->notes[NOTE_FILE_CUT] == 0)
        trace_note(r->t, NOTE_FILE_CUT, 1);
    if (!found)
        return fail(e, OPS_EFORMAT,
                    "JSON, but no trace: it has no "
                    "\"traceEvents\" list");
    return 0;
}

/* Tells the trace what its times count from: see find_origin. */
static void set_epoch(struct chrome_reader *r) {
    /* wall-clock microseconds of the years 1990 to 2100 */
    bool wall = r->origin_us > INT64_C(631152000000000) &&
                r->origin_us < INT64_C(4102444800000000);
    bool clock = r->origin_us ? wall : r->has_base;
    int64_t ns = r->base_ns;
    if (r->origin_us && __builtin_mul_overflow(r->origin_us, 1000, &ns)) ns = 0;
    r->t->sources[r->source].has_clock = clock;
    r->t->epoch_set = true;
    r->t->epoch_ns = ns;
    if (!clock) trace_note(r->t, NOTE_CLOCK_UNKNOWN, 1);
}

/* Do the events have the shapes of their inputs? Older profilers write no
 * header that says so. */
static bool has_shapes(struct bytes all) {
    enum { LOOK_BYTES = 16 << 20 };
    const uint8_t *end = all.p + (all.n < LOOK_BYTES ? all.n : LOOK_BYTES);
    return find_text(all.p, end, "\"Input Dims\"") != NULL ||
           find_text(all.p, end, "\"Input dims\"") != NULL;
}

int events_read(struct trace *t, uint32_t source, const struct chrome_format *p,
                const struct import_opts *o, struct ops_err *e) {
    struct bytes all = t->sources[source].bytes;
    /* clang-format off */
    struct chrome_reader r = {
        .j = json_reader(all), .t = t, .source = source, .format = p,
        .base = all.p, .args_base = t->sources[source].args_base,
        .last_end = INT64_MIN,
    };
    /* clang-format on */
    /* opscope's own files count from their epoch; "ts" in args is not ours */
    if (!events_sniff(all).opscope) r.origin_us = find_origin(all);
    if (BYTES_STARTS(all, "\xef\xbb\xbf")) r.j.p += 3;
    int rc;
    if (json_enter(&r.j, '[')) rc = read_events(&r, o, e);
    else if (json_enter(&r.j, '{')) rc = read_object(&r, o, e);
    else rc = fail(e, OPS_EFORMAT, "not a JSON object or list");
    if (rc == 0 && !r.j.bad && json_peek(&r.j) != 0)
        trace_note(t, NOTE_TEXT_BEHIND, 1);
    if (rc == 0) {
        events_close_open(&r);
        apply_labels(&r);
        p->finish(&r);
        label_counters(&r);
        set_epoch(&r);
        t->sources[source].has_shapes |= has_shapes(all);
        /* a text with raw control characters counts once, however many pieces
         * saw it */
        struct map odd = {0};
        for (size_t i = 0; i < r.nodd; i++)
            if (!map_set(&odd, strs_find(&t->strs, r.odd[i]), 0)) t->oom = true;
        trace_note(t, NOTE_JSON_MENDED, r.j.mended + odd.n);
        map_free(&odd);
        t->sources[source].events += r.events;
    }
    free_reader(&r);
    return rc;
}

struct events_sniff events_sniff(struct bytes all) {
    static const char *const torch[] = {
        "\"schemaVersion\"",       "\"deviceProperties\"", "\"cpu_op\"",
        "\"baseTimeNanoseconds\"", "\"user_annotation\"",  "\"cuda_runtime\"",
        "\"python_function\"",     "\"Operator\"",         "PyTorch Profiler",
    };
    struct events_sniff s = {0};
    size_t n = all.n < SNIFF_BYTES ? all.n : SNIFF_BYTES;
    const uint8_t *p = all.p, *end = all.p + n;
    if (BYTES_STARTS(all, "\xef\xbb\xbf")) p += 3;
    while (p < end && *p <= ' ' && *p != 0) p++;
    if (p == end || (*p != '{' && *p != '[')) return s;
    /* the list may begin behind a long header, "ph" behind a long name */
    const char *mark = *p == '{' ? "\"traceEvents\"" : "\"ph\"";
    s.events = find_text(p, all.p + all.n, mark) != NULL;
    /* opscope writes PyTorch's keys, but its own one first */
    s.opscope = find_text(p, p + (n > 64 ? 64 : n), "{\"opscope\": {") == p;
    for (size_t i = 0; s.events && i < COUNT(torch); i++)
        s.kineto |= !s.opscope && find_text(p, end, torch[i]) != NULL;
    return s;
}
