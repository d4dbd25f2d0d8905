/* SPDX-License-Identifier: Apache-2.0
 * XSpace (.xplane.pb): profiles of TensorFlow, JAX, XLA and of opscope itself.
 *
 *     XSpace { 1 planes, 2 errors, 3 warnings, 4 hostnames }
 *
 * Planes are opened (names, line heads), then their events are read, in file
 * order; see xspace.h. A file of some size is read by two threads: the second
 * half of the events goes into a trace of its own, which is then put behind
 * the first. While opscope records, the file is one plane whose length is a
 * padded number, patched after each flush: what stands behind it then is not
 * whole yet, and left alone. */
#include "import/xspace/xspace.h"

#include "base/hash.h"
#include "base/vec.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include "names/pattern.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

bool xspace_next(struct trace *t, struct pb *r, struct pb_field *f, bool cut) {
    if (cut) return pb_next_cut(r, f);
    if (pb_next(r, f)) return true;
    if (r->bad) trace_note(t, NOTE_BAD_FIELD, 1);
    return false;
}

/* Looks a plane over up to its name. Returns 1 if it is one, -1 if it is none,
 * 0 if it has no name. */
static int sniff_plane(struct bytes b) {
    static const char *const names[] = {"/host:*",   "/device:*",
                                        "/custom:*", "/virtualdevice:*",
                                        "#Chip*",    "Host CPUs*",
                                        "Syscalls*", XSPACE_ENVIRONMENT "*",
                                        NULL};
    struct pb r = pb_reader(b);
    struct pb_field f;
    for (int i = 0; i < 4096 && pb_next(&r, &f); i++) {
        if (f.num < XPLANE_ID || f.num > XPLANE_STATS) return -1;
        if (f.wire != (f.num == XPLANE_ID ? PB_VARINT : PB_BYTES)) return -1;
        if (f.num == XPLANE_NAME) return pattern_in(names, f.bytes) ? 1 : -1;
    }
    return 0;
}

/* Was the length written wider than it needs to be, to be patched later? */
static bool length_padded(const uint8_t *field, struct bytes body) {
    return body.p - field > 2 && body.p[-1] == 0;
}

static bool sniff(struct bytes all) {
    struct pb r = pb_reader(all);
    struct pb_field f;
    for (int i = 0; i < 64; i++) {
        bool whole = pb_next(&r, &f);
        if (!whole && (!r.bad || f.num == 0)) return false;
        if (f.num < XSPACE_PLANES || f.num > XSPACE_HOSTNAMES ||
            f.wire != PB_BYTES)
            return false;
        int plane = f.num == XSPACE_PLANES ? sniff_plane(f.bytes) : 0;
        /* a recorder that has begun and not written yet */
        if (i == 0 && whole && f.num == XSPACE_PLANES && f.bytes.n == 0 &&
            length_padded(all.p, f.bytes))
            return true;
        if (plane != 0) return plane > 0;
        if (!whole) return false;
    }
    return false;
}

/* Adds a plane, which has a name, and something in it: bytes too short for both
 * would cost a hundred times what they weigh. */
static void add_plane(struct xspace *x, struct bytes body, bool cut) {
    enum { LEAST_BYTES = 12 };
    if (body.n < LEAST_BYTES && !cut) {
        if (body.n > 0) trace_note(x->t, NOTE_BAD_EVENT, 1);
        return;
    }
    if (!VEC_ROOM(x->planes, x->nplanes, x->cap_planes)) x->oom = true;
    else
        x->planes[x->nplanes++] =
            (struct xplane){.body = body, .cut = cut, .name = {body.p, 0}};
}

static void space_field(struct xspace *x, const struct pb_field *f, bool cut) {
    if (f->num > XSPACE_HOSTNAMES) trace_note(x->t, NOTE_UNKNOWN_FIELD, 1);
    else if (f->wire != PB_BYTES) trace_note(x->t, NOTE_BAD_FIELD, 1);
    else if (f->num == XSPACE_PLANES) add_plane(x, f->bytes, cut);
    else if (f->num < XSPACE_HOSTNAMES) {
        const char *key = f->num == XSPACE_ERRORS ? "error" : "warning";
        trace_note(x->t, NOTE_SOURCE_WARNING, 1);
        trace_meta(x->t, x->source, key, f->bytes);
    } else if (x->t->sources[x->source].host == 0)
        x->t->sources[x->source].host = trace_str(x->t, f->bytes);
}

/* Behind a plane whose length was patched: does this field belong to the file,
 * or is it a part of the plane that was not whole when the recorder died? */
static bool belongs(const struct pb_field *f, bool whole) {
    if (f->num == XSPACE_PLANES) return true;
    if (!whole || f->num > XSPACE_HOSTNAMES || f->wire != PB_BYTES)
        return false;
    /* Errors, warnings and host names are text. A line or a name of a plane
     * begins with a tag, which is a control character. */
    const uint8_t *p = f->bytes.p, *end = p + f->bytes.n;
    while (p < end && (*p >= ' ' || *p == '\n' || *p == '\t')) p++;
    return p == end;
}

/* Reads the file's own fields. */
static void read_space(struct xspace *x) {
    struct pb r = pb_reader(x->all);
    struct pb_field f;
    bool patched = false;
    for (;;) {
        const uint8_t *at = r.p;
        bool whole = pb_next(&r, &f);
        if (!whole && !r.bad) return;
        if (patched && *at == 0) return; /* room not written to yet */
        bool torn = patched && !belongs(&f, whole);
        if (torn) x->tail = true;
        else if (!whole) trace_note(x->t, NOTE_FILE_CUT, 1);
        if (!whole && f.num == XSPACE_PLANES) space_field(x, &f, true);
        if (!whole || torn) return;
        space_field(x, &f, false);
        patched = f.num == XSPACE_PLANES ? length_padded(at, f.bytes) : patched;
    }
}

/* Finds the first line of that name that has events, on a device of that kind;
 * its events mark the steps. Returns false if there is none. */
static bool mark_by_line(struct xspace *x, enum xplane_kind kind,
                         const char *name) {
    for (size_t i = 0; i < x->nplanes; i++) {
        struct xplane *p = &x->planes[i];
        if (p->kind != kind || p->own) continue;
        for (size_t j = 0; j < p->nlines; j++) {
            struct xline *l = &p->lines[j];
            if (!bytes_eq(l->name, name, strlen(name)) ||
                l->events == l->body.p + l->body.n)
                continue;
            l->marks = true;
            x->host_steps = false;
            return true;
        }
    }
    return false;
}

/* Chooses which lines mark steps: a TPU's Steps, of the first device that has
 * them; else events with step_num on the host; else the Steps that a reader of
 * the file drew for a GPU; else the modules that an XLA device ran, which are
 * no markers, and the source says so. */
static void choose_markers(struct xspace *x) {
    x->host_steps = true;
    if (mark_by_line(x, XPLANE_XLA, "Steps")) return;
    for (size_t i = 0; i < x->nplanes; i++)
        if (x->planes[i].kind == XPLANE_HOST && x->planes[i].has_step_num)
            return;
    if (mark_by_line(x, XPLANE_GPU, "Steps")) return;
    x->t->sources[x->source].runs_mark = mark_by_line(x, XPLANE_XLA,
                                                      "XLA Modules");
}

/* Makes the piece ready for a plane: no name interned yet. */
static bool piece_plane(struct xpiece *w, const struct xplane *p) {
    if (w->plane == p) return true;
    if (p->nnames > w->cap_names) {
        if (!vec_resize(&w->names, p->nnames, sizeof *w->names)) {
            w->t->oom = true;
            return false;
        }
        w->cap_names = p->nnames;
    }
    for (size_t i = 0; i < p->nnames; i++)
        w->names[i] = (struct xlocal){STR_NONE, 0};
    w->plane = p;
    memset(w->launches, 0, sizeof w->launches); /* ids are the plane's own */
    w->device = ROW_NONE;
    if (p->device != ROW_NONE)
        w->device = trace_device(w->t, w->source, p->dev_kind, p->ordinal);
    return true;
}

/* Where the file is cut in two: everything before this place is the first
 * piece's. */
struct share {
    struct xpiece piece;
    const uint8_t *from, *to;
};

/* Real files have 14 to 90 bytes an event; large ones 50 and more. */
enum { BYTES_PER_EVENT = 48 };

/* Returns how many events of a line stand before a place. */
static int64_t events_before(const struct xline *l, const uint8_t *at) {
    struct pb r = {l->events, l->body.p + l->body.n, false};
    struct pb_field f;
    int64_t n = 0;
    while (r.p < at && pb_next(&r, &f))
        n += f.num == XLINE_EVENTS && f.wire == PB_BYTES;
    return n;
}

/* Reads the lines of a share, cut lines in part. */
static void *share_read(void *arg) {
    struct share *s = arg;
    const struct xspace *x = s->piece.x;
    s->piece.from = s->from;
    s->piece.to = s->to;
    trace_reserve(s->piece.t, (size_t)(s->to - s->from) / BYTES_PER_EVENT);
    for (size_t i = 0; i < x->nplanes; i++) {
        const struct xplane *p = &x->planes[i];
        for (size_t k = 0; k < p->nlines; k++) {
            struct xline l = p->lines[k];
            const uint8_t *end = l.body.p + l.body.n;
            if (l.body.p >= s->to || end <= s->from) continue;
            if (!piece_plane(&s->piece, p)) return NULL;
            if (l.marks) l.before = events_before(&l, s->from);
            if (l.events < s->from) l.events = s->from;
            if (end > s->to) l.stop = s->to;
            xline_read(&s->piece, &l);
        }
    }
    return NULL;
}

/* Returns what reading a line costs, in units of a byte: events of host threads
 * are small and many, those of devices large and few. It is judged by its first
 * ones. */
static size_t line_cost(const struct xline *l) {
    enum { LOOKS = 256, EVENT_COST = 64 };
    struct pb r = {l->events, l->body.p + l->body.n, false};
    struct pb_field f;
    size_t n = 0;
    while (n < LOOKS && pb_next(&r, &f)) n++;
    size_t seen = (size_t)(r.p - l->events);
    size_t all = (size_t)(l->body.p + l->body.n - l->events);
    if (n == 0 || seen == 0) return all;
    return all + all / seen * n * EVENT_COST;
}

/* Returns a place between two events with about half of the work before it. */
static const uint8_t *middle(const struct xspace *x) {
    size_t all = 0, sum = 0;
    for (size_t i = 0; i < x->nplanes; i++)
        for (size_t k = 0; k < x->planes[i].nlines; k++)
            all += line_cost(&x->planes[i].lines[k]);
    for (size_t i = 0; i < x->nplanes; i++)
        for (size_t k = 0; k < x->planes[i].nlines; k++) {
            const struct xline *l = &x->planes[i].lines[k];
            size_t cost = line_cost(l);
            if (cost > 0 && sum + cost >= all / 2) {
                double part = (double)(all / 2 - sum) / (double)cost;
                struct pb r = {l->events, l->body.p + l->body.n, false};
                struct pb_field f;
                size_t n = (size_t)(part * (double)(r.end - l->events));
                while (r.p < l->events + n && pb_next(&r, &f)) continue;
                return r.p; /* the first event from that place on */
            }
            sum += cost;
        }
    return x->all.p + x->all.n;
}

/* Returns a trace for the second half: the same file, the same devices. */
static struct trace *second_trace(const struct xspace *x) {
    const struct source *src = &x->t->sources[x->source];
    struct trace *t = trace_new();
    if (t == NULL) return NULL;
    if (trace_source(t, src->path, src->format, NULL, src->bytes) != 0) {
        trace_free(t);
        return NULL;
    }
    for (size_t i = 0; i < x->nplanes; i++) {
        const struct xplane *p = &x->planes[i];
        if (p->device != ROW_NONE) trace_device(t, 0, p->dev_kind, p->ordinal);
    }
    return t;
}

/* Returns a key that is the same for an allocator of both pieces: its name and
 * its device. */
static uint64_t allocator_key(const struct trace *t, size_t i) {
    const struct allocator *a = &t->allocators[i];
    struct bytes name = strs_bytes(&t->strs, a->name);
    int64_t device = a->device == ROW_NONE ? -1 : t->devices[a->device].ordinal;
    return hash_pair(hash_bytes(name.p, name.n), (uint64_t)device);
}

/* Keeps what was said of an allocator in the first piece, if it had its peak
 * there. Returns false if out of memory. */
static bool settle_peaks(struct xpiece *a, struct xpiece *b) {
    struct map first = {0};
    bool ok = true;
    for (size_t i = 0; ok && b->npeaks > 0 && i < a->npeaks; i++)
        ok = map_set(&first, allocator_key(a->t, i), (uint32_t)i);
    for (size_t k = 0; ok && k < b->npeaks; k++) {
        uint32_t i = map_get(&first, allocator_key(b->t, k));
        if (i != MAP_NONE && a->peaks[i] >= b->peaks[k])
            b->t->allocators[k].fragmentation = -1;
    }
    map_free(&first);
    return ok;
}

static int read_two(struct xspace *x, struct share *a, struct ops_err *e) {
    struct trace *t = second_trace(x);
    if (t == NULL) return fail_oom(e);
    struct share b = {.piece = {.x = x, .t = t, .watch = a->piece.watch},
                      .from = middle(x),
                      .to = a->to};
    trace_reserve(x->t, x->all.n / BYTES_PER_EVENT); /* both shares' */
    a->to = b.from;
    pthread_t thread;
    bool threaded = pthread_create(&thread, NULL, share_read, &b) == 0;
    share_read(a);
    if (threaded) pthread_join(thread, NULL);
    else share_read(&b);
    a->piece.events += b.piece.events;
    a->piece.memory |= b.piece.memory;
    a->piece.python |= b.piece.python;
    a->piece.shapes |= b.piece.shapes;
    if (!settle_peaks(&a->piece, &b.piece)) x->t->oom = true;
    xspace_own_settle(&a->piece, &b.piece);
    free(b.piece.names);
    free(b.piece.peaks);
    for (size_t i = 0; i < b.piece.runs.n; i++) {
        struct xruns *to = &a->piece.runs;
        if (!VEC_ROOM(to->v, to->n, to->cap)) x->t->oom = true;
        else to->v[to->n++] = b.piece.runs.v[i];
    }
    free(b.piece.runs.v);
    return trace_append(x->t, t, e);
}

/* Reads all events. Two threads pay from some megabytes on. */
static int read_events(struct xspace *x, const struct import_opts *o,
                       struct ops_err *e) {
    struct share s = {.piece = {.x = x,
                                .t = x->t,
                                .source = x->source,
                                .watch = o,
                                .tells = true},
                      .from = x->all.p,
                      .to = x->all.p + x->all.n};
    int rc = 0, threads = o != NULL ? o->threads : 1;
    if (threads == 0) threads = x->all.n > 8u << 20 ? 2 : 1;
    if (threads > 1) rc = read_two(x, &s, e);
    else share_read(&s);
    free(s.piece.names);
    free(s.piece.peaks);
    if (rc == 0) xruns_link(x, &s.piece.runs);
    free(s.piece.runs.v);
    struct source *src = &x->t->sources[x->source];
    src->events += s.piece.events;
    src->has_memory |= s.piece.memory;
    src->has_stacks |= s.piece.python;
    src->has_shapes |= s.piece.shapes;
    if (x->own) xspace_own_done(x);
    return rc;
}

static int read_file(struct trace *t, uint32_t source,
                     const struct import_opts *o, struct ops_err *e) {
    struct xspace x = {.t = t,
                       .source = source,
                       .all = t->sources[source].bytes};
    t->sources[source].decimals = 6;
    read_space(&x);
    for (size_t i = 0; i < x.nplanes; i++) xplane_open(&x, &x.planes[i]);
    for (size_t i = 0; i < x.nplanes; i++) xplane_facts(&x, &x.planes[i]);
    t->sources[source].by_opscope = x.own;
    choose_markers(&x);
    xspace_clock(&x);
    int rc = x.oom ? fail_oom(e) : read_events(&x, o, e);
    /* the recorder's own files are said to be open once, not cut as well */
    if (x.tail && !x.own) trace_note(t, NOTE_FILE_CUT, 1);
    if (rc == 0 && (t->sources[source].index = xspace_index_new(x.all)) == NULL)
        rc = fail_oom(e);
    for (size_t i = 0; i < x.nplanes; i++) xplane_free(&x.planes[i]);
    free(x.planes);
    arena_free(&x.arena);
    return rc;
}

/* clang-format off */
const struct importer importer_xspace = {
    .format = {
        .name = "xspace",
        .role = ROLE_CAPTURE,
        .writer = WRITER_XPROF,
        .args_each = xspace_args_each,
        .scopes_in_names = true,
        .has_programs = true,
        .fix = {
            [MISSING_DEVICE] = "profile on a machine with a GPU or TPU, with "
                               "device_tracer_level 1",
            [MISSING_MEMORY] = "the profiler records allocations of device "
                               "allocators only: profile a run on a GPU or "
                               "TPU",
            [MISSING_SHAPES] = "the profiler does not record the inputs of "
                               "host ops",
            [MISSING_STACKS] = "opscope record --stacks; the profiler of "
                               "TensorFlow 2.21 writes none, whatever is "
                               "asked",
        },
        .fix_jax = {
            [MISSING_MEMORY] = "the profiler records allocations of device "
                               "allocators only: profile a run on a GPU or "
                               "TPU; on a CPU opscope record --memory counts "
                               "live arrays (`counters`)",
            [MISSING_STACKS] = "profile with python_tracer_level=1",
        },
    },
    .help = "XSpace of TensorFlow, JAX, XLA and opscope (.xplane.pb)",
    .sniff = sniff,
    .read = read_file,
};
/* clang-format on */
