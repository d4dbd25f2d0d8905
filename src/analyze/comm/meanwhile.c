/* SPDX-License-Identifier: Apache-2.0
 * Own time (own.h) by name within a set of times. */
#include "analyze/comm/meanwhile.h"

#include "analyze/shared/own.h"
#include "analyze/shared/phases.h"
#include "base/sum.h"
#include "model/span_class.h"
#include <stdlib.h>

static bool is_wanted(const struct trace *t, row_id r, bool device) {
    if (t->spans.flags[r] & (SPAN_DERIVED | SPAN_ASYNC)) return false;
    if (device) return t->spans.kind[r] == SPAN_KERNEL && !span_is_comm(t, r);
    return !span_is_step_mark(t, r);
}

/* The times, and the sums by name. */
struct within {
    const struct trace *t;
    const struct intervals *times;
    int64_t *self;
};

static void spend(void *ctx, row_id r, int64_t from, int64_t to) {
    const struct within *x = ctx;
    sum_add(&x->self[x->t->spans.name[r]],
            intervals_overlap(x->times, from, to));
}

static bool add_track(const struct within *x, const struct track *tr) {
    const struct trace *t = x->t;
    const struct intervals *times = x->times;
    const struct spans *s = &t->spans;
    int64_t from = times->v[0].start, to = times->v[times->n - 1].end;
    bool device = tr->kind == TRACK_STREAM, nests = track_nests(t, tr);
    bool ok = true;
    struct own w = {0};
    own_begin(&w, t->sources[tr->source].slack);
    for (row_id r = tr->first; ok && r < tr->end && s->ts[r] < to; r++) {
        int64_t end = span_end(t, r);
        if (end <= from || !is_wanted(t, r, device)) continue;
        if (!nests) {
            spend((void *)x, r, s->ts[r], end);
            continue;
        }
        own_until(&w, s->ts[r], spend, (void *)x);
        own_cross(&w, end);
        ok = own_open(&w, r, end);
    }
    if (ok) own_until(&w, INT64_MAX, spend, (void *)x);
    free(w.v);
    return ok;
}

/* Adds the tracks that can tell, by what the time mostly was; frames of
 * Python tell more than the ops that they call, so each is asked alone. */
static bool add_tracks(const struct within *x, const struct phase_view *v,
                       enum track_kind kind, uint32_t thread) {
    const struct trace *t = x->t;
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[v->source]; k < l->first[v->source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != kind) continue;
        if (kind == TRACK_STREAM && tr->device != v->device) continue;
        if (kind == TRACK_THREAD && i != thread) continue;
        if (kind == TRACK_PYTHON && tr->thread != thread) continue;
        if (!add_track(x, tr)) return false;
    }
    return true;
}

static void pick(struct meanwhile *m, const struct trace *t, int64_t *self) {
    for (size_t i = 0; i < t->strs.n; i++) {
        if (self[i] > m->name_ps) {
            m->name_ps = self[i];
            m->name = (str_id)i;
        }
        self[i] = 0;
    }
}

static void find_phase(struct meanwhile *m, const struct phase_view *v,
                       const struct intervals *times) {
    int64_t sums[PHASES] = {0}, parts[PHASES];
    for (size_t i = 0; i < times->n; i++) {
        phases_split(v, times->v[i].start, times->v[i].end, parts);
        for (int k = 0; k < PHASES; k++) sum_add(&sums[k], parts[k]);
    }
    for (int k = 0; k < PHASES; k++)
        if (sums[k] > sums[m->phase]) m->phase = k;
    m->phase_ps = sums[m->phase];
}

bool meanwhile_find(struct meanwhile *m, const struct trace *t,
                    const struct phase_view *v, const struct intervals *times) {
    *m = (struct meanwhile){.phase = PHASE_OTHER};
    if (times->n == 0) return true;
    find_phase(m, v, times);
    int64_t *self = calloc(t->strs.n + 1, sizeof *self);
    if (self == NULL) return false;
    struct within x = {t, times, self};
    uint32_t thread = phases_step_thread(t, v->source);
    bool device = m->phase == PHASE_COMPUTE && v->device != ROW_NONE, ok = true;
    if (device) {
        ok = add_tracks(&x, v, TRACK_STREAM, ROW_NONE);
        pick(m, t, self);
    } else if (thread != ROW_NONE) {
        ok = add_tracks(&x, v, TRACK_PYTHON, thread);
        pick(m, t, self);
        struct meanwhile spans = {0};
        ok = ok && add_tracks(&x, v, TRACK_THREAD, thread);
        pick(&spans, t, self);
        if (spans.name_ps > m->name_ps) {
            m->name = spans.name;
            m->name_ps = spans.name_ps;
        }
    }
    free(self);
    return ok;
}
