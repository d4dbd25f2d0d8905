/* SPDX-License-Identifier: Apache-2.0
 * Columns of HLO: see the header. */
#include "analyze/ops/hlo_cols.h"

#include "base/array.h"
#include "model/hlo/hlo.h"

void hlo_cols(struct result *r, unsigned scope_flags) {
    const struct column cols[] = {
        {"scope", NULL, NULL,
         "the operation of the program that XLA compiled it from, with the "
         "scopes around it",
         COL_TEXT, scope_flags},
        {"source", NULL, NULL, "the line of the program that it comes from",
         COL_TEXT, COL_DETAIL},
        {"program", NULL, NULL, "the program that XLA compiled it into",
         COL_TEXT, COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

void hlo_cells(struct result *r, const struct trace *t,
               const struct hlo_instr *i, const char *program) {
    char source[1024];
    const struct strs *s = &t->strs;
    if (i == NULL) {
        cell_text(r, "program", program);
        return;
    }
    str_id label = t->hlo->modules[i->module].label;
    if (i->op_name) cell_text(r, "scope", strs_text(s, i->op_name));
    if (hlo_source_text(t, i, source, sizeof source) > 0)
        cell_text(r, "source", source);
    if (label) cell_text(r, "program", strs_text(s, label));
}
