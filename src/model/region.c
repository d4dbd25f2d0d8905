/* SPDX-License-Identifier: Apache-2.0
 * Views of a trace whose steps are the instances of a region.
 *
 * Instances lie apart, so time between two of them is in no step; and they may
 * overlap, when several threads run the same region. An instant is then of the
 * instance that began first, so that steps never overlap and no time counts
 * twice. What a thread does in its own instance stays in that one.
 *
 * The device may be at work that was launched before the instance: an instance
 * begins with its span or, where such work still runs, with the end of that
 * work or with the start of its own first, whichever is earlier. It ends with
 * its span or with its last device work, whichever is later. */
#include "model/region.h"

#include "base/array.h"
#include "base/err.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/region_find.h"
#include "model/seal.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 4 }; /* views that a trace keeps for who asks again */

struct view {
    struct trace t;    /* first: a view is found by its trace */
    char *glob;        /* what it was asked for by */
    size_t overlaps;   /* instances that begin while another one runs */
    uint8_t *flags;    /* its own columns: what is freed with it */
    uint32_t *step_of; /* likewise */
    struct source *sources;
    size_t users;
    struct view *next; /* in the list of its base, the last used first */
};

struct views {
    pthread_mutex_t lock;
    struct view *list;
};

/* When the host side of an instance runs, less what belongs to an earlier
 * one. */
struct part {
    int64_t from, to;
    uint32_t step;
};

/* What the making of a view needs, by step. */
struct making {
    struct view *v;
    struct instances found;
    struct part *parts;
    int64_t *first_work, *last_work; /* of the device: earliest start, last end;
                                        INT64_MAX and INT64_MIN: none */
    struct sort_key *launches;       /* links by source, then by launch */
    size_t nlaunches;
};

static void view_free(struct view *v) {
    memos_free(v->t.memos);
    free(v->t.steps);
    free(v->flags);
    free(v->step_of);
    free(v->sources);
    free(v->glob);
    free(v);
}

/* Adds the steps of one source, with their markers. */
static bool add_steps(struct making *m, uint32_t source) {
    struct view *v = m->v;
    struct trace *t = &v->t;
    int64_t until = INT64_MIN;
    size_t first = m->found.first[source], end = m->found.first[source + 1];
    t->sources[source].step_first = t->nsteps;
    for (size_t i = first; i < end; i++) {
        row_id r = m->found.v[i].row;
        if (!VEC_ROOM(t->steps, t->nsteps, t->cap_steps)) return false;
        t->steps[t->nsteps++] = (struct step){
            .number = (int64_t)(i - first),
            .name = t->spans.name[r],
            .source = source,
            .marker = r,
            .thread = steps_thread_of(t, r),
            .marker_ts = t->spans.ts[r],
            .marker_dur = t->spans.dur[r],
        };
        /* rounding at the source is no overlap */
        if (t->spans.ts[r] < sat_sub(until, t->sources[source].rounding_ps))
            v->overlaps++;
        if (span_end(t, r) > until) until = span_end(t, r);
    }
    t->sources[source].step_end = t->nsteps;
    t->sources[source].step_rule = STEPS_BY_REGION;
    return true;
}

/* Marks instances and what lies around them as marks: neither is work. */
static bool mark_spans(struct making *m) {
    const struct trace *t = &m->v->t;
    uint8_t *seen = calloc(t->spans.n + 1, 1);
    for (size_t i = 0; seen != NULL && i < t->nsteps; i++)
        for (row_id r = t->steps[i].marker; r != ROW_NONE && !seen[r];
             r = t->spans.parent[r]) {
            seen[r] = 1;
            m->v->flags[r] |= SPAN_STEPMARK;
        }
    free(seen);
    return seen != NULL;
}

/* Sets part n to the host side of a step, less what those before it have. */
static void put_part(struct making *m, size_t n, uint32_t step) {
    const struct step *st = &m->v->t.steps[step];
    int64_t from = st->marker_ts, to = from + st->marker_dur;
    if (n > 0 && from < m->parts[n - 1].to) from = m->parts[n - 1].to;
    if (to < from) to = from;
    m->parts[n] = (struct part){from, to, step};
}

/* Returns the first part, from `at` on, that begins after ts: near ones are
 * found in a few steps. */
static size_t part_after(const struct part *p, size_t at, size_t n,
                         int64_t ts) {
    size_t lo = at, hi = n, i;
    for (size_t step = 1; lo + step < n; step *= 2) {
        if (p[lo + step - 1].from > ts) {
            hi = lo + step;
            break;
        }
        lo += step;
    }
    BOUND(i, lo, hi, p[i].from <= ts);
    return i;
}

/* Gives the rows of a track the parts that they start in. */
static void assign_track(struct making *m, const struct track *tr, size_t n) {
    const struct trace *t = &m->v->t;
    size_t at = 0;
    for (row_id r = tr->first; r < tr->end; r++) {
        at = part_after(m->parts, at, n, t->spans.ts[r]);
        if (at > 0 && t->spans.ts[r] < m->parts[at - 1].to)
            m->v->step_of[r] = m->parts[at - 1].step;
    }
}

/* Gives the tracks of the threads that run instances their own ones. Threads
 * are few; a file may have many, each with an instance. */
static bool assign_own(struct making *m, uint32_t source) {
    const struct trace *t = &m->v->t;
    const struct source *s = &t->sources[source];
    const struct lists *l = &t->of_source;
    size_t n = s->step_end - s->step_first;
    struct sort_key *by = vec_alloc(n + 1, sizeof *by);
    if (by == NULL) return false;
    for (size_t i = 0; i < n; i++)
        by[i] = (struct sort_key){t->steps[s->step_first + i].thread, 0,
                                  (uint32_t)(s->step_first + i)};
    bool ok = sort_keys(by, n);
    for (size_t k = l->first[source]; ok && k < l->first[source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        uint32_t thread = tr->kind == TRACK_PYTHON ? tr->thread : l->v[k];
        size_t i, parts = 0;
        BOUND(i, 0, n, by[i].hi < thread);
        for (; i < n && by[i].hi == thread; i++)
            put_part(m, parts++, by[i].row);
        if (parts > 0) assign_track(m, tr, parts);
    }
    free(by);
    return ok;
}

/* Finds the steps of a source's host rows. */
static bool assign_host(struct making *m, uint32_t source) {
    const struct trace *t = &m->v->t;
    const struct source *s = &t->sources[source];
    const struct lists *l = &t->of_source;
    size_t n = s->step_end - s->step_first;
    for (size_t i = 0; i < n; i++)
        put_part(m, i, (uint32_t)(s->step_first + i));
    for (size_t k = l->first[source]; n > 0 && k < l->first[source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_STREAM) assign_track(m, tr, n);
    }
    if (m->v->overlaps > 0 && n > 0 && !assign_own(m, source)) return false;
    for (size_t i = s->step_first; i < s->step_end; i++)
        m->v->step_of[t->steps[i].marker] = (uint32_t)i;
    return true;
}

/* Gives device work the step of the call that launched it, and lists the
 * launches. */
static bool assign_launched(struct making *m) {
    const struct trace *t = &m->v->t;
    const struct links *l = &t->links;
    m->launches = vec_alloc(l->n + 1, sizeof *m->launches);
    if (m->launches == NULL) return false;
    for (size_t i = 0; i < l->n; i++) {
        row_id d = l->device[i], h = l->host[i];
        uint32_t st = m->v->step_of[h];
        m->v->step_of[d] = st;
        if (!span_is_device_work(t, d)) continue;
        m->launches[m->nlaunches++] =
            (struct sort_key){t->tracks[t->spans.track[d]].source,
                              sort_signed(t->spans.ts[h]), (uint32_t)i};
        if (st == ROW_NONE) continue;
        if (t->spans.ts[d] < m->first_work[st])
            m->first_work[st] = t->spans.ts[d];
        if (span_end(t, d) > m->last_work[st])
            m->last_work[st] = span_end(t, d);
    }
    return sort_keys(m->launches, m->nlaunches);
}

/* Sets begin and end of each step by the rule at the head of this file. */
static void place_steps(struct making *m, uint32_t source) {
    struct trace *t = &m->v->t;
    const struct source *s = &t->sources[source];
    int64_t until = INT64_MIN;  /* the end of the step before */
    int64_t before = INT64_MIN; /* of device work that was launched earlier */
    size_t at;
    BOUND(at, 0, m->nlaunches, m->launches[at].hi < source);
    for (size_t i = s->step_first; i < s->step_end; i++) {
        struct step *st = &t->steps[i];
        int64_t from = st->marker_ts, to = from + st->marker_dur;
        for (; at < m->nlaunches && m->launches[at].hi == source &&
               m->launches[at].lo < sort_signed(from);
             at++) {
            row_id d = t->links.device[m->launches[at].row];
            if (span_end(t, d) > before) before = span_end(t, d);
        }
        int64_t waits = before;
        if (m->first_work[i] < waits) waits = m->first_work[i];
        if (m->first_work[i] != INT64_MAX && waits > from) from = waits;
        if (from < until) from = until;
        if (m->last_work[i] > to) to = m->last_work[i];
        if (to < from) to = from;
        st->ts = from;
        st->dur = to - from;
        until = to;
    }
}

/* Sets the trace of a view up: all that it shares, and columns of its own. */
static bool borrow_rows(struct view *v, const struct trace *base) {
    struct trace *t = &v->t;
    size_t n = base->spans.n, sources = base->nsources;
    *t = *base;
    t->base = base;
    t->views = NULL;
    t->memos = memos_new();
    t->steps = NULL;
    t->nsteps = t->cap_steps = 0;
    /* they speak of the steps of the base */
    t->notes[NOTE_STEPS_INFERRED] = t->notes[NOTE_STEPS_NONE] = 0;
    t->sources = v->sources = vec_alloc(sources + 1, sizeof *v->sources);
    t->spans.flags = v->flags = vec_alloc(n + 1, sizeof *v->flags);
    t->spans.step = v->step_of = vec_alloc(n + 1, sizeof *v->step_of);
    if (!t->memos || !v->sources || !v->flags || !v->step_of) return false;
    if (sources > 0)
        memcpy(v->sources, base->sources, sources * sizeof *v->sources);
    if (n > 0) memcpy(v->flags, base->spans.flags, n);
    memset(v->step_of, 0xff, (n + 1) * sizeof *v->step_of); /* ROW_NONE */
    return true;
}

static bool cut_steps(struct making *m) {
    struct trace *t = &m->v->t;
    bool ok = mark_spans(m);
    m->parts = vec_alloc(t->nsteps + 1, sizeof *m->parts);
    m->first_work = vec_alloc(t->nsteps + 1, sizeof *m->first_work);
    m->last_work = vec_alloc(t->nsteps + 1, sizeof *m->last_work);
    ok = ok && m->parts && m->first_work && m->last_work;
    for (size_t i = 0; ok && i < t->nsteps; i++) {
        m->first_work[i] = INT64_MAX;
        m->last_work[i] = INT64_MIN;
    }
    for (uint32_t i = 0; ok && i < t->nsources; i++) ok = assign_host(m, i);
    ok = ok && assign_launched(m);
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        place_steps(m, i);
        steps_assign_by_time(t, i);
    }
    free(m->parts);
    free(m->first_work);
    free(m->last_work);
    free(m->launches);
    return ok;
}

/* Fills a view whose name is set. */
static int view_fill(struct view *v, const struct trace *base,
                     struct ops_err *e) {
    struct making m = {.v = v};
    TRY(instances_find(base, v->glob, &m.found, e));
    bool ok = borrow_rows(v, base);
    for (uint32_t i = 0; ok && i < base->nsources; i++) ok = add_steps(&m, i);
    ok = ok && cut_steps(&m);
    instances_free(&m.found);
    return ok ? 0 : fail_oom(e);
}

static int view_make(const struct trace *base, const char *glob,
                     struct view **out, struct ops_err *e) {
    struct view *v = calloc(1, sizeof *v);
    if (v == NULL) return fail_oom(e);
    v->glob = strdup(glob);
    int rc = v->glob != NULL ? view_fill(v, base, e) : fail_oom(e);
    if (rc != 0) view_free(v);
    else *out = v;
    return rc;
}

/* Frees the views that nobody uses beyond those that are kept. The lock is
 * held. */
static void drop_old(struct views *all) {
    size_t n = 0;
    for (struct view **at = &all->list; *at != NULL;) {
        struct view *v = *at;
        if (++n <= KEPT || v->users > 0) {
            at = &v->next;
            continue;
        }
        *at = v->next;
        view_free(v);
    }
}

int trace_region(const struct trace *t, const char *glob,
                 const struct trace **view, struct ops_err *e) {
    assert(t->sealed && t->base == NULL);
    struct views *all = t->views;
    struct view *v = NULL;
    int rc = 0;
    pthread_mutex_lock(&all->lock);
    struct view **at = &all->list;
    while (*at != NULL && strcmp((*at)->glob, glob) != 0) at = &(*at)->next;
    if (*at != NULL) {
        v = *at;
        *at = v->next;
    } else {
        rc = view_make(t, glob, &v, e);
    }
    if (rc == 0) {
        v->next = all->list;
        all->list = v;
        v->users++;
        *view = &v->t;
        drop_old(all);
    }
    pthread_mutex_unlock(&all->lock);
    return rc;
}

void trace_region_done(const struct trace *view) {
    struct views *all = view->base->views;
    pthread_mutex_lock(&all->lock);
    ((struct view *)view)->users--;
    drop_old(all);
    pthread_mutex_unlock(&all->lock);
}

size_t trace_region_overlaps(const struct trace *view) {
    assert(view->base != NULL);
    return ((const struct view *)view)->overlaps;
}

struct views *views_new(void) {
    struct views *v = calloc(1, sizeof *v);
    if (v != NULL) pthread_mutex_init(&v->lock, NULL);
    return v;
}

void views_free(struct views *v) {
    if (v == NULL) return;
    for (struct view *next; v->list != NULL; v->list = next) {
        next = v->list->next;
        view_free(v->list);
    }
    pthread_mutex_destroy(&v->lock);
    free(v);
}
