/* SPDX-License-Identifier: Apache-2.0
 * Python frames stand on tracks of their own; an op's stack is what is open
 * there at the op's start. */
#include "analyze/shared/pystack.h"
#include "model/trace.h"
#include "names/frame_name.h"
#include <stdlib.h>

int pystack_init(struct pystack *p, const struct trace *t, struct ops_err *e) {
    *p = (struct pystack){.t = t};
    p->python = malloc((t->ntracks + 1) * sizeof *p->python);
    if (!p->python) return fail_oom(e);
    for (size_t i = 0; i < t->ntracks; i++) p->python[i] = ROW_NONE;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind == TRACK_PYTHON && tr->thread < t->ntracks)
            p->python[tr->thread] = (uint32_t)i;
    }
    return 0;
}

void pystack_free(struct pystack *p) {
    free(p->python);
    *p = (struct pystack){0};
}

/* The first row of [lo, hi) that starts after ts. */
static row_id first_after(const struct trace *t, row_id lo, row_id hi,
                          int64_t ts) {
    while (lo < hi) {
        row_id mid = lo + (hi - lo) / 2;
        if (t->spans.ts[mid] <= ts) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The innermost of those that hold ts, given the first that starts after. */
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

row_id pystack_at(const struct pystack *p, uint32_t thread, int64_t ts) {
    if (thread >= p->t->ntracks) return ROW_NONE;
    return span_at(p->t, p->python[thread], ts);
}

size_t pystack_text(const struct pystack *p, uint32_t thread, int64_t ts, int n,
                    char *buf, size_t cap) {
    size_t len = 0;
    buf[0] = '\0';
    row_id r = pystack_at(p, thread, ts);
    for (int i = 0; i < n && r != ROW_NONE; i++, r = p->t->spans.parent[r]) {
        struct bytes b = strs_bytes(&p->t->strs, p->t->spans.name[r]);
        size_t sep = i > 0 ? 3 : 0;
        if (sep + b.n >= cap - len) break;
        memcpy(buf + len, " < ", sep);
        memcpy(buf + len + sep, b.p, b.n);
        len += sep + b.n;
        buf[len] = '\0';
    }
    return len;
}

row_id pystack_module(const struct pystack *p, uint32_t thread, int64_t ts) {
    row_id r = pystack_at(p, thread, ts);
    for (int i = 0; i < CLIMB_MAX && r != ROW_NONE; i++) {
        struct bytes b = strs_bytes(&p->t->strs, p->t->spans.name[r]);
        if (frame_name_is_module(b)) return r;
        r = p->t->spans.parent[r];
    }
    return ROW_NONE;
}
