/* SPDX-License-Identifier: Apache-2.0
 * RunMetadata and StepStats of TensorFlow 1: what each node of the graph did
 * in one traced step.
 *
 *     RunMetadata { 1 step_stats }         StepStats { 1 dev_stats }
 *     DeviceStepStats { 1 device, 2 node_stats, 3 thread_names }
 *     NodeExecStats { 1 node_name, 2 all_start_micros, 3 op_start_rel_micros,
 *         4 op_end_rel_micros, 5 all_end_rel_micros, 6 memory,
 *         8 timeline_label, 10 thread_id, 13 all_start_nanos,
 *         14 op_start_rel_nanos, 15 op_end_rel_nanos }
 *
 * A node's time is op_start to op_end: in nanoseconds where they are there and
 * say the same as the microseconds, which call three quarters of a small
 * graph's nodes 0. (TensorFlow's own tools count the microseconds.) A node's
 * label tells what really ran: conv/Relu = _FusedConv2D becomes the name
 * conv/Relu:_FusedConv2D. Where no thread was recorded (all nodes then say
 * thread 0, though they overlap) nodes are laid out on as many lanes as it
 * takes for none to overlap. */
#include "import/import.h"

#include "base/pb.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/trace_fill.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct bytes name, label, raw;
    int64_t start, end; /* ns, Unix */
    uint64_t thread;
    uint64_t at; /* offset of the length of raw in the file */
    uint32_t device, lane;
};

struct dev {
    struct bytes name;   /* however long: looked at once, not for each node */
    uint32_t gpu, track; /* of it, or ROW_NONE: not made yet */
    bool stream, derived;
    int64_t stream_id;
    bool threads; /* some node has a thread */
};

struct stats {
    struct trace *t;
    uint32_t source;
    struct bytes all;
    struct node *nodes;
    size_t nnodes, cap_nodes;
    struct dev *devs;
    size_t ndevs, cap_devs;
    struct bytes *names;
    size_t nnames, cap_names; /* thread names: entries */
    int64_t zero_ns, shift;
    bool cut, oom;
    bool by_ns; /* some node's times are in ns */
};

/* Reads the next field; where the file is cut, what is there of it. */
static bool next_field(struct stats *s, struct pb *r, struct pb_field *f) {
    if (s->cut && r->end == s->all.p + s->all.n) return pb_next_cut(r, f);
    if (pb_next(r, f)) return true;
    if (r->bad) trace_note(s->t, NOTE_BAD_FIELD, 1);
    return false;
}

static bool device_like(struct bytes b) {
    return BYTES_STARTS(b, "/job:") || BYTES_STARTS(b, "/device:") ||
           BYTES_STARTS(b, "/gpu:") || BYTES_STARTS(b, "/cpu:") ||
           BYTES_STARTS(b, "/host:") || BYTES_STARTS(b, "/replica:") ||
           BYTES_STARTS(b, "/task:");
}

/* Finds the contents of field 1 of a message that begins with it. */
static bool first_field(struct bytes b, struct bytes *out) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    if (!pb_next_cut(&r, &f) || f.num != 1 || f.wire != PB_BYTES) return false;
    *out = f.bytes;
    return true;
}

/* Returns 1 for a StepStats, 2 for a RunMetadata, 0 for neither. */
static int form(struct bytes all) {
    struct bytes b;
    if (!first_field(all, &b) || !first_field(b, &b)) return 0;
    if (device_like(b)) return 1;
    return first_field(b, &b) && device_like(b) ? 2 : 0;
}

static bool stepstats_sniff(struct bytes all) { return form(all) != 0; }

/* Takes the N of ".../stream:N"; "stream:all" repeats what the others say. */
static void add_device(struct stats *s, struct bytes name) {
    struct dev d = {.name = name,
                    .gpu = ROW_NONE,
                    .track = ROW_NONE,
                    .stream_id = -1};
    const uint8_t *p = memmem(name.p, name.n, "stream:", 7);
    if (p != NULL) {
        d.stream = true;
        size_t n = name.n - (size_t)(p + 7 - name.p);
        int64_t id = 0;
        for (size_t i = 0; i < n && p[7 + i] >= '0' && p[7 + i] <= '9'; i++) {
            if (id < INT32_MAX) id = id * 10 + (p[7 + i] - '0');
            d.stream_id = id;
        }
    } else if (memmem(name.p, name.n, "/memcpy", 7) != NULL) {
        d.stream = true;
    }
    if (!VEC_ROOM(s->devs, s->ndevs, s->cap_devs)) s->oom = true;
    else s->devs[s->ndevs++] = d;
}

/* Returns a + b, of a unit of so many ns, in ns; or a time that trace_span()
 * refuses. */
static int64_t add_ns(int64_t a, int64_t b, int64_t unit) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ||
                   __builtin_mul_overflow(sum, unit, &sum)
               ? INT64_MAX
               : sum;
}

/* Sets a node's times from its fields 2 to 4, us, or 13 to 15, ns. Returns
 * whether it was by the latter. */
static bool set_times(struct node *n, const int64_t us[3],
                      const int64_t ns[3]) {
    int64_t start = add_ns(us[0], us[1], 1000),
            end = add_ns(us[0], us[2], 1000);
    n->start = add_ns(ns[0], ns[1], 1);
    n->end = add_ns(ns[0], ns[2], 1);
    int64_t off;
    if (ns[0] > 0 && !__builtin_sub_overflow(n->start, start, &off) &&
        off > -2000 && off < 2000 &&
        !__builtin_sub_overflow(n->end, end, &off) && off > -2000 && off < 2000)
        return true;
    n->start = start;
    n->end = end;
    return false;
}

static void add_node(struct stats *s, const struct pb_field *field,
                     const uint8_t *length) {
    struct node n = {.raw = field->bytes,
                     .at = (uint64_t)(length - s->all.p),
                     .device = (uint32_t)s->ndevs - 1,
                     .name = {field->bytes.p, 0},
                     .label = {field->bytes.p, 0}};
    struct pb r = pb_reader(n.raw);
    struct pb_field f;
    int64_t us[3] = {0}, ns[3] = {0};
    while (next_field(s, &r, &f)) {
        bool text = f.num == 1 || f.num == 6 || f.num == 7 || f.num == 8 ||
                    f.num == 11 || f.num == 12;
        if (f.num > 17) trace_note(s->t, NOTE_UNKNOWN_FIELD, 1);
        else if ((f.wire == PB_BYTES) != text || f.wire == PB_FIXED64 ||
                 f.wire == PB_FIXED32)
            trace_note(s->t, NOTE_BAD_FIELD, 1);
        else if (f.num == 1) n.name = f.bytes;
        else if (f.num >= 2 && f.num <= 4) us[f.num - 2] = (int64_t)f.value;
        else if (f.num == 8) n.label = f.bytes;
        else if (f.num == 10) n.thread = f.value;
        else if (f.num >= 13 && f.num <= 15) ns[f.num - 13] = (int64_t)f.value;
    }
    s->by_ns |= set_times(&n, us, ns);
    if (n.thread != 0) s->devs[n.device].threads = true;
    if (!VEC_ROOM(s->nodes, s->nnodes, s->cap_nodes)) s->oom = true;
    else s->nodes[s->nnodes++] = n;
}

static void read_device(struct stats *s, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    struct bytes name = {b.p, 0};
    first_field(b, &name);
    add_device(s, name);
    const uint8_t *at = r.p;
    for (; !s->oom && next_field(s, &r, &f); at = r.p) {
        if (f.wire != PB_BYTES || f.num > 3)
            trace_note(s->t, f.num > 3 ? NOTE_UNKNOWN_FIELD : NOTE_BAD_FIELD,
                       1);
        else if (f.num == 2 && f.bytes.n > 0) add_node(s, &f, at + 1);
        else if (f.num == 3) {
            if (!VEC_ROOM(s->names, s->nnames, s->cap_names)) s->oom = true;
            else s->names[s->nnames++] = f.bytes;
        }
    }
}

static void read_stats(struct stats *s, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (!s->oom && next_field(s, &r, &f)) {
        if (f.num == 1 && f.wire == PB_BYTES) read_device(s, f.bytes);
        else
            trace_note(s->t, f.num > 1 ? NOTE_UNKNOWN_FIELD : NOTE_BAD_FIELD,
                       1);
    }
}

static int node_by_start(const void *a, const void *b) {
    const struct node *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Gives the nodes of devices that recorded no threads lanes: each the first
 * that is free again. No machine runs hundreds of nodes at a time; in a file
 * that says so they share the last lane, so that the work is O(nodes). */
static void lay_out(struct stats *s) {
    enum { LANES = 1024 };
    int64_t free_at[LANES]; /* when each lane is free */
    size_t taken = 0;       /* lanes that this device's nodes had so far */
    for (size_t i = 0; i < s->nnodes; i++) {
        struct node *x = &s->nodes[i];
        const struct dev *d = &s->devs[x->device];
        if (d->threads || d->stream) continue;
        if (i == 0 || s->nodes[i - 1].device != x->device) taken = 0;
        size_t k = 0;
        while (k < taken && free_at[k] > x->start) k++;
        if (k == LANES) k--;
        if (k == taken) taken++;
        free_at[k] = x->end;
        x->lane = (uint32_t)k;
    }
}

/* Returns _FusedConv2D for "[cpu 0.8MB 0.8MB] conv/Relu = _FusedConv2D(a, b)";
 * empty where the label has another form. */
static struct bytes label_type(struct bytes label) {
    struct bytes none = {label.p, 0};
    if (label.n == 0) return none;
    const uint8_t *eq = memmem(label.p, label.n, " = ", 3);
    if (eq == NULL) return none;
    const uint8_t *from = eq + 3, *end = label.p + label.n;
    const uint8_t *paren = memchr(from, '(', (size_t)(end - from));
    if (paren == NULL) return none;
    return (struct bytes){from, (size_t)(paren - from)};
}

/* Returns name:Type where the label tells the type and the name does not. */
static str_id node_name(struct stats *s, const struct node *n) {
    struct bytes type = label_type(n->label);
    if (type.n == 0 || type.n > 256 || n->name.n > 4096 ||
        (n->name.n > 0 && memchr(n->name.p, ':', n->name.n) != NULL))
        return trace_str(s->t, n->name);
    char text[4096 + 256 + 2];
    int len = snprintf(text, sizeof text, "%.*s:%.*s", (int)n->name.n,
                       (const char *)n->name.p, (int)type.n,
                       (const char *)type.p);
    return trace_str(s->t, (struct bytes){(const uint8_t *)text, (size_t)len});
}

/* Returns the GPU of ".../device:GPU:0/stream:7" or ".../gpu:0/stream:7". */
static uint32_t gpu_of(struct stats *s, struct dev *d) {
    int64_t ordinal = 0;
    struct bytes name = d->name;
    if (d->gpu != ROW_NONE) return d->gpu;
    for (size_t i = 0; i + 4 < name.n; i++) {
        if (strncasecmp((const char *)name.p + i, "gpu:", 4) != 0) continue;
        for (size_t k = i + 4;
             k < name.n && k < i + 9 && name.p[k] >= '0' && name.p[k] <= '9';
             k++)
            ordinal = ordinal * 10 + (name.p[k] - '0');
        break;
    }
    return d->gpu = trace_device(s->t, s->source, DEVICE_GPU, ordinal);
}

static uint32_t node_track(struct stats *s, const struct node *n) {
    struct dev *d = &s->devs[n->device];
    int64_t pid = n->device;
    if (d->stream && d->track == ROW_NONE) {
        d->track = trace_track(s->t, s->source,
                               d->derived ? TRACK_DERIVED : TRACK_STREAM, pid,
                               d->stream_id);
        uint32_t gpu = gpu_of(s, d);
        if (!s->t->oom) s->t->tracks[d->track].device = gpu;
        trace_track_name(s->t, d->track, d->name);
    }
    if (d->stream) return d->track;
    int64_t tid = d->threads ? (int64_t)n->thread : (int64_t)n->lane;
    uint32_t tr = trace_track(s->t, s->source, TRACK_THREAD, pid, tid);
    char text[320];
    cut_fmt(text, sizeof text, "%.*s %s %" PRId64, CUT_BYTES(256, d->name),
            d->threads ? "thread" : "lane", tid);
    if (!s->t->oom && !s->t->tracks[tr].named)
        trace_track_name(s->t, tr, bytes_of(text));
    return tr;
}

static bool has_word(struct bytes b, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= b.n; i++)
        if (strncasecmp((const char *)b.p + i, word, n) == 0) return true;
    return false;
}

static uint8_t node_kind(const struct dev *d, const struct node *n) {
    if (!d->stream) return SPAN_OP;
    bool copy = has_word(n->label, "memcpy") || has_word(n->name, "memcpy");
    bool set = has_word(n->label, "memset") || has_word(n->name, "memset");
    return copy ? SPAN_COPY : set ? SPAN_MEMSET : SPAN_KERNEL;
}

/* Turns ns since the epoch into ps of the trace; the adders refuse bad ones. */
static int64_t to_ps(const struct stats *s, int64_t ns) {
    int64_t rel, ps;
    if (__builtin_sub_overflow(ns, s->zero_ns, &rel) ||
        __builtin_mul_overflow(rel, PS_PER_NS, &ps) ||
        __builtin_add_overflow(ps, s->shift, &ps))
        return INT64_MAX;
    return ps;
}

enum { OPEN_MAX = 64 }; /* nodes make a handful; more go unpaired */

/* Allocations of one node that no record has freed yet. Addresses are not
 * recorded: a free belongs to the first block of its size, and the place of the
 * block's record in the file serves as its address. */
struct open_blocks {
    size_t n;
    struct {
        int64_t bytes;
        uint64_t addr;
    } v[OPEN_MAX];
};

static uint64_t pair_block(struct open_blocks *o, int64_t bytes, uint64_t at) {
    if (bytes >= 0) {
        if (o->n == OPEN_MAX) return 0;
        o->v[o->n].bytes = bytes;
        o->v[o->n++].addr = at;
        return at;
    }
    for (size_t i = 0; i < o->n; i++) {
        uint64_t addr = o->v[i].addr;
        if (bytes != -o->v[i].bytes) continue;
        memmove(&o->v[i], &o->v[i + 1], (o->n - i - 1) * sizeof o->v[0]);
        o->n--;
        return addr;
    }
    return 0;
}

/* Reads a record {1 alloc_micros, 2 alloc_bytes (negative: a free)}. */
static void read_record(struct stats *s, struct bytes b, struct mem_in *m,
                        struct open_blocks *open) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    int64_t us = 0, bytes = 0;
    while (next_field(s, &r, &f)) {
        if (f.num == 1 && f.wire == PB_VARINT) us = (int64_t)f.value;
        if (f.num == 2 && f.wire == PB_VARINT) bytes = (int64_t)f.value;
    }
    m->ts = to_ps(s, add_ns(us, 0, 1000));
    m->bytes = mem_told(bytes);
    m->addr = pair_block(open, bytes, (uint64_t)(b.p - s->all.p) + 1);
    trace_mem(s->t, m);
}

/* Reads AllocatorMemoryUsed {1 name, 2 total, 3 peak, 4 live, 5 in use, 6
 * records}. The records sum up to the total, with temporaries; where a writer
 * left them out the total was allocated in the node, and what is not live
 * freed. */
static void node_memory(struct stats *s, struct bytes b, const struct node *n,
                        uint32_t track, str_id what) {
    struct bytes allocator = {b.p, 0};
    int64_t total = 0, live = -1;
    bool records = false;
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (next_field(s, &r, &f)) {
        if (f.num == 1 && f.wire == PB_BYTES) allocator = f.bytes;
        if (f.num == 6 && f.wire == PB_BYTES) records = true;
        if (f.num == 2 && f.wire == PB_VARINT) total = (int64_t)f.value;
        if (f.num == 4 && f.wire == PB_VARINT) live = (int64_t)f.value;
    }
    uint32_t device = ROW_NONE;
    if (has_word(allocator, "gpu") && !has_word(allocator, "host"))
        device = gpu_of(s, &s->devs[n->device]);
    struct mem_in m = {.allocated = -1,
                       .reserved = -1,
                       .track = track,
                       .what = what};
    m.allocator = trace_allocator(s->t, s->source, allocator, device);
    s->t->sources[s->source].has_memory = true;
    struct open_blocks open = {.n = 0};
    r = pb_reader(b);
    while (records && next_field(s, &r, &f))
        if (f.num == 6 && f.wire == PB_BYTES)
            read_record(s, f.bytes, &m, &open);
    if (records || total <= 0) return;
    m.ts = to_ps(s, n->start);
    m.bytes = total;
    m.addr = 0;
    trace_mem(s->t, &m);
    if (live >= total || live < 0) return; /* below 0: not recorded */
    m.ts = to_ps(s, n->end);
    m.bytes = mem_told(live - total);
    trace_mem(s->t, &m);
}

static void emit_node(struct stats *s, const struct node *n) {
    const struct dev *d = &s->devs[n->device];
    struct span_in in = {
        .track = node_track(s, n),
        .name = node_name(s, n),
        .kind = node_kind(d, n),
        .flags = d->derived ? SPAN_DERIVED : 0,
        .args = s->t->sources[s->source].args_base + n->at + 1,
        .args_n = (size_t)(n->raw.p - s->all.p) + n->raw.n - (size_t)n->at,
    };
    in.ts = to_ps(s, n->start);
    if (__builtin_sub_overflow(to_ps(s, n->end), in.ts, &in.dur)) in.dur = -1;
    if (d->derived) trace_note(s->t, NOTE_DERIVED_LINES, 1);
    if (s->t->oom || trace_span(s->t, &in) == ROW_NONE) return;
    struct pb r = pb_reader(n->raw);
    struct pb_field f;
    while (next_field(s, &r, &f))
        if (f.num == 6 && f.wire == PB_BYTES)
            node_memory(s, f.bytes, n, in.track, in.name);
}

static void set_clock(struct stats *s) {
    int64_t first = 0;
    for (size_t i = 0; i < s->nnodes; i++)
        if (s->nodes[i].start > 0 && (first == 0 || s->nodes[i].start < first))
            first = s->nodes[i].start;
    s->zero_ns = first;
    /* later than 1973: a Unix time */
    bool clock = first > INT64_C(100000000000000000) && first < INT64_MAX;
    s->shift = trace_epoch(s->t, s->source, clock ? first : 0, clock);
}

/* Reads an entry of thread_names {1 id, 2 name}. */
static struct bytes thread_entry(struct stats *s, struct bytes b,
                                 uint64_t *id) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    struct bytes name = {b.p, 0};
    *id = 0;
    while (next_field(s, &r, &f)) {
        if (f.num == 1 && f.wire == PB_VARINT) *id = f.value;
        if (f.num == 2 && f.wire == PB_BYTES) name = f.bytes;
    }
    return name;
}

/* Names the threads. One table serves all devices: ids are of the process. */
static bool name_threads(struct stats *s) {
    struct map by_id = {0};
    uint64_t id;
    bool ok = true;
    for (size_t i = 0; i < s->nnames && ok; i++)
        if (thread_entry(s, s->names[i], &id).n > 0)
            ok = map_set(&by_id, id, (uint32_t)i);
    for (size_t k = 0; k < s->t->ntracks && ok; k++) {
        struct track *tr = &s->t->tracks[k];
        if (tr->source != s->source || tr->kind != TRACK_THREAD ||
            !s->devs[tr->pid].threads)
            continue;
        uint32_t i = map_get(&by_id, (uint64_t)tr->tid);
        if (i == MAP_NONE) continue;
        tr->named = false; /* it was made from the number */
        trace_track_name(s->t, (uint32_t)k, thread_entry(s, s->names[i], &id));
    }
    map_free(&by_id);
    return ok;
}

static int emit_all(struct stats *s, struct ops_err *e) {
    bool numbered = false;
    for (size_t i = 0; i < s->ndevs; i++) {
        s->t->sources[s->source].has_device |= s->devs[i].stream;
        numbered |= s->devs[i].stream_id >= 0;
    }
    /* streams by number tell everything; "all" and "memcpy" repeat it */
    for (size_t i = 0; i < s->ndevs; i++)
        s->devs[i].derived = numbered && s->devs[i].stream &&
                             s->devs[i].stream_id < 0;
    if (s->nnodes > 1)
        qsort(s->nodes, s->nnodes, sizeof *s->nodes, node_by_start);
    lay_out(s);
    set_clock(s);
    for (size_t i = 0; i < s->nnodes && !s->t->oom; i++)
        emit_node(s, &s->nodes[i]);
    if (!s->t->oom && !name_threads(s)) return fail_oom(e);
    s->t->sources[s->source].events += s->nnodes;
    return 0;
}

static int stepstats_read(struct trace *t, uint32_t source,
                          const struct import_opts *o, struct ops_err *e) {
    struct stats s = {.t = t,
                      .source = source,
                      .all = t->sources[source].bytes};
    (void)o;
    struct pb r = pb_reader(s.all);
    struct pb_field f;
    while (pb_next(&r, &f)) continue;
    s.cut = r.bad; /* the outermost length leads past the end */
    if (s.cut) trace_note(t, NOTE_FILE_CUT, 1);
    bool run = form(s.all) != 1;
    if (!run) read_stats(&s, s.all);
    /* RunMetadata holds graphs and costs, too; they are not of this importer */
    r = pb_reader(s.all);
    while (run && !s.oom && next_field(&s, &r, &f)) {
        if (f.wire != PB_BYTES) trace_note(t, NOTE_BAD_FIELD, 1);
        else if (f.num == 1) read_stats(&s, f.bytes);
        else if (f.num > 5) trace_note(t, NOTE_UNKNOWN_FIELD, 1);
    }
    t->sources[source].decimals = s.by_ns ? 3 : 0;
    int rc = s.oom ? fail_oom(e) : emit_all(&s, e);
    free(s.nodes);
    free(s.devs);
    free(s.names);
    return rc;
}

/* ---- arguments ---- */

/* Fields of NodeExecStats and of the messages in it, by number. */
struct stepstats_key {
    uint32_t num;
    const char *name;
};

static const struct stepstats_key node_keys[] = {
    {1, "node_name"},           {2, "all_start_micros"},
    {3, "op_start_rel_micros"}, {4, "op_end_rel_micros"},
    {5, "all_end_rel_micros"},  {8, "timeline_label"},
    {9, "scheduled_micros"},    {10, "thread_id"},
    {13, "all_start_nanos"},    {14, "op_start_rel_nanos"},
    {15, "op_end_rel_nanos"},   {16, "all_end_rel_nanos"},
    {17, "scheduled_nanos"},    {0, NULL},
};

/* clang-format off */
static const struct stepstats_key memory_keys[] = {
    {1, "allocator_name"}, {2, "total_bytes"}, {3, "peak_bytes"},
    {4, "live_bytes"}, {5, "allocator_bytes_in_use"}, {0, NULL},
};
/* clang-format on */

static const struct stepstats_key memory_stats_keys[] = {
    {1, "temp_memory_size"},
    {2, "device_temp_memory_size"},
    {3, "persistent_memory_size"},
    {4, "device_persistent_memory_size"},
    {0, NULL},
};

/* Gives the fields of b that keys name. */
static bool give_fields(struct bytes b, const struct stepstats_key *keys,
                        args_each_fn *each, void *ctx) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        const struct stepstats_key *k = keys;
        while (k->name != NULL && k->num != f.num) k++;
        if (k->name == NULL) continue;
        struct arg a = {.type = ARG_INT, .i = (int64_t)f.value};
        if (f.wire == PB_BYTES)
            a = (struct arg){.type = ARG_TEXT, .text = f.bytes};
        if (!each(ctx, bytes_of(k->name), &a)) return false;
    }
    return true;
}

static void stepstats_args_each(const struct trace *t, row_id row,
                                args_each_fn *each, void *ctx) {
    uint32_t source;
    struct bytes node;
    if (!args_message(t, row, &source, &node)) return;
    if (!give_fields(node, node_keys, each, ctx)) return;
    struct pb r = pb_reader(node);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.wire != PB_BYTES || (f.num != 6 && f.num != 12)) continue;
        if (!give_fields(f.bytes, f.num == 6 ? memory_keys : memory_stats_keys,
                         each, ctx))
            return;
    }
}

/* clang-format off */
const struct importer importer_stepstats = {
    .format = {
        .name = "stepstats",
        .writer = WRITER_TF,
        .args_each = stepstats_args_each,
        .scopes_in_names = true,
        .allocs_name_ops = true,
        .fix = {
            [MISSING_DEVICE] = "run the session on a machine with a GPU",
            [MISSING_MEMORY] = "run with RunOptions(trace_level=RunOptions."
                               "FULL_TRACE)",
            [MISSING_SHAPES] = "RunMetadata has the outputs of nodes only",
            [MISSING_STACKS] = "RunMetadata has no Python frames; take an "
                               "xplane profile",
        },
    },
    .help = "RunMetadata and StepStats of TensorFlow 1 (.pb)",
    .sniff = stepstats_sniff,
    .read = stepstats_read,
};
/* clang-format on */
