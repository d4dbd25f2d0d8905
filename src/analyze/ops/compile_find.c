/* SPDX-License-Identifier: Apache-2.0
 * Finding compilations: one walk over each host thread. A span of a compiler
 * that begins when none is open opens a unit; all that begins inside belongs
 * to it. Then all units of a source, by start: each owns what no earlier one
 * claims, and XLA's helper threads own nothing while somebody waits for them.
 *
 * What is known of a unit comes from around it:
 *   torch   the compile id (frame 0, version 1 is "0/1") stands in annotations
 *           inside it or on the compiled region that runs right after it; that
 *           region also has the inputs' shapes and, with stacks, the function
 *   JAX     PjitFunction(f) around the compiler; from its start to the
 *           lowering it ran the function's Python: tracing
 *   TF      the call around it says how often it was traced */
#include "analyze/ops/compile_find.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/json.h"
#include "base/vec.h"
#include "model/args.h"
#include "names/compiler_names.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIMB = 64 }; /* levels around a compiler's span that are looked at */

/* A unit while it is looked for. */
struct unit {
    struct compile_span s;
    const char *framework, *name;
    uint32_t source, track;
    enum compile_kind kind;
    int64_t frame, version; /* torch's compile id; -1: not known */
    bool backward, helper;
};

/* A compiled frame of torch. */
struct opened {
    const char *function; /* with stacks: what it compiles; or NULL */
    row_id last;          /* the last CompiledFunction that ran for it */
};

/* A call of a jitted function that compiled the function. */
struct jit_call {
    row_id row, lower, compile; /* ROW_NONE: not seen */
};

struct finder {
    struct compiles *c;
    const struct trace *t;
    uint32_t *python; /* by track: the Python track beside a thread */
    struct unit *v;
    size_t n, cap;
    struct opened *frames;
    size_t nframes, cap_frames;
    struct map frame_of; /* source and number -> frames */
    struct jit_call *calls;
    size_t ncalls, cap_calls;
    struct map call_of; /* row of the call -> calls */
    struct map ran;     /* source and name of a jitted function that ran ->
                             its first row by time */
    struct map group_of;
    bool oom;
};

/* One thread's walk. */
struct walk {
    uint32_t track, source;
    int64_t end;    /* of the unit that is open or was last */
    size_t unit;    /* that unit; SIZE_MAX: none */
    row_id region;  /* the compiled region that runs, or ROW_NONE */
    size_t asked;   /* unit that waits for the region's inputs */
    row_id capture; /* begin of a capture that is open */
};

const char *compile_kind_name(enum compile_kind k) {
    static const char *const names[COMPILE_KINDS] = {
        "trace",    "lower",       "compile",
        "autotune", "guard check", "graph capture"};
    assert(k < COMPILE_KINDS);
    return names[k];
}

static enum compile_class class_of(const struct finder *f, row_id r) {
    return (enum compile_class)f->c->class[f->t->spans.name[r]];
}

/* Opens a unit; the walk goes on behind its end. NULL if out of memory. */
static struct unit *open_unit(struct finder *f, struct walk *w, row_id r,
                              int64_t ts, int64_t end) {
    if (!VEC_ROOM(f->v, f->n, f->cap)) {
        f->oom = true;
        return NULL;
    }
    w->unit = f->n;
    w->end = end;
    struct unit *u = &f->v[f->n++];
    *u = (struct unit){.source = w->source,
                       .track = w->track,
                       .kind = COMPILE_COMPILE,
                       .frame = -1,
                       .version = -1};
    u->s = (struct compile_span){.row = r,
                                 .ts = ts,
                                 .end = end,
                                 .step = f->t->spans.step[r]};
    return u;
}

/* Returns the frame of that number, made when new; NULL if out of memory. */
static struct opened *frame_at(struct finder *f, uint32_t source, int64_t id) {
    uint64_t key = (uint64_t)source << 32 | (uint32_t)id;
    uint32_t *at = map_at(&f->frame_of, key);
    if (at == NULL || !VEC_ROOM(f->frames, f->nframes, f->cap_frames)) {
        f->oom = true;
        return NULL;
    }
    if (*at == MAP_NONE) {
        *at = (uint32_t)f->nframes;
        f->frames[f->nframes++] = (struct opened){.last = ROW_NONE};
    }
    return &f->frames[*at];
}

/* Takes the begin of a compiled region. A unit before it on this thread that
 * has no id yet was its compilation. */
static void take_region(struct finder *f, struct walk *w, row_id r) {
    int64_t id, version;
    w->region = r;
    w->asked = SIZE_MAX;
    if (!compile_id_of(strs_bytes(&f->t->strs, f->t->spans.name[r]), &id,
                       &version))
        return;
    struct opened *fr = frame_at(f, w->source, id);
    if (fr == NULL) return;
    uint32_t p = f->python[w->track];
    if (fr->function == NULL && p != ROW_NONE) {
        /* The first Python frame that begins in the region is the compiled
         * function: its bytecode was replaced, its name stays. */
        const struct track *py = &f->t->tracks[p];
        row_id frame = trace_row_at(f->t, py, f->t->spans.ts[r]);
        if (frame < py->end && f->t->spans.ts[frame] < span_end(f->t, r))
            fr->function = span_name(f->t, frame);
    }
    if (w->unit == SIZE_MAX) return;
    struct unit *u = &f->v[w->unit];
    if (u->kind != COMPILE_COMPILE || u->backward || u->frame > id) return;
    if (u->frame < 0 && strcmp(u->framework, "torch.compile") == 0) {
        u->frame = id;
        u->version = version;
    }
    if (u->frame == id && u->version == version) w->asked = w->unit;
    w->unit = SIZE_MAX; /* later regions are no longer right after it */
}

/* Takes the next value of a JSON list, as it stands. Returns false at its
 * end. */
static bool value_next(struct json *j, struct bytes *out) {
    if (!json_item(j)) return false;
    const uint8_t *from = j->p;
    json_skip(j);
    while (from < j->p && (*from == ' ' || *from == ',')) from++;
    *out = (struct bytes){from, (size_t)(j->p - from)};
    return !j->bad;
}

/* The inputs of a call, one after the other. */
struct inputs {
    struct json dims, types;
    bool typed;
};

static bool inputs_open(const struct trace *t, row_id row, struct inputs *in) {
    struct arg dims = args_get(t, row, "Input Dims");
    struct arg types = args_get(t, row, "Input type");
    if (dims.type != ARG_JSON) return false;
    in->dims = json_reader(dims.text);
    in->typed = types.type == ARG_JSON;
    if (in->typed) in->types = json_reader(types.text);
    return json_enter(&in->dims, '[') &&
           (!in->typed || json_enter(&in->types, '['));
}

/* Takes the shape of the next tensor. Numbers are left out: once a size has
 * become a symbol, torch hands it over beside the tensor, as one input more. */
static bool tensor_next(struct inputs *in, struct bytes *shape) {
    struct bytes type;
    while (value_next(&in->dims, shape)) {
        if (!in->typed || !value_next(&in->types, &type)) return true;
        if (!BYTES_IS(type, "\"Scalar\"") &&
            !BYTES_IS(type, "\"ScalarList\"") && !BYTES_IS(type, "\"\""))
            return true;
    }
    return false;
}

/* Writes which sizes differ, " (dimension 0: 32 -> 48)", where the shapes have
 * the same number of them. */
static void sizes_changed(struct bytes before, struct bytes now, char *buf,
                          size_t cap) {
    struct json a = json_reader(before), b = json_reader(now);
    struct bytes x = {0}, y = {0};
    size_t n = 0;
    buf[0] = '\0';
    if (!json_enter(&a, '[') || !json_enter(&b, '[')) return;
    for (int i = 0; i < 32; i++) {
        bool has = value_next(&a, &x);
        if (value_next(&b, &y) != has) { /* more, or fewer */
            buf[0] = '\0';
            return;
        }
        if (!has || x.n > 20 || y.n > 20 || cap - n < 80) break;
        if (x.n == y.n && memcmp(x.p, y.p, x.n) == 0) continue;
        n += (size_t)snprintf(buf + n, cap - n, "%s%d: %.*s -> %.*s",
                              n > 0 ? ", " : " (dimension ", i, (int)x.n, x.p,
                              (int)y.n, y.p);
    }
    if (buf[0] != '\0') snprintf(buf + n, cap - n, ")");
}

/* Returns what differs between the shapes of two calls' inputs. */
static const char *compare_inputs(struct finder *f, row_id before, row_id now) {
    struct inputs a, b;
    struct bytes x, y;
    if (!inputs_open(f->t, before, &a) || !inputs_open(f->t, now, &b))
        return NULL;
    for (int i = 0; i < 10000; i++) {
        bool ha = tensor_next(&a, &x), hb = tensor_next(&b, &y);
        if (!ha && !hb)
            return "no tensor has another shape than in the call before: a "
                   "guard on a value, a type or a global";
        if (ha != hb) return "another number of tensors than before";
        if (x.n == y.n && memcmp(x.p, y.p, x.n) == 0) continue;
        char sizes[200];
        sizes_changed(x, y, sizes, sizeof sizes);
        const char *s = arena_fmt(&f->c->arena,
                                  "shape of tensor %d: %.*s, before %.*s%s", i,
                                  CUT_BYTES(80, y), CUT_BYTES(80, x), sizes);
        if (s == NULL) f->oom = true;
        return s;
    }
    return NULL;
}

/* Takes the function that runs inside the region: its inputs are known. */
static void take_function(struct finder *f, struct walk *w, row_id r) {
    int64_t id, version;
    if (w->region == ROW_NONE || f->t->spans.ts[r] >= span_end(f->t, w->region))
        return;
    struct bytes name = strs_bytes(&f->t->strs, f->t->spans.name[w->region]);
    if (!compile_id_of(name, &id, &version)) return;
    struct opened *fr = frame_at(f, w->source, id);
    if (fr == NULL) return;
    if (w->asked != SIZE_MAX && fr->last != ROW_NONE)
        f->v[w->asked].s.reason = compare_inputs(f, fr->last, r);
    w->asked = SIZE_MAX;
    fr->last = r;
}

/* Returns the call of a jitted function around a compiler's span. JAX records
 * each call twice, one span in the other: the outer one is returned. */
static row_id jit_around(const struct finder *f, row_id r) {
    const struct spans *s = &f->t->spans;
    row_id p = s->parent[r];
    for (int i = 0; i < CLIMB && p != ROW_NONE; i++, p = s->parent[p])
        if (class_of(f, p) == CC_JIT) {
            row_id up = s->parent[p];
            return up != ROW_NONE && s->name[up] == s->name[p] ? up : p;
        }
    return ROW_NONE;
}

/* Notes which calls compile: they are known by what is inside them. */
static void find_jit_calls(struct finder *f, const struct track *tr) {
    for (row_id r = tr->first; r < tr->end; r++) {
        enum compile_class k = class_of(f, r);
        if (k != CC_JIT_LOWER && k != CC_JIT_COMPILE) continue;
        row_id call = jit_around(f, r);
        if (call == ROW_NONE) continue;
        uint32_t *at = map_at(&f->call_of, call);
        if (at == NULL || !VEC_ROOM(f->calls, f->ncalls, f->cap_calls)) {
            f->oom = true;
            return;
        }
        if (*at == MAP_NONE) {
            *at = (uint32_t)f->ncalls;
            f->calls[f->ncalls++] = (struct jit_call){call, ROW_NONE, ROW_NONE};
        }
        struct jit_call *c = &f->calls[*at];
        if (k == CC_JIT_COMPILE) c->compile = r; /* the last one */
        else if (c->lower == ROW_NONE) c->lower = r;
    }
}

static void jit_unit(struct finder *f, struct walk *w, row_id r, int64_t ts,
                     enum compile_kind kind) {
    int64_t end = kind == COMPILE_TRACE ? w->end : span_end(f->t, r);
    struct unit *u = end > ts ? open_unit(f, w, r, ts, end) : NULL;
    if (u == NULL) return;
    u->kind = kind;
    u->framework = "jax";
}

/* Takes a call of a jitted function: it ran from the cache, or it was traced,
 * lowered and compiled first. */
static void take_jit(struct finder *f, struct walk *w, row_id r) {
    const struct spans *s = &f->t->spans;
    uint32_t *first = map_at(&f->ran, (uint64_t)w->source << 32 | s->name[r]);
    if (first == NULL) {
        f->oom = true;
        return;
    }
    if (*first == MAP_NONE || s->ts[*first] > s->ts[r]) *first = r;
    uint32_t k = map_get(&f->call_of, r);
    if (k == MAP_NONE) return;
    struct jit_call c = f->calls[k];
    size_t before = f->n;
    row_id traced = c.lower != ROW_NONE ? c.lower : c.compile;
    w->end = s->ts[traced];
    jit_unit(f, w, r, s->ts[r], COMPILE_TRACE);
    if (c.lower != ROW_NONE)
        jit_unit(f, w, c.lower, s->ts[c.lower], COMPILE_LOWER);
    if (c.compile != ROW_NONE)
        jit_unit(f, w, c.compile, s->ts[c.compile], COMPILE_COMPILE);
    struct bytes name = strs_bytes(&f->t->strs, s->name[r]);
    size_t head = sizeof "PjitFunction(" - 1;
    if (name.n > head) { /* f of PjitFunction(f) */
        size_t tail = name.p[name.n - 1] == ')';
        name = (struct bytes){name.p + head, name.n - head - tail};
    }
    for (size_t i = before; i < f->n; i++) {
        f->v[i].name = arena_copy(&f->c->arena, name.p, name.n);
        if (f->v[i].name == NULL) f->oom = true;
        f->v[i].frame = r; /* whose turn it was; see jit_again */
    }
}

/* Is the row a call of a tf.function from Python? */
static bool is_tf_call(const struct trace *t, row_id row) {
    return t->spans.kind[row] == SPAN_ANNOTATION &&
           args_get(t, row, "tf_function_call").type != ARG_NONE;
}

/* Names a unit by the tf.function around it, which says how often it was traced
 * by then. */
static void name_tf(struct finder *f, struct unit *u, row_id r) {
    const struct spans *s = &f->t->spans;
    row_id p = s->parent[r];
    int i = 0;
    while (i++ < CLIMB && p != ROW_NONE && !is_tf_call(f->t, p))
        p = s->parent[p];
    if (p == ROW_NONE || i > CLIMB) return;
    int64_t count = args_int(f->t, p, "tracing_count", -1);
    u->name = span_name(f->t, p);
    u->s.again = count > 1;
    if (count < 2) return;
    u->s.reason = arena_fmt(&f->c->arena,
                            "a new input signature: trace %" PRId64
                            " of this function since the program began",
                            count);
    if (u->s.reason == NULL) f->oom = true;
}

static void take_xla(struct finder *f, struct walk *w, row_id r,
                     enum compile_kind kind) {
    const struct spans *s = &f->t->spans;
    const struct unit *last = w->unit == SIZE_MAX ? NULL : &f->v[w->unit];
    bool more = last != NULL && strcmp(last->framework, "xla") == 0 &&
                last->kind == kind && s->parent[r] != ROW_NONE &&
                s->parent[last->s.row] == s->parent[r];
    const char *name = more ? last->name : NULL;
    struct unit *u = open_unit(f, w, r, s->ts[r], span_end(f->t, r));
    if (u == NULL) return;
    u->kind = kind;
    u->framework = "xla";
    u->s.more = more;
    u->name = name;
    if (!more) name_tf(f, u, r);
    /* the module that the arguments name */
    static const char *const keys[] = {"module", "hlo_module", "name"};
    for (size_t i = 0; u->name == NULL && !f->oom && i < COUNT(keys); i++) {
        struct arg a = args_get(f->t, r, keys[i]);
        if (a.type != ARG_TEXT || a.text.n == 0 || a.text.n > 300) continue;
        u->name = arena_copy(&f->c->arena, a.text.p, a.text.n);
        if (u->name == NULL) f->oom = true;
    }
}

/* Takes a capture, from the call that begins it to the one that ends it. */
static void take_capture_end(struct finder *f, struct walk *w, row_id r) {
    if (w->capture == ROW_NONE) return;
    struct unit *u = open_unit(f, w, w->capture, f->t->spans.ts[w->capture],
                               span_end(f->t, r));
    w->capture = ROW_NONE;
    if (u == NULL) return;
    u->kind = COMPILE_CAPTURE;
    u->framework = "cuda";
    u->name = "CUDA graph capture";
}

/* Takes a span that opens a unit when none is open. */
static void take_opener(struct finder *f, struct walk *w, row_id r,
                        enum compile_class k) {
    static const struct {
        const char *framework;
        enum compile_kind kind;
    } openers[] = {
        [CC_TORCH] = {"torch.compile", COMPILE_COMPILE},
        [CC_TORCH_BW] = {"torch.compile", COMPILE_COMPILE},
        [CC_TORCH_TUNE] = {"torch.compile", COMPILE_AUTOTUNE},
        [CC_GUARD] = {"torch.compile", COMPILE_GUARD},
        [CC_JIT_TRACE] = {"jax", COMPILE_TRACE},
        [CC_JIT_LOWER] = {"jax", COMPILE_LOWER},
        [CC_JIT_COMPILE] = {"jax", COMPILE_COMPILE},
        [CC_TF_TRACE] = {"tf.function", COMPILE_TRACE},
        [CC_GRAPH_BUILD] = {"cuda", COMPILE_CAPTURE},
        [CC_DRIVER] = {"cuda", COMPILE_COMPILE},
    };
    if (k == CC_JIT) take_jit(f, w, r);
    if (k == CC_XLA) take_xla(f, w, r, COMPILE_COMPILE);
    if (k == CC_XLA_TUNE) take_xla(f, w, r, COMPILE_AUTOTUNE);
    if ((size_t)k >= COUNT(openers) || !openers[k].framework) return;
    struct unit *u = open_unit(f, w, r, f->t->spans.ts[r], span_end(f->t, r));
    if (u == NULL) return;
    u->framework = openers[k].framework;
    u->kind = openers[k].kind;
    u->backward = k == CC_TORCH_BW;
    if (k == CC_TF_TRACE) name_tf(f, u, r);
}

static void take_row(struct finder *f, struct walk *w, row_id r,
                     enum compile_class k) {
    bool inside = f->t->spans.ts[r] < w->end;
    if (k == CC_TORCH_ID) { /* an annotation inside of a unit tells its id */
        struct unit *u = inside && w->unit != SIZE_MAX ? &f->v[w->unit] : NULL;
        if (u != NULL && u->frame < 0)
            compile_id_of(strs_bytes(&f->t->strs, f->t->spans.name[r]),
                          &u->frame, &u->version);
        return;
    }
    if (inside) return;
    switch (k) {
    case CC_REGION: take_region(f, w, r); return;
    case CC_FUNCTION: take_function(f, w, r); return;
    case CC_CAPTURE_BEGIN: w->capture = r; return;
    case CC_CAPTURE_END: take_capture_end(f, w, r); return;
    default: take_opener(f, w, r, k);
    }
}

/* Walks a track. A guard check between a compilation and its region must not
 * change the walk's last unit, so that unit is remembered around it. */
static void walk_track(struct finder *f, uint32_t track) {
    const struct trace *t = f->t;
    const struct track *tr = &t->tracks[track];
    struct walk w = {.track = track,
                     .source = tr->source,
                     .end = INT64_MIN,
                     .unit = SIZE_MAX,
                     .region = ROW_NONE,
                     .asked = SIZE_MAX,
                     .capture = ROW_NONE};
    if (tr->kind != TRACK_THREAD && tr->kind != TRACK_OTHER) return;
    find_jit_calls(f, tr);
    for (row_id r = tr->first; r < tr->end && !f->oom; r++) {
        enum compile_class k = class_of(f, r);
        if (k == CC_NONE ||
            (t->spans.flags[r] & (SPAN_ASYNC | SPAN_DERIVED | SPAN_INSTANT)))
            continue;
        size_t unit = w.unit;
        take_row(f, &w, r, k);
        if (k == CC_GUARD) w.unit = unit;
    }
}

/* Marks a jitted function that ran earlier, on any thread, as compiled
 * again. */
static void jit_again(struct finder *f, struct unit *u) {
    const struct spans *s = &f->t->spans;
    if (u->frame < 0) return;
    row_id call = (row_id)u->frame;
    uint32_t first = map_get(&f->ran,
                             (uint64_t)u->source << 32 | s->name[call]);
    u->s.again = first != MAP_NONE && s->ts[first] < s->ts[call];
}

static void name_torch(struct finder *f, struct unit *u) {
    if (u->kind == COMPILE_GUARD || u->frame < 0) return;
    const struct opened *fr = frame_at(f, u->source, u->frame);
    if (fr == NULL) return;
    char number[40];
    snprintf(number, sizeof number, "frame %" PRId64, u->frame);
    u->name = arena_fmt(&f->c->arena, u->backward ? "%s (backward)" : "%s",
                        fr->function ? fr->function : number);
    if (u->name == NULL) {
        f->oom = true;
        return;
    }
    u->s.again = u->version > 0;
    if (u->backward && u->s.again)
        u->s.reason = "its forward graph was compiled again";
}

static uint32_t group_of(struct finder *f, const struct unit *u) {
    struct compiles *c = f->c;
    uint64_t h = hash_bytes(u->name, strlen(u->name));
    h = hash_pair(h, (uint64_t)u->source << 8 | u->kind);
    h = hash_pair(h, hash_bytes(u->framework, strlen(u->framework)));
    uint32_t *at = map_at(&f->group_of, h);
    if (at == NULL || !VEC_ROOM(c->groups, c->ngroups, c->cap_groups)) {
        f->oom = true;
        return 0;
    }
    if (*at == MAP_NONE) {
        *at = (uint32_t)c->ngroups;
        c->groups[c->ngroups++] = (struct compile_group){u->source, u->kind,
                                                         u->framework, u->name};
    }
    return *at;
}

/* Shares out the time of a source among its units, by start. Helpers of XLA
 * that begin while another unit runs are part of that. */
static bool share_time(struct finder *f) {
    struct sort_key *v = vec_alloc(f->n ? f->n : 1, sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < f->n; i++)
        v[i] = (struct sort_key){f->v[i].source, sort_signed(f->v[i].s.ts),
                                 (uint32_t)i};
    bool ok = sort_keys(v, f->n);
    int64_t end = INT64_MIN;
    uint32_t group = 0;
    for (size_t i = 0; ok && i < f->n && !f->oom; i++) {
        struct unit *u = &f->v[v[i].row];
        if (i == 0 || v[i].hi != v[i - 1].hi) end = INT64_MIN;
        u->helper = u->s.ts < end && strcmp(u->framework, "xla") == 0;
        u->s.group = u->helper ? group : group_of(f, u);
        if (u->helper) {
            u->s.more = true;
            continue;
        }
        int64_t from = u->s.ts > end ? u->s.ts : end;
        u->s.own = u->s.end > from ? u->s.end - from : 0;
        if (u->s.end > end) {
            end = u->s.end;
            group = u->s.group;
        }
    }
    free(v);
    return ok && !f->oom;
}

/* Marks later compilations of a thing that has no better sign of it. */
static bool mark_again(struct finder *f) {
    struct compiles *c = f->c;
    uint8_t *seen = calloc(c->ngroups + 1, 1);
    if (seen == NULL) return false;
    for (size_t i = 0; i < f->n; i++) {
        struct unit *u = &f->v[i];
        bool named = strcmp(u->framework, "xla") == 0 ||
                     strcmp(u->framework, "torch.compile") == 0;
        if (u->s.more || u->helper || u->kind == COMPILE_GUARD) continue;
        if (named && seen[u->s.group] && u->version < 0) u->s.again = true;
        seen[u->s.group] = 1;
    }
    free(seen);
    return true;
}

/* Sorts by track and start: a capture is known only when it ends. */
static bool copy_out(struct finder *f) {
    struct compiles *c = f->c;
    size_t n = f->n ? f->n : 1;
    struct sort_key *v = vec_alloc(n, sizeof *v);
    c->spans = vec_alloc(n, sizeof *c->spans);
    for (size_t i = 0; v && i < f->n; i++)
        v[i] = (struct sort_key){f->v[i].track, sort_signed(f->v[i].s.ts),
                                 (uint32_t)i};
    bool ok = v && c->spans && sort_keys(v, f->n);
    for (size_t i = 0; ok && i < f->n; i++) c->spans[i] = f->v[v[i].row].s;
    if (ok) c->nspans = f->n;
    free(v);
    return ok;
}

int compiles_init(struct compiles *c, const struct trace *t,
                  struct ops_err *e) {
    *c = (struct compiles){.t = t};
    struct finder f = {.c = c, .t = t};
    c->class = calloc(t->strs.n + 1, 1);
    f.python = trace_python_tracks(t);
    int rc = c->class && f.python ? 0 : fail_oom(e);
    for (size_t i = 0; rc == 0 && i < t->strs.n; i++)
        c->class[i] = (uint8_t)compile_classify(
            strs_bytes(&t->strs, (str_id)i));
    for (uint32_t i = 0; rc == 0 && i < t->ntracks; i++) walk_track(&f, i);
    for (size_t i = 0; rc == 0 && i < f.n && !f.oom; i++) {
        struct unit *u = &f.v[i];
        if (strcmp(u->framework, "torch.compile") == 0) name_torch(&f, u);
        else if (strcmp(u->framework, "jax") == 0) jit_again(&f, u);
        if (u->name == NULL) u->name = span_name(t, u->s.row);
    }
    bool ok = rc == 0 && !f.oom && share_time(&f) && mark_again(&f) &&
              copy_out(&f);
    free(f.python);
    free(f.v);
    free(f.frames);
    free(f.calls);
    map_free(&f.frame_of);
    map_free(&f.call_of);
    map_free(&f.ran);
    map_free(&f.group_of);
    if (ok) return 0;
    compiles_free(c);
    return rc != 0 ? rc : fail_oom(e);
}

void compiles_free(struct compiles *c) {
    arena_free(&c->arena);
    free(c->groups);
    free(c->spans);
    free(c->class);
    *c = (struct compiles){0};
}

bool compiles_has(const struct compiles *c, row_id row) {
    const struct spans *s = &c->t->spans;
    uint32_t track = s->track[row];
    size_t i; /* the first that begins later */
    BOUND(i, 0, c->nspans,
          s->track[c->spans[i].row] < track ||
              (s->track[c->spans[i].row] == track &&
               c->spans[i].ts <= s->ts[row]));
    if (i == 0) return false;
    const struct compile_span *p = &c->spans[i - 1];
    return s->track[p->row] == track && s->ts[row] < p->end &&
           c->groups[p->group].kind != COMPILE_GUARD;
}

row_id compiles_call(const struct compiles *c, const struct compile_span *s) {
    const struct trace *t = c->t;
    row_id call = ROW_NONE, row = s->row;
    for (int i = 0; row != ROW_NONE && i < CLIMB; i++) {
        if (c->class[t->spans.name[row]] == CC_JIT || is_tf_call(t, row))
            call = row;
        row = t->spans.parent[row];
    }
    return call;
}
