/* SPDX-License-Identifier: Apache-2.0
 * Which names of input stages are one stage that is made anew for each
 * element. */
#ifndef ANALYZE_STEPS_STAGE_NAMES_H
#define ANALYZE_STEPS_STAGE_NAMES_H

#include "names/input_names.h"

struct map;
struct strs;
struct trace;

/* Names of spans of the input pipeline -> ids in `names`. A path with indices,
 * A::FlatMap[7]::B, of which there are too many becomes A::FlatMap[*]::B.
 * False: out of memory. O(names of the trace). */
bool stage_names_fold(const struct trace *t, struct strs *names,
                      struct map *fold);

#endif
