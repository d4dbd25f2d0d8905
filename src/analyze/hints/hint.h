/* SPDX-License-Identifier: Apache-2.0
 * What a hint is made of. A rule knows one fault: how to find it in a step,
 * what the step's plan is once it is repaired, and how to say it.
 * hints.c does the rest: the order, the savings, one after the other. Adding
 * a rule = one struct hint_rule and one line in hints.def. */
#ifndef ANALYZE_HINTS_HINT_H
#define ANALYZE_HINTS_HINT_H

#include "analyze/shared/missing.h"
#include "analyze/steps/deps.h"

struct trace;
struct device_peak;
struct compiles;
struct pystack;
struct copy_args;
struct result;

/* ---- plans (replay.c) ----
 *
 * How long a step would take if something in it were different: the step's
 * graph (deps.h) run forwards with changed durations. A plan starts as the
 * program without its profiler; a hint changes the plan. */

/* Durations in ps, by piece and by work of a deps. */
struct plan {
    const struct deps *d;
    int64_t *host; /* by piece; of a call that waits: its part after that */
    int64_t *work; /* by work; WORK_GONE: is not run at all */
    bool *go;      /* by piece: a call that would wait does not */
    bool *ahead;   /* by work: done for the next step, beside this one */
    int64_t stall; /* ps that the step bears of what happens in others */
};

#define WORK_GONE INT64_C(-1)

/* per_event is the ps that recording a host event cost (overhead.h); with 0 or
 * less the plan is as traced. */
int plan_init(struct plan *p, const struct deps *d, const struct trace *t,
              int64_t per_event, struct ops_err *e);
int plan_copy(struct plan *to, const struct plan *from, struct ops_err *e);
void plan_free(struct plan *p);

/* Makes to (of the same deps) what from is. */
void plan_assign(struct plan *to, const struct plan *from);

/* Runs the plan. Returns the ps from the step's begin to the end of its host
 * side and of all its device work, and its stall; -1 if out of memory. O(pieces
 * + works). */
int64_t replay(const struct plan *p);

/* ---- rules ---- */

/* The limits of all rules, each with its reason. */
enum hint_limit {
#define X(name, value, why) HINT_##name = value,
#include "analyze/hints/hint_limits.def"
#undef X
};

/* An outermost op of the line, or a pause between two of them. */
struct step_op {
    row_id row;              /* the op's row; ROW_NONE: no op */
    uint32_t first, end;     /* its pieces [first, end) of the line */
    uint32_t work, work_end; /* the works that these launch */
    uint32_t kernels;        /* kernels launched in it */
    uint32_t copies;         /* copies launched in it */
    uint32_t waits;          /* calls in it that wait for the device */
    bool optimizer;          /* in the optimizer's step */
    bool lead;               /* before the step's first kernel */
    bool input;              /* in the input pipeline */
};

/* One step under study. */
struct hint_step {
    struct deps d;
    struct plan now;     /* as it would be after the hints found so far */
    struct plan trial;   /* what a rule tries */
    struct step_op *ops; /* they cover all pieces of the line, in order */
    size_t nops, cap_ops;
    struct copy_args *copies; /* by work; COPY_KINDS as kind: it is none. Rules
                                 come again and again: read once */
    int64_t *joined; /* by piece, ps: what a small op of the CPU would take as
                        part of a larger one; -1: it is none. NULL where a
                        device works */
};

/* What a rule has seen, over all steps. */
struct hint_found {
    int64_t count; /* of the thing: syncs, copies, kernels */
    int64_t time;  /* ps */
    int64_t bytes;
    int64_t other;    /* a second count or time, as the rule likes */
    row_id row;       /* the dearest example, or ROW_NONE */
    int64_t row_time; /* what it takes */
    int64_t row_at;   /* an instant in it, for who called it */
};

/* All that rules look at. */
struct hint_case {
    const struct trace *t;
    uint32_t source; /* the one under study ... */
    size_t nranks;   /* ... of so many that have steps */
    bool waits;      /* it waits longest for the others */
    enum framework framework;
    const struct device_peak *peak; /* of the device, or NULL: not known */
    struct hint_step *steps;
    size_t nsteps;
    /* what other analyses found in the same scope; NULL if they were not run */
    const struct result *leaks, *memory, *ranks;
    size_t fragmented; /* hint_memory_read's row of memory, or SIZE_MAX */
    int64_t base;      /* ps, all steps without their profiler */
    const struct compiles *compiles; /* or NULL */
    const struct pystack *frames;
    bool host_exchange; /* collectives are carried out by the host: gloo, MPI */
    int64_t per_event;  /* ps, what recording an event cost; 0: not known */
};

enum { HINT_TEXT = 640 };

struct hint_words {
    char title[160], evidence[HINT_TEXT], repair[HINT_TEXT];
};

struct hint_rule {
    const char *id;         /* a word of docs/rules.md */
    const char *title;      /* what is slow, unless say() writes it */
    bool in_place;          /* plainly wrong and repaired where it stands;
                               else the program is to be restructured */
    bool always;            /* said even when it saves no time */
    const char *confidence; /* measured, simulated, assumed */
    const char *assumes;    /* what the saving takes for granted */
    const char *see;        /* the analysis to look at */
    const char *advice[FRAMEWORKS]; /* what to change, unless say() writes it;
                                       [FW_OTHER] stands for those that have
                                       none */
    /* Repairs s->trial; adds to f what it did. f stays as it is when there is
     * nothing to repair. */
    void (*repair)(const struct hint_case *c, struct hint_step *s,
                   struct hint_found *f);
    /* Writes the evidence, and title and repair where they are not fixed. */
    void (*say)(const struct hint_case *c, const struct hint_found *f,
                struct hint_words *w);
};

/* Returns what compiling again costs a step of the source in the mean, beyond
 * what the n chosen steps hold of it themselves. */
int64_t hint_compile_stall(const struct hint_case *c, const uint32_t *steps,
                           size_t n);

/* Sets fragmented, if memory was run: the row that is badly fragmented on a
 * device that is at least half full (hint_memory.c). */
int hint_memory_read(struct hint_case *c, struct ops_err *e);

/* Fills joined of all steps (hint_small.c). O(pieces log pieces). */
int hint_small_read(struct hint_case *c, struct ops_err *e);

/* Counts an example; the dearest is kept. */
void hint_saw(struct hint_found *f, row_id row, int64_t time);

/* Does the same for piece i of the line: a pause in a long region is somewhere
 * in it, not at its start. */
void hint_saw_piece(struct hint_found *f, const struct hint_step *s, uint32_t i,
                    row_id row, int64_t time);

/* Returns the host time of pieces [first, end) in the trial, without calls that
 * wait. */
int64_t hint_host(const struct hint_step *s, uint32_t first, uint32_t end);

/* Returns the longest of pieces [first, end), as traced; end > first. */
uint32_t hint_longest(const struct hint_step *s, uint32_t first, uint32_t end);

/* Takes pieces [first, end) out of the trial, with the waiting that they do.
 * With works, the work that they launch goes, too; without, pieces that launch
 * anything stay. Returns the host time taken. */
int64_t hint_remove(struct hint_step *s, uint32_t first, uint32_t end,
                    bool works);

/* Returns a mean per step in words: "1.2 ms". buf is 48 long. */
const char *hint_time(const struct hint_case *c, int64_t sum, char *buf);

/* Returns a count in words: "1 copy in 12 steps", "3 copies in 1 step". buf is
 * 48 long. */
const char *hint_count(const struct hint_case *c, int64_t n, const char *one,
                       const char *many, char *buf);

/* Returns the name of a row; "" for ROW_NONE and for markers of steps, whose
 * names say nothing. */
const char *hint_name(const struct hint_case *c, row_id row);

/* Returns where in the Python code the dearest example is, ", called from
 * train.py(12): step", or "" where no stack was recorded. buf is HINT_TEXT
 * long. */
const char *hint_where(const struct hint_case *c, const struct hint_found *f,
                       char *buf);

#endif
