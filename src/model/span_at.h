/* SPDX-License-Identifier: Apache-2.0
 * Which span of a track runs at an instant. */
#ifndef MODEL_SPAN_AT_H
#define MODEL_SPAN_AT_H

#include "model/ids.h"
#include <stdint.h>

struct trace;

/* How far up a stack is looked: real ones are tens deep, deep recursion in
 * Python a thousand; a made-up file must not cost n times n. */
enum { CLIMB_MAX = 10000 };

/* Returns the innermost span of the track that runs at ts (start <= ts < end);
 * ROW_NONE if none does. O(log n + depth). */
row_id span_at(const struct trace *t, uint32_t track, int64_t ts);

/* Does the same for many instants in about the order of time: *near is the row
 * from which to look on (0 at first), and becomes one close to ts. O(log of the
 * distance + depth); an instant before *near costs a search of all. */
row_id span_at_near(const struct trace *t, uint32_t track, int64_t ts,
                    row_id *near);

#endif
