/* SPDX-License-Identifier: Apache-2.0
 * What a profile does not have, why, and how to have it next time, in the
 * words of the framework that wrote it. */
#ifndef ANALYZE_SHARED_MISSING_H
#define ANALYZE_SHARED_MISSING_H

#include "model/format.h"
#include "model/result.h"
#include <stdint.h>

/* Did opscope's own recorder write it, all of it? Then advice names the calls
 * of record.h. */
bool missing_own(const struct trace *t);

/* Was it recorded in that source? */
bool missing_has(const struct trace *t, uint32_t source,
                 enum missing_what what);

/* Why that source lacks it, and how to have it. */
const char *missing_why(enum missing_what what);
const char *missing_fix(const struct trace *t, uint32_t source,
                        enum missing_what what);

/* How to have steps next time, where a profile has none at all. */
const char *missing_step_fix(const struct trace *t);

/* Says so once, unless every source has it. True: some source has it. */
bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what);

#endif
