/* SPDX-License-Identifier: Apache-2.0
 * Columns of HLO: see the header. */
#include "analyze/ops/hlo_cols.h"

#include "model/hlo/hlo.h"
#include <stdio.h>

void hlo_cols(struct result *r, unsigned scope_flags) {
    result_col(
        r,
        (struct column){
            "scope", NULL, NULL,
            "the operation of the program that XLA compiled it from, with the "
            "scopes around it",
            COL_TEXT, scope_flags});
    result_col(r, (struct column){"source", NULL, NULL,
                                  "the line of the program that it comes from",
                                  COL_TEXT, COL_DETAIL});
    result_col(r, (struct column){"program", NULL, NULL,
                                  "the program that XLA compiled it into",
                                  COL_TEXT, COL_DETAIL});
}

void hlo_cells(struct result *r, const struct trace *t,
               const struct hlo_instr *i, const char *program) {
    char source[1024];
    const struct strs *s = &t->strs;
    if (i == NULL) {
        result_null(r);
        result_null(r);
        result_text(r, program);
        return;
    }
    result_text(r, i->op_name ? strs_text(s, i->op_name) : NULL);
    size_t n = hlo_source_text(t, i, source, sizeof source);
    result_text(r, n > 0 ? source : NULL);
    str_id label = t->hlo->modules[i->module].label;
    result_text(r, label ? strs_text(s, label) : NULL);
}
