/* SPDX-License-Identifier: Apache-2.0
 * The chosen steps of a source as a set of times. */
#include "analyze/shared/mem_scope.h"
#include "analyze/analyze.h"

int mem_scope_init(struct mem_scope *m, const struct selection *s,
                   uint32_t source, bool *in, struct ops_err *e) {
    *m = (struct mem_scope){.all = s->all || !s->by_step};
    *in = s->all || s->source_in[source];
    if (m->all || !*in) return 0;
    const struct source *src = &s->t->sources[source];
    for (size_t i = src->step_first; i < src->step_end; i++) {
        const struct step *st = &s->t->steps[i];
        if (!s->step_in[i]) continue;
        if (!intervals_add(&m->times, st->ts, st->ts + st->dur)) {
            mem_scope_free(m);
            return fail_oom(e);
        }
    }
    intervals_union(&m->times);
    return 0;
}

void mem_scope_free(struct mem_scope *m) { intervals_free(&m->times); }

bool mem_scope_has(const void *mem_scope, int64_t ts) {
    const struct mem_scope *m = mem_scope;
    return m->all || intervals_contain(&m->times, ts);
}
