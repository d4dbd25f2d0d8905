/* SPDX-License-Identifier: Apache-2.0
 * recompute: what forward computed is thrown away and computed again inside
 * backward (torch.utils.checkpoint and the like), though memory would hold it.
 *
 * torch numbers the ops of forward that backward will come to ("Sequence
 * number", with a "Fwd thread id" of 0); what a node of backward itself does
 * has no such number. So a numbered op inside a node is forward that runs
 * again, if the node does something of its own after it and forward has ops of
 * the same name (a gradient of a gradient numbers the ops of all nodes, and
 * calls what forward did not). Repaired, all goes from the node's begin to the
 * end of its last numbered op, and so does Python's part: where torch's own
 * checkpoints begin and end it keeps states of generators, hooks and inputs,
 * and nothing is computed. XLA names such work itself.
 *
 * What those ops allocate and do not free is what would be kept: with it, the
 * peak must still fit into the device. */
#include "analyze/hints/hint.h"

#include "analyze/analyze.h"
#include "analyze/shared/intervals.h"
#include "analyze/shared/kernel_args.h"
#include "base/array.h"
#include "base/err.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/hlo/hlo.h"
#include "names/op_names.h"
#include "names/pattern.h"
#include <stdio.h>
#include <stdlib.h>

/* A node of backward with forward ops in it. */
struct node {
    row_id row;
    int64_t end; /* of the last of these ops */
    int64_t own; /* when the last op of its own begins */
    bool odd;    /* one of them is none of forward's */
};

struct nodes {
    const struct trace *t;
    struct node *v;
    size_t n, cap;
    struct map of_row; /* node's row -> index in v */
    struct map names;  /* of ops outside of backward */
    struct map told;   /* row of an op in a node -> is it forward? */
};

static void nodes_free(struct nodes *k) {
    free(k->v);
    map_free(&k->of_row);
    map_free(&k->names);
    map_free(&k->told);
}

static bool is_backward(const struct trace *t, row_id row) {
    return t->spans.kind[row] == SPAN_OP &&
           name_is_backward(strs_bytes(&t->strs, t->spans.name[row]));
}

/* Does the row stand inside a node of backward? */
static bool in_backward(const struct trace *t, row_id row) {
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (is_backward(t, row)) return true;
        row = t->spans.parent[row];
    }
    return false;
}

/* Notes the names of the ops around a piece that is not in backward. */
static bool note_names(struct nodes *k, row_id row) {
    if (in_backward(k->t, row)) return true;
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (k->t->spans.kind[row] == SPAN_OP &&
            !map_set(&k->names, k->t->spans.name[row], 1))
            return false;
        row = k->t->spans.parent[row];
    }
    return true;
}

/* Is it an op that autograd numbered as one of forward? -1: out of memory. */
static int is_forward(struct nodes *k, row_id row) {
    uint32_t *at = map_at(&k->told, row);
    if (at == NULL) return -1;
    if (*at == MAP_NONE)
        *at = k->t->spans.kind[row] == SPAN_OP &&
              args_int(k->t, row, "Sequence number", -1) >= 0 &&
              args_int(k->t, row, "Fwd thread id", -1) == 0;
    return (int)*at;
}

/* Notes that op stands right inside the node. */
static bool note_node(struct nodes *k, row_id op, row_id node) {
    int forward = is_forward(k, op);
    uint32_t *at = map_at(&k->of_row, node);
    if (forward < 0 || at == NULL) return false;
    if (*at == MAP_NONE) {
        if (!forward) return true; /* own work before it does not count */
        if (!VEC_ROOM(k->v, k->n, k->cap)) return false;
        *at = (uint32_t)k->n;
        k->v[k->n++] =
            (struct node){.row = node, .end = INT64_MIN, .own = INT64_MIN};
    }
    struct node *v = &k->v[*at];
    int64_t end = span_end(k->t, op);
    if (!forward) {
        if (k->t->spans.ts[op] > v->own) v->own = k->t->spans.ts[op];
        return true;
    }
    if (end > v->end) v->end = end;
    v->odd |= map_get(&k->names, k->t->spans.name[op]) == MAP_NONE;
    return true;
}

/* Finds the nodes in which forward runs again. */
static bool find_nodes(struct nodes *k, const struct hint_step *s) {
    const struct trace *t = k->t;
    for (size_t i = 0; i < s->d.line.n; i++)
        if (!note_names(k, s->d.line.v[i].row)) return false;
    for (size_t i = 0; i < s->d.line.n; i++) {
        row_id row = s->d.line.v[i].row;
        for (int n = 0; row != ROW_NONE && n < HINT_CLIMB; n++) {
            row_id up = t->spans.parent[row];
            if (up != ROW_NONE && is_backward(t, up) && !note_node(k, row, up))
                return false;
            row = up;
        }
    }
    return true;
}

/* Returns the node of which the piece is a part that runs again, or NULL. */
static const struct node *node_of(const struct nodes *k,
                                  const struct piece *p) {
    row_id row = p->row;
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        uint32_t at = map_get(&k->of_row, row);
        const struct node *v = at == MAP_NONE ? NULL : &k->v[at];
        if (v != NULL && !v->odd && v->own >= v->end && p->ts < v->end)
            return v;
        row = k->t->spans.parent[row];
    }
    return NULL;
}

/* Allocations and frees by time, in the memory that a program works in. */
struct changes {
    struct sort_key *v; /* hi: when; row: the event */
    int64_t *held;      /* [i]: the bytes that all before number i add up to */
    size_t n;
    bool known; /* it was recorded */
};

static void changes_free(struct changes *k) {
    free(k->v);
    free(k->held);
}

/* Lists what the source's program allocates and frees, on its devices or on the
 * host. Returns false if out of memory. */
static bool changes_read(struct changes *k, const struct hint_case *c,
                         bool device) {
    const struct mem_events *m = &c->t->mem;
    *k = (struct changes){.v = malloc((m->n + 1) * sizeof *k->v),
                          .held = malloc((m->n + 1) * sizeof *k->held)};
    if (k->v == NULL || k->held == NULL) return false;
    for (size_t i = 0; i < m->n; i++) {
        const struct allocator *a = &c->t->allocators[m->allocator[i]];
        if (a->source == c->source && (a->device != ROW_NONE) == device)
            k->v[k->n++] = (struct sort_key){sort_signed(m->ts[i]), 0,
                                             (uint32_t)i};
    }
    k->known = k->n > 0;
    if (!sort_keys(k->v, k->n)) return false;
    k->held[0] = 0;
    for (size_t i = 0; i < k->n; i++)
        k->held[i + 1] = sat_add(k->held[i], m->bytes[k->v[i].row]);
    return true;
}

/* Returns what is allocated and not freed in these times (a union). */
static int64_t kept(const struct changes *k, const struct intervals *times) {
    int64_t sum = 0;
    for (size_t i = 0; i < times->n; i++) {
        size_t first, end;
        BOUND(first, 0, k->n, k->v[first].hi < sort_signed(times->v[i].start));
        BOUND(end, first, k->n, k->v[end].hi < sort_signed(times->v[i].end));
        int64_t more = k->held[end] - k->held[first];
        if (more > 0) sat_inc(&sum, more); /* it may also free what is older */
    }
    return sum;
}

/* Is it an instruction of XLA's that computes again what was not kept? */
static bool is_remat(const struct trace *t, row_id row) {
    static const char word[] = "rematted_computation";
    const struct hlo_instr *i = t->hlo ? hlo_of_span(t, row) : NULL;
    if (i != NULL && i->op_name)
        return word_in(word, strs_bytes(&t->strs, i->op_name));
    return word_in(word, kernel_framework_op(t, row));
}

/* Marks what XLA runs again on a CPU. */
static bool mark_xla(const struct trace *t, struct hint_step *s) {
    if (t->hlo == NULL || s->d.nworks > 0) return true;
    s->again = calloc(s->d.line.n + 1, sizeof *s->again);
    if (s->again == NULL) return false;
    s->again_bytes = -1;
    for (size_t i = 0; i < s->d.line.n; i++) {
        row_id row = s->d.line.v[i].row;
        if (row == ROW_NONE || t->spans.kind[row] != SPAN_OP ||
            !is_remat(t, row))
            continue;
        bool on = i > 0 && s->again[i - 1] != AGAIN_NOT;
        s->again[i] = on ? AGAIN : AGAIN_FIRST;
    }
    return true;
}

/* Marks the pieces that run again; *times becomes when that is. */
static bool mark_nodes(const struct nodes *k, struct hint_step *s,
                       struct intervals *times) {
    const struct node *last = NULL;
    s->again = calloc(s->d.line.n + 1, sizeof *s->again);
    if (s->again == NULL) return false;
    for (size_t i = 0; i < s->d.line.n; i++) {
        const struct node *v = node_of(k, &s->d.line.v[i]);
        if (v == NULL) continue;
        s->again[i] = v == last ? AGAIN : AGAIN_FIRST;
        if (v != last && !intervals_add(times, k->t->spans.ts[v->row], v->end))
            return false;
        last = v;
    }
    intervals_union(times); /* one node may stand inside another */
    return true;
}

/* Is the piece part of an op that computes something, or a wait? */
static bool computes(const struct nodes *k, const struct hint_step *s,
                     uint32_t i) {
    const struct trace *t = k->t;
    row_id row = s->d.line.v[i].row;
    const struct stop *p = &s->d.stops[i];
    if (p->first < p->end || p->wait != DEP_NONE) return true;
    for (int n = 0; row != ROW_NONE && n < HINT_CLIMB; n++) {
        if (t->spans.kind[row] != SPAN_API) break;
        row = t->spans.parent[row];
    }
    if (row == ROW_NONE || t->spans.kind[row] != SPAN_OP ||
        map_get(&k->of_row, row) != MAP_NONE)
        return false;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
    return !op_is_checkpoint(name) && !op_only_allocates(name);
}

/* Does one of torch's checkpoints begin or end in pieces [first, end)? */
static bool has_checkpoint(const struct trace *t, const struct hint_step *s,
                           uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const struct piece *p = &s->d.line.v[i];
        if (p->row == ROW_NONE || t->spans.kind[p->row] != SPAN_OP ||
            !op_is_checkpoint(strs_bytes(&t->strs, t->spans.name[p->row])))
            continue;
        if (p->ts == t->spans.ts[p->row] ||
            p->ts + p->dur == span_end(t, p->row))
            return true;
    }
    return false;
}

/* Marks what Python does around torch's checkpoints, and when what runs again
 * is done: stretches in which nothing is computed. */
static void mark_python(const struct nodes *k, struct hint_step *s) {
    for (uint32_t i = 0, end; i < s->d.line.n; i = end) {
        end = i + 1;
        if (computes(k, s, i)) continue;
        while (end < s->d.line.n && !computes(k, s, end)) end++;
        bool after = i > 0 && s->again[i - 1] != AGAIN_NOT;
        if (!after && !has_checkpoint(k->t, s, i, end)) continue;
        for (uint32_t m = i; m < end; m++)
            if (s->again[m] == AGAIN_NOT) s->again[m] = AGAIN;
    }
}

static bool mark(const struct hint_case *c, struct hint_step *s,
                 const struct changes changes[2]) {
    struct nodes k = {.t = c->t};
    struct intervals times = {0};
    bool ok = find_nodes(&k, s);
    if (ok && k.n == 0) ok = mark_xla(c->t, s);
    else if (ok) {
        const struct changes *m = &changes[s->d.nworks > 0];
        ok = mark_nodes(&k, s, &times);
        if (ok && times.n > 0) mark_python(&k, s);
        s->again_bytes = m->known ? kept(m, &times) : -1;
    }
    intervals_free(&times);
    nodes_free(&k);
    return ok;
}

int hint_recompute_read(struct hint_case *c, struct ops_err *e) {
    struct changes changes[2] = {0}; /* the host's, the devices' */
    bool ok = changes_read(&changes[false], c, false) &&
              changes_read(&changes[true], c, true);
    for (size_t i = 0; ok && i < c->nsteps; i++)
        ok = mark(c, &c->steps[i], changes);
    changes_free(&changes[false]);
    changes_free(&changes[true]);
    return ok ? 0 : fail_oom(e);
}

/* What the memory would come to. */
struct room {
    int64_t now, more, all; /* peak, what would be kept, the device's; -1: not
                               known */
};

static struct room room_of(const struct hint_case *c) {
    struct room r = {-1, -1, -1};
    uint32_t d = ROW_NONE; /* the source's first device that worked */
    for (size_t i = 0; i < c->nsteps; i++) {
        const struct hint_step *s = &c->steps[i];
        if (d == ROW_NONE && s->d.nworks > 0)
            d = c->t->tracks[c->t->spans.track[s->d.works[0].row]].device;
        if (s->again != NULL && s->again_bytes > r.more)
            r.more = s->again_bytes;
    }
    if (d != ROW_NONE && c->t->devices[d].memory_bytes > 0)
        r.all = c->t->devices[d].memory_bytes;
    for (size_t i = 0; c->memory != NULL && i < c->memory->nrows; i++) {
        struct cell name = subresult_cell(c->memory, i, "device");
        struct cell peak = subresult_cell(c->memory, i, "peak_bytes");
        if (name.null || peak.null) continue;
        bool is = d == ROW_NONE
                      ? strcmp(name.s, "host") == 0
                      : strcmp(name.s, strs_text(&c->t->strs,
                                                 c->t->devices[d].label)) == 0;
        if (is && peak.i > r.now) r.now = peak.i;
    }
    return r;
}

/* Would all of it fit into the device, as far as is known? */
static bool fits(const struct room *r) {
    if (r->now < 0 || r->more < 0 || r->all < 0) return true;
    return sat_add(r->now, r->more) <= r->all / 100 * HINT_FULL_PERCENT;
}

static void repair_recompute(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    struct room r = room_of(c);
    if (!fits(&r)) return;
    row_id row = ROW_NONE;
    int64_t takes = 0;
    for (uint32_t i = 0; s->again != NULL && i <= s->d.line.n; i++) {
        bool end = i == s->d.line.n || s->again[i] == AGAIN_FIRST;
        if (end && row != ROW_NONE) {
            hint_saw(f, row, takes);
            row = ROW_NONE;
            takes = 0;
        }
        if (i == s->d.line.n || s->again[i] == AGAIN_NOT) continue;
        if (s->again[i] == AGAIN_FIRST) row = s->d.line.v[i].row;
        for (uint32_t w = s->d.stops[i].first; w < s->d.stops[i].end; w++)
            if (s->trial.work[w] != WORK_GONE)
                sat_inc(&f->other, s->trial.work[w]);
        sat_inc(&takes, hint_remove(s, i, i + 1, true));
    }
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id k = s->d.works[w].row;
        if (s->trial.work[w] == WORK_GONE || !is_remat(c->t, k)) continue;
        sat_inc(&f->other, s->trial.work[w]);
        hint_saw(f, k, 0);
        s->trial.work[w] = WORK_GONE;
    }
}

static void say_recompute(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char host[48], device[64] = "", now[48], more[48], all[80] = "", n[48];
    struct room r = room_of(c);
    if (f->other > 0)
        snprintf(device, sizeof device, " and %s of the device's",
                 hint_time(c, f->other, now));
    int at = snprintf(w->evidence, sizeof w->evidence,
                      "%s, %s of the host's time a step%s; ",
                      hint_count(c, f->count, "run", "runs", n),
                      hint_time(c, f->time, host), device);
    char *rest = w->evidence + at;
    size_t room = sizeof w->evidence - (size_t)at;
    if (r.all > 0) {
        human_bytes(r.all, now, sizeof now);
        snprintf(all, sizeof all, " of the device's %s", now);
    }
    if (r.now < 0 || r.more < 0) {
        w->confidence = "assumed";
        snprintf(rest, room,
                 "memory was not recorded: whether it would hold them%s is "
                 "not known",
                 all);
        return;
    }
    human_bytes(r.now, now, sizeof now);
    human_bytes(r.more, more, sizeof more);
    snprintf(rest, room, "the peak is %s%s, kept they take %s more", now, all,
             more);
}

const struct hint_rule hint_recompute = {
    .id = "recompute",
    .title = "what forward computed is computed again inside backward",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "forward takes no longer when it keeps what it computes, and "
               "memory holds it",
    .see = "memory",
    .advice[FW_TORCH] =
        "call the block itself in place of torch.utils.checkpoint.checkpoint("
        "block, x) (transformers: model.gradient_checkpointing_disable()), "
        "or checkpoint only as many blocks as memory asks for",
    .advice[FW_TF] = "no tf.recompute_grad around the block",
    .advice[FW_JAX] =
        "no jax.checkpoint (jax.remat) around the block, or one with policy="
        "jax.checkpoint_policies.dots_saveable",
    .advice[FW_OTHER] = "keep the activations of as many blocks as fit",
    .repair = repair_recompute,
    .say = say_recompute,
};
