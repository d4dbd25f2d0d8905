/* SPDX-License-Identifier: Apache-2.0
 * The line of a step as people see it: outermost ops one after the other, and
 * the pauses between them. */
#include "analyze/hint_tops.h"

#include "analyze/hint.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/opclass.h"
#include "model/trace.h"

/* What stands around a piece. */
struct around {
    uint32_t root;  /* outermost op, call or region of the framework */
    bool optimizer;
};

static struct around look_around(const struct trace *t, uint32_t row) {
    struct around a = {ROW_NONE, false};
    for (int i = 0; row != ROW_NONE && i < 10000; i++) {
        uint8_t k = t->spans.kind[row];
        struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
        if (k != SPAN_ANNOTATION && !span_is_step_mark(t, row)) a.root = row;
        if ((t->name_class[t->spans.name[row]] & NAME_OPTIMIZER) &&
            !BYTES_STARTS(name, "Optimizer.zero_grad"))
            a.optimizer = true;
        row = t->spans.parent[row];
    }
    return a;
}

static void count_works(const struct trace *t, const struct hint_step *s,
                        uint32_t piece, struct top *top) {
    const struct stop *p = &s->d.stops[piece];
    for (uint32_t w = p->first; w < p->end; w++) {
        uint8_t k = t->spans.kind[s->d.works[w].row];
        top->kernels += k == SPAN_KERNEL;
        top->copies += k == SPAN_COPY;
    }
    top->waits += p->wait != DEP_NONE;
    top->end = piece + 1;
}

/* The piece that launches the step's first kernel; all, if there is none. */
static uint32_t first_kernel(const struct trace *t, const struct deps *d) {
    for (size_t i = 0; i < d->nworks; i++)
        if (t->spans.kind[d->works[i].row] == SPAN_KERNEL)
            return d->works[i].piece;
    return 0;
}

int hint_tops(const struct trace *t, struct hint_step *s, struct ops_err *e) {
    uint32_t first = first_kernel(t, &s->d);
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        struct around a = look_around(t, p->row);
        struct top *last = s->ntops > 0 ? &s->tops[s->ntops - 1] : NULL;
        bool same = last && last->row == a.root && last->input == p->input &&
                    last->optimizer == a.optimizer;
        if (!same) {
            if (!VEC_ROOM(s->tops, s->ntops, s->cap_tops)) return fail_oom(e);
            s->tops[s->ntops++] = (struct top){
                .row = a.root, .first = i, .end = i, .lead = true,
                .optimizer = a.optimizer, .input = p->input};
        }
        count_works(t, s, i, &s->tops[s->ntops - 1]);
    }
    for (size_t i = 0; i < s->ntops; i++)
        s->tops[i].lead = s->tops[i].end <= first;
    return 0;
}
