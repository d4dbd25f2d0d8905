/* SPDX-License-Identifier: Apache-2.0
 * Self time by name within a set of times: a span adds what it has of them to
 * its own name and takes it from that of the span around it. */
#include "analyze/meanwhile.h"

#include "analyze/phases.h"
#include "base/sum.h"
#include "model/opclass.h"
#include <stdlib.h>

static bool is_wanted(const struct trace *t, row_id r, bool device) {
    if (t->spans.flags[r] & (SPAN_DERIVED | SPAN_ASYNC)) return false;
    if (device) return t->spans.kind[r] == SPAN_KERNEL && !span_is_comm(t, r);
    return !span_is_step_mark(t, r);
}

static void add_track(const struct trace *t, const struct track *tr,
                      bool device, const struct intervals *times,
                      int64_t *self) {
    const struct spans *s = &t->spans;
    int64_t from = times->v[0].start, to = times->v[times->n - 1].end;
    for (row_id r = tr->first; r < tr->end && s->ts[r] < to; r++) {
        if (span_end(t, r) <= from || !is_wanted(t, r, device)) continue;
        int64_t part = intervals_overlap(times, s->ts[r], span_end(t, r));
        row_id p = s->parent[r];
        while (p != ROW_NONE && !is_wanted(t, p, device)) p = s->parent[p];
        sum_add(&self[s->name[r]], part);
        if (p != ROW_NONE) sum_sub(&self[s->name[p]], part);
    }
}

/* Adds the tracks that can tell, by what the time mostly was; frames of
 * Python tell more than the ops that they call, so each is asked alone. */
static void add_tracks(const struct trace *t, const struct phase_view *v,
                       enum track_kind kind, uint32_t thread,
                       const struct intervals *times, int64_t *self) {
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[v->source]; k < l->first[v->source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != kind) continue;
        if (kind == TRACK_STREAM && tr->device != v->device) continue;
        if (kind == TRACK_THREAD && i != thread) continue;
        if (kind == TRACK_PYTHON && tr->thread != thread) continue;
        add_track(t, tr, kind == TRACK_STREAM, times, self);
    }
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
    uint32_t thread = phases_step_thread(t, v->source);
    bool device = m->phase == PHASE_COMPUTE && v->device != ROW_NONE;
    if (device) {
        add_tracks(t, v, TRACK_STREAM, ROW_NONE, times, self);
        pick(m, t, self);
    } else if (thread != ROW_NONE) {
        add_tracks(t, v, TRACK_PYTHON, thread, times, self);
        pick(m, t, self);
        struct meanwhile spans = {0};
        add_tracks(t, v, TRACK_THREAD, thread, times, self);
        pick(&spans, t, self);
        if (spans.name_ps > m->name_ps) {
            m->name = spans.name;
            m->name_ps = spans.name_ps;
        }
    }
    free(self);
    return true;
}
