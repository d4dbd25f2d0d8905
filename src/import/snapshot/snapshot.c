/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's CUDA memory snapshots: torch.cuda.memory._dump_snapshot(), and the
 * files that out-of-memory observers and the on-demand profiler write.
 *
 *     {"segments": [{device, address, total_size, allocated_size, active_size,
 *                    requested_size, stream, segment_type, segment_pool_id,
 *                    is_expandable, frames, blocks: [{address, size,
 *                    requested_size, state, frames}]}],
 *      "device_traces": [[{action, addr, size, stream, time_us, frames}]],
 *      "external_annotations": [{stage, name, device, time_us}],
 *      "allocator_settings": {...}}
 *
 * as a pickle, of which pickle.c reads plain data only. frames are {name,
 * filename, line}, innermost first, and shared: 500 of them stand in 124,099
 * places of a small file. Lists are visited once and stacks worked out
 * once a list, so that the work is linear in the file whatever it repeats.
 *
 * segments are the state when the file was written. device_traces is a ring:
 * its oldest entries may be lost, and what they allocated is found by going
 * back from that state (events.c). */
#include "import/snapshot/snapshot.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include <stdio.h>
#include <stdlib.h>

/* Marks of lists, beside the numbers of stacks. */
#define MARK_VISITED (PICKLE_NO_MARK - 1)
#define MARK_EMPTY   (PICKLE_NO_MARK - 2)

enum { MAX_DEVICES = 4096 };

struct snap_device *snap_device(struct snap *s, int64_t ordinal) {
    if (ordinal < 0 || ordinal >= MAX_DEVICES) {
        trace_note(s->t, NOTE_BAD_EVENT, 1);
        return NULL;
    }
    size_t i = (size_t)ordinal;
    if (i >= s->ndevices) {
        if (!vec_resize(&s->devices, i + 1, sizeof *s->devices)) {
            s->t->oom = true;
            return NULL;
        }
        while (s->ndevices <= i)
            s->devices[s->ndevices++] = (struct snap_device){
                .segments = ROW_NONE};
    }
    struct snap_device *d = &s->devices[i];
    if (d->made) return d;
    uint32_t device = trace_device(s->t, s->source, DEVICE_GPU, ordinal);
    if (device == ROW_NONE) return NULL;
    d->allocator = trace_allocator(s->t, s->source,
                                   strs_bytes(&s->t->strs,
                                              s->t->devices[device].label),
                                   device);
    d->made = !s->t->oom;
    return d->made ? d : NULL;
}

bool snap_first_visit(const struct pickle_value *list) {
    if (pickle_count(list) == 0 || list->box->mark != PICKLE_NO_MARK)
        return false;
    list->box->mark = MARK_VISITED;
    return true;
}

uint64_t snap_addr(const struct pickle_value *v) {
    if (v == NULL || (v->type != PICKLE_INT && v->type != PICKLE_UINT))
        return 0;
    return (uint64_t)v->i;
}

bool snap_first_entry(struct snap *s, const struct pickle_value *v) {
    bool entry = v->type == PICKLE_DICT && v->box->n > 0;
    if (!entry) trace_note(s->t, NOTE_BAD_EVENT, 1);
    else if (v->box->mark != PICKLE_NO_MARK)
        trace_note(s->t, NOTE_ENTRY_REPEATED, 1);
    if (!entry || v->box->mark != PICKLE_NO_MARK) return false;
    v->box->mark = MARK_VISITED;
    return true;
}

str_id snap_text(struct snap *s, const struct pickle_value *v) {
    enum { LONG = 256 };
    struct bytes b = pickle_text(v);
    if (b.n < LONG) return trace_str(s->t, b);
    uint32_t *at = map_at(&s->texts, (uintptr_t)b.p);
    if (at == NULL) {
        s->t->oom = true;
        return 0;
    }
    if (*at == MAP_NONE) *at = trace_str(s->t, b);
    return *at;
}

/* Returns the number of a frame, kept in its dict; ROW_NONE if it is none. */
static uint32_t frame_of(struct snap *s, const struct pickle_value *v) {
    if (v->type != PICKLE_DICT) return ROW_NONE;
    if (v->box->mark != PICKLE_NO_MARK)
        return v->box->mark < s->t->stacks.nframes ? v->box->mark : ROW_NONE;
    int64_t line = pickle_int(pickle_get(v, "line"), 0);
    const struct pickle_value *file = pickle_get(v, "filename");
    if (BYTES_IS(pickle_text(file), "??")) file = NULL;
    v->box->mark = trace_frame(s->t, snap_text(s, pickle_get(v, "name")),
                               snap_text(s, file),
                               line > 0 && line < INT32_MAX ? (int32_t)line
                                                            : 0);
    return v->box->mark;
}

/* Returns the number of a list of frames. */
static uint32_t make_stack(struct snap *s, const struct pickle_value *list) {
    size_t n = 0, all = pickle_count(list);
    if (all > s->cap_frames) {
        if (!vec_resize(&s->frames, all, sizeof *s->frames)) {
            s->t->oom = true;
            return ROW_NONE;
        }
        s->cap_frames = all;
    }
    for (size_t i = 0; i < all; i++) {
        uint32_t f = frame_of(s, pickle_item(list, i));
        if (f != ROW_NONE) s->frames[n++] = f;
    }
    return trace_stack(s->t, s->frames, n);
}

/* Returns the newest entry of a block's history, which blocks had before
 * PyTorch 2.1, the newest first. */
static const struct pickle_value *newest(const struct pickle_value *block) {
    const struct pickle_value *h = pickle_get(block, "history");
    return pickle_count(h) > 0 ? pickle_item(h, 0) : NULL;
}

uint32_t snap_stack(struct snap *s, const struct pickle_value *of) {
    const struct pickle_value *list = pickle_get(of, "frames");
    if (list == NULL) list = pickle_get(newest(of), "frames");
    if (pickle_count(list) == 0) return ROW_NONE;
    uint32_t *mark = &list->box->mark;
    if (*mark == PICKLE_NO_MARK) {
        uint32_t stack = make_stack(s, list);
        *mark = stack == ROW_NONE ? MARK_EMPTY : stack;
    }
    return *mark < s->t->stacks.n ? *mark : ROW_NONE;
}

/* Returns a size, which may be missing (dflt) but not negative. */
static int64_t size_of(const struct pickle_value *of, const char *key,
                       int64_t dflt) {
    int64_t v = pickle_int(pickle_get(of, key), dflt);
    return v >= 0 ? v : dflt;
}

/* Reads the blocks of the segment that was added last. Old files do not tell
 * their addresses: the blocks lie one behind the other. */
static void read_blocks(struct snap *s, const struct pickle_value *list,
                        struct snap_device *d, uint64_t addr) {
    if (!snap_first_visit(list)) return;
    for (size_t i = 0; i < pickle_count(list) && !s->t->oom; i++) {
        const struct pickle_value *v = pickle_item(list, i);
        if (!snap_first_entry(s, v)) continue;
        int64_t asked = size_of(newest(v), "real_size", -1);
        /* active_allocated, active_pending_free, active_awaiting_free */
        struct bytes state = pickle_text(pickle_get(v, "state"));
        struct mem_block b = {
            .addr = snap_addr(pickle_get(v, "address")),
            .bytes = size_of(v, "size", 0),
            .requested = size_of(v, "requested_size", asked),
            .stack = snap_stack(s, v),
            .state = BYTES_IS(state, "active_allocated") ? BLOCK_ALLOCATED
                     : BYTES_STARTS(state, "active")     ? BLOCK_PENDING_FREE
                                                         : BLOCK_FREE,
        };
        if (b.addr == 0) b.addr = addr;
        addr = b.addr + (uint64_t)b.bytes;
        trace_block(s->t, &b);
        if (b.state != BLOCK_FREE && !s->t->oom &&
            !map_set(&d->active, b.addr, (uint32_t)(s->t->nblocks - 1)))
            s->t->oom = true;
    }
}

static void read_segment(struct snap *s, const struct pickle_value *v) {
    struct snap_device *d = snap_device(s,
                                        pickle_int(pickle_get(v, "device"), 0));
    const struct pickle_value *pool = pickle_get(v, "segment_pool_id");
    if (d == NULL) return;
    struct mem_segment seg = {
        .addr = snap_addr(pickle_get(v, "address")),
        .bytes = size_of(v, "total_size", 0),
        .allocated = size_of(v, "allocated_size", 0),
        .active = size_of(v, "active_size", 0),
        .requested = size_of(v, "requested_size", -1),
        .stream = pickle_int(pickle_get(v, "stream"), 0),
        .allocator = d->allocator,
        .large = BYTES_IS(pickle_text(pickle_get(v, "segment_type")), "large"),
        .expandable = pickle_int(pickle_get(v, "is_expandable"), 0) != 0,
        .stack = snap_stack(s, v),
    };
    for (size_t i = 0; i < 2 && i < pickle_count(pool); i++)
        seg.pool[i] = pickle_int(pickle_item(pool, i), 0);
    if (s->t->oom) return;
    if (s->t->nsegments >= ROW_NONE ||
        !VEC_ROOM(s->chain, s->t->nsegments, s->cap_chain)) {
        s->t->oom = true;
        return;
    }
    s->chain[s->t->nsegments] = d->segments;
    d->segments = (uint32_t)s->t->nsegments;
    trace_segment(s->t, &seg);
    sat_inc(&d->reserved, seg.bytes);
    if (!s->t->oom) read_blocks(s, pickle_get(v, "blocks"), d, seg.addr);
}

static void read_segments(struct snap *s, const struct pickle_value *list) {
    if (!snap_first_visit(list)) return;
    for (size_t i = 0; i < pickle_count(list) && !s->t->oom; i++) {
        const struct pickle_value *v = pickle_item(list, i);
        s->events++;
        if (snap_first_entry(s, v)) read_segment(s, v);
    }
}

/* Keeps one setting, as Python would print it. */
static void read_setting(struct snap *s, struct bytes key,
                         const struct pickle_value *v) {
    char name[160], value[64];
    cut_fmt(name, sizeof name, "allocator.%.*s", CUT_BYTES(128, key));
    struct bytes b = pickle_text(v);
    switch (v->type) {
    case PICKLE_TEXT: break;
    case PICKLE_BOOL: b = bytes_of(v->i ? "True" : "False"); break;
    case PICKLE_INT:
        snprintf(value, sizeof value, "%lld", (long long)v->i);
        b = bytes_of(value);
        break;
    case PICKLE_FLOAT:
        snprintf(value, sizeof value, "%g", v->f);
        b = bytes_of(value);
        break;
    default: return;
    }
    trace_meta(s->t, s->source, name, b);
}

static void read_settings(struct snap *s) {
    enum { MAX_SETTINGS = 64 }; /* there are nine */
    const struct pickle_value *v = pickle_get(s->root, "allocator_settings");
    const struct pickle_value *d = pickle_get(v, "roundup_power2_divisions");
    for (size_t i = 0; i < COUNT(s->divisions); i++) {
        char key[16];
        snprintf(key, sizeof key, "%lu", 1ul << i);
        s->divisions[i] = pickle_int(pickle_get(d, key), 0);
    }
    s->expandable = pickle_int(pickle_get(v, "expandable_segments"), 0) != 0;
    s->max_split = pickle_int(pickle_get(v, "max_split_size"), -1);
    if (s->max_split < 0) s->max_split = INT64_MAX;
    if (v == NULL || v->type != PICKLE_DICT) return;
    for (size_t i = 0; i + 1 < v->box->n && i < 2 * MAX_SETTINGS; i += 2)
        if (v->box->v[i].type == PICKLE_TEXT)
            read_setting(s, pickle_text(&v->box->v[i]), &v->box->v[i + 1]);
}

/* Annotations in the order of their beginnings. */
struct annotations {
    struct annotation {
        row_id row;    /* ROW_NONE: its end was read */
        uint32_t prev; /* the one of the same name around it, or MAP_NONE */
        int64_t ts;
    } * v;
    size_t n, cap;
    struct map by_name; /* device and name -> innermost open one in v */
    int64_t last;       /* the last time of any */
};

/* Sets how long an annotation took, when that can be true. */
static void end_annotation(struct snap *s, const struct annotation *x,
                           int64_t ts) {
    int64_t dur = ts > x->ts ? ts - x->ts : 0;
    if (dur > DUR_LIMIT) {
        trace_note(s->t, NOTE_DURATION_MISSING, 1);
        dur = 0;
    }
    s->t->spans.dur[x->row] = dur;
}

/* Reads record_function's regions, which are recorded without a profiler, too.
 * They tell the device, not the thread. */
static void read_annotation(struct snap *s, struct annotations *o,
                            const struct pickle_value *v, size_t i) {
    struct bytes stage = pickle_text(pickle_get(v, "stage"));
    struct span_in in = {.kind = SPAN_ANNOTATION};
    int64_t device = pickle_int(pickle_get(v, "device"), 0);
    bool starts = BYTES_IS(stage, "START");
    if (v->type != PICKLE_DICT || (!starts && !BYTES_IS(stage, "END"))) {
        trace_note(s->t, NOTE_BAD_EVENT, 1);
        return;
    }
    if (!snap_time(s, v, i, &in.ts)) return;
    if (in.ts > o->last) o->last = in.ts;
    in.name = snap_text(s, pickle_get(v, "name"));
    in.track = trace_track(s->t, s->source, TRACK_THREAD, 0, device);
    if (s->t->oom) return;
    if (!s->t->tracks[in.track].named)
        trace_track_name(s->t, in.track, bytes_of("annotations"));
    uint32_t *at = map_at(&o->by_name, hash_pair(in.name, (uint64_t)device));
    if (at == NULL || !VEC_ROOM(o->v, o->n, o->cap)) {
        s->t->oom = true;
    } else if (starts) {
        row_id row = trace_span(s->t, &in);
        if (row == ROW_NONE) return;
        o->v[o->n] = (struct annotation){row, *at, in.ts};
        *at = (uint32_t)o->n++;
    } else if (*at == MAP_NONE) {
        trace_note(s->t, NOTE_UNMATCHED_END, 1);
    } else {
        struct annotation *x = &o->v[*at];
        *at = x->prev;
        end_annotation(s, x, in.ts);
        x->row = ROW_NONE;
    }
}

static void read_annotations(struct snap *s) {
    const struct pickle_value *list = pickle_get(s->root,
                                                 "external_annotations");
    struct annotations o = {.last = INT64_MIN};
    if (!s->clocked || !snap_first_visit(list)) return;
    for (size_t i = 0; i < pickle_count(list) && !s->t->oom; i++) {
        s->events++;
        if (snap_first_entry(s, pickle_item(list, i)))
            read_annotation(s, &o, pickle_item(list, i), i);
    }
    for (size_t i = 0; i < o.n; i++) {
        if (o.v[i].row == ROW_NONE) continue;
        trace_note(s->t, NOTE_UNMATCHED_BEGIN, 1);
        end_annotation(s, &o.v[i], o.last);
        s->t->spans.flags[o.v[i].row] |= SPAN_OPEN;
    }
    free(o.v);
    map_free(&o.by_name);
}

bool snap_time(struct snap *s, const struct pickle_value *entry, size_t i,
               int64_t *ts) {
    int64_t us = (int64_t)i;
    if (s->clocked) {
        const struct pickle_value *v = pickle_get(entry, "time_us");
        if (v == NULL || v->type != PICKLE_INT) {
            trace_note(s->t, NOTE_TIME_MISSING, 1);
            return false;
        }
        us = sat_sub(v->i, s->zero_us);
    }
    if (!__builtin_mul_overflow(us, PS_PER_US, ts) && ts_is_sane(*ts))
        return true;
    trace_note(s->t, NOTE_TIME_OUT_OF_RANGE, 1);
    return false;
}

/* Times of entries, as numbers that sort in the same order. */
struct times {
    uint64_t *v;
    size_t n, cap;
};

static void add_times(struct snap *s, const struct pickle_value *list,
                      struct times *t) {
    for (size_t i = 0; i < pickle_count(list) && !s->t->oom; i++) {
        const struct pickle_value *ts = pickle_get(pickle_item(list, i),
                                                   "time_us");
        if (ts == NULL || ts->type != PICKLE_INT) continue;
        if (!VEC_ROOM(t->v, t->n, t->cap)) s->t->oom = true;
        else t->v[t->n++] = sort_signed(ts->i);
    }
}

/* Finds the epoch: the first time that can be true, no further than six days
 * from the one in the middle. So one broken time does not move the others. */
static void find_epoch(struct snap *s) {
    const struct pickle_value *traces = pickle_get(s->root, "device_traces");
    struct times times = {0};
    /* the lists are marked as visited meanwhile, so that one that stands in
     * several places counts once */
    for (size_t i = 0; i < pickle_count(traces); i++)
        if (snap_first_visit(pickle_item(traces, i)))
            add_times(s, pickle_item(traces, i), &times);
    add_times(s, pickle_get(s->root, "external_annotations"), &times);
    for (size_t i = 0; i < pickle_count(traces); i++)
        if (pickle_count(pickle_item(traces, i)) > 0)
            pickle_item(traces, i)->box->mark = PICKLE_NO_MARK;
    size_t n = times.n;
    uint64_t *v = times.v;
    s->clocked = n > 0;
    if (!s->clocked) trace_note(s->t, NOTE_CLOCK_UNKNOWN, 1);
    if (n > 0 && !sort_numbers(v, n)) s->t->oom = true;
    for (size_t i = n / 2 + 1; n > 0 && i-- > 0;) {
        int64_t mid = (int64_t)sort_signed((int64_t)v[n / 2]);
        int64_t us = (int64_t)sort_signed((int64_t)v[i]);
        if (sat_sub(mid, us) > DUR_LIMIT / PS_PER_US) break;
        s->zero_us = us;
    }
    free(v);
    int64_t ns = 0;
    bool fits = !__builtin_mul_overflow(s->zero_us, INT64_C(1000), &ns);
    trace_epoch(s->t, s->source, ns, s->clocked && fits);
}

/* Is it a snapshot, or the bare list of segments that
 * torch.cuda.memory_snapshot() gives? */
static bool is_snapshot(const struct pickle_value *root) {
    if (root->type == PICKLE_LIST)
        return root->box->n == 0 ||
               pickle_get(pickle_item(root, 0), "blocks") != NULL;
    return pickle_get(root, "segments") || pickle_get(root, "device_traces");
}

static int snapshot_read(struct trace *t, uint32_t source,
                         const struct import_opts *o, struct ops_err *e) {
    (void)o;
    struct pickle p;
    TRY(pickle_read(&p, t->sources[source].bytes, e));
    if (!is_snapshot(p.root)) {
        pickle_free(&p);
        return fail(e, OPS_EFORMAT,
                    "a pickle, but no memory snapshot: it has "
                    "neither \"segments\" nor \"device_traces\"");
    }
    const struct pickle_value *segments = p.root->type == PICKLE_LIST
                                              ? p.root
                                              : pickle_get(p.root, "segments");
    struct snap s = {.t = t,
                     .source = source,
                     .root = p.root,
                     .whole = !p.cut && segments != NULL};
    find_epoch(&s);
    if (!t->oom) read_segments(&s, segments);
    if (!t->oom) read_settings(&s);
    if (!t->oom) read_annotations(&s);
    if (!t->oom) snap_events(&s); /* counted back from the segments */
    if (p.cut) trace_note(t, NOTE_FILE_CUT, 1);
    struct source *src = &t->sources[source];
    src->events = s.events;
    src->has_memory = true;
    src->has_stacks = t->stacks.n > 0;
    src->decimals = 0;
    for (size_t i = 0; i < s.ndevices; i++) map_free(&s.devices[i].active);
    free(s.devices);
    free(s.chain);
    free(s.frames);
    map_free(&s.texts);
    pickle_free(&p);
    return t->oom ? fail_oom(e) : 0;
}

/* Is it a pickle of protocol 2 to 5 whose first 64 KiB have a snapshot's keys?
 * The keys alone are no proof: a pickle that wants more than plain data is
 * refused when it is read. */
static bool snapshot_sniff(struct bytes all) {
    static const char *const keys[] = {"device_traces", "segments",
                                       "segment_type"};
    enum { LOOK = 1 << 16 };
    if (all.n < 3 || all.p[0] != 0x80 || all.p[1] < 2 || all.p[1] > 5)
        return false;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (memmem(all.p, all.n < LOOK ? all.n : LOOK, keys[i],
                   strlen(keys[i])))
            return true;
    return false;
}

const struct importer importer_snapshot = {
    .format =
        {
            .name = "snapshot",
            .role = ROLE_MEMORY,
            .writer = WRITER_TORCH,
            .fix_all = "a memory snapshot tells of memory only: give a "
                       "torch.profiler trace of the same run beside it",
        },
    .help = "PyTorch's CUDA memory snapshots (.pickle, .pickle.gz)",
    .sniff = snapshot_sniff,
    .read = snapshot_read,
};
