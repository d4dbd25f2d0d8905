/* SPDX-License-Identifier: Apache-2.0
 * What a span is for, by its name and its category (names/name_class.h);
 * seal worked it out once for each of them. */
#ifndef MODEL_SPAN_CLASS_H
#define MODEL_SPAN_CLASS_H

#include "model/trace.h"
#include "names/name_class.h"

/* Returns what a span is for: its name says it or, where the program that
 * recorded it said so itself, its category (see cat_classify). */
static inline uint16_t span_class(const struct trace *t, row_id r) {
    return t->name_class[t->spans.name[r]] | t->cat_class[span_cat(t, r)];
}

/* Is this span a collective or a transfer between ranks? */
static inline bool span_is_comm(const struct trace *t, row_id r) {
    uint16_t c = span_class(t, r);
    uint8_t k = t->spans.kind[r];
    return (c & CLASS_COMM) ||
           ((c & CLASS_COMM_HLO) && (k == SPAN_OP || k == SPAN_KERNEL));
}

/* Does this span wait for input, or is it a stage of the pipeline? The span of
 * an eager op is only its dispatch: the wait, IteratorGetNextOp::DoCompute,
 * stands inside it, and XProf counts that. */
static inline bool span_is_input(const struct trace *t, row_id r) {
    return (span_class(t, r) & CLASS_INPUT) &&
           !(t->spans.flags[r] & SPAN_EAGER);
}

/* Does this span mark a step, be it the one that the steps were made from or
 * another (on a second thread, or nested)? */
static inline bool span_is_step_mark(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    if (s->flags[r] & SPAN_STEPMARK) return true;
    return s->kind[r] == SPAN_ANNOTATION && !(s->flags[r] & SPAN_DERIVED) &&
           (span_class(t, r) & CLASS_STEP);
}

#endif
