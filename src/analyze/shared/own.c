/* SPDX-License-Identifier: Apache-2.0
 * Own times of device work: see own.h. */
#include "analyze/shared/own.h"

#include "analyze/shared/host_tree.h"
#include <stdlib.h>

static void spend(void *ctx, row_id row, int64_t from, int64_t to) {
    struct own_times *o = ctx;
    o->v[row - o->first] += to - from;
}

bool own_stretches(const struct trace *t, const struct track *tr,
                   own_spend *spend_on, void *ctx) {
    struct own w = {0};
    bool nests = track_nests(t, tr), ok = true;
    own_begin(&w, t->sources[tr->source].rounding_ps);
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        if (!span_is_device_work(t, r)) continue;
        if (!nests || (t->spans.flags[r] & SPAN_ASYNC)) {
            spend_on(ctx, r, t->spans.ts[r], span_end(t, r));
            continue;
        }
        own_until(&w, t->spans.ts[r], spend_on, ctx);
        own_cross(&w, span_end(t, r));
        ok = own_open(&w, r, span_end(t, r));
    }
    if (ok) own_until(&w, INT64_MAX, spend_on, ctx);
    free(w.v);
    return ok;
}

bool own_times_init(struct own_times *o, const struct trace *t,
                    const struct track *tr) {
    *o = (struct own_times){.t = t, .first = tr->first};
    if (!track_nests(t, tr)) return true;
    o->v = calloc(tr->end - tr->first + 1, sizeof *o->v);
    bool ok = o->v != NULL && own_stretches(t, tr, spend, o);
    if (!ok) own_times_free(o);
    return ok;
}

void own_times_free(struct own_times *o) {
    free(o->v);
    o->v = NULL;
}

bool own_each_work(const struct trace *t, own_take *take, void *ctx) {
    size_t link = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        struct own_times own;
        if (tr->kind != TRACK_STREAM) continue;
        ok = own_times_init(&own, t, tr);
        for (row_id r = tr->first; ok && r < tr->end; r++)
            if (span_is_device_work(t, r))
                ok = take(ctx, r, next_launch(t, r, &link), own_time(&own, r));
        own_times_free(&own);
    }
    return ok;
}
