/* SPDX-License-Identifier: Apache-2.0
 * A record of "Stream Wait Event" or "Event Sync" has the stream on which the
 * event was recorded and the number of the call that recorded it; one of
 * "Stream Sync" the stream alone. The record of "Context Sync" names nothing:
 * all streams are waited for. */
#include "analyze/steps/sync_waits.h"

#include "base/map.h"
#include "base/vec.h"
#include "model/args.h"
#include "names/pattern.h"
#include <stdlib.h>

void sync_waits_free(struct sync_waits *w) {
    free(w->v);
    *w = (struct sync_waits){0};
}

/* What the arguments of a record say; -1: nothing. */
struct sync_args {
    int64_t device, stream, on, record;
    struct bytes kind;
};

static int64_t number(const struct arg *v) {
    if (v->type == ARG_INT) return v->i;
    return v->type == ARG_UINT && v->u <= INT64_MAX ? (int64_t)v->u : -1;
}

static bool pick(void *ctx, struct bytes key, const struct arg *v) {
    struct sync_args *a = ctx;
    if (BYTES_IS(key, "device")) a->device = number(v);
    else if (BYTES_IS(key, "stream")) a->stream = number(v);
    else if (BYTES_IS(key, "wait_on_stream")) a->on = number(v);
    else if (BYTES_IS(key, "wait_on_cuda_event_record_corr_id"))
        a->record = number(v);
    else if (BYTES_IS(key, "cuda_sync_kind")) a->kind = v->text;
    return true;
}

/* Adds the wait of a record, its `before` still the number of the call that
 * recorded the event. Returns false if out of memory. */
static bool add_wait(struct sync_waits *w, const struct trace *t, row_id r) {
    struct sync_args a = {-1, -1, -1, -1, {NULL, 0}};
    args_each(t, r, pick, &a);
    struct sync_wait x = {.ts = t->spans.ts[r], .device = a.device};
    if (a.on >= 0 && a.record >= 0) {
        bool stream = BYTES_IS(a.kind, "Stream Wait Event");
        x.waiting = stream ? a.stream : -1;
        x.on = a.on;
        x.before = a.record;
        if (stream && a.stream < 0) return true;
    } else if (BYTES_STARTS(a.kind, "Stream Sync") && a.stream >= 0) {
        x.waiting = -1;
        x.on = a.stream;
        x.before = -1;
    } else {
        return true;
    }
    if (!VEC_ROOM(w->v, w->n, w->cap)) return false;
    w->v[w->n++] = x;
    return true;
}

/* Notes when the events were recorded, by the number of the call. */
static bool find_records(const struct trace *t, const struct track *tr,
                         int64_t ts, int64_t end, struct map *at) {
    row_id r = trace_row_at(t, tr, ts), stop = trace_row_at(t, tr, end);
    for (; r < stop; r++) {
        if (t->spans.kind[r] != SPAN_API ||
            !word_in("EventRecord", strs_bytes(&t->strs, t->spans.name[r])))
            continue;
        struct arg a = args_get(t, r, "correlation");
        int64_t id = number(&a);
        if (id >= 0 && !map_set(at, (uint64_t)id, r)) return false;
    }
    return true;
}

static int by_time(const void *a, const void *b) {
    const struct sync_wait *x = a, *y = b;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

int sync_waits_find(struct sync_waits *w, const struct trace *t,
                    uint32_t source, int64_t ts, int64_t end,
                    struct ops_err *e) {
    const struct lists *l = &t->of_source;
    size_t from = l->first[source], to = l->first[source + 1];
    struct map records = {0};
    bool ok = true;
    *w = (struct sync_waits){0};
    for (size_t k = from; ok && k < to; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_ASYNC) continue;
        row_id r = trace_row_at(t, tr, ts), stop = trace_row_at(t, tr, end);
        for (; ok && r < stop; r++)
            if (t->spans.kind[r] == SPAN_SYNC) ok = add_wait(w, t, r);
    }
    for (size_t k = from; ok && w->n > 0 && k < to; k++)
        if (t->tracks[l->v[k]].kind == TRACK_THREAD)
            ok = find_records(t, &t->tracks[l->v[k]], ts, end, &records);
    for (size_t i = 0; ok && i < w->n; i++) {
        struct sync_wait *x = &w->v[i];
        uint32_t row = x->before < 0 ? MAP_NONE
                                     : map_get(&records, (uint64_t)x->before);
        x->before = x->before < 0     ? x->ts
                    : row != MAP_NONE ? t->spans.ts[row]
                                      : INT64_MIN;
    }
    map_free(&records);
    if (ok && w->n > 1) qsort(w->v, w->n, sizeof *w->v, by_time);
    if (!ok) sync_waits_free(w);
    return ok ? 0 : fail_oom(e);
}
