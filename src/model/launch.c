/* SPDX-License-Identifier: Apache-2.0
 * Launch facts are interned texts of a category. */
#include "model/launch.h"

#include "model/trace_fill.h"
#include <assert.h>

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
