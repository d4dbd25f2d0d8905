/* SPDX-License-Identifier: Apache-2.0
 * Records become events. The loop over scopes is the recorder's throughput:
 * it stays short, and everything rarer stands in functions of its own. */
#include "ring/encode.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pbw.h"
#include "opscope/record.h"
#include "ring/clock.h"
#include "ring/encode_impl.h"

enum {
    HOST_BYTES = 256 << 10,
    EARLY_BYTES = 32 << 10,
    COUNTER_BYTES = 64 << 10,
    DEVICE_BYTES = 64 << 10,
    LANE_BYTES = 8 << 10,
    ALL_BYTES = HOST_BYTES + EARLY_BYTES + COUNTER_BYTES + DEVICE_BYTES +
                ENC_LANES * LANE_BYTES,
    EVENT_ROOM = 64,       /* an event without stats */
    RECORD_ROOM = 8192,    /* with all arguments that a record can hold */
    SLACK_PS = 1000000000, /* a line begins so far before its first event */
};

int encoder_init(struct encoder *e, const struct rec_view *v, struct enc_to to,
                 uint32_t facts_from) {
    memset(e, 0, sizeof *e);
    e->v = v;
    e->to = to;
    e->facts = facts_from;
    e->memory = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e->memory == MAP_FAILED) {
        e->memory = NULL;
        return -1;
    }
    uint8_t *p = e->memory;
    struct {
        struct enc_line *l;
        size_t bytes;
    } parts[] = {{&e->host, HOST_BYTES},
                 {&e->early, EARLY_BYTES},
                 {&e->counters, COUNTER_BYTES},
                 {&e->device, DEVICE_BYTES}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        parts[i].l->buf = p;
        parts[i].l->cap = parts[i].bytes;
        p += parts[i].bytes;
    }
    for (size_t i = 0; i < ENC_LANES; i++, p += LANE_BYTES) {
        e->lane[i].buf = p;
        e->lane[i].cap = LANE_BYTES;
    }
    return 0;
}

void encoder_free(struct encoder *e) {
    if (e->memory != NULL) munmap(e->memory, ALL_BYTES);
    e->memory = NULL;
}

void enc_write(struct encoder *e, unsigned file, const void *p, size_t n) {
    if (!e->failed && e->to.write(e->to.self, file, p, n) != 0)
        e->failed = true;
}

/* --- lines -------------------------------------------------------------- */

/* The line's head and what was gathered for it; the line is empty again. Times
 * count from the start of the session, which a fact and the plane "Task
 * Environment" tell: XProf works in picoseconds, and Unix times in them do not
 * fit into 64 bits. */
void enc_line_out(struct encoder *e, struct enc_line *l) {
    if (l->n == 0) return;
    uint8_t head[3 * ENC_NAME], *p = head;
    size_t n = strlen(l->name);
    p = pbw_int(p, 1, l->id);
    p = text_field(p, 2, l->name, n);
    p = pbw_uint(p, 3, l->base_ps / 1000);
    if (l->display_id != 0) p = pbw_int(p, 10, l->display_id);
    uint8_t tag[PBW_FIELD_ROOM];
    uint8_t *q = pbw_len(tag, 3, (size_t)(p - head) + l->n);
    enc_write(e, l->file, tag, (size_t)(q - tag));
    enc_write(e, l->file, head, (size_t)(p - head));
    enc_write(e, l->file, l->buf, l->n);
    l->n = 0;
}

void encode_lines(struct encoder *e) {
    enc_line_out(e, &e->host);
    enc_line_out(e, &e->early);
    enc_line_out(e, &e->counters);
    enc_line_out(e, &e->device);
    for (size_t i = 0; i < ENC_LANES; i++) enc_line_out(e, &e->lane[i]);
}

/* The line in which an event that starts at ps can stand with `room` bytes:
 * offsets are not negative. */
static struct enc_line *line_for(struct encoder *e, struct enc_line *l,
                                 uint64_t ps, size_t room) {
    if (l->n > 0 && ps < l->base_ps) {
        if (l == &e->host) {
            e->early.file = l->file;
            e->early.id = l->id;
            e->early.display_id = l->display_id;
            memcpy(e->early.name, l->name, sizeof l->name);
            return line_for(e, &e->early, ps, room);
        }
        enc_line_out(e, l);
    }
    if (l->n + room > l->cap) enc_line_out(e, l);
    if (l->n == 0) {
        l->base_ps = ps > SLACK_PS ? ps - SLACK_PS : 0;
        l->base_ps -= l->base_ps % 1000;
    }
    return l;
}

/* --- events ------------------------------------------------------------- */

/* An event whose stats, n bytes, are written already. dur: 0 is a span of no
 * length; ENC_POINT a point in time, which has none. */
void enc_event(struct encoder *e, struct enc_line *l, uint32_t meta,
               uint64_t ps, uint64_t dur, const uint8_t *stats, size_t n) {
    l = line_for(e, l, ps, n + EVENT_ROOM);
    uint8_t body[EVENT_ROOM], *b = body, *p = l->buf + l->n;
    b = pbw_uint(b, 1, meta);
    b = pbw_uint(b, 2, ps - l->base_ps);
    if (dur != ENC_POINT) b = pbw_uint(b, 3, dur);
    size_t len = (size_t)(b - body);
    p = pbw_len(p, 4, len + n);
    memcpy(p, body, len);
    p += len;
    if (n > 0) memcpy(p, stats, n);
    l->n = (size_t)(p + n - l->buf);
    e->events++;
}

/* The same without stats, at p: the loop's body. The length is known to be
 * below 128 (three numbers) and is filled in behind. */
static inline uint8_t *plain_event(uint8_t *p, uint32_t meta, uint64_t offset,
                                   uint64_t dur) {
    uint8_t *start = p;
    p[0] = 4 << 3 | PBW_BYTES;
    p[2] = 1 << 3;
    p = pbw_varint(p + 3, meta);
    *p++ = 2 << 3;
    p = pbw_varint(p, offset);
    *p++ = 3 << 3;
    p = pbw_varint(p, dur);
    start[1] = (uint8_t)(p - start - 2);
    return p;
}

/* As rec_clock_ps does it. */
static inline uint64_t scale(uint64_t ticks, uint64_t mult) {
    return (uint64_t)((unsigned __int128)ticks * mult >> 32);
}

uint64_t enc_ps(struct encoder *e, uint64_t tick) {
    return rec_clock_ps(e->v->segs, e->v->head->nsegs, &e->seg, tick);
}

static uint64_t word(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static double real(const uint8_t *p) {
    double v;
    memcpy(&v, p, 8);
    return v;
}

/* A record with payload, taken out of its slots. */
struct record {
    uint32_t kind, name, bytes;
    uint64_t time;
    uint8_t payload[REC_SLOT_MAX * REC_CONT_BYTES];
};

/* Arguments as stats at p, which has room. False: they make no sense. */
static bool arg_stats(struct encoder *e, const uint8_t *a, size_t n,
                      uint8_t **out) {
    uint8_t *p = *out;
    while (n >= REC_ARG_HEAD) {
        struct rec_arg arg;
        memcpy(&arg.key, a, 4);
        arg.type = a[4];
        arg.bytes = a[5];
        a += REC_ARG_HEAD;
        n -= REC_ARG_HEAD;
        if (arg.bytes > n || (arg.type != REC_ARG_TEXT_ && arg.bytes != 8))
            return false;
        uint32_t key = arg.key > 0 && arg.key < e->nnames
                           ? ENC_STAT_KEYS + arg.key
                           : ENC_STAT_UNKNOWN;
        switch (arg.type) {
        case REC_ARG_INT: p = enc_stat_int(p, key, (int64_t)word(a)); break;
        case REC_ARG_NUM: p = enc_stat_num(p, key, real(a)); break;
        case REC_ARG_TEXT_:
            p = enc_stat_text(p, key, (const char *)a, arg.bytes);
            break;
        case REC_ARG_CORR:
            p = enc_stat_uint(p, ENC_STAT_CORRELATION, word(a));
            break;
        case REC_ARG_FLOW_OUT:
        case REC_ARG_FLOW_IN:
            p = enc_stat_uint(p, ENC_STAT_FLOW,
                              (word(a) & ENC_FLOW_MASK) << 2 |
                                  (arg.type == REC_ARG_FLOW_OUT ? 2 : 1));
            break;
        default: return false;
        }
        a += arg.bytes;
        n -= arg.bytes;
    }
    *out = p;
    return n == 0;
}

/* A span on the thread's line, with arguments; unfinished: it was cut. */
static void scope(struct encoder *e, uint32_t name, uint64_t t0, uint64_t t1,
                  const uint8_t *args, size_t n, bool unfinished) {
    uint8_t stats[RECORD_ROOM], *p = stats;
    if (!arg_stats(e, args, n, &p)) {
        e->bad++;
        p = stats;
    }
    if (unfinished) p = enc_stat_int(p, ENC_STAT_UNFINISHED, 1);
    uint64_t a = enc_ps(e, t0), b = enc_ps(e, t1);
    enc_event(e, &e->host, enc_meta(e, name), a, b > a ? b - a : 0, stats,
              (size_t)(p - stats));
}

static void instant(struct encoder *e, const struct record *r) {
    uint8_t stats[RECORD_ROOM], *p = stats;
    if (!arg_stats(e, r->payload, r->bytes, &p)) {
        e->bad++;
        p = stats;
    }
    enc_event(e, &e->host, enc_meta(e, r->name), enc_ps(e, r->time), ENC_POINT,
              stats, (size_t)(p - stats));
}

static void step(struct encoder *e, bool epoch, int64_t number, uint64_t t0,
                 uint64_t t1, bool unfinished) {
    uint8_t stats[128], *p = stats;
    p = enc_stat_int(p, epoch ? ENC_STAT_EPOCH : ENC_STAT_STEP, number);
    if (!epoch) p = enc_stat_int(p, ENC_STAT_ROOT, 1);
    if (unfinished) p = enc_stat_int(p, ENC_STAT_UNFINISHED, 1);
    uint64_t a = enc_ps(e, t0), b = enc_ps(e, t1);
    enc_event(e, &e->host, epoch ? ENC_META_EPOCH : ENC_META_STEP, a,
              b > a ? b - a : 0, stats, (size_t)(p - stats));
}

static void memory(struct encoder *e, const struct record *r) {
    uint8_t stats[512], *p = stats;
    bool alloc = r->kind == REC_ALLOC;
    p = enc_stat_uint(p, ENC_STAT_ADDR, word(r->payload));
    if (alloc) {
        int64_t bytes = (int64_t)word(r->payload + 8);
        p = enc_stat_int(p, ENC_STAT_ALLOCATION, bytes);
        p = enc_stat_int(p, ENC_STAT_REQUESTED, bytes);
    }
    p = enc_stat_ref(p, ENC_STAT_ALLOCATOR, ENC_STAT_PROGRAM);
    if (alloc && r->name > 0 && r->name < e->nnames)
        p = enc_stat_ref(p, ENC_STAT_TF_OP, ENC_STAT_KEYS + r->name);
    enc_event(e, &e->host, alloc ? ENC_META_ALLOC : ENC_META_FREE,
              enc_ps(e, r->time), ENC_POINT, stats, (size_t)(p - stats));
}

static void counter(struct encoder *e, uint32_t meta, double value,
                    uint64_t ps) {
    uint8_t stats[64], *p = enc_stat_num(stats, ENC_STAT_COUNTER, value);
    struct enc_line *l = &e->counters;
    if (l->n + EVENT_ROOM + sizeof stats > l->cap) enc_line_out(e, l);
    /* This line counts from the recording's start, not from a base of its own:
     * readers leave a line at 0 alone where they take the start off others. */
    memcpy(l->name, "_counters_", sizeof "_counters_");
    l->id = INT64_MAX;
    size_t n = (size_t)(p - stats);
    uint8_t *q = l->buf + l->n;
    q = pbw_len(q, 4, pbw_uint_size(1, meta) + pbw_uint_size(2, ps) + n);
    q = pbw_uint(pbw_uint(q, 1, meta), 2, ps);
    memcpy(q, stats, n);
    l->n = (size_t)(q + n - l->buf);
    e->events++;
}

/* Spans on one lane never overlap. */
static void async(struct encoder *e, uint32_t name, uint64_t t0, uint64_t t1,
                  bool unfinished) {
    uint8_t stats[128], *p = stats;
    uint64_t a = enc_ps(e, t0), b = enc_ps(e, t1);
    size_t i = 0;
    while (i + 1 < ENC_LANES && e->lane_end[i] > a) i++;
    struct enc_line *l = &e->lane[i];
    e->lane_end[i] = b;
    l->id = ENC_ASYNC_LINE + (int64_t)i;
    if (i == 0) memcpy(l->name, "async", sizeof "async");
    else snprintf(l->name, sizeof l->name, "async %zu", i + 1);
    p = enc_stat_int(p, ENC_STAT_ASYNC, 1);
    uint64_t id = (t0 - e->v->head->start_tick) & ENC_FLOW_MASK;
    p = enc_stat_uint(p, ENC_STAT_FLOW, id << 2 | 3);
    if (unfinished) p = enc_stat_int(p, ENC_STAT_UNFINISHED, 1);
    enc_event(e, l, enc_meta(e, name), a, b > a ? b - a : 0, stats,
              (size_t)(p - stats));
}

static void device(struct encoder *e, const struct record *r) {
    struct enc_device d = {.name = r->name,
                           .kind = OPS_DEVICE_KERNEL,
                           .bytes = -1};
    memcpy(&d.track, r->payload + 16, 4);
    d.start_ps = rec_ps_of_ns(e->v->head, r->time);
    d.dur_ps = word(r->payload) * 1000;
    d.corr = word(r->payload + 8);
    encode_device(e, &d);
}

void encode_device(struct encoder *e, const struct enc_device *d) {
    const struct rec_head *h = e->v->head;
    uint32_t ntracks = __atomic_load_n(&h->ntracks, __ATOMIC_ACQUIRE);
    struct enc_line *l = &e->device;
    if (d->track == 0 || d->track > ntracks || d->track > REC_TRACKS) {
        e->bad++;
        return;
    }
    const struct rec_track *t = &h->tracks[d->track - 1];
    if (l->file != t->device || l->id != (int64_t)d->track) {
        enc_line_out(e, l);
        l->file = t->device;
        l->id = d->track;
        memcpy(l->name, t->queue, sizeof t->queue);
    }
    uint8_t stats[128], *p = stats;
    if (d->corr != 0) p = enc_stat_uint(p, ENC_STAT_CORRELATION, d->corr);
    if (d->bytes >= 0) p = enc_stat_int(p, ENC_STAT_BYTES, d->bytes);
    if (d->kind != OPS_DEVICE_KERNEL)
        p = enc_stat_text(p, ENC_STAT_KIND, enc_device_kind(d->kind),
                          strlen(enc_device_kind(d->kind)));
    enc_event(e, l, enc_meta(e, d->name), d->start_ps, d->dur_ps, stats,
              (size_t)(p - stats));
}

static void scalar(struct encoder *e, const struct record *r) {
    if (e->to.scalar == NULL || r->name == 0 || r->name >= e->nnames) return;
    const struct rec_name *n = &e->v->names[r->name];
    if (n->at > REC_TEXT || n->bytes > REC_TEXT - n->at) return;
    int64_t ns = e->v->head->start_unix_ns +
                 (int64_t)(enc_ps(e, r->time) / 1000);
    e->to.scalar(e->to.self, e->v->text + n->at, n->bytes,
                 (int64_t)word(r->payload), real(r->payload + 8),
                 (double)ns / 1e9);
}

static const uint8_t payload_least[REC_KINDS] = {
    [REC_SCOPE_X] = 8, [REC_STEP] = 16,   [REC_EPOCH] = 16,
    [REC_COUNTER] = 8, [REC_ALLOC] = 16,  [REC_FREE] = 8,
    [REC_ASYNC] = 8,   [REC_DEVICE] = 20, [REC_SCALAR] = 16,
};

static void seen(struct encoder *e, uint64_t tick) {
    if (tick > e->last) e->last = tick;
}

static void record(struct encoder *e, const struct record *r) {
    const uint8_t *p = r->payload;
    if (r->kind >= REC_KINDS || r->bytes < payload_least[r->kind]) {
        e->bad++;
        return;
    }
    uint64_t end = r->time;
    switch (r->kind) {
    case REC_SCOPE_X:
        end += word(p);
        scope(e, r->name, r->time, end, p + 8, r->bytes - 8, false);
        break;
    case REC_STEP:
    case REC_EPOCH:
        end += word(p);
        step(e, r->kind == REC_EPOCH, (int64_t)word(p + 8), r->time, end,
             false);
        break;
    case REC_INSTANT: instant(e, r); break;
    case REC_COUNTER:
        counter(e, enc_meta(e, r->name), real(p), enc_ps(e, r->time));
        break;
    case REC_ALLOC:
    case REC_FREE: memory(e, r); break;
    case REC_ASYNC:
        end += word(p);
        async(e, r->name, r->time, end, false);
        break;
    case REC_DEVICE: device(e, r); return; /* its time is no tick */
    case REC_SCALAR: scalar(e, r); break;
    default: e->bad++; return;
    }
    seen(e, end);
}

static inline struct rec_slot load(const struct rec_slot *s) {
    return (struct rec_slot){__atomic_load_n(&s->time, __ATOMIC_RELAXED),
                             __atomic_load_n(&s->rest, __ATOMIC_RELAXED)};
}

/* Takes a record with payload out of its slots; returns how many there were.
 * kind REC_NONE: the payload does not follow. */
static uint64_t gather(const struct rec_slot *slots, uint64_t mask, uint64_t at,
                       uint64_t to, struct rec_slot first, struct record *r) {
    uint32_t n = rec_slot_aux(first.rest);
    r->kind = rec_slot_kind(first.rest);
    r->name = rec_slot_name(first.rest);
    r->time = first.time;
    r->bytes = n;
    uint64_t count = 1 + (n + REC_CONT_BYTES - 1) / REC_CONT_BYTES;
    if (n > sizeof r->payload || count > to - at) {
        r->kind = REC_NONE;
        return 1;
    }
    for (uint64_t i = 1; i < count; i++) {
        struct rec_slot s = load(&slots[(at + i) & mask]);
        uint32_t rest = rec_slot_aux(s.rest);
        if (rec_slot_kind(s.rest) != REC_CONT) {
            r->kind = REC_NONE;
            return i;
        }
        uint8_t *p = r->payload + (i - 1) * REC_CONT_BYTES;
        memcpy(p, &s.time, 8);
        memcpy(p + 8, &rest, 4);
    }
    return count;
}

static void thread_line(struct encoder *e, const struct rec_ring *r) {
    struct enc_line *l = &e->host;
    char name[REC_THREAD_NAME];
    rec_name_get(r, name);
    enc_line_out(e, l);
    enc_line_out(e, &e->early);
    l->file = 0;
    /* tids are used again; numbers of threads are not */
    l->id = (int64_t)(r->tid | (r->thread & 0x3fffffff) << 32);
    /* XProf makes rows by the low 32 bits of an id: no tid is so high */
    l->display_id = r->thread == 0
                        ? 0
                        : ENC_THREAD_ROW + (int64_t)(r->thread & 0x3fffffff);
    snprintf(l->name, sizeof l->name, "%s/%u", name, r->tid);
}

static const char *const loss_texts[REC_LOSSES] = {
    "the thread's ring was full", "called from a signal handler",
    "scopes nested too deep",     "arguments that did not fit",
    "ops_end() without a begin",  NULL,
};

/* One event for each reason, where the thread's line has got to. */
static void losses(struct encoder *e, const uint64_t *told,
                   const uint64_t *lost) {
    for (unsigned i = 0; i < REC_LOSSES; i++) {
        uint64_t n = lost[i] - told[i];
        if (n == 0 || n > INT64_MAX || loss_texts[i] == NULL) continue;
        uint8_t stats[256], *p = stats;
        p = enc_stat_int(p, ENC_STAT_COUNT, (int64_t)n);
        p = enc_stat_text(p, ENC_STAT_WHY, loss_texts[i],
                          strlen(loss_texts[i]));
        enc_event(e, &e->host, ENC_META_DROPPED, enc_ps(e, e->last), ENC_POINT,
                  stats, (size_t)(p - stats));
        e->events--; /* ours, not the program's */
    }
}

/* Scopes without arguments, from `from` on, until something else comes or the
 * clock's segment or the line is at its end. Most of a profile passes through
 * here: what the loop needs is in registers, and an event is written once,
 * straight into the line. */
static uint64_t plain_scopes(struct encoder *e, const struct rec_slot *slots,
                             uint64_t mask, uint64_t from, uint64_t to) {
    struct enc_line *l = &e->host;
    uint32_t n = e->v->head->nsegs;
    if (l->n == 0 || e->seg >= n) return from;
    const struct rec_seg seg = e->v->segs[e->seg];
    const uint64_t ticks =
        (e->seg + 1 < n ? e->v->segs[e->seg + 1].tick : UINT64_MAX) - seg.tick;
    /* seg.ps minus the base, modulo 2^64: before the base is out of reach */
    const uint64_t zero = seg.ps - l->base_ps, begin = from;
    uint8_t *p = l->buf + l->n, *end = l->buf + l->cap - EVENT_ROOM;
    uint64_t last = e->last;
    for (; from < to && p <= end; from++) {
        struct rec_slot s = load(&slots[from & mask]);
        if (rec_slot_kind(s.rest) != REC_SCOPE) break;
        uint64_t t0 = s.time - seg.tick, t1 = t0 + rec_slot_aux(s.rest);
        if (t0 >= ticks || t1 >= ticks || t1 < t0) break;
        uint64_t a = zero + scale(t0, seg.mult), b = zero + scale(t1, seg.mult);
        if (a > INT64_MAX) break;
        p = plain_event(p, enc_meta(e, rec_slot_name(s.rest)), a, b - a);
        if (t1 + seg.tick > last) last = t1 + seg.tick;
    }
    l->n = (size_t)(p - l->buf);
    e->last = last;
    e->events += from - begin;
    return from;
}

static void encode_range(struct encoder *e, const struct rec_slot *slots,
                         uint64_t mask, uint64_t from, uint64_t to) {
    while (from < to) {
        struct record rec;
        from = plain_scopes(e, slots, mask, from, to);
        if (from == to) break;
        struct rec_slot s = load(&slots[from & mask]);
        if (rec_slot_kind(s.rest) == REC_SCOPE) {
            uint64_t end = s.time + rec_slot_aux(s.rest);
            scope(e, rec_slot_name(s.rest), s.time, end, NULL, 0, false);
            seen(e, end);
            from++;
            continue;
        }
        from += gather(slots, mask, from, to, s, &rec);
        record(e, &rec);
    }
}

/* Where the next record of a step stands, or `to`. */
static uint64_t next_step(const struct rec_slot *slots, uint64_t mask,
                          uint64_t from, uint64_t to) {
    while (from < to &&
           rec_slot_kind(__atomic_load_n(&slots[from & mask].rest,
                                         __ATOMIC_RELAXED)) != REC_STEP)
        from++;
    return from;
}

/* The records of a thread that has steps. Events stand in the order of their
 * ends, but for steps: each begins a line and stands before what lies in it,
 * since XProf gives an event to a step that comes before it in its line. */
static void encode_steps(struct encoder *e, const struct rec_slot *slots,
                         uint64_t mask, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t at = next_step(slots, mask, from, to), behind = at;
        if (at < to) {
            struct record rec;
            struct rec_slot s = load(&slots[at & mask]);
            behind += gather(slots, mask, at, to, s, &rec);
            enc_line_out(e, &e->host);
            record(e, &rec);
        }
        encode_range(e, slots, mask, from, at);
        from = behind;
    }
}

void encode_ring(struct encoder *e, const struct rec_ring *r,
                 const struct rec_slot *slots, uint64_t from, uint64_t to,
                 const uint64_t *told, const uint64_t *lost) {
    uint64_t mask = r->slots - 1;
    e->nnames = __atomic_load_n(&e->v->head->nnames, __ATOMIC_ACQUIRE);
    if (e->nnames > REC_NAMES) e->nnames = REC_NAMES;
    thread_line(e, r);
    /* behind an overwritten record: its rest */
    while (from < to &&
           rec_slot_kind(load(&slots[from & mask]).rest) == REC_CONT)
        from++;
    if (__atomic_load_n(&r->step_time, __ATOMIC_RELAXED) != 0)
        encode_steps(e, slots, mask, from, to);
    else encode_range(e, slots, mask, from, to);
    losses(e, told, lost);
}

void encode_open(struct encoder *e, const struct rec_ring *r,
                 const struct rec_slot *slots, uint64_t end) {
    uint32_t depth = __atomic_load_n(&r->depth, __ATOMIC_ACQUIRE);
    if (depth > REC_FRAMES) depth = REC_FRAMES;
    thread_line(e, r);
    if ((r->marks & REC_IN_EPOCH) && r->epoch_time <= end &&
        !rec_ring_ended(r, slots, REC_EPOCH, r->epoch_time, 0))
        step(e, true, r->epoch, r->epoch_time, end, true);
    if ((r->marks & REC_IN_STEP) && r->step_time <= end &&
        !rec_ring_ended(r, slots, REC_STEP, r->step_time, 0))
        step(e, false, r->step, r->step_time, end, true);
    for (uint32_t i = 0; i < depth; i++) {
        const struct rec_frame *f = &r->frames[i];
        uint32_t to = i + 1 < depth ? r->frames[i + 1].args : r->args_top;
        if (f->time > end || f->time < e->v->head->start_tick) continue;
        if (i + 1 == depth &&
            rec_ring_ended(r, slots, REC_SCOPE, f->time, f->name))
            continue;
        if (to > REC_ARGS || f->args > to) to = f->args;
        scope(e, f->name, f->time, end, r->args + f->args % REC_ARGS,
              f->args < REC_ARGS ? to - f->args : 0, true);
    }
}

/* The same for an async: any thread may have ended it. */
static bool async_ended(const struct rec_view *v, const struct rec_async *a) {
    for (uint32_t i = 0; i < v->nrings; i++) {
        const struct rec_ring *r = v->ring[i];
        if (r != NULL && r->state != REC_RING_FREE &&
            rec_ring_ended(r, rec_slots(r), REC_ASYNC, a->time, a->name))
            return true;
    }
    return false;
}

void encode_asyncs(struct encoder *e, uint64_t end) {
    for (size_t i = 0; e->v->head->asyncs_used && i < REC_ASYNCS; i++) {
        struct rec_async a = e->v->asyncs[i];
        if (a.time != 0 && a.time != UINT64_MAX && a.time <= end &&
            !async_ended(e->v, &a))
            async(e, a.name, a.time, end, true);
    }
}

void encode_counter(struct encoder *e, uint32_t name, double value,
                    uint64_t ps) {
    counter(e, name, value, ps);
}
