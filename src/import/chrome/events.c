/* SPDX-License-Identifier: Apache-2.0
 * The Chrome trace event reader: fields, phases, names of tracks. The file
 * around the events and the threads that read it are in events_file.c. */
#include "import/chrome/events.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Remembers a text with raw control characters, which JSON does not allow. */
static void keep_odd(struct chrome_reader *r, struct bytes raw) {
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] >= ' ') continue;
        if (!VEC_ROOM(r->odd, r->nodd, r->cap_odd)) r->t->oom = true;
        else r->odd[r->nodd++] = raw;
        return;
    }
}

str_id reader_str(struct chrome_reader *r, struct json_str s) {
    if (!s.escaped) {
        size_t before = r->t->strs.n;
        str_id id = trace_str(r->t, s.raw);
        if (r->t->strs.n != before) keep_odd(r, s.raw);
        return id;
    }
    if (s.raw.n > r->cap_scratch) {
        if (!vec_resize(&r->scratch, s.raw.n, 1)) {
            r->t->oom = true;
            return 0;
        }
        r->cap_scratch = s.raw.n;
    }
    size_t n = json_unescape(s.raw, r->scratch, &r->j.mended);
    return trace_str(r->t, (struct bytes){r->scratch, n});
}

/* Returns the category's number; it is quick for the same one again. */
static uint32_t reader_cat(struct chrome_reader *r, struct json_str cat) {
    if (cat.raw.n == r->last_cat.n &&
        memcmp(cat.raw.p, r->last_cat.p, cat.raw.n) == 0)
        return r->last_cat_id;
    uint64_t mends = r->t->strs.mended + r->j.mended;
    struct bytes text = strs_bytes(&r->t->strs, reader_str(r, cat));
    r->last_cat_id = trace_cat(r->t, text);
    /* mends are counted for each event, however the file is cut */
    bool clean = r->t->strs.mended + r->j.mended == mends;
    r->last_cat = clean ? cat.raw : (struct bytes){NULL, 0};
    return r->last_cat_id;
}

uint32_t reader_track(struct chrome_reader *r, enum track_kind kind,
                      int64_t pid, int64_t tid) {
    unsigned k = ((unsigned)tid * 3 + kind) % 8;
    if (r->track_cache[k].set && r->track_cache[k].pid == pid &&
        r->track_cache[k].tid == tid && r->track_cache[k].kind == kind)
        return r->track_cache[k].track;
    uint32_t track = trace_track(r->t, r->source, kind, pid, tid);
    r->track_cache[k].pid = pid;
    r->track_cache[k].tid = tid;
    r->track_cache[k].kind = kind;
    r->track_cache[k].track = track;
    r->track_cache[k].set = true;
    return track;
}

row_id reader_span(struct chrome_reader *r, const struct event *ev,
                   uint32_t track, str_id name, uint8_t kind, uint8_t flags) {
    /* clang-format off */
    struct span_in in = {
        .ts = ev->ts, .dur = flags & SPAN_INSTANT ? 0 : ev->dur,
        .track = track, .name = name, .kind = kind, .flags = flags,
        .cat = ev->cat.raw.n ? reader_cat(r, ev->cat) : 0,
        .args = ev->args ? r->args_base + (uint64_t)(ev->args - r->base) + 1
                         : 0,
        .args_n = ev->args ? (size_t)(ev->args_end - ev->args) : 0,
    };
    /* clang-format on */
    row_id row = trace_span(r->t, &in);
    if (ev->tid.text.n > 0 && !r->t->oom && !r->t->tracks[track].named)
        trace_track_name(r->t, track, ev->tid.text);
    if (row != ROW_NONE && in.ts + in.dur > r->last_end && in.dur >= 0)
        r->last_end = in.ts + in.dur;
    return row;
}

void reader_launch(struct chrome_reader *r, const struct event *ev,
                   row_id row) {
    uint32_t cat = span_cat(r->t, row);
    if (cat != r->last_launch_cat || ev->launch.n != r->last_launch.n ||
        memcmp(ev->launch.p, r->last_launch.p, ev->launch.n) != 0) {
        struct json j = json_reader(ev->launch);
        struct category c = r->t->cats[cat];
        str_id *const facts[] = {&c.hlo_op, &c.tf_op, &c.details, &c.module};
        struct json_str s;
        uint64_t mends = r->t->strs.mended + r->j.mended;
        if (!json_enter(&j, '[')) return;
        for (size_t i = 0; i < COUNT(facts); i++)
            if (json_item(&j) && json_string(&j, &s))
                *facts[i] = reader_str(r, s);
        /* mends are counted for each event, however the file is cut */
        bool clean = r->t->strs.mended + r->j.mended == mends;
        r->last_launch = clean ? ev->launch : (struct bytes){NULL, 0};
        r->last_launch_cat = cat;
        r->last_launch_id = trace_category(r->t, &c);
    }
    span_set_cat(&r->t->spans, row, r->last_launch_id);
}

bool reader_args(const struct event *ev, struct json *args) {
    if (ev->args == NULL) return false;
    *args = (struct json){ev->args + 1, ev->args_end, 0, false, true};
    return true;
}

int64_t reader_find_int(struct json *j, const char *key) {
    struct json_str k;
    while (json_key(j, &k)) {
        if (bytes_eq(k.raw, key, strlen(key))) return reader_int(j, -1);
        json_skip(j);
    }
    return -1;
}

bool reader_kind(const struct event *ev, uint8_t *kind, uint8_t *flags) {
    return ev->kind.n > 0 && kind_parse(ev->kind, kind, flags);
}

/* Turns a time in microseconds into ps, the origin taken off. Returns false if
 * there is no such time. */
static bool to_ps(const struct json_num *n, int64_t origin_us, int64_t *out) {
    static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    if (n->kind == JSON_FLOAT) {
        double us = n->f - (double)origin_us;
        if (us > 9e12 || us < -9e12) return false;
        *out = (int64_t)(us * 1e6);
        return true;
    }
    if (n->kind != JSON_EXACT) return false;
    int64_t whole = n->digits, rest = 0, unit = 1;
    for (int i = 0; i < n->scale; i++) {
        if (i < n->scale - 6) whole /= 10; /* below a picosecond */
        else unit *= 10;
    }
    if (unit > 1) {
        rest = whole % unit;
        whole /= unit;
        rest *= 1000000 / tens[n->scale < 6 ? n->scale : 6];
    }
    if (whole > INT64_MAX / 2 || whole < -INT64_MAX / 2) return false;
    whole -= origin_us;
    if (whole > INT64_C(9000000000000) || whole < -INT64_C(9000000000000))
        return false;
    *out = whole * PS_PER_US + rest;
    return true;
}

/* Reads a pid or tid: a number, or text that gets a number of its own. */
static struct event_id read_id(struct chrome_reader *r) {
    struct event_id id = {0};
    struct json_str s;
    if (json_peek(&r->j) != '"') {
        id.v = reader_int(&r->j, 0);
        return id;
    }
    if (!json_string(&r->j, &s)) return id;
    struct json j = json_reader((struct bytes){s.raw.p, s.raw.n});
    struct json_num n = {0};
    if (s.raw.n > 0 && s.raw.n < 20) n = json_number(&j);
    if (n.kind == JSON_EXACT && j.p == j.end && json_to_int(&n, &id.v))
        return id;
    id.text = s.raw;
    /* the number is far from any real id, and the same for the same text */
    id.v = -(int64_t)(fixed_bytes(s.raw.p, s.raw.n) >> 16) - (1 << 30);
    return id;
}

/* Reads ts or dur; text instead of a number and nonsense are counted. */
static bool read_time(struct chrome_reader *r, int64_t origin_us,
                      int64_t *out) {
    static const int64_t unit[] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    struct json_num n = json_number(&r->j);
    if (n.quoted) trace_note(r->t, NOTE_NUMBER_AS_STRING, 1);
    if (!to_ps(&n, origin_us, out)) return false;
    /* is it finer than was known? Parts that sum to a whole must also do so as
     * they are printed */
    if (n.kind != JSON_EXACT || n.scale > r->decimals)
        while (*out % unit[r->decimals] != 0) r->decimals++;
    return true;
}

/* Reads any value as it stands: names are numbers now and then. */
static struct bytes read_raw(struct json *j) {
    json_space(j);
    const uint8_t *start = j->p;
    json_skip(j);
    return (struct bytes){start, (size_t)(j->p - start)};
}

/* Reads the value of one of an event's keys. Keys are told apart by length and
 * letters, as there are few. */
static void read_field(struct chrome_reader *r, struct event *ev,
                       struct bytes key) {
    const uint8_t *k = key.p;
    struct json_str s = {0};
    if (key.n == 2 && k[0] == 'p' && k[1] == 'h') {
        if (json_string(&r->j, &s)) ev->ph = s.raw.n ? s.raw.p[0] : 0;
        else json_skip(&r->j);
    } else if (key.n == 4 && memcmp(k, "name", 4) == 0) {
        if (!json_string(&r->j, &ev->name)) ev->name.raw = read_raw(&r->j);
    } else if (key.n == 4 && memcmp(k, "kind", 4) == 0) {
        if (json_string(&r->j, &s)) ev->kind = s.raw;
        else json_skip(&r->j);
    } else if (key.n == 6 && memcmp(k, "launch", 6) == 0) {
        ev->launch = read_raw(&r->j);
    } else if (key.n == 3 && memcmp(k, "cat", 3) == 0) {
        if (!json_string(&r->j, &ev->cat)) json_skip(&r->j);
    } else if (key.n == 3 && memcmp(k, "pid", 3) == 0) {
        ev->pid = read_id(r);
        ev->has_pid = true;
    } else if (key.n == 3 && memcmp(k, "tid", 3) == 0) {
        ev->tid = read_id(r);
        ev->has_tid = true;
    } else if (key.n == 2 && k[0] == 't' && k[1] == 's') {
        ev->has_ts = read_time(r, r->origin_us, &ev->ts);
        ev->odd_ts = !ev->has_ts;
    } else if (key.n == 3 && memcmp(k, "dur", 3) == 0) {
        ev->has_dur = read_time(r, 0, &ev->dur);
    } else if (key.n == 4 && memcmp(k, "args", 4) == 0) {
        bool object = json_peek(&r->j) == '{';
        if (object) ev->args = r->j.p;
        json_skip(&r->j);
        if (object) ev->args_end = r->j.p;
    } else if (BYTES_IS(key, "id") || BYTES_IS(key, "id2")) {
        /* id2 is an object; its text is as good a name as any */
        ev->id.raw = read_raw(&r->j);
    } else {
        json_skip(&r->j);
    }
}

enum { NO_OPEN = UINT32_MAX - 1 }; /* storable in a map, unlike MAP_NONE */

/* Opens a span that a later event closes, known by track and id. */
static void open_push(struct chrome_reader *r, uint32_t track, uint64_t id,
                      row_id row) {
    if (row == ROW_NONE) return;
    uint32_t *at = map_at(&r->open_map, hash_pair(id, track));
    if (at == NULL || r->nopen >= NO_OPEN ||
        !VEC_ROOM(r->open, r->nopen, r->cap_open)) {
        r->t->oom = true;
        return;
    }
    r->open[r->nopen] = (struct open_span){row,
                                           *at == MAP_NONE ? NO_OPEN : *at};
    *at = (uint32_t)r->nopen++;
}

/* Returns the innermost open span of that track and id, or NO_OPEN. */
static uint32_t open_top(const struct chrome_reader *r, uint32_t track,
                         uint64_t id) {
    uint32_t i = map_get(&r->open_map, hash_pair(id, track));
    return i == MAP_NONE ? NO_OPEN : i;
}

/* Closes the innermost open span of that track and id; returns false if none.
 * An end that no time line can hold is left out: the span stays open. */
static bool open_close(struct chrome_reader *r, uint32_t track, uint64_t id,
                       int64_t ts) {
    uint32_t i = open_top(r, track, id);
    if (i == NO_OPEN) return false;
    struct open_span *o = &r->open[i];
    assert(i < r->nopen && o->row < r->t->spans.n);
    int64_t dur = sat_sub(ts, r->t->spans.ts[o->row]);
    if (dur > DUR_LIMIT) {
        trace_note(r->t, NOTE_TIME_OUT_OF_RANGE, 1);
        return true;
    }
    if (dur < 0) {
        trace_note(r->t, NOTE_NEGATIVE_DURATION, 1);
        dur = 0;
    }
    r->t->spans.dur[o->row] = dur;
    if (ts > r->last_end) r->last_end = ts;
    o->row = ROW_NONE;
    map_set(&r->open_map, hash_pair(id, track), o->prev);
    return true;
}

/* Closes the spans that are open when the file ends, at the last time known. */
void events_close_open(struct chrome_reader *r) {
    for (size_t i = 0; i < r->nopen; i++) {
        row_id row = r->open[i].row;
        if (row == ROW_NONE) continue;
        int64_t dur = r->last_end - r->t->spans.ts[row];
        r->t->spans.dur[row] = dur > 0 && dur <= DUR_LIMIT ? dur : 0;
        r->t->spans.flags[row] |= SPAN_OPEN;
        trace_note(r->t, NOTE_UNMATCHED_BEGIN, 1);
    }
    r->nopen = 0;
}

/* Takes B and E of one thread. The thread's Python frames stand on a track of
 * their own: an E closes what began last on either. */
static void begin_end(struct chrome_reader *r, struct event *ev) {
    if (ev->ph == 'B') {
        ev->dur = 0;
        ev->has_dur = true;
        row_id row = r->format->span(r, ev);
        if (row != ROW_NONE) open_push(r, r->t->spans.track[row], 0, row);
        return;
    }
    static const enum track_kind kinds[] = {TRACK_THREAD, TRACK_PYTHON};
    uint32_t last = NO_OPEN, track = ROW_NONE;
    for (int k = 0; k < 2; k++) {
        uint32_t tr = trace_track_find(r->t, r->source, kinds[k], ev->pid.v,
                                       ev->tid.v);
        uint32_t i = tr == ROW_NONE ? NO_OPEN : open_top(r, tr, 0);
        if (i == NO_OPEN || (last != NO_OPEN && i < last)) continue;
        last = i;
        track = tr;
    }
    if (last == NO_OPEN || !open_close(r, track, 0, ev->ts))
        trace_note(r->t, NOTE_UNMATCHED_END, 1);
}

/* Takes b, n, e: spans known by category and id, which may overlap. One track
 * holds those of a process and category. */
static void async_event(struct chrome_reader *r, struct event *ev) {
    uint64_t cat = fixed_bytes(ev->cat.raw.p, ev->cat.raw.n);
    uint64_t id = hash_pair(cat, hash_bytes(ev->id.raw.p, ev->id.raw.n)) | 1;
    uint32_t track = reader_track(r, TRACK_ASYNC, ev->pid.v,
                                  (int64_t)(cat >> 8));
    if (ev->ph == 'e' || ev->ph == 'F') {
        if (!open_close(r, track, id, ev->ts))
            trace_note(r->t, NOTE_UNMATCHED_END, 1);
        return;
    }
    bool point = ev->ph == 'n' || ev->ph == 'T' || ev->ph == 'p';
    uint8_t kind = SPAN_OTHER, flags = 0;
    reader_kind(ev, &kind, &flags);
    flags |= (uint8_t)(SPAN_ASYNC | (point ? SPAN_INSTANT : 0));
    ev->dur = 0;
    row_id row = reader_span(r, ev, track, reader_str(r, ev->name), kind,
                             flags);
    if (!point) open_push(r, track, id, row);
}

/* Takes C: every number in args is a series of its own. */
static void counter_event(struct chrome_reader *r, const struct event *ev) {
    struct json args;
    struct json_str key;
    size_t numbers = 0;
    /* opscope drew it from the [memory] instants beside it */
    if (BYTES_IS(ev->cat.raw, "[memory]")) return;
    if (!reader_args(ev, &args)) {
        trace_note(r->t, NOTE_BAD_EVENT, 1);
        return;
    }
    str_id name = reader_str(r, ev->name);
    while (json_key(&args, &key)) {
        struct json_num n = json_number(&args);
        if (n.kind == JSON_NAN) continue;
        numbers++;
        struct bytes a = strs_bytes(&r->t->strs, name), k = key.raw;
        char text[512];
        size_t len = k.n == 0 ? cut_fmt(text, sizeof text, "%.*s",
                                        CUT_BYTES(sizeof text - 1, a))
                              : cut_fmt(text, sizeof text, "%.*s: %.*s",
                                        CUT_BYTES(200, a), CUT_BYTES(200, k));
        uint32_t c = trace_counter_of(r->t, r->source,
                                      ev->has_pid ? ev->pid.v : NO_PID,
                                      (struct bytes){(uint8_t *)text, len},
                                      bytes_of(""), ROW_NONE);
        /* PyTorch's hardware counters: a process "GPU 0 Counters" */
        if (c != ROW_NONE && ev->pid.text.n > 0)
            r->t->counters[c].process = trace_str(r->t, ev->pid.text);
        trace_sample(r->t, c, ev->ts, json_to_double(&n));
    }
    if (numbers == 0) trace_note(r->t, NOTE_BAD_EVENT, 1);
}

/* Takes M: names of processes, devices and threads, kept until all tracks are
 * known. */
static void meta_event(struct chrome_reader *r, const struct event *ev) {
    bool process = BYTES_IS(ev->name.raw, "process_name");
    bool device = BYTES_IS(ev->name.raw, "process_labels");
    struct json args;
    struct json_str key, word;
    struct track_label l = {.pid = ev->pid.v,
                            .tid = ev->tid.v,
                            .process = process,
                            .device = device};
    if (!process && !device && !BYTES_IS(ev->name.raw, "thread_name")) return;
    if (!reader_args(ev, &args)) return;
    const char *at = device ? "labels" : "name";
    bool named = false;
    while (json_key(&args, &key)) {
        if (bytes_eq(key.raw, at, strlen(at)) && json_string(&args, &l.name))
            named = true;
        else if (BYTES_IS(key.raw, "kind") && json_string(&args, &word))
            l.kind = word.raw;
        else json_skip(&args);
    }
    if (!named) return;
    if (VEC_ROOM(r->labels, r->nlabels, r->cap_labels))
        r->labels[r->nlabels++] = l;
    else r->t->oom = true;
}

/* Keeps one end of an arrow. */
static void flow_event(struct chrome_reader *r, const struct event *ev) {
    if (!ev->has_ts || !ts_is_sane(ev->ts)) {
        trace_note(r->t, NOTE_TIME_MISSING, 1);
        return;
    }
    uint64_t id = hash_pair(hash_bytes(ev->cat.raw.p, ev->cat.raw.n),
                            hash_bytes(ev->id.raw.p, ev->id.raw.n));
    trace_flow(r->t, id, reader_track(r, TRACK_THREAD, ev->pid.v, ev->tid.v),
               ev->ts, ev->ph);
}

/* Takes everything that has a time. */
static void timed_event(struct chrome_reader *r, struct event *ev) {
    switch (ev->ph) {
    case 'X':
        if (!ev->has_dur) trace_note(r->t, NOTE_DURATION_MISSING, 1);
        r->format->span(r, ev);
        break;
    case 'B':
    case 'E':
        if (r->piece) r->give_up = true;
        else begin_end(r, ev);
        break;
    case 'b':
    case 'n':
    case 'e':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
        if (r->piece) r->give_up = true;
        else async_event(r, ev);
        break;
    case 'i':
    case 'I':
    case 'R':
        if (r->format->instant(r, ev)) break;
        reader_span(r, ev, reader_track(r, TRACK_THREAD, ev->pid.v, ev->tid.v),
                    reader_str(r, ev->name), SPAN_OTHER, SPAN_INSTANT);
        break;
    case 'C': counter_event(r, ev); break;
    default: trace_note(r->t, NOTE_BAD_EVENT, 1);
    }
}

/* Undoes a text's escapes: what it is compared with has none. */
static void undo_escapes(struct chrome_reader *r, struct json_str *s) {
    if (!s->escaped) return;
    s->raw = strs_bytes(&r->t->strs, reader_str(r, *s));
    s->escaped = false;
}

/* Hands a complete event on. */
static void use_event(struct chrome_reader *r, struct event *ev) {
    r->events++;
    undo_escapes(r, &ev->name);
    undo_escapes(r, &ev->cat);
    switch (ev->ph) {
    case 'M': meta_event(r, ev); return;
    case 's':
    case 't':
    case 'f':
        if (!r->format->skip_flow(ev)) flow_event(r, ev);
        return;
    case 'P':
    case 'N':
    case 'O':
    case 'D':
    case 'v':
    case 'V':
    case 'c':
    case '(':
    case ')':
    case '=': trace_note(r->t, NOTE_PHASE_SKIPPED, 1); return;
    case 0: trace_note(r->t, NOTE_BAD_EVENT, 1); return;
    }
    if (!ev->has_ts) {
        trace_note(r->t,
                   ev->odd_ts ? NOTE_TIME_OUT_OF_RANGE : NOTE_TIME_MISSING, 1);
        return;
    }
    timed_event(r, ev);
}

/* Passes over the rest of a flow event that is not needed; returns false, and
 * moves nothing, if it may be needed. Most of torch's are arrows of
 * launches. */
static bool pass_flow(struct chrome_reader *r) {
    const char *word = r->format->flow_word;
    if (word == NULL) return false;
    struct json at = r->j;
    json_skip_rest(&r->j);
    if (r->j.bad) return true;
    if (!memmem(at.p, (size_t)(r->j.p - at.p), word, strlen(word))) return true;
    r->j = at;
    return false;
}

bool events_one(struct chrome_reader *r) {
    struct event ev;
    struct json_str key;
    memset(&ev, 0, sizeof ev);
    if (!json_enter(&r->j, '{')) {
        json_skip(&r->j); /* a stray value in the list */
        trace_note(r->t, NOTE_BAD_EVENT, 1);
        return !r->j.bad;
    }
    size_t keys = 0;
    while (json_key(&r->j, &key)) {
        read_field(r, &ev, key.raw);
        if (r->j.bad) break;
        keys++;
        if ((ev.ph == 's' || ev.ph == 'f' || ev.ph == 't') && keys == 1 &&
            pass_flow(r)) {
            r->events++;
            return !r->j.bad;
        }
    }
    if (r->j.bad) return false;
    if (ev.name.raw.p == NULL) ev.name.raw = bytes_of("(unnamed)");
    if (keys > 0) use_event(r, &ev); /* {} ends some writers' lists */
    return true;
}
