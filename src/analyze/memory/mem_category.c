/* SPDX-License-Identifier: Apache-2.0
 * Categories by rule: the phase in which a block was allocated, and its fate.
 *
 * torch's own memory profiler follows tensors through every op by their ids;
 * a trace has none, only addresses and times. What it does have is enough
 * for most: a gradient is what the backward pass leaves behind, an activation
 * what the forward pass leaves to it, an optimizer's state what its step
 * leaves. Where two readings are left the answer is unknown. */
#include "analyze/memory/mem_category.h"

#include "analyze/memory/live.h"
#include "analyze/memory/mem_site.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

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

/* Stretches of one phase, for sources that have stacks but no spans. */
static void number_runs(struct mem_blocks *b) {
    const struct live *l = b->l;
    uint32_t run = 0;
    enum mem_phase now = MEM_NOWHERE;
    for (size_t i = 0; i < l->n; i++) {
        uint32_t stack = mem_stack(l->t, l->first + i);
        enum mem_phase p = MEM_NOWHERE;
        if (stack != ROW_NONE && l->t->mem.bytes[l->first + i] >= 0)
            p = b->sites->stack_phase[stack];
        if (p != MEM_NOWHERE && p != now) {
            now = p;
            run++;
        }
        b->run[i] = run;
    }
}

/* The last event of a backward pass tells whether one followed a block:
 * activations that are never freed were cut off by the window's end. */
static void find_last_backward(struct mem_blocks *b) {
    const struct live *l = b->l;
    b->last_backward = INT64_MIN;
    for (size_t i = l->n; i-- > 0;) {
        struct mem_site at = mem_site_of(b->sites, l->first + i);
        if (at.phase != MEM_BACKWARD) continue;
        b->last_backward = l->t->mem.ts[l->first + i];
        return;
    }
}

int mem_blocks_init(struct mem_blocks *b, const struct mem_sites *sites,
                    const struct live *l, struct ops_err *e) {
    *b = (struct mem_blocks){.sites = sites, .l = l};
    if (l->n > 0) {
        uint32_t a = l->t->mem.allocator[l->first];
        uint32_t source = l->t->allocators[a].source;
        b->whole = l->t->sources[source].step_rule == STEPS_WHOLE;
    }
    if (b->whole) find_last_backward(b);
    if (!sites->stack_phase) return 0;
    b->run = vec_alloc(l->n + 1, sizeof *b->run);
    if (!b->run) return fail_oom(e);
    number_runs(b);
    return 0;
}

void mem_blocks_free(struct mem_blocks *b) {
    free(b->run);
    *b = (struct mem_blocks){0};
}

/* Was the phase that made block i still going on when event j freed it? */
static bool ended_in_phase(const struct mem_blocks *b, size_t i, size_t j,
                           const struct mem_site *at) {
    const struct live *l = b->l;
    const struct mem_events *m = &l->t->mem;
    if (at->phase == MEM_BACKWARD && at->region != ROW_NONE)
        /* autograd runs one node after the other: the pass goes on until the
         * thread that frees has begun something else. TensorFlow's executor
         * mixes passes; there, what a gradient's op leaves is a gradient. */
        return (span_class(l->t, at->region) & NAME_BACKWARD) &&
               mem_phase_before(b->sites, m->track[l->first + j],
                                m->ts[l->first + j]) == MEM_BACKWARD;
    if (at->region != ROW_NONE)
        return m->ts[l->first + j] <= span_end(l->t, at->region);
    return at->root == ROW_NONE && b->run && b->run[i] == b->run[j];
}

/* Steps that began after block i was made and by event j (l->n: the end). */
static size_t steps_between(const struct mem_blocks *b, size_t i, size_t j) {
    const struct live *l = b->l;
    uint32_t source = l->t->allocators[l->t->mem.allocator[l->first]].source;
    const struct mem_steps *st = &b->sites->steps[source];
    if (st->n == 0) return 0;
    int64_t from = l->t->mem.ts[l->first + i];
    int64_t to = j < l->n ? l->t->mem.ts[l->first + j] : INT64_MAX;
    size_t a = mem_steps_at(st, from), z = mem_steps_at(st, to);
    /* before the first step counts as a step of its own */
    return (z == st->n ? 0 : z + 1) - (a == st->n ? 0 : a + 1);
}

static enum fate fate_of(const struct mem_blocks *b, size_t i,
                         const struct mem_site *at) {
    const struct live *l = b->l;
    const struct mem_events *m = &l->t->mem;
    if (m->addr[l->first + i] == 0) return UNSEEN;
    size_t j = l->mate[i];
    if (j == LIVE_NONE && steps_between(b, i, l->n) > 0) return KEPT;
    if (j == LIVE_NONE)
        /* in a window that is no step, there must be backward passes, and
         * none after it */
        return !b->whole || (b->last_backward != INT64_MIN &&
                             m->ts[l->first + i] > b->last_backward)
                   ? CUT
                   : KEPT;
    if (at->root != ROW_NONE && m->ts[l->first + j] <= span_end(l->t, at->root))
        return IN_OP;
    if (ended_in_phase(b, i, j, at)) return IN_PHASE;
    return steps_between(b, i, j) <= 1 ? SOON : LATE;
}

/* What the program itself said the block is for (ops_alloc's tag), or
 * MEM_CATEGORIES: nothing that is known here. */
static enum mem_category tagged(const struct trace *t, size_t event) {
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
    const char *tag = strs_text(&t->strs, t->mem.what[event]);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strcmp(tag, tags[i].tag) == 0) return tags[i].category;
    return MEM_CATEGORIES;
}

enum mem_category mem_block_category(const struct mem_blocks *b, size_t i,
                                     const struct mem_site *at) {
    const struct trace *t = b->l->t;
    uint32_t a = t->mem.allocator[b->l->first + i];
    if (t->sources[t->allocators[a].source].own) {
        enum mem_category said = tagged(t, b->l->first + i);
        return said != MEM_CATEGORIES ? said : MEM_UNKNOWN;
    }
    struct mem_site site = *at;
    enum fate fate = fate_of(b, i, at);
    /* What stays for good is worth a look at the Python frames: modules and
     * optimizers make their tensors with plain ops. */
    if ((fate & (LATE | KEPT | CUT)) && site.phase <= MEM_FORWARD) {
        enum mem_phase p = mem_site_python(b->sites, b->l->first + i);
        if (p == MEM_INIT || p == MEM_OPTIMIZER) site.phase = p;
    }
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
        if (rules[k].phase == site.phase && (rules[k].fates & fate))
            return rules[k].category;
    assert(fate == UNSEEN);
    return MEM_UNKNOWN;
}

struct bytes mem_block_label(const struct mem_blocks *b, size_t i,
                             const struct mem_site *at) {
    const struct trace *t = b->l->t;
    size_t k = b->l->first + i;
    enum mem_category c = mem_block_category(b, i, at);
    if (c == MEM_UNKNOWN && t->mem.what[k] != 0 &&
        t->sources[t->allocators[t->mem.allocator[k]].source].own)
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
