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

/* What programs do in words of their framework's own. */
enum advice {
    ADVICE_STEPS,  /* mark steps */
    ADVICE_REGION, /* name a region */
    ADVICE_WAIT,   /* wait for the device before the profiler stops */
    ADVICE_ROOM,   /* lose fewer records of the device */
    ADVICE_OP,     /* make an op of what is launched by hand */
    ADVICE_GRAPH,  /* launch a graph's kernels one by one */
    ADVICE_FUSED,  /* run what is compiled as it was written */
    ADVICE_ALLOC,  /* allocate by the framework's allocator */
    ADVICE_PIECES, /* see how an allocator's memory is cut */
    ADVICE_HLO,    /* keep compiled programs */
    ADVICES,
};

/* What a recording lacks that no framework's tracer is beside. */
#define MISSING_UNTRACED                                                       \
    "the framework's tracer has it, of steps that end before the program "     \
    "does: "

/* Is all there is opscope's own recording of a program in Python? What a
 * framework's tracer would have told is missing. */
bool missing_own_python(const struct trace *t);

/* Has a recording that stands beside the profiles what they lack? */
bool missing_is_beside(const struct trace *t, enum missing_what what);

/* Returns the words for the framework of the first profile in the trace; NULL
 * where nothing is to be done. */
const char *missing_advice(const struct trace *t, enum advice what);

/* Returns how to have more than what was seen of a program from outside. */
const char *missing_inside_fix(const struct trace *t);

/* Returns how many calls launched device work in sources that have none of it:
 * they were cut, or the device could not be recorded. O(spans). */
int64_t missing_launches(const struct trace *t);

/* Says once that the thing is missing, unless every source has it. Returns
 * whether some source has it. The second is for tables whose question can be
 * answered without it: see result_lacks. */
bool missing_say(struct result *r, const struct trace *t,
                 enum missing_what what);
bool missing_too(struct result *r, const struct trace *t,
                 enum missing_what what);

#endif
