/* SPDX-License-Identifier: Apache-2.0
 * Fills the outermost ops of a step under study (hint.h). */
#ifndef ANALYZE_HINTS_HINT_TOPS_H
#define ANALYZE_HINTS_HINT_TOPS_H

struct hint_step;
struct ops_err;
struct trace;

/* s->tops, from s->d; they cover all pieces, in order. O(pieces), but for
 * pieces in turn on threads with many levels. */
int hint_tops(const struct trace *t, struct hint_step *s, struct ops_err *e);

#endif
