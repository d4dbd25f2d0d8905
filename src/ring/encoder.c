/* SPDX-License-Identifier: Apache-2.0
 * Records become events. The loop over scopes (plain_scopes) is the recorder's
 * throughput: it stays short, and everything rarer stands in functions of its
 * own. Stats of events are written to a buffer first: the event's head, which
 * stands before them, holds their length. */
#include "ring/encoder.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/facts.h"
#include "base/xspace.h"
#include "opscope/record.h"
#include "ring/clock.h"
#include "ring/ring_map.h"
#include "ring/text.h"

static const uint32_t line_bytes[ENCODER_LANE] = {
    [ENCODER_HOST] = 256 << 10,
    [ENCODER_EARLY] = 32 << 10,
    [ENCODER_COUNTERS] = 64 << 10,
    [ENCODER_DEVICE] = 64 << 10,
};
enum {
    LANE_BYTES = 8 << 10,
    ALL_BYTES = (416 << 10) + ENCODER_LANES * LANE_BYTES,
    EVENT_ROOM = 64,       /* an event without stats */
    RECORD_ROOM = 8192,    /* with all arguments that a record can hold */
    TEXT_MAX = 4096,       /* bytes kept of a name or fact */
    SLACK_PS = 1000000000, /* a line begins so far before its first event */
};

/* Ids of event metadata: names of the program have numbers of their own, below
 * REC_NAMES; these stand above. */
enum {
    META_STEP = REC_NAMES,
    META_EPOCH,
    META_ALLOC,
    META_FREE,
    META_DROPPED,
    META_NO_NAME,
};
static const char *const meta_names[] = {
    "step",
    "epoch",
    "MemoryAllocation",
    "MemoryDeallocation",
    "opscope: dropped",
    "(name not recorded)",
};

/* Ids of stat metadata: those in many events take one byte each. */
enum {
    STAT_STEP = 1,
    STAT_ROOT,
    STAT_EPOCH,
    STAT_UNFINISHED,
    STAT_ADDR,
    STAT_ALLOCATION,
    STAT_REQUESTED,
    STAT_ALLOCATOR,
    STAT_TF_OP,
    STAT_PROGRAM,
    STAT_COUNTER,
    STAT_CORRELATION,
    STAT_FLOW,
    STAT_ASYNC,
    STAT_BYTES,
    STAT_KIND,
    STAT_COUNT,
    STAT_WHY,
    STAT_UNKNOWN,
    STATS,
    STAT_KEYS = 32,       /* + the number of a key or tag */
    STAT_FACTS = 1 << 20, /* + the number of a fact */
};

/* clang-format off */
static const char *const stat_names[STATS] = {
    [STAT_STEP] = FACT_STEP_NUM, [STAT_ROOT] = "_r",
    [STAT_EPOCH] = "epoch_num", [STAT_UNFINISHED] = FACT_UNFINISHED,
    [STAT_ADDR] = "addr", [STAT_ALLOCATION] = "allocation_bytes",
    [STAT_REQUESTED] = "requested_bytes",
    [STAT_ALLOCATOR] = "allocator_name", [STAT_TF_OP] = "tf_op",
    [STAT_PROGRAM] = "program", [STAT_COUNTER] = FACT_COUNTER_VALUE,
    [STAT_CORRELATION] = "correlation_id", [STAT_FLOW] = "flow",
    [STAT_ASYNC] = "_a", [STAT_BYTES] = "bytes", [STAT_KIND] = FACT_KIND,
    [STAT_COUNT] = "count", [STAT_WHY] = "why", [STAT_UNKNOWN] = "argument",
};
/* clang-format on */

static const char *const kind_names[] = {
    [OPS_KIND_OP] = "op",     [OPS_KIND_INPUT] = "input",
    [OPS_KIND_COMM] = "comm", [OPS_KIND_COPY] = "copy",
    [OPS_KIND_WAIT] = "wait", [OPS_KIND_PHASE] = "phase",
};

static const char *const device_kind_names[] = {
    [OPS_DEVICE_KERNEL] = "kernel",
    [OPS_DEVICE_COPY] = "copy",
    [OPS_DEVICE_SET] = "set",
    [OPS_DEVICE_SYNC] = "sync",
};

#define POINT     UINT64_MAX
#define FLOW_MASK (((uint64_t)1 << 56) - 1)
/* Ids of lines beside the tids, which end at 2^22; 32 bits, for XProf. */
enum { THREAD_ROW = 1 << 23, ASYNC_LINE = 1 << 30 };

int encoder_init(struct encoder *e, const struct ring_map *map,
                 struct encoder_out out, uint32_t facts_from) {
    memset(e, 0, sizeof *e);
    e->map = map;
    e->out = out;
    e->facts = facts_from;
    e->memory = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e->memory == MAP_FAILED) {
        e->memory = NULL;
        return -1;
    }
    uint8_t *p = e->memory;
    for (size_t i = 0; i < ENCODER_LINES; i++) {
        e->line[i].buf = p;
        e->line[i].cap = i < ENCODER_LANE ? line_bytes[i] : LANE_BYTES;
        p += e->line[i].cap;
    }
    return 0;
}

void encoder_free(struct encoder *e) {
    if (e->memory != NULL) munmap(e->memory, ALL_BYTES);
    e->memory = NULL;
}

static void put_bytes(struct encoder *e, unsigned file, const void *p,
                      size_t n) {
    encoder_begin(e, file);
    if (!e->failed && e->out.write(e->out.self, file, p, n) != 0)
        e->failed = true;
}

/* --- what planes say beside their events --------------------------------- */

/* A name for a number: an entry of a plane's table of events or stats. */
struct meta {
    uint64_t id;
    const char *name;
    size_t n;
    const char *kind; /* of an event; NULL: none */
};

static void put_meta(struct encoder *e, unsigned file, uint32_t field,
                     const struct meta *m) {
    uint8_t buf[TEXT_MAX + 2 * XSPACE_META_ROOM], more[96], *p = more;
    size_t n = text_cut(m->name, m->n, TEXT_MAX);
    if (m->kind != NULL) {
        size_t k = strlen(m->kind);
        p = xspace_stat_text(p, XEVENTMETA_STATS, STAT_KIND, k);
        memcpy(p, m->kind, k);
        p += k;
    }
    size_t k = (size_t)(p - more);
    p = xspace_meta_head(buf, field, m->id, n, k);
    memcpy(p, m->name, n);
    text_mend(p, n);
    memcpy(p + n, more, k);
    put_bytes(e, file, buf, (size_t)(p + n + k - buf));
}

/* Writes a fact whose value, its tag included, is value[0..n). */
static void put_fact(struct encoder *e, unsigned file, const char *key,
                     const uint8_t *value, size_t n) {
    uint8_t buf[XSPACE_STAT_ROOM];
    struct meta m = {STAT_FACTS + e->facts++, key, strlen(key), NULL};
    put_meta(e, file, XPLANE_STAT_METADATA, &m);
    uint8_t *p = xspace_stat_head(buf, XPLANE_STATS, m.id, n);
    put_bytes(e, file, buf, (size_t)(p - buf));
    put_bytes(e, file, value, n);
}

void encoder_fact(struct encoder *e, unsigned file, const char *key,
                  const char *value) {
    uint8_t buf[TEXT_MAX + PBW_FIELD_ROOM];
    size_t n = text_cut(value, strnlen(value, TEXT_MAX + 1), TEXT_MAX);
    uint8_t *p = text_field(buf, XSTAT_STR, value, n);
    put_fact(e, file, key, buf, (size_t)(p - buf));
}

void encoder_fact_int(struct encoder *e, unsigned file, const char *key,
                      int64_t value) {
    uint8_t buf[PBW_FIELD_ROOM], *p = pbw_int(buf, XSTAT_INT64, value);
    put_fact(e, file, key, buf, (size_t)(p - buf));
}

void encoder_loss(struct encoder *e, uint64_t n, const char *what) {
    char text[160];
    if (n == 0) return;
    snprintf(text, sizeof text, "%llu %s", (unsigned long long)n, what);
    encoder_fact(e, 0, FACT_LOSS, text);
}

/* Counts what is not 0. */
static void put_count(struct encoder *e, const char *key, uint64_t n) {
    if (n > 0) encoder_fact_int(e, 0, key, (int64_t)n);
}

/* A call whose name is lost is there, or counted where it was lost. */
void encoder_losses(struct encoder *e, const struct rec_head *h) {
    uint64_t no_ring = REC_LOAD(&h->lost.no_ring);
    put_count(e, FACT_DROPPED, no_ring + h->drops_write);
    put_count(e, FACT_SCALARS_LOST, h->drops_scalars);
    encoder_loss(e, h->drops_write, LOSS_WRITE);
    encoder_loss(e, no_ring, LOSS_NO_RING);
    encoder_loss(e, REC_LOAD(&h->lost.names), LOSS_NAMES);
    encoder_loss(e, REC_LOAD(&h->lost.names_memory), LOSS_NAMES_MEMORY);
    encoder_loss(e, h->drops_scalars, LOSS_SCALARS);
}

void encoder_begin(struct encoder *e, unsigned file) {
    const struct rec_head *h = e->map->head;
    char name[128] = XSPACE_HOST_PLANE;
    uint8_t buf[192], *p = buf;
    if (e->begun >> file & 1) return;
    e->begun |= 1u << file;
    if (e->out.open != NULL && e->out.open(e->out.self, file) != 0)
        e->failed = true;
    if (file > 0)
        snprintf(name, sizeof name, "/device:CUSTOM:%.63s",
                 h->devices[file - 1].name);
    p = pbw_int(p, XPLANE_ID, file);
    p = text_field(p, XPLANE_NAME, name, strlen(name));
    put_bytes(e, file, buf, (size_t)(p - buf));
    for (uint32_t i = 1; i < STATS; i++)
        put_meta(e, file, XPLANE_STAT_METADATA,
                 &(struct meta){i, stat_names[i], strlen(stat_names[i]), NULL});
    for (size_t i = 0; i < COUNT(meta_names); i++)
        put_meta(e, file, XPLANE_EVENT_METADATA,
                 &(struct meta){META_STEP + i, meta_names[i],
                                strlen(meta_names[i]), NULL});
    /* A device's plane is a file of its own while it is written; the host's
     * plane has this among its other facts. */
    if (file > 0)
        encoder_fact_int(e, file, FACT_START_UNIX_NS, h->start_unix_ns);
    else {
        encoder_fact(e, 0, FACT_VERSION, OPS_VERSION);
        encoder_fact_int(e, 0, FACT_PROCESS_ID, h->pid);
        encoder_fact(e, 0, FACT_HOST_NAME, h->host);
        encoder_fact(e, 0, "clock", h->tsc ? "tsc" : "monotonic");
        encoder_fact_int(e, 0, "clock_resolution_ps",
                         (int64_t)h->clock_resolution_ps);
        encoder_fact_int(e, 0, FACT_START_UNIX_NS, h->start_unix_ns);
        encoder_fact_int(e, 0, "start_monotonic_ns", (int64_t)h->start_mono_ns);
    }
    if (file == 0 && e->out.add_facts != NULL) e->out.add_facts(e->out.self);
}

/* Returns where the text of a name lies; NULL if it lies nowhere. */
static const char *name_text(const struct ring_map *map,
                             const struct rec_name *n) {
    if (n->at > REC_TEXT || n->bytes > REC_TEXT - n->at) return NULL;
    return map->text + n->at;
}

void encoder_names(struct encoder *e, unsigned file, uint64_t from,
                   uint64_t to) {
    if (to > REC_NAMES) to = REC_NAMES;
    for (uint64_t i = from > 0 ? from : 1; i < to; i++) {
        const struct rec_name *n = &e->map->names[i];
        struct meta m = {i, name_text(e->map, n), n->bytes, NULL};
        if (m.name == NULL) continue;
        if (n->kind == OPS_KEY_ || n->kind == OPS_TAG_) {
            m.id += STAT_KEYS;
            put_meta(e, file, XPLANE_STAT_METADATA, &m);
            continue;
        }
        if (n->kind != OPS_COUNT_)
            m.kind = file > 0                    ? "kernel"
                     : n->kind <= OPS_KIND_PHASE ? kind_names[n->kind]
                                                 : NULL;
        put_meta(e, file, XPLANE_EVENT_METADATA, &m);
    }
}

/* --- lines --------------------------------------------------------------- */

/* Writes the line's head and the events in it; the line is empty again.
 * Times count from the start of the session, which a fact and the plane "Task
 * Environment" tell: XProf works in picoseconds, and Unix times in them do not
 * fit into 64 bits. */
static void put_line(struct encoder *e, struct encoder_line *l) {
    if (l->n == 0) return;
    uint8_t head[3 * ENCODER_NAME], *p = head;
    p = pbw_int(p, XLINE_ID, l->id);
    p = text_field(p, XLINE_NAME, l->name, strlen(l->name));
    p = pbw_uint(p, XLINE_TIMESTAMP_NS, l->base_ps / 1000);
    if (l->display_id != 0) p = pbw_int(p, XLINE_DISPLAY_ID, l->display_id);
    uint8_t tag[PBW_FIELD_ROOM];
    uint8_t *q = pbw_len(tag, XPLANE_LINES, (size_t)(p - head) + l->n);
    put_bytes(e, l->file, tag, (size_t)(q - tag));
    put_bytes(e, l->file, head, (size_t)(p - head));
    put_bytes(e, l->file, l->buf, l->n);
    l->n = 0;
}

void encoder_lines(struct encoder *e) {
    for (size_t i = 0; i < ENCODER_LINES; i++) put_line(e, &e->line[i]);
}

/* Returns the line in which an event that starts at ps can stand with `room`
 * bytes: offsets are not negative. */
static struct encoder_line *line_for(struct encoder *e, struct encoder_line *l,
                                     uint64_t ps, size_t room) {
    if (l->n > 0 && ps < l->base_ps) {
        if (l == &e->line[ENCODER_HOST]) {
            struct encoder_line *early = &e->line[ENCODER_EARLY];
            early->file = l->file;
            early->id = l->id;
            early->display_id = l->display_id;
            memcpy(early->name, l->name, sizeof l->name);
            return line_for(e, early, ps, room);
        }
        put_line(e, l);
    }
    if (l->n + room > l->cap) put_line(e, l);
    if (l->n == 0) {
        l->base_ps = ps > SLACK_PS ? ps - SLACK_PS : 0;
        l->base_ps -= l->base_ps % 1000;
    }
    return l;
}

/* --- events -------------------------------------------------------------- */

/* When an event was. A dur of 0 is a span of no length; POINT is a point in
 * time, which has none. */
struct span {
    uint64_t ps, dur;
};

static uint64_t ps_of(struct encoder *e, uint64_t tick) {
    return rec_clock_ps(e->map->segs, e->map->head->nsegs, &e->seg, tick);
}

static struct span span_of(struct encoder *e, uint64_t t0, uint64_t t1) {
    uint64_t a = ps_of(e, t0), b = ps_of(e, t1);
    return (struct span){a, b > a ? b - a : 0};
}

static struct span point_at(struct encoder *e, uint64_t tick) {
    return (struct span){ps_of(e, tick), POINT};
}

static inline uint32_t meta_of(const struct encoder *e, uint32_t name) {
    return name == 0 || name >= e->nnames ? META_NO_NAME : name;
}

/* Writes an event whose stats stand at stats, up to end. */
static void put_event(struct encoder *e, struct encoder_line *l, uint32_t meta,
                      struct span at, const uint8_t *stats,
                      const uint8_t *end) {
    size_t n = (size_t)(end - stats);
    l = line_for(e, l, at.ps, n + EVENT_ROOM);
    uint8_t body[EVENT_ROOM], *b = body, *p = l->buf + l->n;
    b = pbw_uint(b, XEVENT_METADATA_ID, meta);
    b = pbw_uint(b, XEVENT_OFFSET_PS, at.ps - l->base_ps);
    if (at.dur != POINT) b = pbw_uint(b, XEVENT_DURATION_PS, at.dur);
    size_t len = (size_t)(b - body);
    p = pbw_len(p, XLINE_EVENTS, len + n);
    memcpy(p, body, len);
    memcpy(p + len, stats, n);
    l->n = (size_t)(p + len + n - l->buf);
    e->events++;
}

/* Writes the same without stats, at p: the loop's body. The length is known to
 * be below 128 (three numbers) and is filled in behind. */
static inline uint8_t *plain_event(uint8_t *p, uint32_t meta, uint64_t offset,
                                   uint64_t dur) {
    uint8_t *start = p;
    p[0] = XLINE_EVENTS << 3 | PBW_BYTES;
    p[2] = XEVENT_METADATA_ID << 3;
    p = pbw_varint(p + 3, meta);
    *p++ = XEVENT_OFFSET_PS << 3;
    p = pbw_varint(p, offset);
    *p++ = XEVENT_DURATION_PS << 3;
    p = pbw_varint(p, dur);
    start[1] = (uint8_t)(p - start - 2);
    return p;
}

static uint64_t read_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static double read_f64(const uint8_t *p) {
    double v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint8_t *stat_uint(uint8_t *p, uint32_t id, uint64_t v) {
    return xspace_stat_uint(p, XEVENT_STATS, id, v);
}
static inline uint8_t *stat_int(uint8_t *p, uint32_t id, int64_t v) {
    return xspace_stat_int(p, XEVENT_STATS, id, v);
}
/* Room: XSPACE_STAT_ROOM + n. */
static inline uint8_t *stat_text(uint8_t *p, uint32_t id, const char *s,
                                 size_t n) {
    p = xspace_stat_text(p, XEVENT_STATS, id, n);
    memcpy(p, s, n);
    text_mend(p, n);
    return p + n;
}

/* A record with payload, taken out of its slots. */
struct record {
    uint32_t kind, name, bytes;
    uint64_t time;
    uint8_t payload[REC_SLOT_MAX * REC_CONT_BYTES];
};

/* Writes one argument's value a as a stat at p. Returns NULL if it makes no
 * sense. */
static uint8_t *put_arg(const struct encoder *e, const struct rec_arg *arg,
                        const uint8_t *a, uint8_t *p) {
    uint32_t key = arg->key > 0 && arg->key < e->nnames ? STAT_KEYS + arg->key
                                                        : STAT_UNKNOWN;
    if (arg->type != REC_ARG_STRING && arg->bytes != 8) return NULL;
    switch (arg->type) {
    case REC_ARG_INT: return stat_int(p, key, (int64_t)read_u64(a));
    case REC_ARG_NUM: return xspace_stat_num(p, XEVENT_STATS, key, read_f64(a));
    case REC_ARG_STRING: return stat_text(p, key, (const char *)a, arg->bytes);
    case REC_ARG_CORR: return stat_uint(p, STAT_CORRELATION, read_u64(a));
    case REC_ARG_FLOW_OUT:
    case REC_ARG_FLOW_IN:
        return stat_uint(p, STAT_FLOW,
                         (read_u64(a) & FLOW_MASK) << 2 |
                             (arg->type == REC_ARG_FLOW_OUT ? 2 : 1));
    default: return NULL;
    }
}

/* Writes arguments as stats at p, which has room. Returns the end; p, and
 * counts, if they make no sense. */
static uint8_t *put_args(struct encoder *e, const uint8_t *a, size_t n,
                         uint8_t *const p) {
    uint8_t *end = p;
    while (n >= REC_ARG_HEAD && end != NULL) {
        struct rec_arg arg = {.type = a[4], .bytes = a[5]};
        memcpy(&arg.key, a, 4);
        a += REC_ARG_HEAD;
        n -= REC_ARG_HEAD;
        end = arg.bytes > n ? NULL : put_arg(e, &arg, a, end);
        a += arg.bytes;
        n -= arg.bytes;
    }
    if (end != NULL && n == 0) return end;
    e->bad++;
    return p;
}

/* Writes a span on the thread's line, or a point, with arguments; unfinished:
 * it was cut. */
static void put_scope(struct encoder *e, uint32_t name, struct span at,
                      const uint8_t *args, size_t n, bool unfinished) {
    uint8_t stats[RECORD_ROOM], *p = put_args(e, args, n, stats);
    if (unfinished) p = stat_int(p, STAT_UNFINISHED, 1);
    put_event(e, &e->line[ENCODER_HOST], meta_of(e, name), at, stats, p);
}

static void put_step(struct encoder *e, bool epoch, int64_t number,
                     struct span at, bool unfinished) {
    uint8_t stats[3 * XSPACE_STAT_ROOM], *p = stats;
    p = stat_int(p, epoch ? STAT_EPOCH : STAT_STEP, number);
    if (!epoch) p = stat_int(p, STAT_ROOT, 1);
    if (unfinished) p = stat_int(p, STAT_UNFINISHED, 1);
    put_event(e, &e->line[ENCODER_HOST], epoch ? META_EPOCH : META_STEP, at,
              stats, p);
}

static void put_memory(struct encoder *e, const struct record *r) {
    uint8_t stats[5 * XSPACE_STAT_ROOM], *p = stats;
    bool alloc = r->kind == REC_ALLOC;
    p = stat_uint(p, STAT_ADDR, read_u64(r->payload));
    if (alloc) {
        int64_t bytes = (int64_t)read_u64(r->payload + 8);
        p = stat_int(p, STAT_ALLOCATION, bytes);
        p = stat_int(p, STAT_REQUESTED, bytes);
    }
    p = xspace_stat_ref(p, XEVENT_STATS, STAT_ALLOCATOR, STAT_PROGRAM);
    if (alloc && r->name > 0 && r->name < e->nnames)
        p = xspace_stat_ref(p, XEVENT_STATS, STAT_TF_OP, STAT_KEYS + r->name);
    put_event(e, &e->line[ENCODER_HOST], alloc ? META_ALLOC : META_FREE,
              point_at(e, r->time), stats, p);
}

/* The line of counters counts from the recording's start, not from a base of
 * its own: readers leave a line at 0 as it is where they take the start off
 * others. */
void encoder_counter(struct encoder *e, uint32_t name, double value,
                     uint64_t ps) {
    struct encoder_line *l = &e->line[ENCODER_COUNTERS];
    uint8_t stats[XSPACE_STAT_ROOM];
    if (l->n + EVENT_ROOM + sizeof stats > l->cap) put_line(e, l);
    memcpy(l->name, XSPACE_COUNTERS_LINE, sizeof XSPACE_COUNTERS_LINE);
    l->id = INT64_MAX;
    uint8_t *p = xspace_stat_num(stats, XEVENT_STATS, STAT_COUNTER, value);
    size_t n = (size_t)(p - stats);
    uint8_t *q = pbw_len(l->buf + l->n, XLINE_EVENTS,
                         pbw_uint_size(XEVENT_METADATA_ID, name) +
                             pbw_uint_size(XEVENT_OFFSET_PS, ps) + n);
    q = pbw_uint(q, XEVENT_METADATA_ID, name);
    q = pbw_uint(q, XEVENT_OFFSET_PS, ps);
    memcpy(q, stats, n);
    l->n = (size_t)(q + n - l->buf);
    e->events++;
}

/* Writes a span on a lane; spans on one lane never overlap. */
static void put_async(struct encoder *e, uint32_t name, uint64_t t0,
                      uint64_t t1, bool unfinished) {
    uint8_t stats[3 * XSPACE_STAT_ROOM], *p = stats;
    struct span at = span_of(e, t0, t1);
    size_t i = 0;
    while (i + 1 < ENCODER_LANES && e->lane_end[i] > at.ps) i++;
    struct encoder_line *l = &e->line[ENCODER_LANE + i];
    e->lane_end[i] = at.ps + at.dur;
    l->id = ASYNC_LINE + (int64_t)i;
    if (i == 0) memcpy(l->name, "async", sizeof "async");
    else snprintf(l->name, sizeof l->name, "async %zu", i + 1);
    p = stat_int(p, STAT_ASYNC, 1);
    uint64_t id = (t0 - e->map->head->start_tick) & FLOW_MASK;
    p = stat_uint(p, STAT_FLOW, id << 2 | 3);
    if (unfinished) p = stat_int(p, STAT_UNFINISHED, 1);
    put_event(e, l, meta_of(e, name), at, stats, p);
}

void encoder_device(struct encoder *e, const struct encoder_device *d) {
    const struct rec_head *h = e->map->head;
    uint32_t ntracks = REC_ACQUIRE(&h->ntracks);
    struct encoder_line *l = &e->line[ENCODER_DEVICE];
    if (d->track == 0 || d->track > ntracks || d->track > REC_TRACKS) {
        e->bad++;
        return;
    }
    const struct rec_track *t = &h->tracks[d->track - 1];
    if (l->file != t->device || l->id != (int64_t)d->track) {
        put_line(e, l);
        l->file = t->device;
        l->id = d->track;
        memcpy(l->name, t->queue, sizeof t->queue);
    }
    uint8_t stats[4 * XSPACE_STAT_ROOM], *p = stats;
    if (d->corr != 0) p = stat_uint(p, STAT_CORRELATION, d->corr);
    if (d->bytes >= 0) p = stat_int(p, STAT_BYTES, d->bytes);
    if (d->kind != OPS_DEVICE_KERNEL) {
        const char *kind = device_kind_names[d->kind < COUNT(device_kind_names)
                                                 ? d->kind
                                                 : OPS_DEVICE_KERNEL];
        p = stat_text(p, STAT_KIND, kind, strlen(kind));
    }
    put_event(e, l, meta_of(e, d->name), (struct span){d->start_ps, d->dur_ps},
              stats, p);
}

static void put_scalar(struct encoder *e, const struct record *r) {
    if (e->out.scalar == NULL || r->name == 0 || r->name >= e->nnames) return;
    const struct rec_name *n = &e->map->names[r->name];
    const char *tag = name_text(e->map, n);
    int64_t ns = e->map->head->start_unix_ns +
                 (int64_t)(ps_of(e, r->time) / 1000);
    if (tag == NULL) return;
    e->out.scalar(e->out.self, tag, n->bytes, (int64_t)read_u64(r->payload),
                  read_f64(r->payload + 8), (double)ns / 1e9);
}

static const uint8_t payload_least[REC_KINDS] = {
    [REC_SCOPE_X] = 8, [REC_STEP] = 16,   [REC_EPOCH] = 16,
    [REC_COUNTER] = 8, [REC_ALLOC] = 16,  [REC_FREE] = 8,
    [REC_ASYNC] = 8,   [REC_DEVICE] = 20, [REC_SCALAR] = 16,
};

static void put_record(struct encoder *e, const struct record *r) {
    const uint8_t *p = r->payload;
    if (r->kind >= REC_KINDS || r->bytes < payload_least[r->kind]) {
        e->bad++;
        return;
    }
    uint64_t end = r->time;
    switch (r->kind) {
    case REC_SCOPE_X:
        end += read_u64(p);
        put_scope(e, r->name, span_of(e, r->time, end), p + 8, r->bytes - 8,
                  false);
        break;
    case REC_STEP:
    case REC_EPOCH:
        end += read_u64(p);
        put_step(e, r->kind == REC_EPOCH, (int64_t)read_u64(p + 8),
                 span_of(e, r->time, end), false);
        break;
    case REC_INSTANT:
        put_scope(e, r->name, point_at(e, r->time), p, r->bytes, false);
        break;
    case REC_COUNTER:
        encoder_counter(e, meta_of(e, r->name), read_f64(p), ps_of(e, r->time));
        break;
    case REC_ALLOC:
    case REC_FREE: put_memory(e, r); break;
    case REC_ASYNC:
        end += read_u64(p);
        put_async(e, r->name, r->time, end, false);
        break;
    case REC_DEVICE: {
        struct encoder_device d = {.name = r->name,
                                   .kind = OPS_DEVICE_KERNEL,
                                   .bytes = -1,
                                   .dur_ps = read_u64(p) * 1000,
                                   .corr = read_u64(p + 8)};
        memcpy(&d.track, p + 16, 4);
        d.start_ps = rec_ps_of_ns(e->map->head, r->time);
        encoder_device(e, &d);
        return; /* its time is no tick */
    }
    case REC_SCALAR: put_scalar(e, r); break;
    default: e->bad++; return;
    }
    if (end > e->last) e->last = end;
}

/* --- rings --------------------------------------------------------------- */

static inline struct rec_slot load(const struct rec_slot *s) {
    return (struct rec_slot){REC_LOAD(&s->time), REC_LOAD(&s->rest)};
}

/* Slots [from, to) of a ring that are still to be encoded. */
struct run {
    const struct rec_slot *slots;
    uint64_t mask, from, to;
};

/* Takes the next record, one with payload, out of its slots. Its kind is
 * REC_NONE if the payload does not follow. */
static void take_record(struct run *run, struct record *r) {
    struct rec_slot first = load(&run->slots[run->from & run->mask]);
    uint32_t n = rec_slot_aux(first.rest);
    r->kind = rec_slot_kind(first.rest);
    r->name = rec_slot_name(first.rest);
    r->time = first.time;
    r->bytes = n;
    uint64_t count = 1 + (n + REC_CONT_BYTES - 1) / REC_CONT_BYTES;
    if (n > sizeof r->payload || count > run->to - run->from) {
        r->kind = REC_NONE;
        count = 1;
    }
    run->from++;
    for (uint64_t i = 0; i + 1 < count; i++, run->from++) {
        struct rec_slot s = load(&run->slots[run->from & run->mask]);
        uint32_t rest = rec_slot_aux(s.rest);
        if (rec_slot_kind(s.rest) != REC_CONT) {
            r->kind = REC_NONE;
            return;
        }
        uint8_t *p = r->payload + i * REC_CONT_BYTES;
        memcpy(p, &s.time, 8);
        memcpy(p + 8, &rest, 4);
    }
}

static void begin_thread(struct encoder *e, const struct rec_ring *r) {
    struct encoder_line *l = &e->line[ENCODER_HOST];
    char name[REC_THREAD_NAME];
    rec_name_get(r, name);
    put_line(e, l);
    put_line(e, &e->line[ENCODER_EARLY]);
    l->file = 0;
    /* tids are used again; numbers of threads are not */
    l->id = (int64_t)(r->tid | (r->thread & 0x3fffffff) << 32);
    /* XProf makes rows by the low 32 bits of an id: no tid is so high */
    l->display_id = r->thread == 0
                        ? 0
                        : THREAD_ROW + (int64_t)(r->thread & 0x3fffffff);
    snprintf(l->name, sizeof l->name, "%s/%u", name, r->tid);
}

static const char *const loss_texts[REC_LOSSES] = {
    [REC_LOST_FULL] = LOSS_RING_FULL,   [REC_LOST_MEMORY] = LOSS_NO_MEMORY,
    [REC_LOST_SIGNAL] = LOSS_IN_SIGNAL, [REC_LOST_DEEP] = LOSS_TOO_DEEP,
    [REC_LOST_ARGS] = LOSS_ARGS,        [REC_LOST_UNMATCHED] = LOSS_UNMATCHED,
};

/* Scales ticks as rec_clock_ps does. */
static inline uint64_t scale(uint64_t ticks, uint64_t mult) {
    return (uint64_t)((unsigned __int128)ticks * mult >> 32);
}

/* Encodes scopes without arguments until something else comes or the clock's
 * segment or the line is at its end. Most of a profile passes through here:
 * what the loop needs is in registers, and an event is written once, straight
 * into the line. */
static void plain_scopes(struct encoder *e, struct run *run) {
    struct encoder_line *l = &e->line[ENCODER_HOST];
    uint32_t n = e->map->head->nsegs;
    if (l->n == 0 || e->seg >= n) return;
    const struct rec_slot *slots = run->slots;
    const struct rec_seg seg = e->map->segs[e->seg];
    const uint64_t ticks = (e->seg + 1 < n ? e->map->segs[e->seg + 1].tick
                                           : UINT64_MAX) -
                           seg.tick;
    /* zero is seg.ps minus the base, modulo 2^64: no time before the base
     * comes */
    const uint64_t zero = seg.ps - l->base_ps, mask = run->mask, to = run->to;
    uint8_t *p = l->buf + l->n, *end = l->buf + l->cap - EVENT_ROOM;
    uint64_t last = e->last, from = run->from;
    for (; from < to && p <= end; from++) {
        struct rec_slot s = load(&slots[from & mask]);
        if (rec_slot_kind(s.rest) != REC_SCOPE) break;
        uint64_t t0 = s.time - seg.tick, t1 = t0 + rec_slot_aux(s.rest);
        if (t0 >= ticks || t1 >= ticks || t1 < t0) break;
        uint64_t a = zero + scale(t0, seg.mult), b = zero + scale(t1, seg.mult);
        if (a > INT64_MAX) break;
        p = plain_event(p, meta_of(e, rec_slot_name(s.rest)), a, b - a);
        if (t1 + seg.tick > last) last = t1 + seg.tick;
    }
    l->n = (size_t)(p - l->buf);
    e->last = last;
    e->events += from - run->from;
    run->from = from;
}

static void put_run(struct encoder *e, struct run run) {
    while (run.from < run.to) {
        struct record rec;
        plain_scopes(e, &run);
        if (run.from == run.to) break;
        struct rec_slot s = load(&run.slots[run.from & run.mask]);
        if (rec_slot_kind(s.rest) == REC_SCOPE) {
            uint64_t end = s.time + rec_slot_aux(s.rest);
            put_scope(e, rec_slot_name(s.rest), span_of(e, s.time, end), NULL,
                      0, false);
            if (end > e->last) e->last = end;
            run.from++;
            continue;
        }
        take_record(&run, &rec);
        put_record(e, &rec);
    }
}

/* Encodes the records of a thread that has steps. Events stand in the order of
 * their ends, but for steps: each begins a line and stands before what lies in
 * it, since XProf gives an event to a step that comes before it in its line. */
static void put_run_by_steps(struct encoder *e, struct run run) {
    while (run.from < run.to) {
        struct run before = run;
        while (run.from < run.to &&
               rec_slot_kind(REC_LOAD(&run.slots[run.from & run.mask].rest)) !=
                   REC_STEP)
            run.from++;
        before.to = run.from;
        if (run.from < run.to) {
            struct record rec;
            take_record(&run, &rec);
            put_line(e, &e->line[ENCODER_HOST]);
            put_record(e, &rec);
        }
        put_run(e, before);
    }
}

void encoder_ring(struct encoder *e, const struct rec_ring *r,
                  const struct encoder_range *range) {
    struct run run = {range->slots, r->slots - 1, range->from, range->to};
    e->nnames = REC_ACQUIRE(&e->map->head->nnames);
    if (e->nnames > REC_NAMES) e->nnames = REC_NAMES;
    begin_thread(e, r);
    /* these slots are the rest of an overwritten record */
    while (run.from < run.to &&
           rec_slot_kind(load(&run.slots[run.from & run.mask]).rest) ==
               REC_CONT)
        run.from++;
    if (REC_LOAD(&r->step_time) != 0) put_run_by_steps(e, run);
    else put_run(e, run);
    /* Writes one event for each reason, at the last time of the thread's
     * line. */
    for (unsigned i = 0; i < REC_LOSSES; i++) {
        uint64_t n = range->lost[i] - range->reported[i];
        if (n == 0 || n > INT64_MAX || loss_texts[i] == NULL) continue;
        uint8_t stats[256], *p = stats;
        p = stat_int(p, STAT_COUNT, (int64_t)n);
        p = stat_text(p, STAT_WHY, loss_texts[i], strlen(loss_texts[i]));
        put_event(e, &e->line[ENCODER_HOST], META_DROPPED, point_at(e, e->last),
                  stats, p);
        e->events--; /* ours, not the program's */
    }
}

/* --- what is open -------------------------------------------------------- */

void encoder_open_scopes(struct encoder *e, const struct rec_ring *r,
                         const struct rec_slot *slots, uint64_t end) {
    uint32_t depth = REC_ACQUIRE(&r->depth);
    if (depth > REC_FRAMES) depth = REC_FRAMES;
    begin_thread(e, r);
    if ((r->marks & REC_IN_EPOCH) && r->epoch_time <= end &&
        !rec_ring_ended(r, slots, REC_EPOCH, r->epoch_time, 0))
        put_step(e, true, r->epoch, span_of(e, r->epoch_time, end), true);
    if ((r->marks & REC_IN_STEP) && r->step_time <= end &&
        !rec_ring_ended(r, slots, REC_STEP, r->step_time, 0))
        put_step(e, false, r->step, span_of(e, r->step_time, end), true);
    for (uint32_t i = 0; i < depth; i++) {
        const struct rec_frame *f = &r->frames[i];
        uint32_t to = i + 1 < depth ? r->frames[i + 1].args : r->args_top;
        if (f->time > end || f->time < e->map->head->start_tick) continue;
        if (i + 1 == depth &&
            rec_ring_ended(r, slots, REC_SCOPE, f->time, f->name))
            continue;
        if (to > REC_ARGS || f->args > to) to = f->args;
        put_scope(e, f->name, span_of(e, f->time, end),
                  r->args + f->args % REC_ARGS,
                  f->args < REC_ARGS ? to - f->args : 0, true);
    }
}

/* Has any thread ended this async? */
static bool async_ended(const struct ring_map *map, const struct rec_async *a) {
    for (uint32_t i = 0; i < map->nrings; i++) {
        const struct rec_ring *r = map->ring[i];
        if (r != NULL && r->state != REC_RING_FREE &&
            rec_ring_ended(r, rec_slots(r), REC_ASYNC, a->time, a->name))
            return true;
    }
    return false;
}

void encoder_open_asyncs(struct encoder *e, uint64_t end) {
    for (size_t i = 0; e->map->head->asyncs_used && i < REC_ASYNCS; i++) {
        struct rec_async a = e->map->asyncs[i];
        if (a.time != 0 && a.time != UINT64_MAX && a.time <= end &&
            !async_ended(e->map, &a))
            put_async(e, a.name, a.time, end, true);
    }
}
