/* SPDX-License-Identifier: Apache-2.0
 * A memory event stands on a thread at an instant: what is open there is who
 * allocated. Where a source recorded call stacks with its events (a memory
 * snapshot) those speak when no span does. */
#include "analyze/memory/mem_site.h"

#include "base/hash.h"
#include "base/map.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/frame_name.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

enum {
    FRAMES_SHOWN = 5,
    DEEPEST = 1000, /* spans looked at on the way out: real ones are tens deep,
                       Python's frames a thousand at most; every event climbs,
                       so a made-up file must not cost much more */
    READINGS = 4,   /* of a name, see enum reading */
};

/* The marks of a text, each once: bit 32 says that they are known. */
static uint32_t marks_of(const struct strs *strs, uint64_t *known, str_id id) {
    const uint64_t read = UINT64_C(1) << 32;
    if (!(known[id] & read))
        known[id] = mem_phase_marks(strs_bytes(strs, id)) | read;
    return (uint32_t)known[id];
}

/* Each frame is looked at once, then the innermost that tells decides. */
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

static bool find_launches(struct mem_sites *s) {
    const struct trace *t = s->t;
    s->first_launch = malloc((t->nsteps + 1) * sizeof *s->first_launch);
    if (!s->first_launch) return false;
    for (size_t i = 0; i < t->nsteps; i++) s->first_launch[i] = INT64_MAX;
    for (size_t i = 0; i < t->links.n; i++) {
        row_id h = t->links.host[i];
        uint32_t st = t->spans.step[h];
        if (st == ROW_NONE || t->spans.kind[t->links.device[i]] != SPAN_KERNEL)
            continue;
        if (t->spans.ts[h] < s->first_launch[st])
            s->first_launch[st] = t->spans.ts[h];
    }
    return true;
}

int mem_sites_init(struct mem_sites *s, const struct trace *t,
                   struct ops_err *e) {
    *s = (struct mem_sites){.t = t};
    TRY(pystack_init(&s->py, t, e));
    s->steps = calloc(t->nsources + 1, sizeof *s->steps);
    s->name_phase = calloc(t->strs.n + 1, READINGS);
    s->near = calloc(t->ntracks + 1, sizeof *s->near);
    bool ok = s->steps && s->name_phase && s->near && find_stack_phases(s) &&
              find_launches(s);
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

/* Is it in a region of the program that ends before the step's first kernel:
 * a hand-written loop prepares its batch there. */
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

/* An op that is in no named phase: forward, unless it makes the batch. */
static enum mem_phase forward_or_input(const struct mem_sites *s,
                                       const struct mem_site *at) {
    const struct trace *t = s->t;
    if (op_makes_tensor(name_of(t, at->root))) return MEM_INPUT;
    if (at->user != ROW_NONE && op_copies_tensor(name_of(t, at->user)) &&
        copies_in(t, at->user))
        return MEM_INPUT;
    return before_launch(s, at->span) ? MEM_INPUT : MEM_FORWARD;
}

/* What a name may be read as: phase_of_span goes by the kind, too. */
enum reading { AS_RUNTIME, AS_OP, AS_OTHER, AS_TEXT };

/* By the name and the kind of a span alone; MEM_NOWHERE: they do not say. */
static enum mem_phase phase_of_span(const struct trace *t, row_id r) {
    struct bytes name = name_of(t, r);
    uint16_t class = span_class(t, r);
    if (class & NAME_BACKWARD) return MEM_BACKWARD;
    if (class & NAME_OPTIMIZER)
        return name_is_zero_grad(name) ? MEM_ZERO_GRAD : MEM_OPTIMIZER;
    if (class & NAME_INPUT) return MEM_INPUT;
    if (t->spans.kind[r] == SPAN_RUNTIME) return mem_phase_of_runtime(name);
    /* torch's own names have no '/': most ops end here */
    if (t->spans.kind[r] == SPAN_OP && memchr(name.p, '/', name.n))
        return mem_phase_of_op(name);
    return MEM_NOWHERE;
}

/* phase_of_span, each name once. */
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

/* mem_phase_of_text of a frame, each name once. */
static enum mem_phase text_phase(const struct mem_sites *s, row_id r) {
    const struct trace *t = s->t;
    size_t at = (size_t)t->spans.name[r] * READINGS + AS_TEXT;
    uint8_t *known = &s->name_phase[at];
    if (*known == 0) *known = (uint8_t)(mem_phase_of_text(name_of(t, r)) + 1);
    return (enum mem_phase)(*known - 1);
}

/* One span more, going outwards. */
static void climb(const struct mem_sites *s, struct mem_site *at, row_id r) {
    const struct trace *t = s->t;
    enum mem_phase p = span_phase(s, r);
    if (at->phase == MEM_NOWHERE) at->phase = p;
    if (p != MEM_NOWHERE && p == at->phase) at->region = r;
    if (t->spans.kind[r] != SPAN_OP) return;
    if (at->op == ROW_NONE) at->op = r;
    if (at->user == ROW_NONE && !op_makes_room(name_of(t, r))) at->user = r;
    at->root = r;
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
    row_id r = at.span;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        climb(s, &at, r);
        r = t->spans.parent[r];
    }
    if (at.user == ROW_NONE) at.user = at.op;
    if (at.phase == MEM_NOWHERE && m->what[k] != 0)
        at.phase = mem_phase_of_op(strs_bytes(&t->strs, m->what[k]));
    uint32_t stack = mem_stack(t, k);
    if (stack != ROW_NONE &&
        (at.phase == MEM_NOWHERE || s->stack_phase[stack] == MEM_WORKSPACE))
        at.phase = s->stack_phase[stack];
    if (at.phase != MEM_NOWHERE) return at;
    if (at.root != ROW_NONE) at.phase = forward_or_input(s, &at);
    else if (m->what[k] != 0) at.phase = MEM_FORWARD;
    return at;
}

enum mem_phase mem_site_python(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    row_id r = pystack_at(&s->py, t->mem.track[k], t->mem.ts[k]);
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        enum mem_phase p = text_phase(s, r);
        if (p != MEM_NOWHERE) return p;
        r = t->spans.parent[r];
    }
    return MEM_NOWHERE;
}

enum mem_phase mem_phase_before(const struct mem_sites *s, uint32_t track,
                                int64_t ts) {
    const struct trace *t = s->t;
    if (track >= t->ntracks) return MEM_NOWHERE;
    const struct track *tr = &t->tracks[track];
    row_id lo = tr->first, hi = tr->end;
    while (lo < hi) {
        row_id mid = lo + (hi - lo) / 2;
        if (t->spans.ts[mid] <= ts) lo = mid + 1;
        else hi = mid;
    }
    row_id r = lo > tr->first ? lo - 1 : ROW_NONE;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        enum mem_phase p = span_phase(s, r);
        if (p != MEM_NOWHERE) return p;
        r = t->spans.parent[r];
    }
    return MEM_NOWHERE;
}

/* The outermost span that is machinery: JAX has no ops, but
 * "PjitFunction(step)". */
static row_id outermost_runtime(const struct trace *t, row_id r) {
    row_id found = ROW_NONE;
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        if (t->spans.kind[r] == SPAN_RUNTIME) found = r;
        r = t->spans.parent[r];
    }
    return found;
}

/* Copies as much as fits. */
static size_t put(char *buf, size_t cap, size_t len, struct bytes b) {
    size_t n = b.n < cap - 1 - len ? b.n : cap - 1 - len;
    memcpy(buf + len, b.p, n);
    buf[len + n] = '\0';
    return len + n;
}

static size_t op_text(const struct mem_sites *s, const struct mem_site *at,
                      size_t k, char *buf, size_t cap) {
    const struct trace *t = s->t;
    row_id r = at->user;
    if (r == ROW_NONE && t->mem.what[k] != 0)
        return put(buf, cap, 0, strs_bytes(&t->strs, t->mem.what[k]));
    if (r == ROW_NONE) r = outermost_runtime(t, at->span);
    return r == ROW_NONE ? 0 : put(buf, cap, 0, name_of(t, r));
}

/* The innermost region of the program around r, step markers apart. */
static row_id next_region(const struct trace *t, row_id r) {
    for (int i = 0; i < DEEPEST && r != ROW_NONE; i++) {
        if (t->spans.kind[r] == SPAN_ANNOTATION && !span_is_step_mark(t, r))
            return r;
        r = t->spans.parent[r];
    }
    return ROW_NONE;
}

/* The span on the step's own thread at that instant: while another thread
 * runs the backward pass, it waits in the region that asked for it. */
static row_id waiting_span(const struct mem_sites *s, size_t k) {
    const struct trace *t = s->t;
    const struct mem_events *m = &t->mem;
    uint32_t source = t->allocators[m->allocator[k]].source;
    const struct mem_steps *st = &s->steps[source];
    size_t i = mem_steps_at(st, m->ts[k]);
    if (i == st->n) return ROW_NONE;
    uint32_t track = t->steps[st->v[i].step].thread;
    if (track >= t->ntracks) return ROW_NONE;
    return span_at_near(t, track, m->ts[k], &s->near[track]);
}

/* "outer/inner". */
static size_t region_path(const struct trace *t, row_id r, char *buf,
                          size_t cap) {
    enum { SHOWN = 16 };
    row_id path[SHOWN];
    size_t n = 0, len = 0;
    while (n < SHOWN && (r = next_region(t, r)) != ROW_NONE) {
        path[n++] = r;
        r = t->spans.parent[r];
    }
    for (size_t i = n; i-- > 0;) {
        len = put(buf, cap, len, name_of(t, path[i]));
        if (i > 0) len = put(buf, cap, len, bytes_of("/"));
    }
    return len;
}

/* The folder of a path-like op name: "dense/MatMul:MatMul" -> "dense". */
static size_t name_scope(const struct trace *t, str_id name, char *buf,
                         size_t cap) {
    struct bytes b = strs_bytes(&t->strs, name);
    while (b.n > 0 && b.p[b.n - 1] != '/') b.n--;
    if (b.n < 2) return 0;
    b.n--;
    return put(buf, cap, 0, b);
}

static size_t scope_text(const struct mem_sites *s, const struct mem_site *at,
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
    return put(buf, cap, 0, (struct bytes){name.p + prefix, name.n - prefix});
}

/* Python frames, innermost first. The op says what a built-in function did:
 * the frame that called it says where. */
static size_t python_text(const struct mem_sites *s, size_t k, char *buf,
                          size_t cap) {
    const struct trace *t = s->t;
    size_t len = 0;
    row_id r = pystack_at(&s->py, t->mem.track[k], t->mem.ts[k]);
    while (r != ROW_NONE && frame_name_is_builtin(name_of(t, r)) &&
           t->spans.parent[r] != ROW_NONE)
        r = t->spans.parent[r];
    for (int i = 0; i < FRAMES_SHOWN && r != ROW_NONE; i++) {
        if (i > 0) len = put(buf, cap, len, bytes_of(" < "));
        len = put(buf, cap, len, name_of(t, r));
        r = t->spans.parent[r];
    }
    return len;
}

static size_t frames_text(const struct mem_sites *s, size_t k, char *buf,
                          size_t cap) {
    size_t n = stack_text(s->t, mem_stack(s->t, k), FRAMES_SHOWN, buf, cap);
    return n > 0 ? n : python_text(s, k, buf, cap);
}

size_t mem_site_text(const struct mem_sites *s, const struct mem_site *at,
                     size_t k, enum mem_key by, char *buf, size_t cap) {
    assert(cap > 0);
    buf[0] = '\0';
    switch (by) {
    case MEM_BY_OP: return op_text(s, at, k, buf, cap);
    case MEM_BY_SCOPE: return scope_text(s, at, k, buf, cap);
    case MEM_BY_MODULE: return module_text(s, at, k, buf, cap);
    case MEM_BY_STACK: return frames_text(s, k, buf, cap);
    default: return 0;
    }
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
