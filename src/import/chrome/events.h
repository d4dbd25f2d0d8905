/* SPDX-License-Identifier: Apache-2.0
 * Chrome trace events: what all JSON importers share. The reader finds the
 * events in the file (object with traceEvents, or a bare list), reads the
 * fields that every event has, and hands each to the format. It keeps times
 * exact, mends what writers break, and reads large files with
 * several threads: each piece into a trace of its own, joined in file order.
 *
 *     {"traceEvents": [ {"ph": "X", "cat": ..., "name": ..., "ts": us, ...}, */
#ifndef IMPORT_CHROME_EVENTS_H
#define IMPORT_CHROME_EVENTS_H

#include "base/text/json.h"
#include "model/trace.h"

struct import_opts;

/* A pid or tid: mostly a number, sometimes text. */
struct event_id {
    int64_t v;
    struct bytes text; /* n is 0 when it was a number */
};

struct event {
    uint8_t ph; /* 'X', 'B', 'i', ...; 0: none given */
    bool has_ts, has_dur;
    bool odd_ts; /* a time was given, but none that can be */
    bool has_pid, has_tid;
    struct json_str name, cat, id;
    struct bytes kind;   /* for kind_parse, in files that opscope wrote */
    struct bytes launch; /* ... and what it was launched as: a list */
    int64_t ts, dur;     /* ps */
    struct event_id pid, tid;
    const uint8_t *args;     /* the args object's '{', or NULL */
    const uint8_t *args_end; /* behind its '}' */
};

struct chrome_reader;

/* What a format adds to plain Chrome events. Its functions are called in file
 * order within a piece and must not keep state that depends on earlier events
 * of other pieces (caches are fine). */
struct chrome_format {
    /* Takes a span: X, or a B with its E (dur is known later). Adds it by
     * reader_span() with the kind and track that it decides on. */
    row_id (*span)(struct chrome_reader *r, const struct event *ev);
    /* Takes an instant; returns false to have it added as a plain one. */
    bool (*instant)(struct chrome_reader *r, const struct event *ev);
    /* Returns true to pass over a flow event (s, t, f). */
    bool (*skip_flow)(const struct event *ev);
    /* Flow events are needed only if this text stands in them; others are
     * passed over unread. NULL: any may be needed. */
    const char *flow_word;
    /* Reads the value of a key beside traceEvents, or returns false to have it
     * kept as meta. */
    bool (*top)(struct chrome_reader *r, struct bytes key);
    /* Is called after all events, before the trace is handed back. */
    void (*finish)(struct chrome_reader *r);
};

/* Names that metadata events gave, applied once all tracks are known. */
struct track_label {
    int64_t pid, tid; /* tid is meaningless for a process or a device */
    bool process;
    bool device; /* what PyTorch calls the device of that number: "GPU 0" */
    struct json_str name; /* in the file */
    struct bytes kind;    /* what sort of track, where opscope wrote it */
};

/* A B or b event that waits for its end. */
struct open_span {
    row_id row;    /* ROW_NONE: closed */
    uint32_t prev; /* the open span of the same track and id around it */
};

struct chrome_reader {
    struct json j;
    struct trace *t;
    uint32_t source;
    const struct chrome_format *format;
    const uint8_t *base; /* the file's first byte */
    const uint8_t *stop; /* a piece ends where the next one begins */
    uint64_t args_base;
    int64_t origin_us; /* subtracted from every ts */
    bool piece;        /* one of several: no B/E pairs possible */
    bool give_up;      /* this piece needs the whole file in order */
    bool closed;       /* the list's end was read */
    uint64_t wasted;   /* bytes read in vain, behind damage */
    struct track_label *labels;
    size_t nlabels, cap_labels;
    struct open_span *open; /* B and b events, in file order */
    size_t nopen, cap_open;
    struct map open_map; /* hash of track and id -> innermost in open */
    int64_t last_end;    /* ps: the last time known, closes open spans */
    uint64_t events;
    struct bytes *odd; /* texts with raw control characters */
    size_t nodd, cap_odd;
    uint8_t *scratch; /* for names with escapes */
    size_t cap_scratch;
    /* caches: the last category and the last tracks */
    struct bytes last_cat;
    uint32_t last_cat_id;
    struct bytes last_launch; /* the facts that last_launch_id was made of */
    uint32_t last_launch_id, last_launch_cat;
    struct {
        int64_t pid, tid;
        enum track_kind kind;
        uint32_t track;
        bool set;
    } track_cache[8];
    int decimals;    /* of a us: as many as the times read need */
    int64_t base_ns; /* baseTimeNanoseconds */
    bool has_base;
    bool kinds; /* opscope wrote it: every event has its kind */
};

/* Reads the whole source. Returns OPS_EFORMAT if there is no event list. */
int events_read(struct trace *t, uint32_t source, const struct chrome_format *p,
                const struct import_opts *o, struct ops_err *e);

/* Reads one element of the event list (events.c, for events_file.c). Returns
 * false at damage; r->j.p is there. */
bool events_one(struct chrome_reader *r);

/* Ends the spans that nothing closed (events.c, for events_file.c). */
void events_close_open(struct chrome_reader *r);

/* Returns the interned name of an event, escapes undone. */
str_id reader_str(struct chrome_reader *r, struct json_str s);

/* Gives the row the launch facts of ev->launch. */
void reader_launch(struct chrome_reader *r, const struct event *ev, row_id row);

/* Returns the track of (kind, pid, tid); a small cache makes it quick. */
uint32_t reader_track(struct chrome_reader *r, enum track_kind kind,
                      int64_t pid, int64_t tid);

/* Adds ev as a span (or, with SPAN_INSTANT, a point) of that kind. */
row_id reader_span(struct chrome_reader *r, const struct event *ev,
                   uint32_t track, str_id name, uint8_t kind, uint8_t flags);

/* Enters the args of an event with a reader; returns false if it has none. */
bool reader_args(const struct event *ev, struct json *args);

/* Reads a value that should be an integer. Returns dflt if it is none. */
static inline int64_t reader_int(struct json *j, int64_t dflt) {
    struct json_num n = json_number(j);
    int64_t v;
    return json_to_int(&n, &v) ? v : dflt;
}

/* Returns the integer behind a key of an object that j has entered; -1 if it is
 * not there, or no integer. */
int64_t reader_find_int(struct json *j, const char *key);

/* Reads the kind and flags that opscope wrote into the event. Returns false if
 * it did not write any. */
bool reader_kind(const struct event *ev, uint8_t *kind, uint8_t *flags);

/* Reads an instant that tells of memory, as PyTorch writes them: [memory], an
 * allocation (Bytes > 0) or a free; [OutOfMemory], an allocation that failed.
 * Returns false if it is neither. */
bool reader_memory(struct chrome_reader *r, const struct event *ev);

/* Reads a key beside the events that means the same whoever wrote it: clock,
 * host, rank, devices, what was recorded. Returns false for other keys. */
bool reader_top(struct chrome_reader *r, struct bytes key);

/* Tells whether there is an event list in this text, wherever it begins, and
 * which marks of a format stand in the first 64 KiB. */
struct events_sniff {
    bool events;  /* traceEvents, or a list of objects with "ph" */
    bool kineto;  /* keys or categories that only PyTorch writes */
    bool opscope; /* written by opscope: a Chrome trace with kinds */
};
struct events_sniff events_sniff(struct bytes all);

#endif
