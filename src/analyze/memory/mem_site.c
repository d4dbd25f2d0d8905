/* SPDX-License-Identifier: Apache-2.0
 * A memory event stands on a thread at an instant: what is open there is who
 * allocated. Where a source recorded call stacks with its events (a memory
 * snapshot) those speak when no span does.
 *
 * Categories go by rule: the phase in which a block was allocated, and its
 * fate. torch's own memory profiler follows tensors through every op by their
 * ids; a trace has none, only addresses and times. What it does have is enough
 * for most: a gradient is what the backward pass leaves behind, an activation
 * what the forward pass leaves to it, an optimizer's state what its step
 * leaves. Where two readings are left the answer is unknown. */
#include "analyze/memory/mem_site.h"

#include "analyze/analyze.h"
#include "analyze/memory/mem_levels.h"
#include "analyze/shared/op_inputs.h"
#include "analyze/shared/phases.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/span_class.h"
#include "names/dtype.h"
#include "names/frame_name.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

enum {
    DEEPEST = 1000, /* spans looked at on the way out: real ones are tens deep,
                       Python's frames a thousand at most; every event climbs,
                       so a made-up file must not cost much more */
    READINGS = 4,   /* of a name, see enum reading */
};

/* ---- steps as memory sees them ---- */

void mem_steps_free(struct mem_steps *m) {
    free(m->v);
    *m = (struct mem_steps){0};
}

int mem_steps_init(struct mem_steps *m, const struct trace *t,
                   const struct selection *scope, uint32_t source,
                   struct ops_err *e) {
    *m = (struct mem_steps){0};
    const struct source *src = &t->sources[source];
    size_t n = src->step_end - src->step_first;
    struct sort_key *keys = vec_alloc(n + 1, sizeof *keys);
    m->v = vec_alloc(n + 1, sizeof *m->v);
    bool ok = keys && m->v;
    for (size_t i = 0; ok && i < n; i++) {
        const struct step *s = &t->steps[src->step_first + i];
        keys[i] = (struct sort_key){sort_signed(s->marker_ts),
                                    sort_signed(s->marker_dur),
                                    (uint32_t)(src->step_first + i)};
    }
    ok = ok && sort_keys(keys, n);
    for (size_t i = 0; ok && i < n; i++) {
        const struct step *s = &t->steps[keys[i].row];
        if (scope && !scope->all && scope->by_step &&
            !scope->step_in[keys[i].row])
            continue;
        /* a step ends where the next one starts, chosen or not; a region's
         * instance by itself, but not later */
        int64_t end = s->marker_ts + s->marker_dur;
        int64_t next = i + 1 < n ? t->steps[keys[i + 1].row].marker_ts : end;
        if (t->base == NULL || next < end) end = next;
        m->v[m->n++] = (struct mem_step){s->marker_ts, end, keys[i].row};
    }
    free(keys);
    if (ok) return 0;
    mem_steps_free(m);
    return fail_oom(e);
}

size_t mem_steps_at(struct mem_steps *m, int64_t ts) {
    size_t lo = m->near, hi = m->n, i;
    if (lo < hi && m->v[lo].start <= ts) {
        if (lo + 2 < hi && m->v[lo + 2].start > ts) hi = lo + 2;
    } else {
        hi = lo < hi ? lo : hi;
        lo = 0;
    }
    BOUND(i, lo, hi, m->v[i].start <= ts);
    m->near = i == 0 ? 0 : i - 1;
    return i == 0 ? m->n : i - 1;
}

/* ---- sites ---- */

/* Returns the marks of a text, read once: bit 32 says that they are known. */
static uint32_t marks_of(const struct strs *strs, uint64_t *known, str_id id) {
    const uint64_t read = UINT64_C(1) << 32;
    if (!(known[id] & read))
        known[id] = mem_phase_marks(strs_bytes(strs, id)) | read;
    return (uint32_t)known[id];
}

/* Finds the phase of each stack: each frame is looked at once, and the
 * innermost that tells decides. */
static bool find_stack_phases(struct mem_sites *s) {
    const struct stacks *st = &s->t->stacks;
    const struct strs *strs = &s->t->strs;
    if (st->n == 0) return true;
    uint8_t *frame = malloc(st->nframes + 1);
    uint64_t *marks = calloc(strs->n + 1, sizeof *marks);
    s->stack_phase = malloc(st->n);
    bool ok = frame && marks && s->stack_phase;
    for (size_t i = 0; ok && i < st->nframes; i++) {
        const struct frame *f = &st->frames[i];
        frame[i] = (uint8_t)mem_phase_of_frame(marks_of(strs, marks, f->file),
                                               marks_of(strs, marks, f->name),
                                               strs_bytes(strs, f->name));
    }
    for (size_t k = 0; ok && k < st->n; k++) {
        size_t i = st->first[k], end = st->first[k + 1];
        while (i + 1 < end && frame[st->items[i]] == MEM_NOWHERE) i++;
        s->stack_phase[k] = frame[st->items[i]];
    }
    free(frame);
    free(marks);
    return ok;
}

int mem_sites_init(struct mem_sites *s, const struct trace *t,
                   struct ops_err *e) {
    t = trace_base(t); /* what a block is for does not hang on the window */
    *s = (struct mem_sites){.t = t};
    TRY(pystack_init(&s->py, t, e));
    s->steps = calloc(t->nsources + 1, sizeof *s->steps);
    s->name_phase = calloc(t->strs.n + 1, READINGS);
    s->near = calloc(t->ntracks + 1, sizeof *s->near);
    s->first_launch = phases_first_launches(t);
    bool ok = s->steps && s->name_phase && s->near && s->first_launch &&
              find_stack_phases(s);
    int rc = ok ? 0 : fail_oom(e);
    for (size_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = mem_steps_init(&s->steps[i], t, NULL, (uint32_t)i, e);
    if (rc != 0) mem_sites_free(s);
    return rc;
}

void mem_sites_free(struct mem_sites *s) {
    for (size_t i = 0; s->steps && i < s->t->nsources; i++)
        mem_steps_free(&s->steps[i]);
    free(s->steps);
    free(s->stack_phase);
    free(s->name_phase);
    free(s->near);
    free(s->first_launch);
    pystack_free(&s->py);
    mem_forward_free(&s->forward);
    *s = (struct mem_sites){0};
}

int mem_sites_modules(struct mem_sites *s, struct ops_err *e) {
    mem_forward_free(&s->forward);
    return mem_forward_init(&s->forward, s->t, e);
}

static struct bytes name_of(const struct trace *t, row_id r) {
    return strs_bytes(&t->strs, t->spans.name[r]);
}

/* Does a copy from the host begin inside this op? It does so within a few
 * spans or not at all. */
static bool copies_in(const struct trace *t, row_id op) {
    enum { NEAR = 32 };
    const struct track *tr = &t->tracks[t->spans.track[op]];
    int64_t end = span_end(t, op);
    for (row_id r = op; r < tr->end && r - op < NEAR; r++) {
        if (t->spans.ts[r] > end) return false;
        size_t first, last = trace_links_from(t, r, &first);
        for (size_t i = first; i < last && i - first < NEAR; i++) {
            row_id d = t->links.device[t->links.by_host[i]];
            if (t->spans.kind[d] == SPAN_COPY &&
                copy_kind_of(name_of(t, d)) == COPY_H2D)
                return true;
        }
    }
    return false;
}

/* Is it in a region of the program that ends before the step's first kernel? A
 * hand-written loop prepares its batch there. */
static bool before_launch(const struct mem_sites *s, row_id r) {
    const struct spans *sp = &s->t->spans;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++, r = sp->parent[r]) {
        uint32_t st = sp->step[r];
        if (sp->kind[r] != SPAN_ANNOTATION || st == ROW_NONE ||
            span_is_step_mark(s->t, r))
            continue;
        int64_t first = s->first_launch[st];
        if (first != INT64_MAX && span_end(s->t, r) <= first) return true;
    }
    return false;
}

/* How a name may be read: phase_of_span goes by the kind, too. */
enum reading { AS_RUNTIME, AS_OP, AS_OTHER, AS_TEXT };

/* Returns what the name and the kind of a span say; else MEM_NOWHERE. */
static enum mem_phase phase_of_span(const struct trace *t, row_id r) {
    struct bytes name = name_of(t, r);
    uint16_t class = span_class(t, r);
    if (class & CLASS_BACKWARD) return MEM_BACKWARD;
    if (class & CLASS_OPTIMIZER)
        return name_is_zero_grad(name) ? MEM_ZERO_GRAD : MEM_OPTIMIZER;
    if (class & CLASS_INPUT) return MEM_INPUT;
    if (t->spans.kind[r] == SPAN_RUNTIME) return mem_phase_of_runtime(name);
    /* torch's own names have no '/': most ops end here */
    if (t->spans.kind[r] == SPAN_OP && memchr(name.p, '/', name.n))
        return mem_phase_of_op(name);
    return MEM_NOWHERE;
}

/* Does phase_of_span's work once for each name. */
static enum mem_phase span_phase(const struct mem_sites *s, row_id r) {
    const struct trace *t = s->t;
    uint8_t kind = t->spans.kind[r];
    enum reading as = kind == SPAN_RUNTIME ? AS_RUNTIME
                      : kind == SPAN_OP    ? AS_OP
                                           : AS_OTHER;
    uint8_t *known = &s->name_phase[(size_t)t->spans.name[r] * READINGS + as];
    if (*known == 0) *known = (uint8_t)(phase_of_span(t, r) + 1);
    return (enum mem_phase)(*known - 1);
}

struct mem_site mem_site_of(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    const struct mem_events *m = &t->mem;
    struct mem_site at = {.op = ROW_NONE,
                          .user = ROW_NONE,
                          .root = ROW_NONE,
                          .region = ROW_NONE,
                          .span = ROW_NONE};
    if (m->track[k] < t->ntracks)
        at.span = span_at_near(t, m->track[k], m->ts[k], &s->near[m->track[k]]);
    row_id r = at.span; /* going outwards */
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++, r = t->spans.parent[r]) {
        enum mem_phase p = span_phase(s, r);
        if (at.phase == MEM_NOWHERE) at.phase = p;
        if (p != MEM_NOWHERE && p == at.phase) at.region = r;
        if (t->spans.kind[r] != SPAN_OP) continue;
        if (at.op == ROW_NONE) at.op = r;
        if (at.user == ROW_NONE && !op_makes_room(name_of(t, r))) at.user = r;
        at.root = r;
    }
    if (at.user == ROW_NONE) at.user = at.op;
    if (at.phase == MEM_NOWHERE && m->what[k] != 0)
        at.phase = mem_phase_of_op(strs_bytes(&t->strs, m->what[k]));
    uint32_t stack = mem_stack(t, k);
    if (stack != ROW_NONE &&
        (at.phase == MEM_NOWHERE || s->stack_phase[stack] == MEM_WORKSPACE))
        at.phase = s->stack_phase[stack];
    if (at.phase != MEM_NOWHERE) return at;
    if (at.root == ROW_NONE) {
        if (m->what[k] != 0) at.phase = MEM_FORWARD;
        return at;
    }
    /* an op in no named phase is forward, unless it makes the batch */
    bool input = op_makes_tensor(name_of(t, at.root)) ||
                 (at.user != ROW_NONE &&
                  op_copies_tensor(name_of(t, at.user)) &&
                  copies_in(t, at.user)) ||
                 before_launch(s, at.span);
    at.phase = input ? MEM_INPUT : MEM_FORWARD;
    return at;
}

/* Returns what the Python frames around event k say, or MEM_NOWHERE. It costs a
 * look at each frame's name, so it is asked only where nothing else tells. */
static enum mem_phase mem_site_python(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    row_id r = pystack_at(&s->py, t->mem.track[k], t->mem.ts[k]);
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        size_t at = (size_t)t->spans.name[r] * READINGS + AS_TEXT;
        uint8_t *known = &s->name_phase[at]; /* each name is read once */
        if (*known == 0)
            *known = (uint8_t)(mem_phase_of_text(name_of(t, r)) + 1);
        if (*known - 1 != MEM_NOWHERE) return (enum mem_phase)(*known - 1);
        r = t->spans.parent[r];
    }
    return MEM_NOWHERE;
}

/* Returns the phase of the last op that a thread began at or before ts: between
 * two ops the thread is still in that phase. */
static enum mem_phase mem_phase_before(const struct mem_sites *s,
                                       uint32_t track, int64_t ts) {
    const struct trace *t = s->t;
    if (track >= t->ntracks) return MEM_NOWHERE;
    const struct track *tr = &t->tracks[track];
    row_id next = trace_row_at(t, tr, ts + 1);
    row_id r = next > tr->first ? next - 1 : ROW_NONE;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        enum mem_phase p = span_phase(s, r);
        if (p != MEM_NOWHERE) return p;
        r = t->spans.parent[r];
    }
    return MEM_NOWHERE;
}

/* Appends as much of b as fits. Returns the new length. */
static size_t site_put(char *buf, size_t cap, size_t len, struct bytes b) {
    size_t n = b.n < cap - 1 - len ? b.n : cap - 1 - len;
    memcpy(buf + len, b.p, n);
    buf[len + n] = '\0';
    return len + n;
}

static size_t op_text(const struct mem_sites *s, const struct mem_site *at,
                      size_t k, char *buf, size_t cap) {
    const struct trace *t = s->t;
    row_id found = at->user, r = at->span;
    if (found == ROW_NONE && t->mem.what[k] != 0)
        return site_put(buf, cap, 0, strs_bytes(&t->strs, t->mem.what[k]));
    /* JAX has no ops, but "PjitFunction(step)": the outermost span of the
     * runtime */
    bool none = found == ROW_NONE;
    for (int i = 0; none && i < DEEPEST && r != ROW_NONE; i++) {
        if (t->spans.kind[r] == SPAN_RUNTIME) found = r;
        r = t->spans.parent[r];
    }
    return found == ROW_NONE ? 0 : site_put(buf, cap, 0, name_of(t, found));
}

/* Returns the span on the step's own thread at that instant: while another
 * thread runs the backward pass, that thread waits in the region that asked for
 * it. */
static row_id waiting_span(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    const struct mem_events *m = &t->mem;
    uint32_t source = t->allocators[m->allocator[k]].source;
    struct mem_steps *st = &s->steps[source];
    size_t i = mem_steps_at(st, m->ts[k]);
    if (i == st->n) return ROW_NONE;
    uint32_t track = t->steps[st->v[i].step].thread;
    if (track >= t->ntracks) return ROW_NONE;
    return span_at_near(t, track, m->ts[k], &s->near[track]);
}

/* Writes the regions of the program around r, step markers apart:
 * "outer/inner". */
static size_t region_path(const struct trace *t, row_id r, char *buf,
                          size_t cap) {
    enum { SHOWN = 16 };
    row_id path[SHOWN];
    size_t n = 0, len = 0;
    for (int i = 0; i < DEEPEST && n < SHOWN && r != ROW_NONE; i++) {
        if (t->spans.kind[r] == SPAN_ANNOTATION && !span_is_step_mark(t, r))
            path[n++] = r;
        r = t->spans.parent[r];
    }
    for (size_t i = n; i-- > 0;) {
        len = site_put(buf, cap, len, name_of(t, path[i]));
        if (i > 0) len = site_put(buf, cap, len, bytes_of("/"));
    }
    return len;
}

/* Writes the folder of a path-like op name: "dense" of
 * "dense/MatMul:MatMul". */
static size_t name_scope(const struct trace *t, str_id name, char *buf,
                         size_t cap) {
    struct bytes b = strs_bytes(&t->strs, name);
    while (b.n > 0 && b.p[b.n - 1] != '/') b.n--;
    if (b.n < 2) return 0;
    b.n--;
    return site_put(buf, cap, 0, b);
}

static size_t select_text(const struct mem_sites *s, const struct mem_site *at,
                          size_t k, char *buf, size_t cap) {
    const struct trace *t = s->t;
    size_t n = region_path(t, at->span, buf, cap);
    if (n == 0) n = region_path(t, waiting_span(s, k), buf, cap);
    if (n == 0 && t->mem.what[k] != 0)
        n = name_scope(t, t->mem.what[k], buf, cap);
    if (n == 0 && at->op != ROW_NONE)
        n = name_scope(t, t->spans.name[at->op], buf, cap);
    return n;
}

static size_t module_text(const struct mem_sites *s, const struct mem_site *at,
                          size_t k, char *buf, size_t cap) {
    const struct trace *t = s->t;
    row_id r = pystack_module(&s->py, t->mem.track[k], t->mem.ts[k]);
    if (r == ROW_NONE && at->phase == MEM_BACKWARD && s->forward.of &&
        at->region != ROW_NONE) {
        row_id op = mem_forward_op(&s->forward, at->region);
        if (op != ROW_NONE)
            r = pystack_module(&s->py, t->spans.track[op], t->spans.ts[op]);
    }
    if (r == ROW_NONE) return 0;
    struct bytes name = name_of(t, r);
    size_t prefix = strlen("nn.Module: ");
    assert(name.n >= prefix);
    return site_put(buf, cap, 0,
                    (struct bytes){name.p + prefix, name.n - prefix});
}

/* Writes Python frames, innermost first. The op says what a built-in function
 * did, the frame that called it where. */
static size_t python_text(const struct mem_sites *s, size_t k, char *buf,
                          size_t cap) {
    const struct trace *t = s->t;
    size_t len = 0;
    row_id r = pystack_at(&s->py, t->mem.track[k], t->mem.ts[k]);
    while (r != ROW_NONE && frame_name_is_builtin(name_of(t, r)) &&
           t->spans.parent[r] != ROW_NONE)
        r = t->spans.parent[r];
    for (int i = 0; i < MEM_FRAMES && r != ROW_NONE; i++) {
        if (i > 0) len = site_put(buf, cap, len, bytes_of(" < "));
        len = site_put(buf, cap, len, name_of(t, r));
        r = t->spans.parent[r];
    }
    return len;
}

size_t mem_site_text(const struct mem_sites *s, const struct mem_site *at,
                     size_t k, enum mem_key by, char *buf, size_t cap) {
    assert(cap > 0);
    buf[0] = '\0';
    switch (by) {
    case MEM_BY_OP: return op_text(s, at, k, buf, cap);
    case MEM_BY_SCOPE: return select_text(s, at, k, buf, cap);
    case MEM_BY_MODULE: return module_text(s, at, k, buf, cap);
    case MEM_BY_STACK: break;
    default: return 0;
    }
    size_t n = stack_text(s->t, mem_stack(s->t, k), MEM_FRAMES, buf, cap);
    return n > 0 ? n : python_text(s, k, buf, cap);
}

void mem_site_cell(struct result *r, const char *col, const struct mem_sites *s,
                   const struct mem_site *at, size_t k, enum mem_key by) {
    char buf[MEM_TEXT_MAX];
    if (mem_site_text(s, at, k, by, buf, sizeof buf) > 0)
        cell_text(r, col, buf);
}

void mem_stack_cell(struct result *r, const char *col, const struct trace *t,
                    uint32_t stack) {
    char buf[MEM_TEXT_MAX];
    if (stack_text(t, stack, MEM_FRAMES, buf, sizeof buf) > 0)
        cell_text(r, col, buf);
}

uint64_t mem_site_stack(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    uint32_t stack = mem_stack(t, k);
    if (stack != ROW_NONE) return hash_u64(stack) | 1;
    row_id r = pystack_at(&s->py, t->mem.track[k], t->mem.ts[k]);
    uint64_t h = 0;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        h = hash_pair(h, t->spans.name[r]);
        r = t->spans.parent[r];
    }
    return h == 0 ? 0 : h | 1;
}

/* ---- what a block is for ---- */

/* How a block ended. */
enum fate {
    IN_OP = 1,    /* freed before the outermost op around it ended */
    IN_PHASE = 2, /* freed before the phase that made it was over */
    SOON = 4,     /* freed after that, in the same step or the one after */
    LATE = 8,     /* freed later still */
    KEPT = 16,    /* not freed in the window, though another step began;
                     where there are no steps, a backward pass, or none is */
    CUT = 32,     /* not freed, but the window ends before either */
    UNSEEN = 64,  /* no address: nobody knows */
};
#define LIVED    (SOON | LATE | KEPT | CUT)
#define ANY_FATE (IN_OP | IN_PHASE | LIVED)

static const struct rule {
    enum mem_phase phase;
    unsigned fates;
    enum mem_category category;
    const char *why;
} rules[] = {
    {MEM_INIT, IN_OP | IN_PHASE, MEM_TEMPORARY,
     "scratch of building or moving a model"},
    {MEM_INIT, LIVED, MEM_PARAMETER,
     "what building or moving a model leaves is the model"},
    {MEM_INPUT, IN_OP, MEM_TEMPORARY, "scratch of one op"},
    {MEM_INPUT, IN_PHASE | SOON | CUT, MEM_INPUT_DATA,
     "it depends on nothing that was computed and goes with its batch"},
    {MEM_INPUT, LATE | KEPT, MEM_UNKNOWN,
     "a batch does not outlive the next one: a buffer, a cache, a leak"},
    {MEM_FORWARD, IN_OP, MEM_TEMPORARY, "no other op ever saw it"},
    {MEM_FORWARD, IN_PHASE | SOON | CUT, MEM_ACTIVATION,
     "handed from op to op, or kept for the backward pass"},
    {MEM_FORWARD, LATE | KEPT, MEM_UNKNOWN,
     "an activation is gone after its backward pass: state, a workspace, a "
     "leak"},
    {MEM_BACKWARD, IN_OP | IN_PHASE, MEM_TEMPORARY,
     "gradients of activations are handed from node to node and freed"},
    {MEM_BACKWARD, LIVED, MEM_GRADIENT,
     "what a backward pass leaves behind is in somebody's .grad"},
    {MEM_ZERO_GRAD, IN_OP | IN_PHASE, MEM_TEMPORARY, "scratch of one op"},
    {MEM_ZERO_GRAD, LIVED, MEM_GRADIENT, "gradients that are made anew, as 0"},
    {MEM_OPTIMIZER, IN_OP | IN_PHASE, MEM_TEMPORARY, "scratch of the update"},
    {MEM_OPTIMIZER, LIVED, MEM_OPTIMIZER_STATE,
     "what an optimizer's step leaves is its state: momentum, moments"},
    {MEM_PROGRAM, IN_OP | IN_PHASE, MEM_TEMPORARY,
     "XLA frees its scratch when the program's run ends"},
    {MEM_PROGRAM, LIVED, MEM_UNKNOWN,
     "a program's results: parameters, state and values alike"},
    {MEM_WORKSPACE, IN_OP | IN_PHASE, MEM_TEMPORARY, "scratch of one op"},
    {MEM_WORKSPACE, LIVED, MEM_UNKNOWN,
     "a library's workspace is kept for the next call: no tensor at all"},
    {MEM_NOWHERE, ANY_FATE, MEM_UNKNOWN, "nobody says who allocated it"},
};

const char *mem_category_name(enum mem_category c) {
    static const char *const names[MEM_CATEGORIES] = {
        [MEM_PARAMETER] = "parameter",
        [MEM_GRADIENT] = "gradient",
        [MEM_OPTIMIZER_STATE] = "optimizer",
        [MEM_ACTIVATION] = "activation",
        [MEM_INPUT_DATA] = "input",
        [MEM_TEMPORARY] = "temporary",
        [MEM_BEFORE_WINDOW] = "before-window",
        [MEM_UNKNOWN] = "unknown",
    };
    assert(c < MEM_CATEGORIES);
    return names[c];
}

int mem_blocks_init(struct mem_blocks *b, const struct mem_sites *sites,
                    const struct mem_levels *l, struct ops_err *e) {
    const struct trace *t = sites->t;
    *b =
        (struct mem_blocks){.sites = sites, .l = l, .last_backward = INT64_MIN};
    if (l->n > 0) {
        uint32_t a = t->mem.allocator[l->first];
        uint32_t source = t->allocators[a].source;
        b->whole = t->sources[source].step_rule == STEPS_WHOLE;
    }
    /* The last event of a backward pass tells whether one followed a block:
     * activations that are never freed were cut off by the window's end. */
    for (size_t k = l->first + l->n; b->whole && k-- > l->first;) {
        if (mem_site_of(sites, k).phase != MEM_BACKWARD) continue;
        b->last_backward = t->mem.ts[k];
        break;
    }
    if (!sites->stack_phase) return 0;
    b->run = vec_alloc(l->n + 1, sizeof *b->run);
    if (!b->run) return fail_oom(e);
    uint32_t run = 0;
    enum mem_phase now = MEM_NOWHERE;
    for (size_t i = 0; i < l->n; i++) {
        uint32_t stack = mem_stack(t, l->first + i);
        enum mem_phase p = MEM_NOWHERE;
        if (stack != ROW_NONE && t->mem.bytes[l->first + i] >= 0)
            p = sites->stack_phase[stack];
        if (p != MEM_NOWHERE && p != now) {
            now = p;
            run++;
        }
        b->run[i] = run;
    }
    return 0;
}

void mem_blocks_free(struct mem_blocks *b) {
    free(b->run);
    *b = (struct mem_blocks){0};
}

/* Was the phase that made block i still going on when event j freed it? */
static bool ended_in_phase(const struct mem_blocks *b, size_t i, size_t j,
                           const struct mem_site *at) {
    const struct mem_levels *l = b->l;
    const struct mem_events *m = &l->t->mem;
    if (at->phase == MEM_BACKWARD && at->region != ROW_NONE)
        /* autograd runs one node after the other: the pass goes on until the
         * thread that frees has begun something else. TensorFlow's executor
         * mixes passes; there, a block that a gradient's op leaves is a
         * gradient. */
        return (span_class(l->t, at->region) & CLASS_BACKWARD) &&
               mem_phase_before(b->sites, m->track[l->first + j],
                                m->ts[l->first + j]) == MEM_BACKWARD;
    if (at->region != ROW_NONE)
        return m->ts[l->first + j] <= span_end(l->t, at->region);
    return at->root == ROW_NONE && b->run && b->run[i] == b->run[j];
}

/* Returns how many steps began after block i was made and by event j (l->n: the
 * end). */
static size_t steps_between(const struct mem_blocks *b, size_t i, size_t j) {
    const struct mem_levels *l = b->l;
    uint32_t source = l->t->allocators[l->t->mem.allocator[l->first]].source;
    struct mem_steps *st = &b->sites->steps[source];
    if (st->n == 0) return 0;
    int64_t from = l->t->mem.ts[l->first + i];
    int64_t to = j < l->n ? l->t->mem.ts[l->first + j] : INT64_MAX;
    size_t a = mem_steps_at(st, from), z = mem_steps_at(st, to);
    /* the time before the first step counts as a step of its own */
    return (z == st->n ? 0 : z + 1) - (a == st->n ? 0 : a + 1);
}

static enum fate fate_of(const struct mem_blocks *b, size_t i,
                         const struct mem_site *at) {
    const struct mem_levels *l = b->l;
    const struct mem_events *m = &l->t->mem;
    if (m->addr[l->first + i] == 0) return UNSEEN;
    size_t j = l->mate[i];
    if (j == EVENT_NONE && steps_between(b, i, l->n) > 0) return KEPT;
    if (j == EVENT_NONE)
        /* in a window that is no step, there must be backward passes, and none
         * after the block */
        return !b->whole || (b->last_backward != INT64_MIN &&
                             m->ts[l->first + i] > b->last_backward)
                   ? CUT
                   : KEPT;
    if (at->root != ROW_NONE && m->ts[l->first + j] <= span_end(l->t, at->root))
        return IN_OP;
    if (ended_in_phase(b, i, j, at)) return IN_PHASE;
    return steps_between(b, i, j) <= 1 ? SOON : LATE;
}

/* Returns the category of the block that event i of the allocator allocated. */
static enum mem_category block_category(const struct mem_blocks *b, size_t i,
                                        const struct mem_site *at) {
    static const struct {
        const char *tag;
        enum mem_category category;
    } tags[] = {
        {"activations", MEM_ACTIVATION},    {"activation", MEM_ACTIVATION},
        {"weights", MEM_PARAMETER},         {"parameters", MEM_PARAMETER},
        {"gradients", MEM_GRADIENT},        {"gradient", MEM_GRADIENT},
        {"optimizer", MEM_OPTIMIZER_STATE}, {"input", MEM_INPUT_DATA},
        {"temporary", MEM_TEMPORARY},
    };
    const struct trace *t = b->l->t;
    size_t event = b->l->first + i;
    if (t->sources[t->allocators[t->mem.allocator[event]].source].by_opscope) {
        /* the program itself said what the block is for (ops_alloc's tag) */
        const char *tag = strs_text(&t->strs, t->mem.what[event]);
        for (size_t k = 0; k < COUNT(tags); k++)
            if (strcmp(tag, tags[k].tag) == 0) return tags[k].category;
        return MEM_UNKNOWN;
    }
    struct mem_site site = *at;
    enum fate fate = fate_of(b, i, at);
    /* A block that stays for good is worth a look at the Python frames: modules
     * and optimizers make their tensors with plain ops. */
    if ((fate & (LATE | KEPT | CUT)) && site.phase <= MEM_FORWARD) {
        enum mem_phase p = mem_site_python(b->sites, event);
        if (p == MEM_INIT || p == MEM_OPTIMIZER) site.phase = p;
    }
    for (size_t k = 0; k < COUNT(rules); k++)
        if (rules[k].phase == site.phase && (rules[k].fates & fate))
            return rules[k].category;
    assert(fate == UNSEEN);
    return MEM_UNKNOWN;
}

struct bytes mem_block_label(const struct mem_blocks *b, size_t i,
                             const struct mem_site *at) {
    const struct trace *t = b->l->t;
    size_t k = b->l->first + i;
    enum mem_category c = block_category(b, i, at);
    if (c == MEM_UNKNOWN && t->mem.what[k] != 0 &&
        t->sources[t->allocators[t->mem.allocator[k]].source].by_opscope)
        return strs_bytes(&t->strs, t->mem.what[k]);
    return bytes_of(mem_category_name(c));
}

enum mem_category mem_before_category(const struct mem_sites *s,
                                      uint32_t stack) {
    if (stack == ROW_NONE || !s->stack_phase) return MEM_BEFORE_WINDOW;
    switch (s->stack_phase[stack]) {
    case MEM_INIT: return MEM_PARAMETER;
    case MEM_OPTIMIZER: return MEM_OPTIMIZER_STATE;
    case MEM_BACKWARD: return MEM_GRADIENT;
    default: return MEM_BEFORE_WINDOW;
    }
}

/* torch writes the values of an op's plain arguments as a list of strings,
 * "Concrete Inputs". Ops that make room take the size first, and the type as a
 * number of c10::ScalarType, which this reads. */
static enum dtype dtype_of(struct bytes number) {
    size_t v = 0;
    if (number.n == 0 || number.n > 2) return DTYPE_UNKNOWN;
    for (size_t i = 0; i < number.n; i++) {
        if (!byte_is_digit(number.p[i])) return DTYPE_UNKNOWN;
        v = v * 10 + (size_t)(number.p[i] - '0');
    }
    return dtype_of_scalar_type(v);
}

/* Reads the shape from the values of an op: the inputs with the numbers size
 * and type tell it. */
static struct mem_shape shape_in(struct bytes concrete, int size, int type,
                                 int64_t bytes) {
    struct bytes dims = op_inputs_string(concrete, size);
    int64_t n = op_inputs_numel(dims), need;
    enum dtype d = dtype_of(op_inputs_string(concrete, type));
    if (n < 0 || __builtin_mul_overflow(n, d ? dtype_bits(d) / 8 : 1, &need) ||
        need > bytes)
        return (struct mem_shape){0};
    return (struct mem_shape){dims, d ? dtype_name(d) : NULL};
}

struct mem_shape mem_shape_from(struct bytes op, struct bytes concrete,
                                int64_t bytes) {
    int size, type;
    if (!op_size_inputs(op, &size, &type)) return (struct mem_shape){0};
    return shape_in(concrete, size, type, bytes);
}

struct mem_shape mem_shape_of(const struct trace *t, row_id op, int64_t bytes) {
    int size, type;
    if (op == ROW_NONE || !op_size_inputs(name_of(t, op), &size, &type))
        return (struct mem_shape){0};
    struct arg a = args_get(t, op, "Concrete Inputs");
    return a.type == ARG_JSON ? shape_in(a.text, size, type, bytes)
                              : (struct mem_shape){0};
}
