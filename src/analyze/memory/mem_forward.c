/* SPDX-License-Identifier: Apache-2.0
 * An op's "Sequence number" is that of the next node to be made, so an op made
 * the nodes from its own number to the next op's. Numbers rise with time: the
 * op of a node is found by bisection, and few arguments are read. Ops that
 * record no gradient carry no number and are stepped over. */
#include "analyze/memory/mem_forward.h"

#include "base/vec.h"
#include "model/args.h"
#include "model/span_class.h"
#include "model/trace.h"
#include <stdlib.h>

/* What is known of an op's number. */
struct forward_number {
    int64_t own;  /* its sequence number; -1: it has none; NOT_READ */
    int64_t last; /* which op near before it, or itself, is the last that has
                     one; -1: none; NOT_READ */
};

#define NOT_READ INT64_MIN

void mem_forward_free(struct mem_forward *f) {
    for (size_t i = 0; f->of && i < f->t->nsources; i++) {
        free(f->of[i].v);
        free(f->of[i].number);
    }
    free(f->of);
    *f = (struct mem_forward){0};
}

int mem_forward_init(struct mem_forward *f, const struct trace *t,
                     struct ops_err *e) {
    *f = (struct mem_forward){.t = t};
    f->of = calloc(t->nsources + 1, sizeof *f->of);
    bool ok = f->of != NULL;
    for (size_t i = 0; ok && i < t->nsteps; i++) {
        const struct step *s = &t->steps[i];
        struct forward_ops *ops = &f->of[s->source];
        if (s->thread == ROW_NONE || ops->taken) continue;
        ops->taken = true;
        const struct track *tr = &t->tracks[s->thread];
        size_t cap = 0;
        /* Rows stand parent before child: what starts before the last outermost
         * op ended is inside it. */
        int64_t end = INT64_MIN;
        for (row_id r = tr->first; ok && r < tr->end; r++) {
            if (t->spans.kind[r] != SPAN_OP || t->spans.ts[r] < end) continue;
            end = span_end(t, r);
            if (span_class(t, r) & CLASS_BACKWARD) continue;
            ok = VEC_ROOM(ops->v, ops->n, cap);
            if (ok) ops->v[ops->n++] = r;
        }
        ops->number = malloc((ops->n + 1) * sizeof *ops->number);
        ok = ok && ops->number != NULL;
        for (size_t k = 0; ok && k < ops->n; k++)
            ops->number[k] = (struct forward_number){NOT_READ, NOT_READ};
    }
    if (ok) return 0;
    mem_forward_free(f);
    return fail_oom(e);
}

static int64_t number_of(const struct trace *t, struct forward_ops *ops,
                         size_t i) {
    int64_t *own = &ops->number[i].own;
    if (*own == NOT_READ) {
        *own = args_int(t, ops->v[i], "Sequence number", -1);
        if (*own < 0) *own = -1;
    }
    return *own;
}

/* Returns the last op up to i that has a number, or -1. */
static int64_t last_numbered(const struct trace *t, struct forward_ops *ops,
                             size_t i) {
    enum { NEAR = 256 }; /* ops in a row without a number, at most */
    int64_t *last = &ops->number[i].last;
    if (*last == NOT_READ) {
        size_t k = 0;
        while (k < NEAR && k <= i && number_of(t, ops, i - k) < 0) k++;
        *last = k < NEAR && k <= i ? (int64_t)(i - k) : -1;
    }
    return *last;
}

row_id mem_forward_op(const struct mem_forward *f, row_id backward) {
    const struct trace *t = f->t;
    uint32_t source = t->tracks[t->spans.track[backward]].source;
    struct forward_ops *ops = &f->of[source];
    int64_t want = args_int(t, backward, "Sequence number", -1);
    size_t lo = 0, hi = ops->n, found = SIZE_MAX;
    if (want < 0) return ROW_NONE;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int64_t at = last_numbered(t, ops, mid);
        bool has = at >= (int64_t)lo;
        if (has && number_of(t, ops, (size_t)at) > want) {
            hi = (size_t)at;
        } else {
            if (has) found = (size_t)at;
            lo = mid + 1;
        }
    }
    return found == SIZE_MAX ? ROW_NONE : ops->v[found];
}
