/* SPDX-License-Identifier: Apache-2.0
 * Phases by growing unions: the time claimed by the first k phases is a set of
 * intervals, and phase k gets what its set adds to the set before. A step then
 * costs a few binary searches, however many spans there are. */
#include "analyze/shared/phases.h"

#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/compiler_names.h"
#include "names/input_names.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

/* The order in which phases claim time: with a device, compute is what it runs;
 * without one, ops are compute, after what they wait for. */
static const enum phase with_device[PHASES - 1] = {
    PHASE_COMPUTE, PHASE_COMM,   PHASE_COPY,
    PHASE_INPUT,   PHASE_LAUNCH, PHASE_HOST,
};
static const enum phase without_device[PHASES - 1] = {
    PHASE_COMM,    PHASE_COPY,   PHASE_INPUT,
    PHASE_COMPUTE, PHASE_LAUNCH, PHASE_HOST,
};

/* What goes on, by phase, in the parts of a source that its devices share. */
enum raw {
    RAW_COMM,
    RAW_INPUT,
    RAW_API,
    RAW_OPS,
    RAW_REGIONS,
    RAW_COPY,     /* copies that the host carries out itself */
    RAW_STEP_OPS, /* ops on the step's own thread, no collectives: while one
                     runs a CPU collective is hidden */
    RAW_SETS,
};

bool phases_input_thread(const struct trace *t, uint32_t track) {
    const struct track *tr = &t->tracks[track];
    if (name_is_input_thread(strs_bytes(&t->strs, tr->name))) return true;
    /* more than half of the thread's time is spent in pipeline stages */
    int64_t all = 0, input = 0;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (t->spans.parent[r] != ROW_NONE) continue;
        sat_inc(&all, t->spans.dur[r]);
        if (span_is_input(t, r)) sat_inc(&input, t->spans.dur[r]);
    }
    return input > all / 2;
}

uint32_t phases_step_thread(const struct trace *t, uint32_t source) {
    const struct source *s = &t->sources[source];
    return s->step_first < s->step_end ? t->steps[s->step_first].thread
                                       : ROW_NONE;
}

/* Is it a marker? Markers are never host work: those of other threads, nested
 * ones, epochs, and the regions that steps were inferred from. */
static bool is_marker(const struct trace *t, row_id r) {
    if (span_is_step_mark(t, r) || (span_class(t, r) & CLASS_EPOCH))
        return true;
    uint32_t st = t->spans.step[r];
    return st != ROW_NONE && t->steps[st].marker == r;
}

/* Sorts one host span into the lists of its thread. Rows come by rising start,
 * so that a span inside the last one of a list adds nothing. */
static bool take_span(const struct trace *t, row_id r, bool on_step,
                      struct intervals *w) {
    const struct spans *s = &t->spans;
    int64_t a = s->ts[r], b = a + s->dur[r];
    uint8_t kind = s->kind[r];
    const struct source *from = &t->sources[t->tracks[s->track[r]].source];
    bool comm = kind != SPAN_API && span_is_comm(t, r);
    /* Where a device does the work, the host's part of a collective is a call
     * that starts it; gloo and MPI do the work on the host all the same. */
    bool on_host = !from->has_device || (span_class(t, r) & CLASS_COMM_CPU);
    if (comm && on_host && !intervals_extend(&w[RAW_COMM], a, b)) return false;
    switch (kind) {
    case SPAN_API:
        /* it is a wait of a program that has no device: nothing is launched */
        if (!from->has_device && from->by_opscope) return true;
        return intervals_extend(&w[RAW_API], a, b);
    case SPAN_OP:
        if ((span_class(t, r) & CLASS_COPY) && from->by_opscope &&
            !intervals_extend(&w[RAW_COPY], a, b))
            return false;
        if (on_step && !comm && !intervals_extend(&w[RAW_STEP_OPS], a, b))
            return false;
        return intervals_extend(&w[RAW_OPS], a, b);
    case SPAN_ANNOTATION:
    case SPAN_OTHER:
    case SPAN_RUNTIME: return intervals_extend(&w[RAW_REGIONS], a, b);
    default: return true;
    }
}

/* Sorts one host thread's spans. Pipeline stages count on the step's thread
 * only, and what they contain is theirs. */
static bool take_thread(const struct trace *t, uint32_t track, bool on_step,
                        struct intervals *w) {
    const struct track *tr = &t->tracks[track];
    const struct spans *s = &t->spans;
    int64_t input_end = INT64_MIN;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (s->dur[r] == 0 || (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)))
            continue;
        if (span_end(t, r) <= input_end || is_marker(t, r)) continue;
        if (span_is_input(t, r)) {
            input_end = span_end(t, r);
            if (on_step &&
                !intervals_extend(&w[RAW_INPUT], s->ts[r], input_end))
                return false;
            continue;
        }
        if (!take_span(t, r, on_step, w)) return false;
    }
    if (!on_step || !t->sources[tr->source].by_opscope) return true;
    /* A program that records itself says which scope is communication: a scope
     * around it, or in it, on the step's own thread hides none of it. */
    struct intervals left = {0};
    intervals_union(&w[RAW_STEP_OPS]);
    intervals_union(&w[RAW_COMM]);
    bool ok = intervals_sub(&w[RAW_STEP_OPS], &w[RAW_COMM], &left);
    intervals_free(&w[RAW_STEP_OPS]);
    w[RAW_STEP_OPS] = left;
    return ok;
}

bool phases_computes(const struct trace *t, row_id r) {
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    if (t->spans.flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) return false;
    if (span_is_input(t, r)) return false;
    if (t->spans.kind[r] == SPAN_OP)
        return !op_is_view(name) && !op_only_allocates(name) &&
               !op_copies_tensor(name) && !op_makes_tensor(name);
    return (span_class(t, r) & CLASS_WRAPPER) ||
           compile_classify(name) == CC_JIT;
}

/* Does the same as below for sources without a device: there a step's first op
 * stands for its first launch. */
static void first_ops(const struct trace *t, int64_t *first) {
    for (uint32_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        const struct source *s = &t->sources[tr->source];
        if (tr->kind != TRACK_THREAD || s->has_device || s->by_opscope ||
            phases_input_thread(t, i))
            continue;
        int64_t input_end = INT64_MIN; /* what is inside of input is its own */
        for (row_id r = tr->first; r < tr->end; r++) {
            uint32_t st = t->spans.step[r];
            if (span_is_input(t, r) && span_end(t, r) > input_end)
                input_end = span_end(t, r);
            if (st != ROW_NONE && t->spans.ts[r] < first[st] &&
                span_end(t, r) > input_end && phases_computes(t, r))
                first[st] = t->spans.ts[r];
        }
    }
}

int64_t *phases_first_launches(const struct trace *t) {
    t = trace_base(t);
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
    first_ops(t, first);
    return first;
}

static bool is_compilers_name(const struct trace *t, str_id name) {
    return compile_classify(strs_bytes(&t->strs, name)) != CC_NONE;
}

/* Makes the table of names: is it a compiler's? */
static void *make_compilers(const struct trace *t) {
    bool *v = calloc(t->strs.n + 1, sizeof *v);
    for (size_t i = 0; v != NULL && i < t->strs.n; i++)
        v[i] = is_compilers_name(t, (str_id)i);
    return v;
}

/* Is it a compiler's region, or one inside of such? Spans may be many and deep:
 * each name is looked at once. */
static bool is_compilers(const struct trace *t, row_id r) {
    enum { CLIMB = 64 };
    const bool *names = trace_memo(trace_base(t), MEMO_COMPILERS,
                                   make_compilers, free);
    for (int i = 0; i < CLIMB && r != ROW_NONE; i++, r = t->spans.parent[r]) {
        str_id name = t->spans.name[r];
        if (names != NULL ? names[name] : is_compilers_name(t, name))
            return true;
    }
    return false;
}

/* A region that ends before the step's first kernel launch prepares its input.
 * The optimizer's regions and a compiler's are known to do something else. */
bool phases_is_loop(const struct trace *t, row_id r, const int64_t *first) {
    const struct spans *s = &t->spans;
    uint32_t st = trace_base(t)->spans.step[r];
    if (s->kind[r] != SPAN_ANNOTATION || st == ROW_NONE || is_marker(t, r) ||
        first[st] == INT64_MAX || span_end(t, r) > first[st])
        return false;
    return !(span_class(t, r) & CLASS_OPTIMIZER) && !span_is_comm(t, r) &&
           !is_compilers(t, r);
}

/* Takes all host threads of a source. */
static bool take_host(const struct trace *t, uint32_t source,
                      const int64_t *first, struct intervals *w) {
    uint32_t own = phases_step_thread(t, source);
    const struct lists *l = &t->of_source;
    struct intervals_many all[RAW_SETS] = {0};
    bool ok = true;
    for (size_t k = l->first[source]; ok && k < l->first[source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD) continue;
        bool on_step = i == own;
        if (!on_step && phases_input_thread(t, i)) continue;
        struct intervals one[RAW_SETS] = {0};
        ok = take_thread(t, i, on_step, one);
        for (row_id r = tr->first; on_step && ok && r < tr->end; r++)
            if (phases_is_loop(t, r, first))
                ok = intervals_add(&one[RAW_INPUT], t->spans.ts[r],
                                   span_end(t, r));
        for (int x = 0; x < RAW_SETS; x++) {
            intervals_union(&one[x]);
            if (ok && one[x].n > 0) ok = intervals_many_add(&all[x], &one[x]);
            intervals_free(&one[x]);
        }
    }
    for (int x = 0; x < RAW_SETS; x++)
        ok = intervals_many_take(&all[x], &w[x]) && ok;
    return ok;
}

/* A device's work, sorted by what it is. */
struct device_sets {
    const struct trace *t;
    struct intervals *v[2]; /* kernels; with collectives */
    bool oom;
};

static void take_stretch(void *ctx, row_id r, int64_t from, int64_t to) {
    struct device_sets *s = ctx;
    int first = s->t->spans.kind[r] != SPAN_KERNEL ? 2
                : span_is_comm(s->t, r)            ? 1
                                                   : 0;
    for (int i = first; i < 2 && !s->oom; i++)
        s->oom = !intervals_extend(s->v[i], from, to);
}

/* Takes the device's spans: kernels; with collectives; with copies and fills.
 * Of ops that contain each other, as a loop and its body do on a TPU, the
 * innermost counts: a loop that waits for a copy does not compute. */
static bool take_device(const struct trace *t, struct phase_view *v) {
    struct intervals *sets[3] = {&v->own[0], &v->own[1], &v->busy};
    struct device_sets s = {t, {sets[0], sets[1]}, false};
    const struct lists *l = &t->of_device;
    size_t k = l->first[v->device], end = l->first[v->device + 1];
    for (; k < end; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_STREAM) continue;
        if (!own_stretches(t, tr, take_stretch, &s) || s.oom) return false;
        for (row_id r = tr->first; r < tr->end; r++)
            if (span_is_device_work(t, r) &&
                !intervals_extend(&v->busy, t->spans.ts[r], span_end(t, r)))
                return false;
    }
    for (int i = 0; i < 3; i++) {
        intervals_union(sets[i]); /* streams overlap */
        intervals_trim(sets[i]);
    }
    return true;
}

static const enum phase *phase_order(const struct phase_view *v) {
    return v->device != ROW_NONE ? with_device : without_device;
}

/* Fills n + 2 sets of what phases claim, each with what it adds on top of the
 * one before. The first are CPU collectives while the step's thread runs no op
 * of its own, the last ops and regions. */
static bool stack_up(const struct intervals *w, const enum raw *order, size_t n,
                     struct intervals *out) {
    struct intervals work = {0};
    bool ok = intervals_sub(&w[RAW_COMM], &w[RAW_STEP_OPS], &out[0]) &&
              intervals_or(&w[RAW_OPS], &w[RAW_REGIONS], &work);
    for (size_t i = 0; ok && i <= n; i++)
        ok = intervals_or(&out[i], i < n ? &w[order[i]] : &work, &out[i + 1]);
    intervals_free(&work);
    return ok;
}

/* Returns what a device's set has in common with one of the host, or NULL. */
static int64_t *common_of(const struct intervals *own,
                          const struct intervals *host) {
    int64_t *v = vec_alloc(own->n + 1, sizeof *v);
    if (v != NULL) intervals_common(own, host, v);
    return v;
}

static bool add_view(struct phases *p, uint32_t source, uint32_t device) {
    if (!VEC_ROOM(p->views, p->nviews, p->cap_views)) return false;
    struct phase_view *v = &p->views[p->nviews++];
    *v = (struct phase_view){.source = source,
                             .device = device,
                             .side = &p->sides[source]};
    if (device == ROW_NONE) return true;
    if (!take_device(p->t, v)) return false;
    v->own_common = common_of(&v->own[1], &v->side->host[0]);
    bool ok = v->own_common != NULL;
    for (int i = 0; ok && i < 4; i++) {
        v->common[i] = common_of(&v->busy, &v->side->host[i]);
        ok = v->common[i] != NULL;
    }
    return ok;
}

/* Returns the devices that ran anything, by source, in their order; those of a
 * source begin at first[source]. The caller frees them; NULL if memory ran
 * out. */
static uint32_t *find_devices(const struct trace *t, size_t *first) {
    bool *ran = calloc(t->ndevices + 1, sizeof *ran);
    uint32_t *v = malloc((t->ndevices + 1) * sizeof *v);
    for (size_t i = 0; ran && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind == TRACK_STREAM && tr->device != ROW_NONE &&
            tr->first < tr->end && t->devices[tr->device].source == tr->source)
            ran[tr->device] = true;
    }
    for (size_t d = 0; ran && d < t->ndevices; d++)
        if (ran[d]) first[t->devices[d].source + 2]++;
    for (size_t i = 1; i < t->nsources + 2; i++) first[i] += first[i - 1];
    for (uint32_t d = 0; ran && v && d < t->ndevices; d++)
        if (ran[d]) v[first[t->devices[d].source + 1]++] = d;
    if (ran == NULL) {
        free(v);
        v = NULL;
    }
    free(ran);
    return v;
}

/* Makes a view for each device of the source that ran anything, or one. */
static bool make_source(struct phases *p, uint32_t source, const int64_t *first,
                        const uint32_t *devices, size_t n) {
    /* what devices share; and the same, in its order, for a source without
     * any */
    static const enum raw shared[] = {RAW_INPUT, RAW_API};
    static const enum raw alone[] = {RAW_COPY, RAW_INPUT, RAW_OPS, RAW_API};
    struct intervals w[RAW_SETS] = {0};
    struct phase_side *s = &p->sides[source];
    bool ok = take_host(p->t, source, first, w) &&
              (n > 0 ? stack_up(w, shared, COUNT(shared), s->host)
                     : stack_up(w, alone, COUNT(alone), s->alone));
    for (int i = 0; i < RAW_SETS; i++) intervals_free(&w[i]);
    p->view_first[source] = p->nviews;
    if (ok && n == 0) ok = add_view(p, source, ROW_NONE);
    for (size_t i = 0; ok && i < n; i++) ok = add_view(p, source, devices[i]);
    return ok;
}

static void drop_phases(void *made) {
    struct phases *p = made;
    for (size_t i = 0; i < p->nviews; i++) {
        struct phase_view *v = &p->views[i];
        for (int k = 0; k < 2; k++) intervals_free(&v->own[k]);
        intervals_free(&v->busy);
        free(v->own_common);
        for (int k = 0; k < 4; k++) free(v->common[k]);
    }
    for (size_t i = 0; p->sides && i < p->nsides; i++) {
        for (int k = 0; k < 4; k++) intervals_free(&p->sides[i].host[k]);
        for (int k = 0; k < PHASES - 1; k++)
            intervals_free(&p->sides[i].alone[k]);
    }
    free(p->views);
    free(p->sides);
    free(p->view_first);
    free(p);
}

/* Returns the phases of a trace; NULL if memory ran out. */
static void *make_phases(const struct trace *t) {
    struct phases *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->t = t;
    p->nsides = t->nsources;
    int64_t *launches = phases_first_launches(t);
    size_t *first = calloc(t->nsources + 2, sizeof *first);
    uint32_t *devices = first ? find_devices(t, first) : NULL;
    p->sides = calloc(t->nsources + 1, sizeof *p->sides);
    p->view_first = calloc(t->nsources + 1, sizeof *p->view_first);
    bool ok = launches && devices && p->sides && p->view_first;
    for (uint32_t i = 0; ok && i < t->nsources; i++)
        ok = make_source(p, i, launches, devices + first[i],
                         first[i + 1] - first[i]);
    if (ok) p->view_first[t->nsources] = p->nviews;
    free(launches);
    free(first);
    free(devices);
    if (ok) return p;
    drop_phases(p);
    return NULL;
}

int phases_get(struct phases *p, const struct trace *t, struct ops_err *e) {
    const struct phases *kept = trace_memo(t, MEMO_PHASES, make_phases,
                                           drop_phases);
    *p = kept != NULL ? *kept : (struct phases){.t = t};
    return kept != NULL ? 0 : fail_oom(e);
}

/* Returns the time within [start, end) that the first i + 1 phases of a device
 * claim: its own, and what the host adds. */
static int64_t claimed(const struct phase_view *v, int i, int64_t start,
                       int64_t end) {
    if (v->device == ROW_NONE)
        return intervals_overlap(&v->side->alone[i], start, end);
    const struct intervals *own = i < 2 ? &v->own[i] : &v->busy;
    int64_t sum = intervals_overlap(own, start, end);
    if (i == 0) return sum;
    int h = i < 2 ? 0 : i - 2;
    const struct intervals *host = &v->side->host[h];
    return sum + intervals_overlap(host, start, end) -
           intervals_common_in(own, host, i < 2 ? v->own_common : v->common[h],
                               start, end);
}

void phases_split(const struct phase_view *v, int64_t start, int64_t end,
                  int64_t parts[PHASES]) {
    assert(start <= end);
    const enum phase *order = phase_order(v);
    int64_t before = 0;
    for (int i = 0; i < PHASES - 1; i++) {
        int64_t all = claimed(v, i, start, end);
        parts[order[i]] = all - before;
        assert(all >= before); /* each set holds the one before it */
        before = all;
    }
    parts[PHASE_OTHER] = end - start - before;
    assert(parts[PHASE_OTHER] >= 0);
}

/* ---- all of a set of times ---- */

bool phase_window_init(struct phase_window *w, const struct phases *p,
                       uint32_t source, struct intervals *times) {
    *w = (struct phase_window){.times = *times};
    *times = (struct intervals){0};
    bool ok = true;
    if (p->views[p->view_first[source]].device == ROW_NONE) return true;
    for (int i = 0; ok && i < 4; i++)
        ok = intervals_and(&p->sides[source].host[i], &w->times, &w->host[i]);
    return ok;
}

void phase_window_free(struct phase_window *w) {
    intervals_free(&w->times);
    for (int i = 0; i < 4; i++) intervals_free(&w->host[i]);
}

/* Returns claimed() of all of the window. */
static int64_t claimed_window(const struct phase_view *v, int i,
                              const struct phase_window *w) {
    if (v->device == ROW_NONE)
        return intervals_common_length(&v->side->alone[i], &w->times);
    const struct intervals *own = i < 2 ? &v->own[i] : &v->busy;
    int64_t sum = intervals_common_length(own, &w->times);
    if (i == 0) return sum;
    const struct intervals *host = &w->host[i < 2 ? 0 : i - 2];
    return sum + intervals_length(host) - intervals_common_length(own, host);
}

void phases_split_window(const struct phase_view *v,
                         const struct phase_window *w, int64_t parts[PHASES],
                         int64_t *busy) {
    const enum phase *order = phase_order(v);
    int64_t before = 0;
    for (int i = 0; i < PHASES - 1; i++) {
        int64_t all = claimed_window(v, i, w);
        parts[order[i]] = all - before;
        before = all;
    }
    parts[PHASE_OTHER] = intervals_length(&w->times) - before;
    *busy = intervals_common_length(&v->busy, &w->times);
}

/* ---- levels: the ends of all intervals, counted up and down ---- */

static void levels_free(struct levels *l) {
    free(l->v);
    *l = (struct levels){0};
}

/* Makes the level n from ts on; ts never falls. */
static bool levels_put(struct levels *l, int64_t ts, uint32_t n) {
    struct level *last = l->n > 0 ? &l->v[l->n - 1] : NULL;
    if (last != NULL && last->n == n) return true;
    if (last != NULL && last->ts == ts) {
        last->n = n;
        return true;
    }
    if (last == NULL && n == 0) return true;
    if (!VEC_ROOM(l->v, l->n, l->cap)) return false;
    __int128 before = 0;
    last = l->n > 0 ? &l->v[l->n - 1] : NULL; /* it may have moved */
    if (last != NULL)
        before = last->before + (__int128)last->n * ((__int128)ts - last->ts);
    l->v[l->n++] = (struct level){before, ts, n};
    return true;
}

/* Makes the levels of count unions. O(n log n). False if out of memory. */
static bool levels_of(const struct intervals *const *sets, size_t count,
                      struct levels *out) {
    size_t all = 0, n = 0;
    assert(out->n == 0);
    for (size_t i = 0; i < count; i++) all += 2 * sets[i]->n;
    struct sort_key *ends = vec_alloc(all + 1, sizeof *ends);
    if (ends == NULL) return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sets[i]->n; k++) {
            const struct interval *v = &sets[i]->v[k];
            ends[n++] = (struct sort_key){sort_signed(v->start), 1, 0};
            ends[n++] = (struct sort_key){sort_signed(v->end), 0, 0};
        }
    bool ok = sort_keys(ends, n);
    uint32_t now = 0;
    for (size_t i = 0, to; ok && i < n; i = to) {
        for (to = i; to < n && ends[to].hi == ends[i].hi; to++)
            now += ends[to].lo ? 1u : UINT32_MAX; /* one up, or one down */
        ok = levels_put(out, (int64_t)sort_signed((int64_t)ends[i].hi), now);
    }
    assert(!ok || now == 0);
    free(ends);
    return ok;
}

/* Does the same inside a set (a union) alone. O(n + m). */
static bool levels_within(const struct levels *l, const struct intervals *set,
                          struct levels *out) {
    size_t at = 0;
    assert(out->n == 0);
    for (size_t i = 0; i < set->n; i++) {
        const struct interval *s = &set->v[i];
        while (at + 1 < l->n && l->v[at + 1].ts <= s->start) at++;
        uint32_t n = at < l->n && l->v[at].ts <= s->start ? l->v[at].n : 0;
        if (!levels_put(out, s->start, n)) return false;
        for (size_t k = at; k < l->n && l->v[k].ts < s->end; k++) {
            if (l->v[k].ts > s->start &&
                !levels_put(out, l->v[k].ts, l->v[k].n))
                return false;
            at = k;
        }
        if (!levels_put(out, s->end, 0)) return false;
    }
    return true;
}

/* Returns the sum before ts. */
static __int128 levels_until(const struct levels *l, int64_t ts) {
    size_t i;
    BOUND(i, 0, l->n, l->v[i].ts <= ts);
    if (i == 0) return 0;
    const struct level *v = &l->v[i - 1];
    return v->before + (__int128)v->n * ((__int128)ts - v->ts);
}

/* Returns the lengths of all sets within [start, end), added up. O(log n). */
static __int128 levels_sum(const struct levels *l, int64_t start, int64_t end) {
    return end <= start ? 0 : levels_until(l, end) - levels_until(l, start);
}

/* ---- all views of a source ---- */

/* Up to this many views are asked one by one. */
enum { FEW_VIEWS = 16 };

/* Makes the levels of one of the sets of all views. */
static bool sum_sets(const struct phase_sums *s, int which,
                     struct levels *out) {
    const struct intervals **sets = vec_alloc(s->n + 1, sizeof *sets);
    if (sets == NULL) return false;
    for (size_t i = 0; i < s->n; i++)
        sets[i] = which < 2 ? &s->views[i].own[which] : &s->views[i].busy;
    bool ok = levels_of(sets, s->n, out);
    free(sets);
    return ok;
}

int phase_sums_init(struct phase_sums *s, const struct phases *p,
                    uint32_t source, struct ops_err *e) {
    size_t first = p->view_first[source];
    *s = (struct phase_sums){.views = p->views + first,
                             .n = p->view_first[source + 1] - first};
    s->by_levels = s->n > FEW_VIEWS;
    if (!s->by_levels) return 0;
    const struct intervals *host = s->views[0].side->host;
    bool ok = sum_sets(s, 0, &s->own[0]) && sum_sets(s, 1, &s->own[1]) &&
              sum_sets(s, 2, &s->busy) &&
              levels_within(&s->own[1], &host[0], &s->own_host);
    for (int i = 0; ok && i < 4; i++)
        ok = levels_within(&s->busy, &host[i], &s->busy_host[i]);
    if (ok) return 0;
    phase_sums_free(s);
    return fail_oom(e);
}

void phase_sums_free(struct phase_sums *s) {
    for (int i = 0; i < 2; i++) levels_free(&s->own[i]);
    levels_free(&s->own_host);
    levels_free(&s->busy);
    for (int i = 0; i < 4; i++) levels_free(&s->busy_host[i]);
    *s = (struct phase_sums){0};
}

/* Returns claimed() of all views, added up. */
static wide claimed_all(const struct phase_sums *s, int i, int64_t start,
                        int64_t end) {
    const struct levels *own = i < 2 ? &s->own[i] : &s->busy;
    wide sum = levels_sum(own, start, end);
    if (i == 0) return sum;
    int h = i < 2 ? 0 : i - 2;
    const struct levels *common = i < 2 ? &s->own_host : &s->busy_host[h];
    int64_t host = intervals_overlap(&s->views[0].side->host[h], start, end);
    return sum + (wide)host * (wide)s->n - levels_sum(common, start, end);
}

void phase_sums_split(const struct phase_sums *s, int64_t start, int64_t end,
                      wide parts[PHASES], wide *busy) {
    wide before = 0;
    *busy = s->by_levels ? levels_sum(&s->busy, start, end) : 0;
    for (int i = 0; i < PHASES; i++) parts[i] = 0;
    for (int i = 0; s->by_levels && i < PHASES - 1; i++) {
        wide all = claimed_all(s, i, start, end);
        parts[with_device[i]] = all - before;
        before = all;
    }
    if (s->by_levels) parts[PHASE_OTHER] = (wide)s->n * (end - start) - before;
    for (size_t k = 0; !s->by_levels && k < s->n; k++) {
        int64_t one[PHASES];
        phases_split(&s->views[k], start, end, one);
        for (int i = 0; i < PHASES; i++) parts[i] += one[i];
        *busy += intervals_overlap(&s->views[k].busy, start, end);
    }
}

void phase_sums_mean(const struct phase_sums *s, int64_t start, int64_t end,
                     int64_t parts[PHASES], int64_t *busy) {
    wide sum[PHASES], rest[PHASES], all, n = (wide)s->n, missing = 0;
    assert(n > 0);
    phase_sums_split(s, start, end, sum, &all);
    *busy = (int64_t)(all / n);
    for (int i = 0; i < PHASES; i++) {
        rest[i] = sum[i] % n;
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

/* Sets out to the levels of the devices' busy times inside a set. Each of a few
 * devices is cut to the set first: waits for input are a small part of a
 * profile. Returns false if out of memory. */
static bool busy_within(const struct phases *p, uint32_t source,
                        const struct intervals *set, struct levels *out) {
    struct phase_sums s = {.views = p->views + p->view_first[source]};
    s.n = p->view_first[source + 1] - p->view_first[source];
    if (s.n > FEW_VIEWS) {
        struct levels all = {0};
        bool ok = sum_sets(&s, 2, &all) && levels_within(&all, set, out);
        levels_free(&all);
        return ok;
    }
    struct intervals cut[FEW_VIEWS] = {{0}};
    const struct intervals *sets[FEW_VIEWS];
    bool ok = true;
    for (size_t i = 0; ok && i < s.n; i++) {
        ok = intervals_and(&s.views[i].busy, set, &cut[i]);
        sets[i] = &cut[i];
    }
    ok = ok && levels_of(sets, s.n, out);
    for (size_t i = 0; i < s.n; i++) intervals_free(&cut[i]);
    return ok;
}

bool phase_input_init(struct phase_input *x, const struct phases *p,
                      uint32_t source, const struct intervals *within) {
    const struct phase_view *v = &p->views[p->view_first[source]];
    bool device = v->device != ROW_NONE;
    const struct phase_side *s = v->side;
    struct intervals all = {0};
    *x = (struct phase_input){.n = p->view_first[source + 1] -
                                   p->view_first[source]};
    assert(with_device[3] == PHASE_INPUT && without_device[2] == PHASE_INPUT);
    bool ok = intervals_sub(device ? &s->host[1] : &s->alone[2],
                            device ? &s->host[0] : &s->alone[1], &all) &&
              intervals_and(&all, within, &x->host) &&
              busy_within(p, source, &x->host, &x->busy);
    intervals_free(&all);
    return ok;
}

void phase_input_free(struct phase_input *x) {
    intervals_free(&x->host);
    levels_free(&x->busy);
    *x = (struct phase_input){0};
}

wide phase_input_sum(const struct phase_input *x, int64_t start, int64_t end) {
    int64_t host = intervals_overlap(&x->host, start, end);
    if (host == 0) return 0;
    return (wide)host * (wide)x->n - levels_sum(&x->busy, start, end);
}

bool phases_unoccupied(const struct phases *p, uint32_t source,
                       const struct intervals *times, int64_t *mean) {
    const struct phase_view *v = &p->views[p->view_first[source]];
    size_t n = p->view_first[source + 1] - p->view_first[source];
    struct intervals open = {0};
    struct levels busy = {0};
    /* in both orders the first four phases are these */
    bool ok = intervals_sub(times,
                            v->device != ROW_NONE ? &v->side->host[1]
                                                  : &v->side->alone[3],
                            &open);
    wide sum = (wide)intervals_length(&open) * (wide)n;
    if (n > FEW_VIEWS) {
        ok = ok && busy_within(p, source, &open, &busy);
        sum -= levels_sum(&busy, INT64_MIN, INT64_MAX);
    }
    for (size_t i = 0; n <= FEW_VIEWS && i < n; i++)
        sum -= intervals_common_length(&v[i].busy, &open);
    *mean = wide_narrow(sum / (wide)n);
    intervals_free(&open);
    levels_free(&busy);
    return ok;
}

const struct phase_view *phases_of_device(const struct phases *p,
                                          uint32_t source, uint32_t device) {
    size_t i, end = p->view_first[source + 1];
    BOUND(i, p->view_first[source], end, p->views[i].device < device);
    return i < end && p->views[i].device == device ? &p->views[i] : NULL;
}

struct phase_host phases_host(const struct phase_view *v, int64_t start,
                              int64_t end) {
    assert(v->device != ROW_NONE);
    const struct intervals *host = v->side->host;
    int64_t comm = intervals_overlap(&host[0], start, end);
    int64_t input = intervals_overlap(&host[1], start, end) - comm;
    return (struct phase_host){comm, input,
                               intervals_overlap(&host[3], start, end)};
}
