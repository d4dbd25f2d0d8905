/* SPDX-License-Identifier: Apache-2.0
 * Columns that say where an instruction of XLA comes from: scope, source and
 * program. They are the same in every table that has them. */
#ifndef ANALYZE_OPS_HLO_COLS_H
#define ANALYZE_OPS_HLO_COLS_H

#include "model/result.h"

struct trace;
struct hlo_instr;

/* Adds the columns, scope with these flags. */
void hlo_cols(struct result *r, unsigned scope_flags);

/* Puts their cells for an instruction, or NULL; program is what the program is
 * called if it is not in the profile, or NULL. */
void hlo_cells(struct result *r, const struct trace *t,
               const struct hlo_instr *i, const char *program);

#endif
