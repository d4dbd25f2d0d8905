/* SPDX-License-Identifier: Apache-2.0
 * What a name says: the one place where names of ops, calls, kernels and
 * regions are understood. Worked out once per distinct name, at seal, into
 * trace->name_class. Adding a library's spelling = one row in opclass.c. */
#ifndef MODEL_OPCLASS_H
#define MODEL_OPCLASS_H

#include "base/bytes.h"
#include "model/trace.h"
#include <stdint.h>

enum name_class {
    NAME_COMM = 1,        /* a collective or transfer between ranks */
    NAME_INPUT = 2,       /* the input pipeline: tf.data, DataLoader */
    NAME_STEP = 4,        /* a step marker: ProfilerStep#N, Profiled batch */
    NAME_LAUNCH = 8,      /* API: puts work on a device (kernel, graph) */
    NAME_COPY = 16,       /* API: a copy or fill; device: a copy */
    NAME_SYNC = 32,       /* API: waits for the device */
    NAME_TENSOR_CORE = 64, /* kernel: uses matrix units */
    NAME_ALLOC = 128,     /* API: allocates or frees memory */
    NAME_OPTIMIZER = 256, /* Optimizer.step#..., optimizer regions */
    NAME_BACKWARD = 512,  /* backward pass: autograd nodes */
    NAME_ITERATOR = 1024, /* a tf.data iterator: Iterator::... */
    NAME_GRAPH = 2048,    /* API: launches a whole graph (cudaGraphLaunch) */
    NAME_WRAPPER = 4096,  /* framework wrapper around an op: EagerExecute */
    NAME_COMM_HLO = 8192, /* an HLO collective, if an op: compiler passes have
                             such names, too */
    NAME_COMM_CPU = 16384, /* a collective that the host itself carries out
                              (gloo, MPI), not the call that starts one */
    NAME_EPOCH = 32768,   /* an epoch around steps: a mark, no work */
};

/* What a span is for: its name says it or, where the program that recorded it
 * said so itself, its category (see cat_classify). */
static inline uint16_t span_class(const struct trace *t, row_id r) {
    return t->name_class[t->spans.name[r]] | t->cat_class[t->spans.cat[r]];
}

/* Is this span a collective or a transfer between ranks? */
static inline bool span_is_comm(const struct trace *t, row_id r) {
    uint16_t c = span_class(t, r);
    uint8_t k = t->spans.kind[r];
    return (c & NAME_COMM) ||
           ((c & NAME_COMM_HLO) && (k == SPAN_OP || k == SPAN_KERNEL));
}

/* Does this span wait for input, or is it a stage of the pipeline? The span of
 * an eager op is its dispatch: the wait, IteratorGetNextOp::DoCompute, stands
 * inside it, and XProf counts that. */
static inline bool span_is_input(const struct trace *t, row_id r) {
    return (span_class(t, r) & NAME_INPUT) &&
           !(t->spans.flags[r] & SPAN_EAGER);
}

/* Does this span mark a step, be it the one that the steps were made from or
 * another (on a second thread, or nested)? */
static inline bool span_is_step_mark(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    if (s->flags[r] & SPAN_STEPMARK) return true;
    return s->kind[r] == SPAN_ANNOTATION && !(s->flags[r] & SPAN_DERIVED) &&
           (span_class(t, r) & NAME_STEP);
}

/* The class bits of a name. O(length); no state. */
uint16_t name_classify(struct bytes name);

/* The categories of what opscope's own recorder wrote (enum ops_kind of
 * record.h): "ops_input", "ops_comm", "ops_copy", "ops_wait", "ops_phase",
 * "ops_epoch". They survive a conversion to Chrome JSON and back. */
uint16_t cat_classify(struct bytes cat);

/* ProfilerStep#12 -> 12; any text with a number after its last '#' or blank;
 * -1: none. */
int64_t name_step_number(struct bytes name);

/* Grouping as the frameworks do: ProfilerStep#3 -> ProfilerStep*. Returns the
 * length of the prefix to keep followed by '*', or 0: keep the name. */
size_t name_group_prefix(struct bytes name);

#endif
