/* SPDX-License-Identifier: Apache-2.0
 * What is asked of single spans: which of them runs at an instant, the words
 * for kinds and flags, and launch facts, which are interned texts of a
 * category. */
#include "base/array.h"
#include "model/trace_fill.h"
#include <assert.h>

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

static const char *const kinds[SPAN_KINDS] = {
    [SPAN_OTHER] = "other",           [SPAN_OP] = "op",
    [SPAN_ANNOTATION] = "annotation", [SPAN_API] = "api",
    [SPAN_PYTHON] = "python",         [SPAN_RUNTIME] = "runtime",
    [SPAN_KERNEL] = "kernel",         [SPAN_COPY] = "copy",
    [SPAN_MEMSET] = "memset",         [SPAN_SYNC] = "sync",
    [SPAN_OVERHEAD] = "overhead",
};

/* By bit number of enum span_flag. */
static const char *const flags_by_bit[8] = {
    NULL, NULL, "derived", "step", "open", "eager", NULL, NULL,
};

const char *kind_name(uint8_t kind) {
    return kinds[kind < SPAN_KINDS ? kind : SPAN_OTHER];
}

const char *flag_name(unsigned i) { return i < 8 ? flags_by_bit[i] : NULL; }

/* Takes the next word off. */
static struct bytes next_word(struct bytes *b) {
    while (b->n > 0 && *b->p == ' ') {
        b->p++;
        b->n--;
    }
    struct bytes w = {b->p, 0};
    while (b->n > 0 && *b->p != ' ') {
        b->p++;
        b->n--;
        w.n++;
    }
    return w;
}

static bool is(struct bytes w, const char *s) {
    return s != NULL && bytes_eq(w, s, strlen(s));
}

bool kind_parse(struct bytes words, uint8_t *kind, uint8_t *flags) {
    struct bytes w = next_word(&words);
    uint8_t k = 0;
    while (k < SPAN_KINDS && !is(w, kinds[k])) k++;
    if (k == SPAN_KINDS) return false;
    *kind = k;
    *flags = 0;
    while ((w = next_word(&words)).n > 0)
        for (unsigned i = 0; i < 8; i++)
            if (is(w, flags_by_bit[i])) *flags |= (uint8_t)(1u << i);
    return true;
}

uint32_t launch_cat(struct trace *t, const struct launch *l) {
    struct category c = {.hlo_op = trace_str(t, l->hlo_op),
                         .tf_op = trace_str(t, l->tf_op),
                         .details = trace_str(t, l->details),
                         .module = trace_str(t, l->module)};
    return trace_category(t, &c);
}

bool launch_of_cat(const struct trace *t, uint32_t cat, struct launch *out) {
    assert(cat < t->ncats);
    const struct category *c = &t->cats[cat];
    if (!c->hlo_op && !c->tf_op && !c->details && !c->module) return false;
    *out = (struct launch){strs_bytes(&t->strs, c->hlo_op),
                           strs_bytes(&t->strs, c->tf_op),
                           strs_bytes(&t->strs, c->details),
                           strs_bytes(&t->strs, c->module)};
    return true;
}
