/* SPDX-License-Identifier: Apache-2.0
 * Ops: marks go from launches and allocations up to every span around them (a
 * span is marked once, so the climbing is linear); then one pass asks each op.
 * Time: unions of times, cut by the steps; and one pass over the streams beside
 * the links, which stand in the order of the device's rows. */
#include "analyze/report/cover.h"

#include "analyze/analyze.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/phases.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/span_class.h"
#include "names/compiler_names.h"
#include "names/op_names.h"
#include <stdlib.h>

/* Is it a better example: more, or as much and first by the alphabet? So the
 * order of files and streams does not matter. */
static bool is_better(const struct trace *t, int64_t v, str_id name,
                      int64_t best, str_id best_name) {
    if (v != best || name == best_name) return v > best;
    return strcmp(strs_text(&t->strs, name), strs_text(&t->strs, best_name)) <
           0;
}

/* ---- ops ---- */

/* Marks of a row. */
enum {
    LAUNCHED = 1,   /* device work was launched in it */
    UNANSWERED = 2, /* a launch in it has no device work */
    LATE = 4,       /* the same, after the last device event */
    TOUCHED = 8,    /* memory was allocated or freed in it */
    COMPILED = 16,  /* it is in a compiled region */
};

/* What a name says; it is found once for each str_id. */
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
    bool eager;      /* some eager op has its memory: others have none */
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

/* Marks the row and all spans around it. */
static void mark_up(struct cover *c, row_id r, uint8_t bit) {
    const row_id *parent = c->t->spans.parent;
    for (; r != ROW_NONE && !(c->mark[r] & bit); r = parent[r])
        c->mark[r] |= bit;
}

static void mark_launches(struct cover *c, struct op_cover *out,
                          const struct selection *in) {
    const struct trace *t = c->t;
    for (size_t i = 0; i < t->links.n; i++)
        mark_up(c, t->links.host[i], LAUNCHED);
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (!host_tree_has(c->h, (uint32_t)k)) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            str_id name = t->spans.name[r];
            if (t->spans.kind[r] != SPAN_API ||
                !(span_class(t, r) & (CLASS_LAUNCH | CLASS_COPY)) ||
                (says(c, name) & IS_HOST_CALL))
                continue;
            bool lone = !(c->mark[r] & LAUNCHED);
            if (select_has(in, r)) {
                out->launches++;
                out->unanswered += lone;
                if (lone && (out->unanswered_name == 0 ||
                             is_better(t, 0, name, 0, out->unanswered_name)))
                    out->unanswered_name = name;
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
    const struct source *s = &c->t->sources[source];
    if (s->beside && s->companion_of != ROW_NONE) /* that one records memory */
        s = &c->t->sources[s->companion_of];
    if (c->mark[r] & TOUCHED) return OP_ALLOCATED;
    if (!s->has_memory) return OP_MEM_OFF;
    if (n & IS_VIEW) return OP_MEM_VIEW;
    if (n & IS_IN_PLACE) return OP_IN_PLACE;
    if ((c->t->spans.flags[r] & SPAN_EAGER) && !c->eager) return OP_MEM_EAGER;
    return n & IS_CUSTOM ? OP_CUSTOM : OP_MEM_NONE;
}

/* Counts the name for its answer. Returns false if out of memory. */
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

/* Picks the most frequent name of each answer; of equally frequent ones the
 * first by the alphabet, so that the order of files and threads does not
 * matter. */
static void pick_examples(const struct cover *c, struct op_cover *out) {
    int64_t most[MEMORY_BASE + OP_MEMORY_ANSWERS] = {0};
    for (size_t i = 0; i < c->n; i++) {
        const struct example *x = &c->names[i];
        str_id *best = x->answer < MEMORY_BASE
                           ? &out->device_name[x->answer]
                           : &out->memory_name[x->answer - MEMORY_BASE];
        if (!is_better(c->t, x->count, x->name, most[x->answer], *best))
            continue;
        most[x->answer] = x->count;
        *best = x->name;
    }
}

/* A device's allocator does not tell the op of what is allocated eagerly;
 * the host's does. */
static void find_eager(struct cover *c) {
    for (row_id r = 0; r < c->t->spans.n && !c->eager; r++)
        c->eager = (c->mark[r] & TOUCHED) &&
                   (c->t->spans.flags[r] & SPAN_EAGER);
}

static bool ask_ops(struct cover *c, struct op_cover *out,
                    const struct selection *in) {
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
                !select_has(in, r))
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
                  const struct selection *in, struct ops_err *e) {
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
        find_eager(&c);
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

/* ---- time ---- */

/* So many pairs of a device and a step are looked at. */
enum { ANY_PAIRS = 1 << 18, PAIRS_PER_SPAN = 8 };

static bool explains(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    if (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) return false;
    if (s->kind[r] == SPAN_OVERHEAD || s->kind[r] == SPAN_PYTHON) return false;
    uint32_t st = s->step[r];
    return !span_is_step_mark(t, r) &&
           !(st != ROW_NONE && t->steps[st].marker == r);
}

/* Finds when something runs on the step's thread or on one that it feeds;
 * threads of the input pipeline work ahead and explain nothing. */
static bool host_union(const struct trace *t, uint32_t source,
                       struct intervals *out) {
    uint32_t own = phases_step_thread(t, source);
    const struct lists *l = &t->of_source;
    struct intervals_many all = {0};
    bool ok = true;
    for (size_t k = l->first[source]; ok && k < l->first[source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD) continue;
        if (i != own && phases_input_thread(t, i)) continue;
        struct intervals one = {0};
        for (row_id r = tr->first; ok && r < tr->end; r++)
            if (explains(t, r))
                ok = intervals_extend(&one, t->spans.ts[r], span_end(t, r));
        intervals_union(&one);
        ok = ok && intervals_many_add(&all, &one);
        intervals_free(&one);
    }
    return intervals_many_take(&all, out) && ok;
}

static void cover_add(struct cover_part *p, int64_t have, int64_t whole,
                      int64_t step) {
    sat_inc(&p->have, have);
    sat_inc(&p->whole, whole);
    if (whole <= 0) return;
    double now = (double)have / (double)whole;
    double worst = p->worst_whole > 0
                       ? (double)p->worst_have / (double)p->worst_whole
                       : 2;
    if (now > worst || (now == worst && step >= p->worst)) return;
    p->worst = step;
    p->worst_have = have;
    p->worst_whole = whole;
}

/* Adds one device's view of its source's steps. */
static void add_view(struct step_cover *c, const struct trace *t,
                     const struct selection *in, const struct phase_view *v) {
    const struct source *s = &t->sources[v->source];
    for (size_t i = s->step_first; i < s->step_end; i++) {
        const struct step *st = &t->steps[i];
        int64_t parts[PHASES];
        if (!in->step_in[i]) continue;
        phases_split(v, st->ts, st->ts + st->dur, parts);
        cover_add(&c->any, st->dur - parts[PHASE_OTHER], st->dur, st->number);
        if (v->device != ROW_NONE)
            cover_add(&c->device[v->device],
                      intervals_overlap(&v->busy, st->ts, st->ts + st->dur),
                      st->dur, st->number);
    }
}

/* Does the same for all steps at once, without a search for the one that is
 * explained worst. */
static void add_whole(struct step_cover *c, const struct phase_view *v,
                      const struct phase_window *w) {
    int64_t parts[PHASES], busy, all = intervals_length(&w->times);
    phases_split_window(v, w, parts, &busy);
    sat_inc(&c->any.have, all - parts[PHASE_OTHER]);
    sat_inc(&c->any.whole, all);
    if (v->device == ROW_NONE) return;
    sat_inc(&c->device[v->device].have, busy);
    sat_inc(&c->device[v->device].whole, all);
}

/* Adds the views of a source. Steps are looked at one by one for as many
 * devices as *left allows: a file may have any number of both. */
static bool add_views(struct step_cover *c, const struct phases *p,
                      const struct selection *in, uint32_t source,
                      size_t *left) {
    const struct trace *t = p->t;
    const struct source *s = &t->sources[source];
    size_t steps = s->step_end - s->step_first;
    struct intervals times = {0};
    struct phase_window w;
    bool ok = true;
    for (size_t i = s->step_first; ok && i < s->step_end; i++)
        if (in->step_in[i])
            ok = intervals_add(&times, t->steps[i].ts,
                               t->steps[i].ts + t->steps[i].dur);
    intervals_union(&times);
    ok = phase_window_init(&w, p, source, &times) && ok;
    size_t k = p->view_first[source];
    for (; ok && k < p->view_first[source + 1]; k++) {
        if (steps > *left) {
            add_whole(c, &p->views[k], &w);
            continue;
        }
        *left -= steps;
        add_view(c, t, in, &p->views[k]);
    }
    phase_window_free(&w);
    return ok;
}

static int add_host(struct step_cover *c, const struct trace *t,
                    const struct selection *in, uint32_t source,
                    struct ops_err *e) {
    struct intervals host = {0};
    if (!in->source_in[source]) return 0;
    bool ok = host_union(t, source, &host);
    const struct source *s = &t->sources[source];
    for (size_t i = s->step_first; ok && i < s->step_end; i++) {
        const struct step *st = &t->steps[i];
        if (!in->step_in[i]) continue;
        cover_add(&c->host, intervals_overlap(&host, st->ts, st->ts + st->dur),
                  st->dur, st->number);
        c->steps++;
    }
    intervals_free(&host);
    return ok ? 0 : fail_oom(e);
}

int step_cover_init(struct step_cover *c, const struct trace *t,
                    const struct selection *in, struct ops_err *e) {
    struct phases p;
    *c = (struct step_cover){0};
    c->device = calloc(t->ndevices + 1, sizeof *c->device);
    if (c->device == NULL) return fail_oom(e);
    int rc = phases_get(&p, t, e);
    size_t left = ANY_PAIRS + PAIRS_PER_SPAN * t->spans.n;
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        if (in->source_in[i] && !add_views(c, &p, in, i, &left))
            rc = fail_oom(e);
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = add_host(c, t, in, i, e);
    if (rc != 0) step_cover_free(c);
    return rc;
}

void step_cover_free(struct step_cover *c) {
    free(c->device);
    *c = (struct step_cover){0};
}

static enum work_owner owner(const struct host_tree *h, row_id r, row_id call,
                             uint32_t source) {
    row_id op = call == ROW_NONE ? ROW_NONE : host_tree_launcher_name(h, call);
    if (op != ROW_NONE && h->t->spans.kind[op] != SPAN_ANNOTATION)
        return WORK_OP;
    /* XLA writes the op on the work itself, but for the kernels of CUDA graphs,
     * which all say "command_buffer" */
    if (!source_is_torchs(&h->t->sources[source]) &&
        kernel_op_is_known(kernel_hlo_op(h->t, r)))
        return WORK_OP;
    if (call == ROW_NONE) return WORK_NO_LAUNCH;
    return span_class(h->t, call) & CLASS_GRAPH ? WORK_GRAPH : WORK_FOREIGN;
}

void work_cover_init(struct work_cover *c, const struct host_tree *h,
                     const struct selection *in) {
    const struct trace *t = h->t;
    int64_t longest[WORK_OWNERS] = {-1, -1, -1, -1};
    size_t link = 0;
    *c = (struct work_cover){0};
    for (row_id r = 0; r < t->spans.n; r++) {
        const struct track *tr = &t->tracks[t->spans.track[r]];
        if (tr->kind != TRACK_STREAM || !span_is_device_work(t, r) ||
            !select_has(in, r))
            continue;
        row_id call = next_launch(t, r, &link);
        enum work_owner o = owner(h, r, call, tr->source);
        c->count[o]++;
        sat_inc(&c->time[o], t->spans.dur[r]);
        if (is_better(t, t->spans.dur[r], t->spans.name[r], longest[o],
                      c->name[o])) {
            longest[o] = t->spans.dur[r];
            c->name[o] = t->spans.name[r];
        }
        int64_t early = call != ROW_NONE ? t->spans.ts[call] - t->spans.ts[r]
                                         : 0;
        if (early <= 0) continue;
        c->early++;
        if (is_better(t, early, t->spans.name[r], c->early_most,
                      c->early_name)) {
            c->early_most = early;
            c->early_name = t->spans.name[r];
        }
    }
}
