/* SPDX-License-Identifier: Apache-2.0
 * The walk gives every span a token (thread_walk.h), which says what the span
 * stands for: a node of the tree, or a pending backward op, whose node is
 * that of its forward op. The forward op may stand on a thread that is walked
 * later, so pending ops are resolved when all threads are done. */
#include "analyze/code/scope_tree.h"

#include "analyze/analyze.h"
#include "analyze/code/thread_walk.h"
#include "analyze/cost/roof_flops.h"
#include "analyze/memory/mem_forward.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/op_inputs.h"
#include "analyze/shared/own.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include "model/span_class.h"
#include "names/frame_name.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

struct scoping {
    const struct trace *t;
    const struct selection *selection;
    enum scope_by by;
    struct paths paths;
    struct host_tree host;
    struct thread_walk walk;
    bool device, device_memory, memory;
    uint32_t *part;     /* by str_id: the name as a path's part, + 1; 0: not
                           yet known */
    uint32_t *whole;    /* by str_id: the token of a name scope, + 1, or 0 */
    struct map forward; /* backward op -> the row of its forward op */
    struct pending {    /* a backward op: its scope is known at the end */
        row_id from;
        uint32_t track; /* where it ran */
        uint32_t step;  /* of pending: the backward step that it belongs to,
                           itself or the one before it */
        int64_t host;   /* ps spent in it */
    } * pending;
    size_t npending, cap_pending;
    struct grad { /* a gradient that was added up: of a weight */
        row_id row;
        uint32_t pending;
    } * grads;
    size_t ngrads, cap_grads;
    struct call { /* by node: its first call, and the one now open */
        row_id first, last;
    } * calls;
    size_t cap_calls;
    row_id layer; /* the last op whose weights were counted */
};

#define MODULE_WORD "nn.Module: "

/* ---- which node a token means ---- */

/* A token's parts. Tokens are these, or TOKEN_NONE. */
struct token {
    uint32_t number : 30; /* of a node, or of s->pending */
    uint32_t back : 1;    /* met on the backward pass */
    uint32_t pending : 1; /* the number is one of s->pending */
};

enum { TOKEN_NUMBERS = (1 << 30) - 1 };

static struct token token_read(uint32_t token) {
    return (struct token){token & TOKEN_NUMBERS, token >> 30 & 1, token >> 31};
}

static uint32_t token_of(struct token k) {
    return k.number | (uint32_t)k.back << 30 | (uint32_t)k.pending << 31;
}

/* Returns the token of a node; TOKEN_NONE if the node is PATH_NONE. */
static uint32_t token_of_node(uint32_t node, bool back) {
    if (node == PATH_NONE) return TOKEN_NONE;
    return token_of((struct token){.number = node, .back = back});
}

static bool is_pending(uint32_t token) {
    return token != TOKEN_NONE && token_read(token).pending;
}

/* Adds to a token's node. A backward op of a backward op leads on to that one's
 * forward op; a made-up circle ends at NO_SCOPE. */
static void charge(struct scoping *s, uint32_t token, enum path_value v,
                   int64_t by) {
    enum { HOPS = 8 };
    bool back = false;
    uint32_t node = NO_SCOPE;
    for (int i = 0; i < HOPS && token != TOKEN_NONE; i++) {
        struct token k = token_read(token);
        back |= k.back || k.pending;
        if (!k.pending) {
            node = k.number;
            break;
        }
        token = s->walk.token[s->pending[k.number].from];
    }
    paths_add(&s->paths, node, v, by);
    if (!back) return;
    if (v == PATH_HOST) paths_add(&s->paths, node, PATH_HOST_BACK, by);
    if (v == PATH_DEVICE) paths_add(&s->paths, node, PATH_DEVICE_BACK, by);
}

/* ---- nodes of spans ---- */

static struct bytes name_of(const struct scoping *s, row_id r) {
    return strs_bytes(&s->t->strs, s->t->spans.name[r]);
}

static uint32_t child_of(struct scoping *s, uint32_t outer, row_id r) {
    uint32_t *known = &s->part[s->t->spans.name[r]];
    if (*known == 0) {
        /* in a path a name stands without the beginning that its kind has in
         * common */
        struct bytes b = name_of(s, r);
        size_t skip = 0;
        if (BYTES_STARTS(b, MODULE_WORD)) skip = sizeof MODULE_WORD - 1;
        else if (s->t->spans.kind[r] == SPAN_PYTHON && b.n > 1 && b.p[0] == '$')
            skip = 1; /* TensorFlow and JAX: "$file.py:12 func" */
        str_id id = strs_intern(&s->paths.names,
                                (struct bytes){b.p + skip, b.n - skip});
        if (id == STR_NONE) s->paths.oom = true;
        *known = id == STR_NONE ? 1 : id + 1;
    }
    struct token in = token_read(outer);
    bool inside = outer != TOKEN_NONE && !in.pending;
    uint32_t node = paths_child_id(&s->paths, inside ? in.number : PATH_NONE,
                                   *known - 1);
    return token_of_node(node, inside && in.back);
}

static void count_call(struct scoping *s, uint32_t token, row_id r) {
    if (select_has(s->selection, r)) charge(s, token, PATH_CALLS, 1);
}

/* Remembers which call of a module is open: weights are those of its first. */
static void open_call(struct scoping *s, uint32_t token, row_id r) {
    uint32_t node = token_read(token).number;
    if (token == TOKEN_NONE) return; /* memory ran out */
    if (node >= s->cap_calls) {
        size_t cap = vec_next_cap(s->cap_calls, node + 1);
        if (!vec_resize(&s->calls, cap, sizeof *s->calls)) {
            s->paths.oom = true;
            return;
        }
        for (size_t i = s->cap_calls; i < cap; i++)
            s->calls[i] = (struct call){ROW_NONE, ROW_NONE};
        s->cap_calls = cap;
    }
    if (s->calls[node].first == ROW_NONE) s->calls[node].first = r;
    s->calls[node].last = r;
}

/* Is r inside an op that was met before? */
static bool is_inside(const struct trace *t, row_id r, row_id outer) {
    return outer != ROW_NONE && t->spans.track[r] == t->spans.track[outer] &&
           span_end(t, r) <= span_end(t, outer);
}

int64_t weights_from(struct bytes dims, unsigned inputs) {
    struct op_inputs in;
    int64_t sum = 0;
    op_inputs_from(dims, (struct bytes){0}, (struct bytes){0}, &in);
    for (int i = 0; i < in.n && sum >= 0; i++)
        if (inputs >> i & 1 || in.v[i].numel < 0)
            sum = known_add(sum, in.v[i].numel);
    return in.n > 0 ? sum : -1;
}

/* Adds the weights that a layer's op was called with to its module. Autocast
 * calls the same op inside it again. */
static void add_weights(struct scoping *s, uint32_t token, row_id r) {
    if (token == TOKEN_NONE || is_pending(token)) return;
    if (is_inside(s->t, r, s->layer)) return;
    const struct track *tr = &s->t->tracks[s->t->spans.track[r]];
    uint32_t node = token_read(token).number;
    if (!s->t->sources[tr->source].has_shapes || node >= s->cap_calls) return;
    if (s->calls[node].first != s->calls[node].last) return;
    unsigned inputs = op_weight_inputs(name_of(s, r));
    if (inputs == 0) return;
    struct arg a = args_get(s->t, r, "Input Dims");
    if (a.type == ARG_NONE) a = args_get(s->t, r, "Input dims");
    int64_t n = a.text.n > 0 ? weights_from(a.text, inputs) : -1;
    if (n < 0) return;
    paths_add(&s->paths, node, PATH_PARAMS, n);
    s->layer = r;
}

/* ---- the backward pass ---- */

static bool is_backward(const struct trace *t, row_id r) {
    return span_class(t, r) & CLASS_BACKWARD;
}

/* Finds forward ops by arrows. An arrow leads to the inner op of a backward
 * step; the whole step belongs to it. */
static bool map_forward(struct scoping *s) {
    enum { CLIMB = 8 };
    const struct trace *t = s->t;
    for (size_t i = 0; i < t->flows.n; i++) {
        row_id from = t->flows.from[i], to = t->flows.to[i];
        if (t->spans.kind[from] != SPAN_OP || t->spans.kind[to] != SPAN_OP)
            continue;
        if (!map_set(&s->forward, to, from)) return false;
        row_id up = t->spans.parent[to];
        for (int k = 0; k < CLIMB && up != ROW_NONE; k++) {
            if (!is_backward(t, up)) break;
            if (!map_set(&s->forward, up, from)) return false;
            up = t->spans.parent[up];
        }
    }
    return true;
}

/* Finds forward ops where arrows were left out (old writers, filters): by the
 * numbers of autograd's nodes, on either side. Slower: arguments are read. */
static int map_by_number(struct scoping *s, struct ops_err *e) {
    const struct trace *t = s->t;
    struct mem_forward f;
    bool ok = true;
    TRY(mem_forward_init(&f, t, e));
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; ok && r < tr->end; r++) {
            row_id up = t->spans.parent[r];
            if (t->spans.kind[r] != SPAN_OP || !is_backward(t, r) ||
                (up != ROW_NONE && is_backward(t, up)))
                continue;
            row_id from = mem_forward_op(&f, r);
            ok = from == ROW_NONE || map_set(&s->forward, r, from);
        }
    }
    mem_forward_free(&f);
    return ok ? 0 : fail_oom(e);
}

/* Returns the token of a backward op; outer if the row is none. */
static uint32_t backward_of(struct scoping *s, row_id r, uint32_t outer) {
    const struct spans *sp = &s->t->spans;
    if (sp->kind[r] != SPAN_OP || s->forward.n == 0) return outer;
    bool back = is_backward(s->t, r);
    row_id from = map_get(&s->forward, r);
    /* Gradients are put into .grad right after the op that made them: such
     * steps have no forward op of their own, but that of the backward op before
     * them on the track. */
    uint32_t step = (uint32_t)s->npending;
    if (from == MAP_NONE && back && !is_pending(outer) && s->npending > 0 &&
        s->pending[s->npending - 1].track == sp->track[r]) {
        if (name_is_accumulate(name_of(s, r))) {
            from = s->pending[s->npending - 1].from;
            step = s->pending[s->npending - 1].step;
        }
    }
    if (from == MAP_NONE || from == r) return outer;
    if (is_pending(outer) && s->pending[token_read(outer).number].from == from)
        return outer;
    if (!VEC_ROOM(s->pending, s->npending, s->cap_pending) ||
        s->npending >= TOKEN_NUMBERS) {
        s->paths.oom = true;
        return outer;
    }
    s->pending[s->npending] = (struct pending){from, sp->track[r], step, 0};
    uint32_t number = (uint32_t)s->npending++;
    return token_of((struct token){.number = number, .pending = true});
}

/* ---- weights that no layer's op takes ---- */

/* Remembers a gradient that was added up in a backward step: it has the shape
 * of its weight. */
static void note_grad(struct scoping *s, uint32_t token, row_id r) {
    const struct track *tr = &s->t->tracks[s->t->spans.track[r]];
    if (!is_pending(token) || !s->t->sources[tr->source].has_shapes ||
        !name_is_accumulate(name_of(s, r)))
        return;
    if (!VEC_ROOM(s->grads, s->ngrads, s->cap_grads)) {
        s->paths.oom = true;
        return;
    }
    s->grads[s->ngrads++] = (struct grad){r, token_read(token).number};
}

/* Is the op, or one around it, a layer's whose weights were counted? */
static bool is_layers(const struct scoping *s, row_id r) {
    enum { CLIMB = 16 };
    for (int i = 0; i < CLIMB && r != ROW_NONE; i++) {
        if (op_weight_inputs(name_of(s, r)) != 0) return true;
        r = s->t->spans.parent[r];
    }
    return false;
}

/* Adds the weights of modules that are used by plain ops (a position embedding
 * that is added): those that got a gradient, by the first backward step of an
 * op of the module's first call. */
static bool add_own_weights(struct scoping *s) {
    const struct spans *sp = &s->t->spans;
    struct map first = {0}; /* forward op -> its first backward step */
    bool ok = true;
    for (size_t i = 0; ok && i < s->ngrads; i++) {
        const struct pending *p = &s->pending[s->grads[i].pending];
        uint32_t token = s->walk.token[p->from];
        if (token == TOKEN_NONE || is_pending(token)) continue;
        uint32_t node = token_read(token).number;
        if (node >= s->cap_calls || s->calls[node].first == ROW_NONE) continue;
        row_id call = s->calls[node].first;
        if (sp->ts[p->from] < sp->ts[call] ||
            sp->ts[p->from] > span_end(s->t, call) || is_layers(s, p->from))
            continue;
        uint32_t *step = map_at(&first, p->from);
        ok = step != NULL;
        if (!ok) break;
        if (*step == MAP_NONE) *step = p->step;
        struct arg a = args_get(s->t, s->grads[i].row, "Input Dims");
        int64_t n = a.text.n > 0 ? weights_from(a.text, 1) : -1;
        if (*step == p->step && n > 0)
            paths_add(&s->paths, node, PATH_PARAMS, n);
    }
    map_free(&first);
    return ok;
}

/* ---- one way of asking per --by ---- */

/* Does the call belong to what is around it? */
static bool is_plain(const struct scoping *s, row_id r) {
    uint8_t kind = s->t->spans.kind[r];
    return s->host.rep[r] != r || kind == SPAN_API || kind == SPAN_OVERHEAD;
}

/* Returns the token of a name that is a whole path, worked out once per
 * name. */
static uint32_t named_scope(struct scoping *s, str_id name, bool xla) {
    uint32_t *known = &s->whole[name];
    if (*known != 0) return *known - 1;
    bool back;
    struct bytes b = strs_bytes(&s->t->strs, name);
    uint32_t node = xla ? scope_path_xla(&s->paths, b, &back)
                        : scope_path_tf(&s->paths, b, &back);
    uint32_t token = node == PATH_NONE ? NO_SCOPE : token_of_node(node, back);
    *known = token + 1;
    return token;
}

/* Do the names of the source's ops spell scopes? */
static bool names_scopes(const struct scoping *s, row_id r) {
    const struct track *tr = &s->t->tracks[s->t->spans.track[r]];
    return s->t->sources[tr->source].format->scopes_in_names;
}

static uint32_t enter_scope(struct scoping *s, row_id r, uint32_t outer) {
    const struct spans *sp = &s->t->spans;
    if (is_plain(s, r)) return outer;
    uint32_t token = outer;
    if (sp->kind[r] != SPAN_OP) {
        token = child_of(s, outer, r);
    } else if (names_scopes(s, r)) {
        const struct hlo_instr *i = hlo_of_span(s->t, r);
        if (i == NULL) token = named_scope(s, sp->name[r], false);
        if (i != NULL && i->op_name) token = named_scope(s, i->op_name, true);
    } else {
        return backward_of(s, r, outer);
    }
    count_call(s, token, r);
    return token;
}

static uint32_t on_enter(void *ctx, row_id r, uint32_t outer) {
    struct scoping *s = ctx;
    if (s->by == BY_SCOPE) return enter_scope(s, r, outer);
    if (s->by == BY_OP && is_plain(s, r)) return outer;
    /* for modules and code, Python frames are the nodes and ops belong to
     * them */
    if (s->by != BY_OP && s->t->spans.kind[r] != SPAN_PYTHON) {
        uint32_t token = backward_of(s, r, outer);
        if (s->by == BY_MODULE && token == outer && s->host.rep[r] == r)
            add_weights(s, token, r);
        if (s->by == BY_MODULE && token != TOKEN_NONE) note_grad(s, token, r);
        return token;
    }
    uint32_t token = child_of(s, outer, r);
    if (s->by == BY_MODULE) open_call(s, token, r);
    count_call(s, token, r);
    return token;
}

static bool on_wants(void *ctx, row_id r) {
    const struct scoping *s = ctx;
    const struct trace *t = s->t;
    uint8_t kind = t->spans.kind[r];
    if (t->spans.flags[r] & SPAN_INSTANT) return false;
    if (t->tracks[t->spans.track[r]].kind == TRACK_PYTHON)
        return s->by == BY_CODE || (kind == SPAN_PYTHON &&
                                    BYTES_STARTS(name_of(s, r), MODULE_WORD));
    if (s->host.rep[r] == ROW_NONE || span_is_step_mark(t, r)) return false;
    if (s->by == BY_SCOPE || s->by == BY_OP) return true;
    return kind == SPAN_OP || kind == SPAN_API;
}

static void on_spend(void *ctx, row_id r, uint32_t token, int64_t from,
                     int64_t to) {
    struct scoping *s = ctx;
    if (!select_has(s->selection, r)) return;
    if (is_pending(token))
        sat_inc(&s->pending[token_read(token).number].host, to - from);
    else charge(s, token, PATH_HOST, to - from);
}

/* ---- what is added when the walk is done ---- */

/* Returns the token of the node that a device span names itself: XLA writes the
 * op, and where it comes from, on what it runs. TOKEN_NONE if nothing is
 * said. */
static uint32_t device_token(struct scoping *s, row_id d) {
    char text[1024];
    const struct hlo_instr *i = hlo_of_span(s->t, d);
    if (i != NULL && s->by == BY_CODE) {
        size_t n = hlo_source_text(s->t, i, text, sizeof text);
        if (n == 0) return TOKEN_NONE;
        return paths_child(&s->paths, PATH_NONE,
                           (struct bytes){(const uint8_t *)text, n});
    }
    if (s->by != BY_SCOPE) return TOKEN_NONE;
    if (i != NULL)
        return i->op_name ? named_scope(s, i->op_name, true) : TOKEN_NONE;
    if (s->t->spans.kind[d] != SPAN_KERNEL || !names_scopes(s, d))
        return TOKEN_NONE;
    struct bytes op = kernel_framework_op(s->t, d), node, type;
    bool back;
    if (op.n == 0) return TOKEN_NONE;
    uint32_t at = name_split_tf(op, &node, &type)
                      ? scope_path_tf(&s->paths, op, &back)
                      : scope_path_xla(&s->paths, op, &back);
    return token_of_node(at, back);
}

static bool charge_device(void *ctx, row_id d, row_id launch, int64_t own) {
    struct scoping *s = ctx;
    uint32_t token = device_token(s, d);
    bool named = token != TOKEN_NONE;
    s->device = true;
    if (!named && launch != ROW_NONE) token = s->walk.token[launch];
    if (!select_has(s->selection, d)) return true;
    charge(s, token, PATH_DEVICE, own);
    if (named) charge(s, token, PATH_CALLS, 1);
    return true;
}

/* Charges the FLOPs of a call where its device time is: with the scope that it
 * names itself, or with its launch. */
static void charge_flops(void *ctx, row_id r, int64_t flops) {
    struct scoping *s = ctx;
    const struct track *tr = &s->t->tracks[s->t->spans.track[r]];
    uint32_t token = TOKEN_NONE;
    if (tr->kind == TRACK_THREAD) {
        token = s->walk.token[r];
    } else {
        token = device_token(s, r);
        row_id launch = token == TOKEN_NONE ? trace_launch_of(s->t, r)
                                            : ROW_NONE;
        if (launch != ROW_NONE) token = s->walk.token[launch];
    }
    charge(s, token, PATH_FLOPS, flops);
}

/* Charges an allocator's bytes, each to the node that the source names, or to
 * what ran on its thread. */
static void charge_allocator(struct scoping *s, struct innermost_at *at,
                             const struct mem_scope *in, size_t *next) {
    const struct mem_events *m = &s->t->mem;
    uint32_t allocator = m->allocator[*next];
    const struct allocator *a = &s->t->allocators[allocator];
    bool device = a->device != ROW_NONE;
    bool named = s->by == BY_SCOPE &&
                 s->t->sources[a->source].format->allocs_name_ops;
    for (; *next < m->n && m->allocator[*next] == allocator; ++*next) {
        size_t i = *next;
        if (m->bytes[i] <= 0 || device != s->device_memory) continue;
        if (!mem_scope_has(in, m->ts[i])) continue;
        uint32_t token = named && m->what[i] != 0
                             ? named_scope(s, m->what[i], false)
                             : innermost_at(at, m->track[i], m->ts[i]);
        charge(s, token, PATH_BYTES, m->bytes[i]);
    }
}

static int charge_memory(struct scoping *s, struct ops_err *e) {
    const struct mem_events *m = &s->t->mem;
    struct innermost_at at;
    for (size_t i = 0; i < s->t->nsources; i++)
        s->memory |= s->t->sources[i].has_memory;
    for (size_t i = 0; i < s->t->nallocators; i++)
        s->device_memory |= s->t->allocators[i].device != ROW_NONE;
    TRY(innermost_at_init(&at, &s->walk, e));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->n;) {
        struct mem_scope in;
        bool any;
        uint32_t allocator = m->allocator[i];
        rc = mem_scope_init(&in, s->selection,
                            s->t->allocators[allocator].source, &any, e);
        if (rc != 0) break;
        if (any) charge_allocator(s, &at, &in, &i);
        else
            while (i < m->n && m->allocator[i] == allocator) i++;
        mem_scope_free(&in);
    }
    innermost_at_free(&at);
    return rc;
}

/* ---- setting up ---- */

/* Is there a frame of a module? */
static bool has_modules(const struct trace *t) {
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_PYTHON) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            struct bytes b = strs_bytes(&t->strs, t->spans.name[r]);
            if (BYTES_STARTS(b, MODULE_WORD)) return true;
        }
    }
    return false;
}

static bool has_named_scopes(const struct trace *t) {
    for (size_t i = 0; t->hlo && i < t->hlo->ninstrs; i++)
        if (t->hlo->instrs[i].op_name) return true;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD ||
            !t->sources[tr->source].format->scopes_in_names)
            continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            struct bytes b = strs_bytes(&t->strs, t->spans.name[r]);
            if (t->spans.kind[r] == SPAN_OP && memchr(b.p, '/', b.n))
                return true;
        }
    }
    return false;
}

enum scope_by scope_tree_best(const struct trace *t) {
    if (has_modules(t)) return BY_MODULE;
    return has_named_scopes(t) ? BY_SCOPE : BY_OP;
}

static int scoping_gather(struct scoping *s, struct ops_err *e) {
    TRY(host_tree_get(&s->host, s->t, e));
    s->part = calloc(s->t->strs.n + 1, sizeof *s->part);
    s->whole = calloc(s->t->strs.n + 1, sizeof *s->whole);
    if (!s->part || !s->whole || !paths_init(&s->paths)) return fail_oom(e);
    uint32_t none = paths_child(&s->paths, PATH_NONE, bytes_of("(no scope)"));
    if (s->paths.oom) return fail_oom(e);
    assert(none == NO_SCOPE);
    (void)none;
    if (s->by != BY_OP && !map_forward(s)) return fail_oom(e);
    if (s->by != BY_OP && s->t->flows.n == 0) TRY(map_by_number(s, e));
    s->walk = (struct thread_walk){.t = s->t,
                                   .ctx = s,
                                   .wants = on_wants,
                                   .enter = on_enter,
                                   .spend = on_spend,
                                   .python = s->by == BY_MODULE ||
                                             s->by == BY_CODE};
    TRY(thread_walk(&s->walk, e));
    for (uint32_t i = 0; i < s->npending; i++)
        charge(s, token_of((struct token){.number = i, .pending = true}),
               PATH_HOST, s->pending[i].host);
    if (!own_each_work(s->t, charge_device, s) || !add_own_weights(s))
        return fail_oom(e);
    TRY(roof_flops_each(s->t, s->selection, charge_flops, s, e));
    TRY(charge_memory(s, e));
    paths_sum_up(&s->paths);
    return s->paths.oom ? fail_oom(e) : 0;
}

int scope_tree_init(struct scope_tree *out, const struct trace *t,
                    const struct selection *scope, enum scope_by by,
                    struct ops_err *e) {
    struct scoping s = {.t = t,
                        .selection = scope,
                        .by = by,
                        .layer = ROW_NONE};
    int rc = scoping_gather(&s, e);
    map_free(&s.forward);
    free(s.walk.token);
    free(s.part);
    free(s.whole);
    free(s.pending);
    free(s.grads);
    free(s.calls);
    *out = (struct scope_tree){.t = t,
                               .by = by,
                               .paths = s.paths,
                               .device = s.device,
                               .device_memory = s.device_memory,
                               .memory = s.memory};
    if (rc != 0) scope_tree_free(out);
    return rc;
}

void scope_tree_free(struct scope_tree *s) {
    paths_free(&s->paths);
    *s = (struct scope_tree){0};
}
