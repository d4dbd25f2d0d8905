/* SPDX-License-Identifier: Apache-2.0
 * Marks go from launches and allocations up to every span around them (a span
 * is marked once, so the climbing is linear); then one pass asks each op. */
#include "analyze/report/cover_ops.h"

#include "analyze/analyze.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/pystack.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/compiler_names.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

/* Marks of a row. */
enum {
    LAUNCHED = 1,   /* device work was launched in it */
    UNANSWERED = 2, /* a launch in it has no device work */
    LATE = 4,       /* the same, after the last device event */
    TOUCHED = 8,    /* memory was allocated or freed in it */
    COMPILED = 16,  /* it is in a compiled region */
};

/* What a name says; by str_id, asked once. */
enum {
    IS_VIEW = 1,
    IS_ALLOC = 2,
    IS_BOOK = 4,
    IS_REGION = 8,
    IS_IN_PLACE = 16,
    IS_CUSTOM = 32,
    IS_HOST_CALL = 64,
    KNOWN = 128,
};

enum { MEMORY_BASE = OP_DEVICE_ANSWERS };

struct cover {
    const struct trace *t;
    const struct host_tree *h;
    uint8_t *mark;   /* by row */
    uint8_t *says;   /* by str_id */
    int64_t *last;   /* by source: end of its last device work */
    bool *device;    /* by source: has it any device work? */
    struct map seen; /* answer and name -> names */
    struct example {
        unsigned answer; /* of the device; MEMORY_BASE and up: of memory */
        str_id name;
        int64_t count;
    } * names;
    size_t n, cap;
};

static uint8_t says(struct cover *c, str_id id) {
    if (c->says[id] & KNOWN) return c->says[id];
    struct bytes n = strs_bytes(&c->t->strs, id);
    unsigned v = KNOWN;
    if (op_is_view(n)) v |= IS_VIEW;
    if (op_only_allocates(n)) v |= IS_ALLOC;
    if (op_is_bookkeeping(n)) v |= IS_BOOK;
    if (op_is_custom(n)) v |= IS_CUSTOM;
    if (name_is_host_func(n)) v |= IS_HOST_CALL;
    if (op_is_in_place(n)) v |= IS_IN_PLACE;
    if (name_is_compiled_region(n)) v |= IS_REGION;
    return c->says[id] = (uint8_t)v;
}

/* Marks the row and all around it. */
static void mark_up(struct cover *c, row_id r, uint8_t bit) {
    const row_id *parent = c->t->spans.parent;
    for (; r != ROW_NONE && !(c->mark[r] & bit); r = parent[r])
        c->mark[r] |= bit;
}

static void note_unanswered(const struct trace *t, struct op_cover *out,
                            str_id name) {
    if (out->unanswered_name == 0 ||
        (name != out->unanswered_name &&
         strcmp(strs_text(&t->strs, name),
                strs_text(&t->strs, out->unanswered_name)) < 0))
        out->unanswered_name = name;
}

static void mark_launches(struct cover *c, struct op_cover *out,
                          const struct scope *in) {
    const struct trace *t = c->t;
    for (size_t i = 0; i < t->links.n; i++)
        mark_up(c, t->links.host[i], LAUNCHED);
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (!host_tree_has(c->h, (uint32_t)k)) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            uint16_t cl = span_class(t, r);
            if (t->spans.kind[r] != SPAN_API ||
                !(cl & (NAME_LAUNCH | NAME_COPY)) ||
                (says(c, t->spans.name[r]) & IS_HOST_CALL))
                continue;
            bool lone = !(c->mark[r] & LAUNCHED);
            if (scope_has(in, r)) {
                out->launches++;
                out->unanswered += lone;
                if (lone) note_unanswered(t, out, t->spans.name[r]);
            }
            bool late = t->spans.ts[r] >= c->last[tr->source];
            if (lone) mark_up(c, r, late ? LATE : UNANSWERED);
        }
    }
}

static void mark_memory(struct cover *c) {
    const struct trace *t = c->t;
    row_id near = 0; /* of another track it is outside, and does no harm */
    for (size_t i = 0; i < t->mem.n; i++) {
        uint32_t track = t->mem.track[i];
        if (track == ROW_NONE || !host_tree_has(c->h, track)) continue;
        row_id r = span_at_near(t, track, t->mem.ts[i], &near);
        mark_up(c, r, TOUCHED);
    }
}

static void find_devices(struct cover *c) {
    const struct trace *t = c->t;
    for (size_t s = 0; s < t->nsources; s++) c->last[s] = INT64_MIN;
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (tr->kind != TRACK_STREAM) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (!span_is_device_work(t, r)) continue;
            c->device[tr->source] = true;
            if (span_end(t, r) > c->last[tr->source])
                c->last[tr->source] = span_end(t, r);
        }
    }
}

static enum op_device ask_device(struct cover *c, row_id r, uint32_t source) {
    uint8_t m = c->mark[r], n = says(c, c->t->spans.name[r]);
    if (m & LAUNCHED) return OP_ON_DEVICE;
    if (m & (UNANSWERED | LATE)) {
        if (!c->device[source]) return OP_NOT_RECORDED;
        return m & UNANSWERED ? OP_DROPPED : OP_OUTSIDE;
    }
    if (!c->device[source]) return OP_NO_DEVICE;
    if (n & IS_VIEW) return OP_VIEW;
    if (n & IS_ALLOC) return OP_ALLOCATES;
    if (span_is_comm(c->t, r)) return OP_LIBRARY;
    if (n & IS_BOOK) return OP_BOOKKEEPING;
    return m & COMPILED ? OP_FUSED : OP_CPU;
}

static enum op_memory ask_memory(struct cover *c, row_id r, uint32_t source) {
    uint8_t n = says(c, c->t->spans.name[r]);
    if (c->mark[r] & TOUCHED) return OP_ALLOCATED;
    if (!c->t->sources[source].has_memory) return OP_MEM_OFF;
    if (n & IS_VIEW) return OP_MEM_VIEW;
    if (n & IS_IN_PLACE) return OP_IN_PLACE;
    if (c->t->spans.flags[r] & SPAN_EAGER) return OP_MEM_EAGER;
    return n & IS_CUSTOM ? OP_CUSTOM : OP_MEM_NONE;
}

/* Counts the name for its answer. False: out of memory. */
static bool example(struct cover *c, unsigned answer, str_id name) {
    uint32_t *at = map_at(&c->seen, (uint64_t)answer << 32 | name);
    if (at == NULL || !VEC_ROOM(c->names, c->n, c->cap)) return false;
    if (*at == MAP_NONE) {
        *at = (uint32_t)c->n;
        c->names[c->n++] = (struct example){answer, name, 0};
    }
    c->names[*at].count++;
    return true;
}

/* The most frequent name of each answer; of equally frequent ones the first by
 * the alphabet, so that the order of files and threads does not matter. */
static void pick_examples(const struct cover *c, struct op_cover *out) {
    int64_t most[MEMORY_BASE + OP_MEMORY_ANSWERS] = {0};
    for (size_t i = 0; i < c->n; i++) {
        const struct example *x = &c->names[i];
        str_id *best = x->answer < MEMORY_BASE
                           ? &out->device_name[x->answer]
                           : &out->memory_name[x->answer - MEMORY_BASE];
        if (x->count < most[x->answer] ||
            (x->count == most[x->answer] &&
             strcmp(strs_text(&c->t->strs, *best),
                    strs_text(&c->t->strs, x->name)) < 0))
            continue;
        most[x->answer] = x->count;
        *best = x->name;
    }
}

static bool ask_ops(struct cover *c, struct op_cover *out,
                    const struct scope *in) {
    const struct trace *t = c->t;
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (!host_tree_has(c->h, (uint32_t)k)) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            row_id up = t->spans.parent[r];
            str_id name = t->spans.name[r];
            if ((up != ROW_NONE && (c->mark[up] & COMPILED)) ||
                (says(c, name) & IS_REGION))
                c->mark[r] |= COMPILED;
            if (t->spans.kind[r] != SPAN_OP || c->h->rep[r] != r ||
                !scope_has(in, r))
                continue;
            enum op_device d = ask_device(c, r, tr->source);
            enum op_memory m = ask_memory(c, r, tr->source);
            out->ops++;
            out->device[d]++;
            out->memory[m]++;
            if (!example(c, d, name) || !example(c, MEMORY_BASE + m, name))
                return false;
        }
    }
    return true;
}

int op_cover_init(struct op_cover *out, const struct host_tree *h,
                  const struct scope *in, struct ops_err *e) {
    const struct trace *t = h->t;
    struct cover c = {.t = t, .h = h};
    *out = (struct op_cover){0};
    c.mark = calloc(t->spans.n + 1, 1);
    c.says = calloc(t->strs.n + 1, 1);
    c.last = calloc(t->nsources + 1, sizeof *c.last);
    c.device = calloc(t->nsources + 1, sizeof *c.device);
    bool ok = c.mark && c.says && c.last && c.device;
    if (ok) {
        find_devices(&c);
        mark_launches(&c, out, in);
        mark_memory(&c);
        ok = ask_ops(&c, out, in);
        if (ok) pick_examples(&c, out);
    }
    free(c.mark);
    free(c.says);
    free(c.last);
    free(c.device);
    free(c.names);
    map_free(&c.seen);
    return ok ? 0 : fail_oom(e);
}
