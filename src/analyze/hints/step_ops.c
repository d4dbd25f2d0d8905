/* SPDX-License-Identifier: Apache-2.0
 * The line of a step as people see it: outermost ops one after the other, and
 * the pauses between them. */

#include "analyze/hints/hint.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/op_names.h"
#include <stdlib.h>

/* What stands around a span, and in it. */
struct around {
    uint32_t row;
    uint32_t root; /* outermost op, call or region of the framework */
    bool optimizer;
};

/* What was looked up last, by row: neighbours share what is around them. */
enum { SEEN = 4096, CLIMB = 10000 };

/* Looks outwards from row, up to a span that is in seen. */
static struct around climb(const struct trace *t, uint32_t row,
                           const struct around *seen) {
    struct around a = {row, ROW_NONE, false};
    for (int i = 0; row != ROW_NONE && i < CLIMB; i++) {
        const struct around *known = &seen[row % SEEN];
        if (known->row == row) {
            if (known->root != ROW_NONE) a.root = known->root;
            a.optimizer |= known->optimizer;
            return a;
        }
        uint8_t k = t->spans.kind[row];
        if (k != SPAN_ANNOTATION && !span_is_step_mark(t, row)) a.root = row;
        a.optimizer |= (span_class(t, row) & NAME_OPTIMIZER) &&
                       !BYTES_STARTS(strs_bytes(&t->strs, t->spans.name[row]),
                                     "Optimizer.zero_grad");
        row = t->spans.parent[row];
    }
    return a;
}

static bool add_ops(const struct trace *t, struct hint_step *s,
                    struct around *seen) {
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        const struct stop *stop = &s->d.stops[i];
        struct around a = {ROW_NONE, ROW_NONE, false};
        if (p->row != ROW_NONE) {
            uint32_t up = t->spans.parent[p->row];
            if (up != ROW_NONE) seen[up % SEEN] = climb(t, up, seen);
            a = seen[p->row % SEEN] = climb(t, p->row, seen);
        }
        struct step_op *last = s->nops > 0 ? &s->ops[s->nops - 1] : NULL;
        bool same = last && last->row == a.root && last->input == p->input &&
                    last->optimizer == a.optimizer;
        if (!same) {
            if (!VEC_ROOM(s->ops, s->nops, s->cap_ops)) return false;
            s->ops[s->nops++] = (struct step_op){.row = a.root,
                                                 .first = i,
                                                 .end = i,
                                                 .work = stop->first,
                                                 .optimizer = a.optimizer,
                                                 .input = p->input};
        }
        struct step_op *op = &s->ops[s->nops - 1];
        for (uint32_t w = stop->first; w < stop->end; w++) {
            uint8_t k = t->spans.kind[s->d.works[w].row];
            op->kernels += k == SPAN_KERNEL;
            op->copies += k == SPAN_COPY;
        }
        op->waits += stop->wait != DEP_NONE;
        op->end = i + 1;
        op->work_end = stop->end;
    }
    return true;
}

int step_ops_find(struct hint_step *s, const struct trace *t,
                  struct ops_err *e) {
    struct around *seen = malloc(SEEN * sizeof *seen);
    bool ok = seen != NULL;
    for (size_t i = 0; ok && i < SEEN; i++) seen[i].row = ROW_NONE;
    ok = ok && add_ops(t, s, seen);
    free(seen);
    if (!ok) return fail_oom(e);
    const struct deps *d = &s->d;
    size_t w = 0; /* the step's first kernel */
    while (w < d->nworks && t->spans.kind[d->works[w].row] != SPAN_KERNEL) w++;
    for (size_t i = 0; w < d->nworks && i < s->nops; i++)
        s->ops[i].lead = s->ops[i].end <= d->works[w].piece;
    return 0;
}
