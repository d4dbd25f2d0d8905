/* SPDX-License-Identifier: Apache-2.0
 * Which framework's program a profile is of; and what the profile does not
 * have, why, and how to have it next time. */
#ifndef ANALYZE_SHARED_MISSING_H
#define ANALYZE_SHARED_MISSING_H

#include "model/format.h"
#include <stdbool.h>
#include <stdint.h>

struct result;
struct trace;

/* What recording costs a program, and the words in which it is advised, depend
 * on its framework. */
enum framework { FW_TORCH, FW_TF, FW_JAX, FW_OTHER, FRAMEWORKS };

/* Returns the framework by the source's format and, where two frameworks write
 * the same format, by what only one of them records. */
enum framework framework_of(const struct trace *t, uint32_t source);

/* Did opscope's own recorder write all of the profile? Then advice names the
 * calls of record.h. */
bool missing_own(const struct trace *t);

/* Was that thing recorded in that source? */
bool missing_has(const struct trace *t, uint32_t source,
                 enum missing_what what);

/* Return why a source lacks that thing, and how to have it next time. */
const char *missing_why(enum missing_what what);
const char *missing_fix(const struct trace *t, uint32_t source,
                        enum missing_what what);

/* Returns how to have steps next time, where a profile has none at all. */
const char *missing_step_fix(const struct trace *t);

/* Says once that the thing is missing, unless every source has it. Returns
 * whether some source has it. */
bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what);

#endif
