/* SPDX-License-Identifier: Apache-2.0
 * Each thread is swept once with the stack of its open spans, which gives its
 * own pieces; the threads are then laid over each other. An op, a call or a
 * collective that the host carries out beats a region, and a region beats
 * nothing: a main thread that sits in a region "backward" has handed over to
 * the thread that runs the ops. Waiting for the input beats all: then the
 * program does nothing else. */
#include "analyze/steps/deps.h"

#include "analyze/shared/phases.h"
#include "analyze/steps/overhead.h"
#include "base/array.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "model/trace.h"
#include <assert.h>
#include <stdlib.h>

/* Does the program run on this thread, or wait there for its batch in the
 * step's place? Work of a pipeline ahead of the program is no part of its line,
 * nor is what a program that records itself calls input on another thread: the
 * input is made there. */
static bool is_line(const struct trace *t, uint32_t track) {
    const struct track *tr = &t->tracks[track];
    bool waits = !t->sources[tr->source].by_opscope, works = false;
    for (row_id r = tr->first; (waits || !works) && r < tr->end; r++) {
        uint16_t class = span_class(t, r);
        if (waits && (class & CLASS_INPUT) && !(class & CLASS_ITERATOR))
            return true;
        works |= t->spans.kind[r] == SPAN_OP || t->spans.kind[r] == SPAN_API ||
                 (class & CLASS_COMM_CPU);
    }
    return works && !phases_input_thread(t, track);
}

int host_side_init(struct host_side *h, const struct trace *t, uint32_t source,
                   const int64_t *first, struct ops_err *e) {
    *h = (struct host_side){.t = t,
                            .source = source,
                            .own = phases_step_thread(t, source)};
    /* Steps on a device's own time line begin and end with its work: what the
     * host does meanwhile is for other steps. */
    bool device = trace_device_steps(t, source);
    if (device) h->own = ROW_NONE;
    const struct lists *l = &t->of_source;
    size_t from = l->first[source], end = l->first[source + 1];
    h->threads = malloc((end - from + 1) * sizeof *h->threads);
    h->python = malloc((end - from + 1) * sizeof *h->python);
    if (first == NULL) first = h->made = phases_first_launches(t);
    h->first = first;
    if (h->threads == NULL || h->python == NULL || h->first == NULL) {
        host_side_free(h);
        return fail_oom(e);
    }
    for (size_t k = from; k < end; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (device) break;
        if (tr->kind == TRACK_PYTHON) h->python[h->npython++] = i;
        if (tr->kind != TRACK_THREAD || i == h->own) continue;
        if (is_line(t, i)) h->threads[h->nthreads++] = i;
    }
    return 0;
}

void host_side_free(struct host_side *h) {
    free(h->threads);
    free(h->python);
    free(h->made);
    *h = (struct host_side){0};
}

void timeline_free(struct timeline *l) {
    free(l->v);
    *l = (struct timeline){0};
}

/* One thread while it is swept. */
struct line_sweep {
    const struct trace *t;
    struct timeline *out;
    row_id *stack;
    size_t depth, cap;
    size_t input; /* depth of the outermost span that is input, or 0 */
    int64_t now, end;
    const int64_t *first; /* of the step's own thread: first launches */
    const struct overhead *overhead; /* or NULL */
    int64_t cost;                    /* of edges since the last piece */
};

/* Returns what recording the span took at its begin or at its end: a half at
 * each. A driver call is recorded inside of itself, from its begin on. */
static int64_t edge_cost(const struct overhead *o, const struct trace *t,
                         row_id r, bool begin) {
    if (o == NULL) return 0;
    int64_t cost = overhead_cost(o, t, r);
    if (t->spans.kind[r] == SPAN_API) return begin ? cost : 0;
    return cost / 2;
}

/* Ends the piece of the innermost open span at ts. */
static bool cut_piece(struct line_sweep *s, int64_t ts) {
    if (ts > s->end) ts = s->end;
    if (ts <= s->now) return true;
    struct timeline *l = s->out;
    if (!VEC_ROOM(l->v, l->n, l->cap)) return false;
    row_id row = s->depth > 0 ? s->stack[s->depth - 1] : ROW_NONE;
    l->v[l->n++] = (struct piece){s->now, ts - s->now, row, s->cost,
                                  s->input > 0};
    s->cost = 0;
    s->now = ts;
    return true;
}

static bool open_span(struct line_sweep *s, row_id r) {
    if (!VEC_ROOM(s->stack, s->depth, s->cap)) return false;
    s->stack[s->depth++] = r;
    if (s->t->spans.ts[r] >= s->out->ts)
        s->cost += edge_cost(s->overhead, s->t, r, true);
    /* a function that the step's thread runs may wait for input on an
     * executor's thread (Keras) */
    bool input = span_is_input(s->t, r) ||
                 (s->first != NULL && phases_is_loop(s->t, r, s->first));
    if (s->input == 0 && input) s->input = s->depth;
    return true;
}

/* Closes the spans that are no longer open at ts. */
static bool close_until(struct line_sweep *s, int64_t ts) {
    while (s->depth > 0) {
        int64_t end = span_end(s->t, s->stack[s->depth - 1]);
        if (end > ts) return true;
        if (!cut_piece(s, end)) return false;
        if (s->input == s->depth) s->input = 0;
        s->cost += edge_cost(s->overhead, s->t, s->stack[--s->depth], false);
    }
    return true;
}

/* Makes the pieces of one thread, with holes as pieces of no span. */
static bool sweep_thread(struct timeline *out, const struct host_side *h,
                         uint32_t track, const struct timeline *like,
                         const int64_t *first) {
    int64_t ts = like->ts, end = like->end;
    const struct trace *t = h->t;
    *out = (struct timeline){.ts = ts, .end = end};
    struct line_sweep s = {.t = t,
                           .out = out,
                           .now = ts,
                           .end = end,
                           .first = first,
                           .overhead = h->overhead};
    const struct track *tr = &t->tracks[track];
    /* these spans were open before the line began: the chain of parents */
    row_id chain[256]; /* deeper ones are cut: only their owner is lost */
    size_t n = 0;
    bool ok = true;
    for (row_id r = span_at(t, track, ts); r != ROW_NONE && n < COUNT(chain);
         r = t->spans.parent[r])
        if (t->spans.ts[r] < ts) chain[n++] = r; /* else it comes again */
    while (ok && n > 0) ok = open_span(&s, chain[--n]);
    for (row_id r = trace_row_at(t, tr, ts);
         ok && r < tr->end && t->spans.ts[r] < end; r++) {
        const uint8_t skip = SPAN_INSTANT | SPAN_ASYNC | SPAN_DERIVED;
        if (t->spans.dur[r] == 0 || (t->spans.flags[r] & skip)) continue;
        ok = close_until(&s, t->spans.ts[r]) && cut_piece(&s, t->spans.ts[r]) &&
             open_span(&s, r);
    }
    if (ok) ok = close_until(&s, end) && cut_piece(&s, end);
    free(s.stack);
    return ok;
}

/* Returns how much a piece says about what the program did; own: it is on the
 * step's thread, or was laid over it before. */
static int strength(const struct trace *t, const struct piece *p, bool own) {
    if (p->input) return own ? 3 : 2;
    if (p->row == ROW_NONE) return 0;
    if (span_class(t, p->row) & CLASS_COMM_CPU) return 2;
    switch (t->spans.kind[p->row]) {
    case SPAN_OP:
    case SPAN_API:
    case SPAN_OVERHEAD: return 2;
    default: return 1;
    }
}

/* Appends a piece, or makes the last one longer if it is the same span's. */
static bool append(struct timeline *l, struct piece p) {
    if (p.dur <= 0) return true;
    struct piece *last = l->n > 0 ? &l->v[l->n - 1] : NULL;
    if (last && last->row == p.row && last->input == p.input && p.cost == 0) {
        last->dur += p.dur;
        return true;
    }
    if (!VEC_ROOM(l->v, l->n, l->cap)) return false;
    l->v[l->n++] = p;
    return true;
}

/* Returns the piece that leads: the stronger; of equals the one on the step's
 * thread, else the one whose span began first. (Not the first by number:
 * threads may be numbered in any way.) */
static const struct piece *leader(const struct trace *t, const struct piece *p,
                                  const struct piece *q, bool own) {
    int a = strength(t, p, own), b = strength(t, q, false);
    if (a != b) return a > b ? p : q;
    if (own || a == 0) return p;
    int64_t x = t->spans.ts[p->row], y = t->spans.ts[q->row];
    if (x == y) { /* as siblings are sorted: the longer one; then by name */
        x = t->spans.dur[q->row];
        y = t->spans.dur[p->row];
    }
    if (x != y) return y < x ? q : p;
    return strcmp(span_name(t, q->row), span_name(t, p->row)) < 0 ? q : p;
}

/* Lays b over a, both of the same time, and frees them; own: a is the step's
 * thread. */
static bool lay_over(const struct trace *t, struct timeline *a,
                     struct timeline *b, bool own) {
    struct timeline out = {.ts = a->ts, .end = a->end};
    size_t i = 0, j = 0;
    int64_t now = a->ts;
    bool ok = true;
    while (ok && i < a->n && j < b->n) {
        const struct piece *p = &a->v[i], *q = &b->v[j];
        int64_t pe = p->ts + p->dur, qe = q->ts + q->dur;
        int64_t end = pe < qe ? pe : qe;
        const struct piece *w = leader(t, p, q, own);
        int64_t cost = w->ts == now ? w->cost : 0;
        ok = append(&out,
                    (struct piece){now, end - now, w->row, cost, w->input});
        now = end;
        i += pe == end;
        j += qe == end;
    }
    timeline_free(a);
    timeline_free(b);
    *a = out;
    return ok;
}

/* Lays the other threads of the line over each other two by two, so that many
 * threads cost no more than the log of their number. v has room for all; what
 * is left is v[0], if there is any (*n). */
static bool add_threads(const struct host_side *h, const struct timeline *l,
                        struct timeline *v, size_t *n) {
    bool ok = true;
    *n = 0;
    for (size_t i = 0; ok && i < h->nthreads; i++) {
        uint32_t k = h->threads[i];
        const struct track *tr = &h->t->tracks[k];
        row_id r = trace_row_at(h->t, tr, l->ts);
        if ((r < tr->end && h->t->spans.ts[r] < l->end) ||
            span_at(h->t, k, l->ts) != ROW_NONE)
            ok = sweep_thread(&v[(*n)++], h, k, l, NULL);
    }
    for (; ok && *n > 1; *n = (*n + 1) / 2)
        for (size_t i = 0; ok && i < *n; i += 2) {
            if (i + 1 < *n) ok = lay_over(h->t, &v[i], &v[i + 1], false);
            if (i == 0) continue;
            v[i / 2] = v[i];
            v[i] = (struct timeline){0};
        }
    return ok;
}

int timeline_build(struct timeline *l, const struct host_side *h, int64_t ts,
                   int64_t end, struct ops_err *e) {
    assert(end >= ts);
    const struct trace *t = h->t;
    *l = (struct timeline){.ts = ts, .end = end};
    const struct timeline like = *l;
    struct timeline *others = calloc(h->nthreads + 1, sizeof *others);
    size_t n = 0;
    bool ok = others != NULL;
    if (ok && h->own != ROW_NONE)
        ok = sweep_thread(l, h, h->own, &like, h->first);
    else if (ok)
        ok = append(l, (struct piece){ts, end - ts, ROW_NONE, 0, false});
    ok = ok && add_threads(h, &like, others, &n) &&
         (n == 0 || lay_over(t, l, &others[0], true));
    for (size_t i = 0; others != NULL && i < h->nthreads; i++)
        timeline_free(&others[i]);
    free(others);
    if (!ok) {
        timeline_free(l);
        return fail_oom(e);
    }
    /* Python frames are recorded beside the line: their cost is in the line */
    bool python = l->n > 0 && h->overhead != NULL;
    for (size_t i = 0; python && i < h->npython; i++) {
        const struct track *tr = &t->tracks[h->python[i]];
        for (row_id r = trace_row_at(t, tr, ts);
             r < tr->end && t->spans.ts[r] < end; r++) {
            int64_t cost = edge_cost(h->overhead, t, r, true);
            l->v[timeline_at(l, t->spans.ts[r])].cost += cost;
            if (span_end(t, r) < end)
                l->v[timeline_at(l, span_end(t, r))].cost += cost;
        }
    }
    return 0;
}

size_t timeline_at(const struct timeline *l, int64_t ts) {
    assert(l->n > 0);
    size_t next;
    BOUND(next, 1, l->n, l->v[next].ts <= ts);
    return next - 1;
}
