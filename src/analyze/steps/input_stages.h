/* SPDX-License-Identifier: Apache-2.0
 * The stages of the input pipeline: tf.data iterators, DataLoader waits and the
 * ops inside them, regions of hand-written loops, the thread that pins memory,
 * copies to the device. Each has its time, and the part of it for which the
 * device (without one: the step's thread) really waited. */
#ifndef ANALYZE_STEPS_INPUT_STAGES_H
#define ANALYZE_STEPS_INPUT_STAGES_H

#include "base/err.h"
#include "model/strs.h"
#include "model/trace.h"
#include "names/input_names.h"

struct selection;

struct input_stage {
    const char *name; /* iterators: the whole path, Iterator::Root::... */
    uint32_t parent;  /* index: who asks it for elements, or ROW_NONE */
    unsigned depth;   /* number of stages above */
    enum stage_kind kind;
    bool on_step; /* runs (also) on a step's own thread */
    int64_t calls;
    int64_t call;     /* ps: sum of its spans, with what they call there */
    int64_t self;     /* ps: without the stages inside, and with async */
    int64_t function; /* ps: the user's function, on all its threads */
    int64_t async;    /* ps: the part of it that ran elsewhere, less the
                            time that the caller waited for it: in `self`, not
                            in `call` */
    bool parallel;    /* the function ran on other threads */
    int64_t exposed;  /* ps: of self; the stages' sum is the input phase */
    int64_t busy;     /* ps: at least one thread was at work on it; a wait
                            for other threads is no work */
    int64_t threads;  /* that worked for it, of all sources */
    int64_t bytes;    /* STAGE_COPY: moved, or -1: not recorded */
    int pageable;     /* STAGE_COPY: 1, 0 or -1: not recorded */
};

struct input_stages {
    struct input_stage *v; /* in order: a stage stands before those it asks,
                              siblings by time */
    size_t n, cap;
    int64_t steps; /* of all sources that count, as the next four sums are */
    int64_t step_time; /* ps */
    int64_t exposed;   /* ps: the input phase of these steps */
    int64_t waited;    /* ps: somebody else than the step's thread waited
                              for a batch and nothing was computed meanwhile */
    int64_t unseen;    /* ps: nothing at all was recorded on the step's
                              thread between a marker's start and its first
                              event: could be input in plain Python */
    bool has_device;
    bool mean; /* exposed times are means of several devices' */
    struct strs names;
};

/* Finds the stages. O(host spans), but for arguments of executor spans, which
 * are read when there are parallel maps. */
int input_stages_init(struct input_stages *s, const struct trace *t,
                      const struct selection *in, struct ops_err *e);
void input_stages_free(struct input_stages *s);

static inline int64_t input_stage_total(const struct input_stage *s) {
    int64_t sum;
    return __builtin_add_overflow(s->call, s->async, &sum) ? INT64_MAX : sum;
}

#endif
