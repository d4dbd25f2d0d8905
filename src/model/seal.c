/* SPDX-License-Identifier: Apache-2.0
 * Sealing: rows as they came become a sorted, nested, linked, read-only trace.
 *
 *     sort     by track, start, longest first; nothing moves when importers
 *              already gave that order
 *     hlo      spans to instructions of compiled programs, hlo.c
 *     nest     parent and depth, by one stack per track
 *     own      Python frames of our own hooks, own_frames.c
 *     link     launch calls to device spans, by (source, correlation id)
 *     steps    steps.c
 *     trim     give back what growing left over
 */
#include "model/seal.h"

#include "base/array.h"
#include "base/par.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/hlo/hlo.h"
#include "model/region.h"
#include "model/trace_fill.h"
#include "names/name_class.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Is row b, which follows a on the same track, in order? */
static bool in_order(const struct spans *s, row_id a, row_id b) {
    if (s->ts[a] != s->ts[b]) return s->ts[a] < s->ts[b];
    return s->dur[a] >= s->dur[b];
}

/* Counts the row ranges of the tracks. Returns true if rows already stand
 * so. */
static bool count_tracks(struct trace *t) {
    struct spans *s = &t->spans;
    for (size_t i = 0; i < t->ntracks; i++)
        t->tracks[i].first = t->tracks[i].end = 0;
    bool sorted = true;
    for (size_t i = 0; i < s->n; i++) {
        t->tracks[s->track[i]].end++;
        if (i == 0 || !sorted) continue;
        row_id a = (row_id)i - 1, b = (row_id)i;
        sorted = s->track[a] == s->track[b] ? in_order(s, a, b)
                                            : s->track[a] < s->track[b];
    }
    row_id at = 0;
    for (size_t i = 0; i < t->ntracks; i++) {
        row_id n = t->tracks[i].end;
        t->tracks[i].first = at;
        at += n;
        t->tracks[i].end = at;
    }
    assert(at == s->n);
    return sorted;
}

/* Sorts the rows of one track, listed in perm[0..n). */
static bool sort_track(const struct spans *s, row_id *perm, size_t n) {
    size_t i = 1;
    while (i < n && in_order(s, perm[i - 1], perm[i])) i++;
    if (i >= n) return true;
    struct sort_key *v = vec_alloc(n, sizeof *v);
    if (v == NULL) return false;
    for (i = 0; i < n; i++)
        v[i] = (struct sort_key){sort_signed(s->ts[perm[i]]),
                                 ~(uint64_t)s->dur[perm[i]], perm[i]};
    bool ok = sort_keys(v, n);
    for (i = 0; ok && i < n; i++) perm[i] = v[i].row;
    free(v);
    return ok;
}

/* Returns perm[new row] = old row; NULL if out of memory. */
static row_id *make_perm(struct trace *t) {
    struct spans *s = &t->spans;
    row_id *perm = vec_alloc(s->n, sizeof *perm);
    row_id *at = malloc((t->ntracks + 1) * sizeof *at);
    bool ok = perm != NULL && at != NULL;
    for (size_t i = 0; ok && i < t->ntracks; i++) at[i] = t->tracks[i].first;
    for (size_t i = 0; ok && i < s->n; i++) perm[at[s->track[i]]++] = (row_id)i;
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        ok = sort_track(s, perm + tr->first, tr->end - tr->first);
    }
    free(at);
    if (ok) return perm;
    free(perm);
    return NULL;
}

/* Puts one column into the new order. */
#define GATHER(col, type)                                                      \
    static bool gather_##type(type **col, const row_id *perm, size_t n) {      \
        type *to = vec_alloc(n, sizeof *to), *from = *col;                     \
        if (to == NULL) return false;                                          \
        for (size_t i = 0; i < n; i++) to[i] = from[perm[i]];                  \
        free(from);                                                            \
        *col = to;                                                             \
        return true;                                                           \
    }
GATHER(col, int64_t)
GATHER(col, uint64_t)
GATHER(col, uint32_t)
GATHER(col, uint16_t)
GATHER(col, uint8_t)
GATHER(col, double)
#undef GATHER

/* Turns old row numbers into new ones wherever they are kept. */
static bool renumber(struct trace *t, const row_id *perm) {
    size_t n = t->spans.n;
    if (t->host_halves.n + t->device_halves.n + t->step_hints.n +
            t->group_hints.n + t->run_hints.n + t->half_flows.n ==
        0)
        return true;
    row_id *to = vec_alloc(n, sizeof *to);
    if (to == NULL) return false;
    for (size_t i = 0; i < n; i++) to[perm[i]] = (row_id)i;
    struct half_links *halves[] = {&t->host_halves, &t->device_halves};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < halves[k]->n; i++)
            halves[k]->v[i].row = to[halves[k]->v[i].row];
    struct step_hints *hints[] = {&t->step_hints, &t->group_hints,
                                  &t->run_hints};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < hints[k]->n; i++)
            hints[k]->v[i].row = to[hints[k]->v[i].row];
    for (size_t i = 0; i < t->half_flows.n; i++) {
        row_id *row = &t->half_flows.v[i].row;
        if (*row != ROW_NONE) *row = to[*row];
    }
    free(to);
    return true;
}

/* The columns in the new order, in two halves of about the same bytes. */
struct gather {
    struct trace *t;
    const row_id *perm;
};

static bool gather_times(void *ctx) {
    struct gather *g = ctx;
    struct spans *s = &g->t->spans;
    return gather_int64_t(&s->ts, g->perm, s->n) &&
           gather_int64_t(&s->dur, g->perm, s->n);
}

static bool gather_rest(void *ctx) {
    struct gather *g = ctx;
    struct spans *s = &g->t->spans;
    return gather_uint32_t(&s->track, g->perm, s->n) &&
           gather_uint32_t(&s->name, g->perm, s->n) &&
           gather_uint16_t(&s->cat_lo, g->perm, s->n) &&
           gather_uint8_t(&s->cat_hi, g->perm, s->n) &&
           gather_uint32_t(&s->args_lo, g->perm, s->n) &&
           gather_uint8_t(&s->args_hi, g->perm, s->n) &&
           gather_uint8_t(&s->args_room, g->perm, s->n) &&
           gather_uint8_t(&s->kind, g->perm, s->n) &&
           gather_uint8_t(&s->flags, g->perm, s->n) && renumber(g->t, g->perm);
}

/* Returns how many threads this trace is worth: small ones are done before a
 * second one has started. */
static int seal_threads(const struct trace *t) {
    enum { MANY_ROWS = 100000 };
    return t->spans.n < MANY_ROWS ? 1 : t->threads;
}

static bool sort_spans(struct trace *t) {
    if (count_tracks(t)) return true;
    row_id *perm = make_perm(t);
    if (perm == NULL) return false;
    struct gather g = {t, perm};
    bool ok = par_both((struct work){gather_times, &g},
                       (struct work){gather_rest, &g}, seal_threads(t));
    t->spans.cap = t->spans.n;
    free(perm);
    return ok;
}

/* The open spans of a track, innermost last. A span that outlives the one
 * around it by rounding ends with it here: what follows both is in neither. */
struct stack {
    struct open {
        row_id row;
        int64_t end;
    } * v;
    size_t n, cap;
};

/* Closes the spans that do not contain row r. Ends that differ by no more than
 * the source's rounding still nest; a real crossing, of however many open
 * spans, is noted once, on host threads. Returns r's end within what is
 * open. */
static int64_t pop_closed(struct trace *t, struct stack *open, row_id r,
                          int64_t slack) {
    int64_t ts = t->spans.ts[r], end = span_end(t, r);
    bool host = t->tracks[t->spans.track[r]].device == ROW_NONE;
    bool crossed = false;
    while (open->n > 0) {
        int64_t top = open->v[open->n - 1].end;
        if (ts < top && end <= top) break;
        if (ts < top && end - top <= slack) {
            if (host) trace_note(t, NOTE_CHILD_OUTLIVES_PARENT, 1);
            end = top;
            break;
        }
        crossed |= ts < top;
        open->n--;
    }
    if (crossed && host) trace_note(t, NOTE_CROSSING_SPANS, 1);
    return end;
}

/* Finds the parents of one track's rows. */
static bool nest_track(struct trace *t, const struct track *tr,
                       struct stack *open) {
    struct spans *s = &t->spans;
    int64_t slack = t->sources[tr->source].rounding_ps;
    open->n = 0;
    for (row_id r = tr->first; r < tr->end; r++) {
        s->parent[r] = ROW_NONE;
        s->depth[r] = 0;
        if (s->flags[r] & SPAN_ASYNC) continue;
        int64_t end = pop_closed(t, open, r, slack);
        if (open->n > 0) s->parent[r] = open->v[open->n - 1].row;
        assert(s->parent[r] == ROW_NONE || s->parent[r] < r);
        s->depth[r] = open->n < UINT16_MAX ? (uint16_t)open->n : UINT16_MAX;
        if (s->flags[r] & SPAN_INSTANT) continue;
        if (!VEC_ROOM(open->v, open->n, open->cap)) return false;
        open->v[open->n++] = (struct open){r, end};
    }
    return true;
}

static bool nest(struct trace *t) {
    struct spans *s = &t->spans;
    size_t n = s->n;
    if (!vec_resize(&s->parent, n, sizeof *s->parent) ||
        !vec_resize(&s->depth, n, sizeof *s->depth) ||
        !vec_resize(&s->step, n, sizeof *s->step))
        return false;
    struct stack open = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (track_nests(t, tr)) {
            ok = nest_track(t, tr, &open);
            continue;
        }
        for (row_id r = tr->first; r < tr->end; r++) {
            s->parent[r] = ROW_NONE;
            s->depth[r] = 0;
        }
    }
    free(open.v);
    return ok;
}

static bool classify_names(struct trace *t) {
    t->name_class = calloc(t->strs.n, sizeof *t->name_class);
    t->cat_class = calloc(t->ncats + 1, sizeof *t->cat_class);
    if (t->name_class == NULL || t->cat_class == NULL) return false;
    for (size_t i = 0; i < t->strs.n; i++)
        t->name_class[i] = name_classify(strs_bytes(&t->strs, (str_id)i));
    for (size_t i = 0; i < t->ncats; i++)
        t->cat_class[i] = cat_classify(strs_bytes(&t->strs, t->cats[i].text));
    return true;
}

/* Fills perm[new] = old for memory events, by allocator and then file order.
 * Returns true if each allocator's are in time order, too. Allocators take
 * turns in a file, but each has its events in order. */
static bool mem_by_allocator(const struct trace *t, row_id *perm, size_t *at) {
    const struct mem_events *m = &t->mem;
    size_t sum = 0;
    for (size_t i = 0; i < m->n; i++) at[m->allocator[i] + 1]++;
    for (size_t i = 0; i <= t->nallocators; i++) at[i] = sum += at[i];
    assert(sum == m->n); /* every event has an allocator that exists */
    bool sorted = true;
    for (size_t i = 0; i < m->n; i++) perm[at[m->allocator[i]]++] = (row_id)i;
    for (size_t i = 1; i < m->n && sorted; i++)
        sorted = m->allocator[perm[i]] != m->allocator[perm[i - 1]] ||
                 m->ts[perm[i]] >= m->ts[perm[i - 1]];
    return sorted;
}

/* Fills perm[new] = old for n rows in the order (group, time, file). */
static bool order_by_time(const uint32_t *group, const int64_t *ts, size_t n,
                          row_id *perm) {
    struct sort_key *v = vec_alloc(n + 1, sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < n; i++)
        v[i] = (struct sort_key){group[i], sort_signed(ts[i]), (row_id)i};
    bool ok = sort_keys(v, n);
    for (size_t i = 0; ok && i < n; i++) perm[i] = v[i].row;
    free(v);
    return ok;
}

/* Sorts memory events in the order (allocator, time, file). */
static bool sort_mem(struct trace *t) {
    struct mem_events *m = &t->mem;
    if (m->n == 0) return true;
    /* most sources do not record what the allocator holds: then there is no
     * column */
    size_t k = 0;
    while (k < m->n && m->reserved[k] < 0) k++;
    if (k == m->n) {
        free(m->reserved);
        m->reserved = NULL;
    }
    row_id *perm = vec_alloc(m->n, sizeof *perm);
    size_t *at = calloc(t->nallocators + 2, sizeof *at);
    bool ok = perm != NULL && at != NULL;
    if (ok && !mem_by_allocator(t, perm, at))
        ok = order_by_time(m->allocator, m->ts, m->n, perm);
    free(at);
    ok = ok && gather_int64_t(&m->ts, perm, m->n) &&
         gather_int64_t(&m->bytes, perm, m->n) &&
         gather_uint64_t(&m->addr, perm, m->n) &&
         gather_int64_t(&m->allocated, perm, m->n) &&
         (!m->reserved || gather_int64_t(&m->reserved, perm, m->n)) &&
         gather_uint32_t(&m->track, perm, m->n) &&
         gather_uint32_t(&m->allocator, perm, m->n) &&
         gather_uint32_t(&m->what, perm, m->n) &&
         (!m->stack || gather_uint32_t(&m->stack, perm, m->n));
    m->cap = m->n;
    free(perm);
    return ok;
}

/* Sorts counter samples in the order (counter, time, file). */
static bool sort_samples(struct trace *t) {
    struct samples *s = &t->samples;
    row_id *perm = malloc((s->n + 1) * sizeof *perm);
    bool ok = perm != NULL && order_by_time(s->counter, s->ts, s->n, perm) &&
              gather_int64_t(&s->ts, perm, s->n) &&
              gather_double(&s->value, perm, s->n) &&
              gather_uint32_t(&s->counter, perm, s->n);
    s->cap = s->n;
    free(perm);
    return ok;
}

/* Finds the first start and last end of each source's real tracks. */
static void find_windows(struct trace *t) {
    for (size_t i = 0; i < t->nsources; i++) {
        t->sources[i].window_ts = INT64_MAX;
        t->sources[i].window_end = INT64_MIN;
    }
    const struct spans *s = &t->spans;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        struct source *src = &t->sources[tr->source];
        bool work = tr->kind != TRACK_OTHER ||
                    t->sources[tr->source].process_view;
        if (tr->first == tr->end || !work) continue;
        if (s->ts[tr->first] < src->window_ts)
            src->window_ts = s->ts[tr->first];
        for (row_id r = tr->first; r < tr->end; r++) {
            int64_t end = s->ts[r] + s->dur[r];
            if (end > src->window_end) src->window_end = end;
        }
    }
    for (size_t i = 0; i < t->nsources; i++)
        if (t->sources[i].window_ts > t->sources[i].window_end)
            t->sources[i].window_ts = t->sources[i].window_end = 0;
}

/* Lays n numbers out in groups. The group of number i is the uint32_t that
 * stands `at` bytes into the i-th row of `size` bytes; a number in no group has
 * one of `groups` or more. */
static bool make_lists(struct lists *l, size_t n, size_t groups,
                       const void *rows, size_t at, size_t size) {
    l->v = malloc((n + 1) * sizeof *l->v);
    l->first = calloc(groups + 2, sizeof *l->first);
    if (l->v == NULL || l->first == NULL) return false;
#define GROUP(i) (*(const uint32_t *)((const char *)rows + (i)*size + at))
    /* counts stand one further on, so that filling moves each into its place */
    for (size_t i = 0; i < n; i++)
        if (GROUP(i) < groups) l->first[GROUP(i) + 2]++;
    for (size_t g = 1; g < groups + 2; g++) l->first[g] += l->first[g - 1];
    for (size_t i = 0; i < n; i++)
        if (GROUP(i) < groups) l->v[l->first[GROUP(i) + 1]++] = (uint32_t)i;
#undef GROUP
    return true;
}

/* Lists the memory events of each allocator, which are sorted and have their
 * sizes, and the allocators of each source. */
static bool seal_mem_lists(struct trace *t) {
    size_t n = t->nallocators, at = 0;
    t->mem_first = malloc((n + 1) * sizeof *t->mem_first);
    if (t->mem_first == NULL) return false;
    for (size_t i = 0; i <= n; i++) {
        while (at < t->mem.n && t->mem.allocator[at] < i) at++;
        t->mem_first[i] = at;
    }
    return make_lists(&t->allocators_of, n, t->nsources, t->allocators,
                      offsetof(struct allocator, source),
                      sizeof *t->allocators);
}

static bool seal_lists(struct trace *t) {
    size_t size = sizeof *t->tracks;
    return make_lists(&t->of_source, t->ntracks, t->nsources, t->tracks,
                      offsetof(struct track, source), size) &&
           make_lists(&t->of_device, t->ntracks, t->ndevices, t->tracks,
                      offsetof(struct track, device), size) &&
           make_lists(&t->meta_of, t->nmeta, t->nsources, t->meta,
                      offsetof(struct meta, source), sizeof *t->meta);
}

/* What several analyses need of a sealed trace is worked out once. The trace
 * stays const for all of them: a memo stands beside it, behind its own lock. */
struct memo {
    pthread_mutex_t lock;
    void *v; /* NULL: nobody has asked yet */
    void (*drop)(void *v);
};

struct memo *memos_new(void) {
    struct memo *v = calloc(MEMOS, sizeof *v);
    for (size_t i = 0; v != NULL && i < MEMOS; i++)
        pthread_mutex_init(&v[i].lock, NULL);
    return v;
}

void memos_free(struct memo *memos) {
    for (size_t i = 0; memos != NULL && i < MEMOS; i++) {
        struct memo *m = &memos[i];
        if (m->v != NULL) m->drop(m->v);
        pthread_mutex_destroy(&m->lock);
    }
    free(memos);
}

static bool seal_memos(struct trace *t) {
    t->memos = memos_new();
    t->views = views_new();
    return t->memos != NULL && t->views != NULL;
}

/* What stands on the nesting. */
static bool seal_host(void *ctx) {
    struct trace *t = ctx;
    if (!nest(t) || !seal_own_frames(t)) return false;
    find_windows(t);
    return seal_steps(t);
}

/* Seals what does not need the nesting. */
static bool seal_others(void *ctx) {
    struct trace *t = ctx;
    seal_mem_tables(t);
    return seal_links(t) && sort_mem(t) && seal_mem_sizes(t) &&
           seal_mem_lists(t) && sort_samples(t);
}

/* Gives back what growing and filling left over. Shrinking cannot fail in a
 * way that matters: the old block stays. */
static void trim(struct trace *t) {
    struct spans *s = &t->spans;
#define X(type, column) vec_resize(&s->column, s->n, sizeof(type));
    SPAN_COLUMNS(X)
#undef X
    s->cap = s->n;
    trace_drop_halves(t);
}

/* Names a stream with its device: "stream 7" alone does not say of which. */
static void name_stream(struct trace *t, struct track *tr) {
    char name[256];
    if (tr->device == ROW_NONE) return;
    const char *device = strs_text(&t->strs, t->devices[tr->device].label);
    const char *old = strs_text(&t->strs, tr->name);
    if (strncmp(old, device, strlen(device)) == 0) return;
    cut_fmt(name, sizeof name, "%s %s", device, old);
    tr->name = trace_str(t, bytes_of(name));
}

/* Gives tracks that the file did not name a name from their number. */
static void name_tracks(struct trace *t) {
    for (size_t i = 0; i < t->ntracks; i++) {
        struct track *tr = &t->tracks[i];
        if (tr->kind == TRACK_PYTHON && tr->thread == ROW_NONE)
            tr->thread = trace_track_find(t, tr->source, TRACK_THREAD, tr->pid,
                                          tr->tid);
        if (tr->named && tr->kind == TRACK_STREAM) name_stream(t, tr);
        if (tr->named) continue;
        char name[64];
        snprintf(name, sizeof name, "%s %lld",
                 tr->device != ROW_NONE ? "stream" : "thread",
                 (long long)tr->tid);
        tr->name = trace_str(t, bytes_of(name));
        if (tr->kind == TRACK_STREAM) name_stream(t, tr);
    }
}

int trace_seal(struct trace *t, struct ops_err *e) {
    assert(!t->sealed);
    name_tracks(t);
    if (t->oom || !seal_lists(t) || !sort_spans(t) || !hlo_seal(t) ||
        !classify_names(t) ||
        !par_both((struct work){seal_host, t}, (struct work){seal_others, t},
                  seal_threads(t)) ||
        !seal_flows(t) || !seal_device_steps(t) || !seal_memos(t))
        return fail_oom(e);
    for (size_t i = 0; i < t->nsources; i++)
        t->nprocesses += t->sources[i].companion_of == ROW_NONE;
    trace_note(t, NOTE_UTF8_MENDED, t->strs.mended);
    trim(t);
    t->sealed = true;
    return 0;
}

const void *trace_memo(const struct trace *t, enum memo_id id,
                       void *(*make)(const struct trace *t),
                       void (*drop)(void *v)) {
    assert(t->sealed);
    struct memo *m = &t->memos[id];
    pthread_mutex_lock(&m->lock);
    if (m->v == NULL) m->v = make(t);
    m->drop = drop;
    const void *v = m->v;
    pthread_mutex_unlock(&m->lock);
    return v;
}

void seal_free(struct trace *t) {
    struct lists *all[] = {&t->of_source, &t->of_device, &t->meta_of,
                           &t->allocators_of};
    free(t->mem_first);
    for (size_t i = 0; i < COUNT(all); i++) {
        free(all[i]->v);
        free(all[i]->first);
    }
    memos_free(t->memos);
    views_free(t->views);
}
