/* SPDX-License-Identifier: Apache-2.0
 * Which span runs at an instant: see span_at.h. */
#include "model/span_at.h"

#include "base/array.h"
#include "model/trace.h"

/* Returns the first row of [lo, hi) that starts after ts. */
static row_id first_after(const struct trace *t, row_id lo, row_id hi,
                          int64_t ts) {
    return lo + (row_id)upper_bound(t->spans.ts + lo, hi - lo, ts);
}

/* Returns the innermost of those that hold ts, given the first that starts
 * after. */
static row_id innermost(const struct trace *t, const struct track *tr,
                        row_id after, int64_t ts) {
    if (after == tr->first) return ROW_NONE;
    row_id r = after - 1;
    for (int i = 0; r != ROW_NONE && span_end(t, r) <= ts; i++)
        r = i < CLIMB_MAX ? t->spans.parent[r] : ROW_NONE;
    return r;
}

row_id span_at(const struct trace *t, uint32_t track, int64_t ts) {
    if (track >= t->ntracks) return ROW_NONE;
    const struct track *tr = &t->tracks[track];
    return innermost(t, tr, first_after(t, tr->first, tr->end, ts), ts);
}

row_id span_at_near(const struct trace *t, uint32_t track, int64_t ts,
                    row_id *near) {
    if (track >= t->ntracks) return ROW_NONE;
    const struct track *tr = &t->tracks[track];
    row_id lo = tr->first, hi = tr->end, step = 16;
    if (*near > lo && *near < hi && t->spans.ts[*near] <= ts) {
        lo = *near;
        while (step < hi - lo && t->spans.ts[lo + step] <= ts) {
            lo += step;
            step *= 2;
        }
        if (step < hi - lo) hi = lo + step;
    }
    row_id after = first_after(t, lo, hi, ts);
    *near = after > tr->first ? after - 1 : tr->first;
    return innermost(t, tr, after, ts);
}
