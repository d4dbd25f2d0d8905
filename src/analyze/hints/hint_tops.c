/* SPDX-License-Identifier: Apache-2.0
 * The line of a step as people see it: outermost ops one after the other, and
 * the pauses between them. */
#include "analyze/hints/hint_tops.h"

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

static bool in_optimizer(const struct trace *t, uint32_t row) {
    struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
    return (span_class(t, row) & NAME_OPTIMIZER) && !name_is_zero_grad(name);
}

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
        a.optimizer |= in_optimizer(t, row);
        row = t->spans.parent[row];
    }
    return a;
}

static struct around look_around(const struct trace *t, uint32_t row,
                                 struct around *seen) {
    if (row == ROW_NONE) return (struct around){ROW_NONE, ROW_NONE, false};
    uint32_t parent = t->spans.parent[row];
    if (parent != ROW_NONE) seen[parent % SEEN] = climb(t, parent, seen);
    return seen[row % SEEN] = climb(t, row, seen);
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
    top->work_end = p->end;
}

/* The piece that launches the step's first kernel, or 0: no piece comes before
 * it, if there is none. */
static uint32_t first_kernel(const struct trace *t, const struct deps *d) {
    for (size_t i = 0; i < d->nworks; i++)
        if (t->spans.kind[d->works[i].row] == SPAN_KERNEL)
            return d->works[i].piece;
    return 0;
}

static bool fill(const struct trace *t, struct hint_step *s,
                 struct around *seen) {
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        struct around a = look_around(t, p->row, seen);
        struct top *last = s->ntops > 0 ? &s->tops[s->ntops - 1] : NULL;
        bool same = last && last->row == a.root && last->input == p->input &&
                    last->optimizer == a.optimizer;
        if (!same) {
            if (!VEC_ROOM(s->tops, s->ntops, s->cap_tops)) return false;
            s->tops[s->ntops++] = (struct top){.row = a.root,
                                               .first = i,
                                               .end = i,
                                               .work = s->d.stops[i].first,
                                               .optimizer = a.optimizer,
                                               .input = p->input};
        }
        count_works(t, s, i, &s->tops[s->ntops - 1]);
    }
    return true;
}

int hint_tops(const struct trace *t, struct hint_step *s, struct ops_err *e) {
    struct around *seen = malloc(SEEN * sizeof *seen);
    bool ok = seen != NULL;
    for (size_t i = 0; ok && i < SEEN; i++) seen[i].row = ROW_NONE;
    ok = ok && fill(t, s, seen);
    free(seen);
    if (!ok) return fail_oom(e);
    uint32_t first = first_kernel(t, &s->d);
    for (size_t i = 0; i < s->ntops; i++)
        s->tops[i].lead = s->tops[i].end <= first;
    return 0;
}
