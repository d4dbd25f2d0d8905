/* SPDX-License-Identifier: Apache-2.0
 * An event, its name understood and its stats read, becomes rows: a span, half
 * a link, a memory event, a step hint, a sample. */
#include "import/xspace/xspace.h"

#include "base/hash.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

int64_t fact_int(const struct xpiece *w, enum xcode c, int64_t dflt) {
    return fact_has(w, c) ? xval_int(w->plane, &w->facts.v[c]) : dflt;
}

struct bytes fact_text(const struct xpiece *w, enum xcode c) {
    if (!fact_has(w, c)) return bytes_of("");
    return xval_text(w->plane, &w->facts.v[c]);
}

void xtracks_open(struct xpiece *w, const struct xline *l, struct xtracks *tr) {
    static const enum track_kind kinds[] = {
        [XLINE_HOST] = TRACK_THREAD,     [XLINE_STREAM] = TRACK_STREAM,
        [XLINE_DERIVED] = TRACK_DERIVED, [XLINE_ASYNC] = TRACK_ASYNC,
        [XLINE_OVERHEAD] = TRACK_OTHER,  [XLINE_OTHER] = TRACK_OTHER,
        [XLINE_COUNTERS] = TRACK_OTHER,  [XLINE_HOST_ASYNC] = TRACK_ASYNC,
    };
    *tr = (struct xtracks){ROW_NONE, ROW_NONE, ROW_NONE, l->before};
    if (l->kind == XLINE_COUNTERS) return;
    tr->main = trace_track(w->t, w->source, kinds[l->kind], w->plane->pid,
                           l->id);
    if (!w->t->oom) w->t->tracks[tr->main].device = w->device;
}

/* Returns the track beside the line's own for its Python frames (TRACK_PYTHON),
 * or for sums, which have no place on the time line (TRACK_ASYNC). */
static uint32_t side_track(struct xpiece *w, const struct xline *l,
                           struct xtracks *tr, enum track_kind kind) {
    bool python = kind == TRACK_PYTHON;
    uint32_t *at = python ? &tr->python : &tr->async;
    if (*at != ROW_NONE) return *at;
    *at = trace_track(w->t, w->source, kind, w->plane->pid, l->id);
    w->python |= python;
    if (w->t->oom) return *at;
    if (python) w->t->tracks[*at].thread = tr->main;
    else w->t->tracks[*at].device = w->device;
    return *at;
}

/* Returns the device that an event of a TPU's allocator tells by its number on
 * the host, as XProf reads it; ROW_NONE if there is none. */
static uint32_t numbered_device(const struct xpiece *w) {
    int64_t n = fact_int(w, XSTAT_INDEX_ON_HOST,
                         fact_int(w, XSTAT_DEVICE_ORDINAL, -1));
    if (n < 0) return ROW_NONE;
    return trace_device_find(w->t, w->source, DEVICE_TPU, n);
}

/* Returns the device of an allocator: GPU_0_bfc is the memory of GPU 0; the
 * CPU's and pinned host memory belong to no device. */
static uint32_t allocator_device(const struct xpiece *w, struct bytes name) {
    if (name.n == 0) return numbered_device(w);
    if (!BYTES_STARTS(name, "GPU_") || name.n < 5 || !isdigit(name.p[4]))
        return ROW_NONE;
    int64_t ordinal = 0;
    for (size_t i = 4; i < name.n && i < 12 && isdigit(name.p[i]); i++)
        ordinal = ordinal * 10 + (name.p[i] - '0');
    return trace_device_find(w->t, w->source, DEVICE_GPU, ordinal);
}

/* Is this the most that the allocator had in use in this piece? */
static bool new_peak(struct xpiece *w, uint32_t allocator, int64_t allocated) {
    while (w->npeaks <= allocator) {
        if (!VEC_ROOM(w->peaks, w->npeaks, w->cap_peaks)) {
            w->t->oom = true;
            return false;
        }
        w->peaks[w->npeaks++] = -1;
    }
    if (allocated <= w->peaks[allocator]) return false;
    w->peaks[allocator] = allocated;
    return true;
}

/* Keeps what the allocator says of itself. Fragmentation matters where it
 * hurts: at the peak of the window. */
static void allocator_facts(struct xpiece *w, uint32_t allocator,
                            int64_t allocated) {
    struct allocator *a = &w->t->allocators[allocator];
    int64_t available = fact_int(w, XSTAT_BYTES_AVAILABLE, -1), sum;
    int64_t peak = fact_int(w, XSTAT_PEAK, -1);
    if (allocated >= 0 && available >= 0 &&
        !__builtin_add_overflow(allocated, available, &sum))
        a->capacity = sum;
    if (peak > a->peak_life) a->peak_life = peak;
    if (!new_peak(w, allocator, allocated) || !fact_has(w, XSTAT_FRAGMENTATION))
        return;
    double f = xval_num(w->plane, &w->facts.v[XSTAT_FRAGMENTATION]);
    if (f >= 0 && f <= 1) a->fragmentation = f;
}

/* Returns the bytes that a memory event moved. A free may not tell: a program's
 * own free() knows no size, nor does a TPU's, whose allocations may only tell
 * the level. */
static int64_t moved_bytes(const struct xpiece *w, bool alloc) {
    int64_t n = fact_int(w, XSTAT_ALLOCATION, 0);
    if (w->plane->own && alloc) return mem_told(n);
    if (w->plane->own)
        return !fact_has(w, XSTAT_ALLOCATION) || n == INT64_MIN ? MEM_UNSIZED
                                                                : mem_told(-n);
    if (n == 0) n = fact_int(w, XSTAT_REQUESTED, 0);
    bool told = fact_has(w, XSTAT_ALLOCATION) || fact_has(w, XSTAT_REQUESTED);
    if (alloc) return told ? mem_told(n) : MEM_GROWN;
    if (n == 0 || n == INT64_MIN) return MEM_UNSIZED;
    return mem_told(n < 0 ? n : -n);
}

void xevent_memory(struct xpiece *w, const struct xtracks *tr, bool alloc,
                   const struct xevent *e) {
    struct bytes name = fact_text(w, XSTAT_ALLOCATOR);
    struct mem_in m = {.ts = e->ts, .track = tr->main};
    int64_t reserved = fact_int(w, XSTAT_BYTES_RESERVED, 0);
    w->memory = true;
    m.bytes = moved_bytes(w, alloc);
    /* bytes_reserved is what programs set aside beside the allocated (stacks
     * on a TPU), 0 on GPUs: in use, too. What of the pool is free stands in
     * the capacity. */
    m.allocated = fact_int(w, XSTAT_BYTES_ALLOCATED, -1);
    if (reserved > 0 && m.allocated >= 0 && m.allocated < INT64_MAX - reserved)
        m.allocated += reserved;
    m.reserved = -1;
    m.addr = fact_has(w, XSTAT_ADDR) ? (uint64_t)fact_int(w, XSTAT_ADDR, 0) : 0;
    m.allocator = trace_allocator(w->t, w->source, name,
                                  allocator_device(w, name));
    struct bytes what = fact_text(w, XSTAT_TF_OP);
    m.what = what.n > 0 ? trace_str(w->t, what) : 0;
    if (m.allocator < w->t->nallocators)
        allocator_facts(w, m.allocator, m.allocated);
    trace_mem(w->t, &m);
}

/* Adds one sample of a counter: the value is whichever number the event
 * carries; where it has no known name it stands in no fact, and is looked up
 * again. */
static void counter_event(struct xpiece *w, const struct xname *n,
                          const struct xevent *e) {
    const uint8_t *all = w->x->all.p, *end = all + w->x->all.n;
    uint64_t len;
    const uint8_t *at = all +
                        (e->args - 1 - w->t->sources[w->source].args_base);
    const uint8_t *body = pb_varint(at, end, &len);
    if (body == NULL || len > (size_t)(end - body)) return;
    struct pb r = pb_reader((struct bytes){body, (size_t)len});
    struct pb_field f;
    while (pb_next(&r, &f)) {
        uint64_t id;
        struct xval v;
        if (f.num != XEVENT_STATS || f.wire != PB_BYTES) continue;
        xstat_read(f.bytes, &id, &v);
        if (v.type != XVAL_DOUBLE && v.type != XVAL_UINT && v.type != XVAL_INT)
            continue;
        uint32_t c = trace_counter(w->t, w->source, n->name,
                                   (struct bytes){body, 0}, w->device);
        trace_sample(w->t, c, e->ts, xval_num(w->plane, &v));
        return;
    }
    trace_note(w->t, NOTE_BAD_EVENT, 1);
}

/* Returns a number that is the same for the same value of a stat, and of that
 * type. */
static uint64_t fact_hash(const struct xpiece *w, enum xcode c) {
    if (!fact_has(w, c)) return 0;
    const struct xval *v = &w->facts.v[c];
    if (v->type == XVAL_STR || v->type == XVAL_BYTES)
        return hash_bytes(v->b.p, v->b.n);
    return hash_pair(v->u, (uint64_t)v->type);
}

/* Returns the compiled program that an event belongs to, "jit_step(8623)", as
 * the metadata of modules has it. */
static struct bytes module_text(const struct xpiece *w, char *out, size_t cap) {
    struct bytes m = fact_text(w, XSTAT_HLO_MODULE);
    if (m.n == 0 || m.n > cap - 32 || !fact_has(w, XSTAT_PROGRAM)) return m;
    memcpy(out, m.p, m.n);
    int n = snprintf(out + m.n, cap - m.n, "(%" PRIu64 ")",
                     (uint64_t)fact_int(w, XSTAT_PROGRAM, 0));
    return (struct bytes){(uint8_t *)out, m.n + (size_t)n};
}

/* Returns the category that a kernel's launch facts make (struct launch).
 * Kernels of one variant come again and again, so that the cache mostly has
 * it. */
static uint32_t launch_category(struct xpiece *w) {
    uint64_t key = fact_hash(w, XSTAT_KERNEL_DETAILS);
    key = hash_pair(key, fact_hash(w, XSTAT_HLO_OP));
    key = hash_pair(key, fact_hash(w, XSTAT_TF_OP));
    key = hash_pair(key, fact_hash(w, XSTAT_PROGRAM));
    key = hash_pair(key, fact_hash(w, XSTAT_HLO_MODULE)) | 1;
    struct xlaunch *at = &w->launches[key >> 32 & 510];
    if (at[0].key == key) return at[0].cat;
    if (at[1].key == key) return at[1].cat;
    at[1] = at[0];
    char module[256];
    struct launch l = {fact_text(w, XSTAT_HLO_OP), fact_text(w, XSTAT_TF_OP),
                       fact_text(w, XSTAT_KERNEL_DETAILS),
                       module_text(w, module, sizeof module)};
    *at = (struct xlaunch){key, launch_cat(w->t, &l)};
    return at->cat;
}

/* Sets what the stats say of a host event. */
static void host_span(struct xpiece *w, const struct xline *l,
                      const struct xname *n, struct span_in *s) {
    struct bytes hlo;
    if (fact_has(w, XSTAT_STEP_NUM) && n->kind != SPAN_PYTHON) {
        s->kind = SPAN_ANNOTATION;
        if (w->x->host_steps) s->flags |= SPAN_STEPMARK;
    } else if (fact_has(w, XSTAT_CORRELATION)) {
        s->kind = SPAN_API;
    } else if (fact_has(w, XSTAT_HLO_OP) &&
               (hlo = fact_text(w, XSTAT_HLO_OP)).n > 0) {
        s->kind = SPAN_OP;
        s->cat = launch_category(w);
        if (hlo.n != n->name.n || memcmp(hlo.p, n->name.p, hlo.n) != 0)
            s->name = trace_str(w->t, hlo);
    } else if (n->role == XROLE_EAGER && fact_has(w, XSTAT_EAGER_OP) &&
               !xname_is_function(fact_text(w, XSTAT_EAGER_OP))) {
        s->kind = SPAN_OP;
        s->flags |= SPAN_EAGER;
        s->name = trace_str(w->t, fact_text(w, XSTAT_EAGER_OP));
    } else if (s->kind == SPAN_ANNOTATION && fact_has(w, XSTAT_SRC)) {
        /* the C++ tracer says where in its source it stands; user code in
         * Python cannot */
        s->kind = SPAN_RUNTIME;
    } else if (s->kind == SPAN_ANNOTATION &&
               BYTES_STARTS(l->name, "Host Threads/") &&
               !fact_has(w, XSTAT_NVTX) && !BYTES_STARTS(n->name, "NVTX:")) {
        s->kind = SPAN_API; /* the GPU tracer's own lines hold calls */
    }
    if (fact_has(w, XSTAT_IS_EAGER) && fact_int(w, XSTAT_IS_EAGER, 0) != 0)
        s->flags |= SPAN_EAGER;
    if (fact_has(w, XSTAT_ASYNC) && fact_has(w, XSTAT_FLOW))
        s->flags |= SPAN_ASYNC;
}

/* Sets what the stats say of an event on a stream of a GPU. */
static void stream_span(struct xpiece *w, struct span_in *s) {
    if (fact_has(w, XSTAT_KERNEL_DETAILS)) {
        s->kind = SPAN_KERNEL;
        s->cat = launch_category(w);
    } else if (fact_has(w, XSTAT_MEMCPY_DETAILS) ||
               fact_has(w, XSTAT_MEMSET_DETAILS)) {
        s->kind = fact_has(w, XSTAT_MEMCPY_DETAILS) ? SPAN_COPY : SPAN_MEMSET;
        if (fact_has(w, XSTAT_HLO_OP)) s->cat = launch_category(w);
    } else if (fact_has(w, XSTAT_MEMALLOC_DETAILS) ||
               fact_has(w, XSTAT_MEMFREE_DETAILS) ||
               fact_has(w, XSTAT_RESIDENCY_DETAILS))
        s->kind = SPAN_OTHER;
    else if (s->kind == SPAN_OTHER && fact_has(w, XSTAT_CORRELATION))
        s->kind = SPAN_KERNEL;
    if (fact_has(w, XSTAT_IS_EAGER) && fact_int(w, XSTAT_IS_EAGER, 0) != 0)
        s->flags |= SPAN_EAGER;
}

static void device_span(struct xpiece *w, const struct xline *l,
                        struct xtracks *tr, struct span_in *s) {
    if (w->plane->kind == XPLANE_GPU) stream_span(w, s);
    if (l->kind == XLINE_DERIVED || l->kind == XLINE_ASYNC) {
        s->flags |= SPAN_DERIVED;
        if (l->kind == XLINE_ASYNC) s->flags |= SPAN_ASYNC;
        trace_note(w->t, NOTE_DERIVED_LINES, 1);
    }
    if (l->kind == XLINE_OVERHEAD) s->kind = SPAN_OVERHEAD;
    if (l->kind == XLINE_OTHER) s->kind = SPAN_OTHER;
    if (l->marks) {
        s->kind = SPAN_ANNOTATION;
        s->flags |= SPAN_STEPMARK;
        tr->marks++;
    }
}

/* Returns the number of a marker: its step_num, else its group, else the number
 * that is its name, else its place on the line. */
static int64_t step_number(struct xpiece *w, const struct xname *n,
                           const struct xtracks *tr) {
    if (fact_has(w, XSTAT_STEP_NUM)) return fact_int(w, XSTAT_STEP_NUM, 0);
    if (fact_has(w, XSTAT_GROUP)) return fact_int(w, XSTAT_GROUP, 0);
    int64_t v = 0;
    for (size_t i = 0; i < n->name.n; i++) {
        if (!isdigit(n->name.p[i]) || i > 17) return tr->marks - 1;
        v = v * 10 + (n->name.p[i] - '0');
    }
    return n->name.n > 0 ? v : tr->marks - 1;
}

void xevent_emit(struct xpiece *w, const struct xline *l, struct xtracks *tr,
                 const struct xname *n, const struct xevent *e) {
    struct span_in s = {.ts = e->ts,
                        .dur = e->dur,
                        .track = tr->main,
                        .name = e->name,
                        .cat = e->cat,
                        .kind = n->kind,
                        .flags = n->flags,
                        .args = e->args,
                        .args_n = e->args_n};
    if (l->kind == XLINE_COUNTERS) {
        counter_event(w, n, e);
        return;
    }
    if (w->plane->own) {
        if (l->kind == XLINE_HOST && s.kind == SPAN_PYTHON)
            s.track = side_track(w, l, tr, TRACK_PYTHON);
        xevent_own(w, l, tr, n, e, &s);
        return;
    }
    if (l->kind == XLINE_HOST) {
        if (w->facts.seen != 0 || n->kind == SPAN_ANNOTATION)
            host_span(w, l, n, &s);
        if (s.kind == SPAN_PYTHON) s.track = side_track(w, l, tr, TRACK_PYTHON);
        if (n->role == XROLE_ALLOC || n->role == XROLE_FREE) {
            xevent_memory(w, tr, n->role == XROLE_ALLOC, e);
            return; /* an instant that stands in the table of its own */
        }
    } else {
        device_span(w, l, tr, &s);
        /* the device's own clock wins where it recorded both times */
        if (fact_has(w, XSTAT_DEVICE_OFFSET) &&
            fact_has(w, XSTAT_DEVICE_DURATION)) {
            const struct xplane *p = w->plane;
            int64_t zero = p->own_clock ? p->dev_zero : l->base;
            int64_t offset = fact_int(w, XSTAT_DEVICE_OFFSET, 0);
            if (__builtin_add_overflow(zero, offset, &s.ts)) s.ts = INT64_MAX;
            s.dur = fact_int(w, XSTAT_DEVICE_DURATION, 0);
        }
    }
    if (e->count) {
        trace_note(w->t, NOTE_AGGREGATED_EVENTS, 1);
        s.track = side_track(w, l, tr, TRACK_ASYNC);
        s.flags |= SPAN_ASYNC | SPAN_DERIVED; /* a sum over events */
    } else if (s.dur == 0 && s.kind != SPAN_KERNEL) {
        s.flags |= SPAN_INSTANT;
    }
    row_id row = trace_span(w->t, &s);
    if (row == ROW_NONE) return;
    if (w->x->consumes && l->kind == XLINE_HOST) {
        uint64_t key = xruns_key(w, XSTAT_PRODUCER_TYPE, XSTAT_PRODUCER);
        if (key != 0) trace_link_host(w->t, w->source, key, row);
    }
    if (w->x->consumes && w->plane->kind == XPLANE_XLA)
        xruns_add(w, l, s.ts, s.dur);
    if (fact_has(w, XSTAT_CORRELATION)) {
        uint64_t id = (uint64_t)fact_int(w, XSTAT_CORRELATION, 0);
        if (l->kind == XLINE_HOST) trace_link_host(w->t, w->source, id, row);
        else if (l->kind == XLINE_STREAM)
            trace_link_device(w->t, w->source, id, row);
    }
    if (l->kind == XLINE_HOST && s.kind == SPAN_OP && fact_has(w, XSTAT_RUN) &&
        fact_has(w, XSTAT_HLO_OP))
        trace_run_hint(w->t, row, fact_int(w, XSTAT_RUN, 0));
    if (s.flags & SPAN_STEPMARK)
        trace_step_hint(w->t, row, step_number(w, n, tr));
    else if (fact_has(w, XSTAT_GROUP) && l->kind == XLINE_HOST)
        trace_group_hint(w->t, row, fact_int(w, XSTAT_GROUP, 0));
}
