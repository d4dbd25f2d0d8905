/* SPDX-License-Identifier: Apache-2.0
 * Phases by growing unions: the time claimed by the first k phases is a set of
 * intervals, and phase k gets what its set adds to the set before. A step then
 * costs a few binary searches, however many spans there are. */
#include "analyze/phases.h"

#include "base/sum.h"
#include "base/vec.h"
#include "model/opclass.h"
#include <assert.h>
#include <stdlib.h>

/* The order in which phases claim time: with a device compute is what it
 * runs; without one, ops are compute, after what they wait for. */
static const enum phase with_device[PHASES - 1] = {
    PHASE_COMPUTE, PHASE_COMM, PHASE_COPY, PHASE_INPUT, PHASE_LAUNCH,
    PHASE_HOST,
};
static const enum phase without_device[PHASES - 1] = {
    PHASE_COMM, PHASE_COPY, PHASE_INPUT, PHASE_COMPUTE, PHASE_LAUNCH,
    PHASE_HOST,
};

/* What goes on, by phase; parts of a source that its devices share. */
struct raw {
    struct intervals comm, input, api, ops, regions;
    struct intervals copy;     /* copies that the host carries out itself */
    struct intervals step_ops; /* ops on the step's own thread, no collectives:
                                  while one runs a CPU collective is hidden */
};

static void free_raw(struct raw *w) {
    intervals_free(&w->comm);
    intervals_free(&w->input);
    intervals_free(&w->copy);
    intervals_free(&w->api);
    intervals_free(&w->ops);
    intervals_free(&w->regions);
    intervals_free(&w->step_ops);
}

static bool name_has(struct bytes name, const char *word) {
    return memmem(name.p, name.n, word, strlen(word)) != NULL;
}

bool phases_input_thread(const struct trace *t, uint32_t track) {
    const struct track *tr = &t->tracks[track];
    struct bytes name = strs_bytes(&t->strs, tr->name);
    if (name_has(name, "pt_data") || name_has(name, "tf_data")) return true;
    /* or more than half of its time is spent in pipeline stages */
    int64_t all = 0, input = 0;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (t->spans.parent[r] != ROW_NONE) continue;
        sum_add(&all, t->spans.dur[r]);
        if (span_is_input(t, r))
            sum_add(&input, t->spans.dur[r]);
    }
    return input > all / 2;
}

uint32_t phases_step_thread(const struct trace *t, uint32_t source) {
    for (size_t i = 0; i < t->nsteps; i++)
        if (t->steps[i].source == source) return t->steps[i].thread;
    return ROW_NONE;
}

/* Markers are never host work: those of other threads, nested ones, epochs, and
 * the regions that steps were inferred from. */
static bool is_marker(const struct trace *t, row_id r) {
    if (span_is_step_mark(t, r) || (span_class(t, r) & NAME_EPOCH))
        return true;
    uint32_t st = t->spans.step[r];
    return st != ROW_NONE && t->steps[st].marker == r;
}

static const struct source *source_of(const struct trace *t, row_id r) {
    return &t->sources[t->tracks[t->spans.track[r]].source];
}

static bool has_device(const struct trace *t, row_id r) {
    return source_of(t, r)->has_device;
}

static bool is_own(const struct trace *t, row_id r) {
    return source_of(t, r)->own;
}

/* Sorts one host span into the lists of its thread. Rows come by rising
 * start, so that what lies inside the last one of a list adds nothing. */
static bool take_span(const struct trace *t, row_id r, bool on_step,
                      struct raw *w) {
    const struct spans *s = &t->spans;
    int64_t a = s->ts[r], b = a + s->dur[r];
    uint8_t kind = s->kind[r];
    bool comm = kind != SPAN_API && span_is_comm(t, r);
    /* Where a device does the work, the host's part of a collective is a call
     * that starts it; gloo and MPI do it on the host all the same. */
    bool on_host = !has_device(t, r) || (span_class(t, r) & NAME_COMM_CPU);
    if (comm && on_host && !intervals_extend(&w->comm, a, b)) return false;
    switch (kind) {
    case SPAN_API:
        /* a wait of a program that has no device: nothing is launched */
        if (!has_device(t, r) && is_own(t, r)) return true;
        return intervals_extend(&w->api, a, b);
    case SPAN_OP:
        if ((span_class(t, r) & NAME_COPY) && is_own(t, r) &&
            !intervals_extend(&w->copy, a, b))
            return false;
        if (on_step && !comm && !intervals_extend(&w->step_ops, a, b))
            return false;
        return intervals_extend(&w->ops, a, b);
    case SPAN_ANNOTATION: case SPAN_OTHER: case SPAN_RUNTIME:
        return intervals_extend(&w->regions, a, b);
    default: return true;
    }
}

/* A program that records itself says which scope is communication: what stands
 * around such a scope, or in it, on the step's own thread hides none of it. */
static bool own_ops(struct raw *w) {
    struct intervals left = {0};
    intervals_union(&w->step_ops);
    intervals_union(&w->comm);
    bool ok = intervals_sub(&w->step_ops, &w->comm, &left);
    intervals_free(&w->step_ops);
    w->step_ops = left;
    return ok;
}

/* One host thread's spans. Pipeline stages count on the step's thread only,
 * and what they contain is theirs. */
static bool take_thread(const struct trace *t, uint32_t track, bool on_step,
                        struct raw *w) {
    const struct track *tr = &t->tracks[track];
    const struct spans *s = &t->spans;
    int64_t input_end = INT64_MIN;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (s->dur[r] == 0 || (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)))
            continue;
        if (span_end(t, r) <= input_end || is_marker(t, r)) continue;
        if (span_is_input(t, r)) {
            input_end = span_end(t, r);
            if (on_step && !intervals_extend(&w->input, s->ts[r], input_end))
                return false;
            continue;
        }
        if (!take_span(t, r, on_step, w)) return false;
    }
    return !on_step || !t->sources[tr->source].own || own_ops(w);
}

/* The lists of a raw, for what is done to each. */
enum { RAW_LISTS = 7 };
static void raw_lists(struct raw *w, struct intervals *out[RAW_LISTS]) {
    struct intervals *all[RAW_LISTS] = {&w->comm, &w->input, &w->api,
                                        &w->ops,  &w->regions, &w->step_ops,
                                        &w->copy};
    memcpy(out, all, sizeof all);
}

/* Joins the lists of one thread to those of all; takes both apart. */
static bool join_raw(struct raw *all, struct raw *one) {
    struct intervals *to[RAW_LISTS], *from[RAW_LISTS];
    raw_lists(all, to);
    raw_lists(one, from);
    for (int i = 0; i < RAW_LISTS; i++) {
        struct intervals sum = {0};
        intervals_union(from[i]);
        bool ok = intervals_or(to[i], from[i], &sum);
        intervals_free(to[i]);
        *to[i] = sum;
        if (!ok) return false;
    }
    return true;
}

int64_t *phases_first_launches(const struct trace *t) {
    int64_t *first = malloc((t->nsteps + 1) * sizeof *first);
    if (first == NULL) return NULL;
    for (size_t i = 0; i < t->nsteps; i++) first[i] = INT64_MAX;
    for (size_t i = 0; i < t->links.n; i++) {
        row_id h = t->links.host[i];
        uint32_t st = t->spans.step[h];
        if (st == ROW_NONE || t->spans.kind[t->links.device[i]] != SPAN_KERNEL)
            continue;
        if (t->spans.ts[h] < first[st]) first[st] = t->spans.ts[h];
    }
    return first;
}

/* A region that ends before the step's first kernel launch prepares its input.
 * The optimizer's regions are known to be something else. */
bool phases_is_loop(const struct trace *t, row_id r, const int64_t *first) {
    const struct spans *s = &t->spans;
    uint32_t st = s->step[r];
    if (s->kind[r] != SPAN_ANNOTATION || st == ROW_NONE || is_marker(t, r) ||
        first[st] == INT64_MAX || span_end(t, r) > first[st])
        return false;
    return !(span_class(t, r) & NAME_OPTIMIZER) && !span_is_comm(t, r);
}

static bool take_loops(const struct trace *t, uint32_t track,
                       const int64_t *first, struct raw *w) {
    const struct track *tr = &t->tracks[track];
    for (row_id r = tr->first; r < tr->end; r++)
        if (phases_is_loop(t, r, first) &&
            !intervals_add(&w->input, t->spans.ts[r], span_end(t, r)))
            return false;
    return true;
}

/* All host threads of a source. */
static bool take_host(const struct trace *t, uint32_t source,
                      const int64_t *first, struct raw *w) {
    uint32_t own = phases_step_thread(t, source);
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->source != source || tr->kind != TRACK_THREAD) continue;
        bool on_step = i == own;
        if (!on_step && phases_input_thread(t, i)) continue;
        struct raw one = {0};
        ok = take_thread(t, i, on_step, &one) &&
             (!on_step || take_loops(t, i, first, &one)) && join_raw(w, &one);
        free_raw(&one);
    }
    return ok;
}

/* The device's own spans of one phase; PHASES: of all three. */
static bool take_device(const struct trace *t, const struct phase_view *v,
                        enum phase phase, struct intervals *out) {
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_STREAM || tr->device != v->device) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (!span_is_device_work(t, r)) continue;
            enum phase is = t->spans.kind[r] != SPAN_KERNEL ? PHASE_COPY
                            : span_is_comm(t, r)            ? PHASE_COMM
                                                            : PHASE_COMPUTE;
            if ((is == phase || phase == PHASES) &&
                !intervals_extend(out, t->spans.ts[r], span_end(t, r)))
                return false;
        }
    }
    intervals_union(out); /* streams overlap */
    return true;
}

/* A CPU collective counts while the step's thread runs no op of its own. */
static bool take_comm(const struct trace *t, const struct phase_view *v,
                      const struct raw *w, struct intervals *out) {
    struct intervals open = {0}, device = {0};
    bool ok = intervals_sub(&w->comm, &w->step_ops, &open) &&
              (v->device == ROW_NONE ||
               take_device(t, v, PHASE_COMM, &device)) &&
              intervals_or(&open, &device, out);
    intervals_free(&open);
    intervals_free(&device);
    return ok;
}

/* What phase claims, into out (a union). */
static bool take_phase(const struct trace *t, const struct phase_view *v,
                       const struct raw *w, enum phase phase,
                       struct intervals *out) {
    static const struct intervals none = {0};
    bool device = v->device != ROW_NONE;
    switch (phase) {
    case PHASE_COMPUTE:
        return device ? take_device(t, v, phase, out)
                      : intervals_or(&w->ops, &none, out);
    case PHASE_COMM: return take_comm(t, v, w, out);
    case PHASE_COPY:
        return device ? take_device(t, v, phase, out)
                      : intervals_or(&w->copy, &none, out);
    case PHASE_INPUT: return intervals_or(&w->input, &none, out);
    case PHASE_LAUNCH: return intervals_or(&w->api, &none, out);
    case PHASE_HOST: return intervals_or(&w->ops, &w->regions, out);
    default: return true;
    }
}

static const enum phase *phase_order(const struct phase_view *v) {
    return v->device != ROW_NONE ? with_device : without_device;
}

/* Fills one view. */
static bool make_view(const struct trace *t, const struct raw *w,
                      struct phase_view *v) {
    static const struct intervals none = {0};
    const enum phase *order = phase_order(v);
    bool ok = true;
    for (int i = 0; ok && i < PHASES - 1; i++) {
        struct intervals own = {0};
        ok = take_phase(t, v, w, order[i], &own) &&
             intervals_or(i > 0 ? &v->cum[i - 1] : &none, &own, &v->cum[i]);
        intervals_free(&own);
    }
    /* busy is what the device's own three phases claim together */
    return ok && (v->device == ROW_NONE ||
                  take_device(t, v, PHASES, &v->busy));
}

/* Adds a view for each device of the source that ran anything, or one. */
static bool make_views(struct phases *p, uint32_t source,
                       const struct raw *w) {
    const struct trace *t = p->t;
    size_t before = p->nviews;
    for (uint32_t d = 0; d <= t->ndevices; d++) {
        bool last = d == t->ndevices;
        if (!last && t->devices[d].source != source) continue;
        bool ran = false;
        for (size_t i = 0; !last && !ran && i < t->ntracks; i++)
            ran = t->tracks[i].kind == TRACK_STREAM &&
                  t->tracks[i].device == d && t->tracks[i].source == source &&
                  t->tracks[i].first < t->tracks[i].end;
        if (last ? p->nviews > before : !ran) continue;
        if (!VEC_ROOM(p->views, p->nviews, p->cap_views)) return false;
        struct phase_view *v = &p->views[p->nviews++];
        *v = (struct phase_view){
            .source = source, .device = last ? ROW_NONE : d};
        if (!make_view(t, w, v)) return false;
    }
    return true;
}

int phases_init(struct phases *p, const struct trace *t, struct ops_err *e) {
    *p = (struct phases){.t = t};
    int64_t *first = phases_first_launches(t);
    bool ok = first != NULL;
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        struct raw w = {0};
        ok = take_host(t, i, first, &w) && make_views(p, i, &w);
        free_raw(&w);
    }
    free(first);
    if (ok) return 0;
    phases_free(p);
    return fail_oom(e);
}

void phases_free(struct phases *p) {
    for (size_t i = 0; i < p->nviews; i++) {
        for (int k = 0; k < PHASES - 1; k++)
            intervals_free(&p->views[i].cum[k]);
        intervals_free(&p->views[i].busy);
    }
    free(p->views);
    *p = (struct phases){0};
}

void phases_split(const struct phase_view *v, int64_t start, int64_t end,
                  int64_t parts[PHASES]) {
    assert(start <= end);
    const enum phase *order = phase_order(v);
    int64_t claimed = 0;
    for (int i = 0; i < PHASES - 1; i++) {
        int64_t all = intervals_overlap(&v->cum[i], start, end);
        parts[order[i]] = all - claimed;
        assert(all >= claimed); /* cum[i] holds cum[i - 1] */
        claimed = all;
    }
    parts[PHASE_OTHER] = end - start - claimed;
    assert(parts[PHASE_OTHER] >= 0);
}

bool phases_claim(const struct phase_view *v, enum phase phase,
                  struct intervals *out) {
    static const struct intervals none = {0};
    const enum phase *order = phase_order(v);
    for (int i = 0; i < PHASES - 1; i++)
        if (order[i] == phase)
            return intervals_sub(&v->cum[i], i > 0 ? &v->cum[i - 1] : &none,
                                 out);
    return false;
}

const struct intervals *phases_occupied(const struct phase_view *v) {
    /* in both orders the first four are these, though not in one order */
    return &v->cum[3];
}

void phases_mean(const wide sum[PHASES], int64_t n, int64_t parts[PHASES]) {
    assert(n > 0);
    int64_t rest[PHASES];
    wide missing = 0;
    for (int i = 0; i < PHASES; i++) {
        rest[i] = (int64_t)(sum[i] % n);
        parts[i] = (int64_t)(sum[i] / n);
        missing += rest[i];
    }
    for (missing /= n; missing > 0; missing--) {
        int most = 0;
        for (int i = 1; i < PHASES; i++)
            if (rest[i] > rest[most]) most = i;
        parts[most]++;
        rest[most] = -1;
    }
}

struct phase_host phases_host(const struct phase_view *v, int64_t start,
                              int64_t end) {
    assert(v->device != ROW_NONE);
    /* compute, comm and copy: here CPU collectives alone */
    int64_t comm = intervals_overlap(&v->cum[2], start, end);
    int64_t input = intervals_overlap(&v->cum[3], start, end) - comm;
    assert(with_device[2] == PHASE_COPY && with_device[3] == PHASE_INPUT);
    return (struct phase_host){
        comm, input, intervals_overlap(&v->cum[PHASES - 2], start, end)};
}
