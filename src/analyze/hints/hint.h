/* SPDX-License-Identifier: Apache-2.0
 * What a hint is made of. A rule knows one fault: how to find it in a step,
 * what the step's plan is once it is repaired, and how to say it.
 * hints.c does the rest: the order, the savings, one after the other. Adding
 * a rule = one struct hint_rule and one line in hints.def. */
#ifndef ANALYZE_HINTS_HINT_H
#define ANALYZE_HINTS_HINT_H

#include "analyze/shared/missing.h"
#include "analyze/steps/replay.h"
#include "names/kernel_names.h"

struct trace;
struct device_peak;
struct compiles;
struct pystack;
struct copy_args;
struct result;

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
    bool once;               /* a pause that most steps do not have there */
};

/* Attention that is written out, forward or its gradient: pieces [first, end)
 * of the line from its first product to its last. */
struct attention {
    uint32_t first, end;
    bool backward;
    row_id softmax;
    int64_t bytes; /* of the scores; -1: no shapes */
    double flops;  /* of its products; -1: no shapes */
    uint8_t type;  /* enum dtype of what they multiply */
};

/* What a piece of device work is for. */
struct moved {
    row_id op;     /* the innermost op that launched it, or ROW_NONE */
    int64_t least; /* ps that the device's memory needs for all that the op
                      reads and writes, each tensor once; -1: not known */
    struct kernel_kind kind; /* of its name */
};

/* The op without ops inside it that a piece of the line is part of. */
struct leaf {
    row_id op; /* or ROW_NONE */
    enum leaf_kind {
        LEAF_NONE, /* a view, a call, a pause: nothing that takes long */
        LEAF_POINTWISE,
        LEAF_REDUCE, /* sums, norms and moves */
        LEAF_OTHER,
    } kind;
};

/* One step under study. */
struct hint_step {
    struct deps d;
    struct plan now;     /* as it would be after the hints found so far */
    struct plan trial;   /* what a rule tries */
    struct step_op *ops; /* they cover all pieces of the line, in order */
    size_t nops, cap_ops;
    uint32_t *named; /* those that are no pauses */
    size_t nnamed;
    struct copy_args *copies; /* by work; COPY_KINDS as kind: it is none. Rules
                                 come again and again: read once */
    struct moved *moved;      /* by work */
    struct leaf *leaves;      /* by piece; NULL where a device works */
    int64_t *joined; /* by piece, ps: what a small op of the CPU would take as
                        part of a larger one; -1: it is none. NULL where a
                        device works */
    struct attention *attentions; /* in the order of the line */
    size_t nattentions, cap_attentions;
    uint8_t *parts; /* by piece: what it is of one (enum attention_part); NULL
                       where there is none */
    uint8_t *again; /* by piece, enum again; NULL: nothing runs again */
    int64_t again_bytes; /* what that would keep in memory if it ran once; -1:
                            memory was not recorded */
    int64_t *jitted; /* by piece, ps: what stays of it when the step's ops are
                        compiled into one function; NULL where they do not run
                        one by one */
};

/* Forward ops that run again inside backward. */
enum again { AGAIN_NOT, AGAIN_FIRST /* of a run */, AGAIN };

/* What a rule has seen, over all steps. */
struct hint_found {
    bool told;     /* worth a word, whatever the replay can tell of it */
    int64_t count; /* of the thing: syncs, copies, kernels */
    int64_t time;  /* ps */
    int64_t bytes;
    int64_t other;    /* a second count or time, as the rule likes */
    row_id row;       /* the dearest example, or ROW_NONE */
    int64_t row_time; /* what it takes */
    int64_t row_at;   /* an instant in it, for who called it */
    int64_t save;     /* ps: what the hint saves, when say() is called ... */
    int64_t also;     /* ... and what also() would; 0: the rule has none */
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
    int64_t base;      /* ps, all steps without their profiler, as replayed */
    const struct compiles *compiles; /* or NULL */
    const struct pystack *frames;
    bool host_exchange; /* collectives are carried out by the host: gloo, MPI */
    int64_t cpus;       /* that the program may use; -1: not recorded */
    bool prefetches, parallel; /* the input pipeline runs ahead; in parallel */
    bool generator;            /* a Python generator is its source */
    int64_t step;  /* ps: the step without its profiler, as all commands show it
                     (bare.h), and stall; savings are shares of it */
    int64_t stall; /* ps: its share of what other steps compile again */
};

enum { HINT_TEXT = 640 };

struct hint_words {
    char title[160], evidence[HINT_TEXT], repair[HINT_TEXT];
    const char *confidence; /* NULL: that of the rule */
};

/* What a repair asks of the programmer, the most first. */
enum hint_effort {
    EFFORT_REBUILD, /* the program is to be restructured */
    EFFORT_MODEL,   /* a line, but all of the model must go along */
    EFFORT_PLACE,   /* plainly wrong and repaired where it stands */
    EFFORTS
};

struct hint_rule {
    const char *id;    /* a word of docs/rules.md */
    const char *title; /* what is slow, unless say() writes it */
    enum hint_effort effort;
    bool clears;            /* graphs and compilers want it gone first */
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
    /* Repairs s->trial in another way, of which say() tells the saving, too;
     * NULL: there is no other. */
    void (*also)(const struct hint_case *c, struct hint_step *s,
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

/* Sets `once` of the pauses of all steps (hint_pause.c). O(ops log ops). */
int hint_pauses_read(struct hint_case *c, struct ops_err *e);

/* Fills again of all steps (hint_recompute.c). O(n log n) of pieces and
 * allocations. */
int hint_recompute_read(struct hint_case *c, struct ops_err *e);

/* Fills named of all steps (hint_shapes.c). O(ops). */
int hint_shapes_read(struct hint_case *c, struct ops_err *e);

/* Fills attentions and parts of all steps (hint_attention.c), after again.
 * O(pieces). */
int hint_attention_read(struct hint_case *c, struct ops_err *e);

/* Fills cpus, prefetches and parallel (hint_input.c). O(spans). */
void hint_input_read(struct hint_case *c);

/* Fills jitted of all steps (hint_eager.c). O(pieces log pieces). */
int hint_eager_read(struct hint_case *c, struct ops_err *e);

/* Is that piece without an op something else than Python: does the program wait
 * for an exchange that another thread carries out, or is something compiled? */
bool hint_is_no_python(const struct hint_case *c, const struct hint_step *s,
                       uint32_t piece);

/* Fills moved of all steps (hint_layout.c). O(works). */
int hint_moved_read(struct hint_case *c, struct ops_err *e);

/* Fills leaves of all steps (hint_pointwise.c). O(pieces). */
int hint_leaves_read(struct hint_case *c, struct ops_err *e);

/* Marks the ops of updates that are written by hand as the optimizer's
 * (hint_optimizer.c). O(ops). */
void hint_optimizer_read(struct hint_case *c);

/* Counts an example; the dearest is kept. */
void hint_saw(struct hint_found *f, row_id row, int64_t time);

/* Does the same for piece i of the line: a pause in a long region is somewhere
 * in it, not at its start. */
void hint_saw_piece(struct hint_found *f, const struct hint_step *s, uint32_t i,
                    row_id row, int64_t time);

/* Returns the outermost op or pause that piece i of the line is part of; NULL
 * if the line is empty. O(log ops). */
const struct step_op *hint_op_at(const struct hint_step *s, uint32_t i);

/* Returns the share of the step that so much is, in per cent. */
double hint_percent(const struct hint_case *c, int64_t sum);

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

/* Returns a sum over the steps under study as the share of the step that all
 * commands show: what a saving is told in, which it can stand beside. */
int64_t hint_of_step(const struct hint_case *c, int64_t sum);

/* Returns a count in words: "1 copy in 12 steps", "3 copies in 1 step". buf is
 * 48 long. */
const char *hint_count(const struct hint_case *c, int64_t n, const char *one,
                       const char *many, char *buf);

/* Spans around a span that rules look at, at the most. */
enum { HINT_CLIMB = 64 };

/* Returns the name of a row as rules compare it. */
struct bytes hint_bytes(const struct trace *t, row_id row);

/* Returns the name of a row; "" for ROW_NONE and for markers of steps, whose
 * names say nothing. */
const char *hint_name(const struct hint_case *c, row_id row);

/* Returns where in the Python code the dearest example is, ", called from
 * train.py(12): step", or "" where no stack was recorded. buf is HINT_TEXT
 * long. */
const char *hint_where(const struct hint_case *c, const struct hint_found *f,
                       char *buf);

/* Is one of the Python frames around it such? */
bool hint_is_within(const struct hint_case *c, const struct hint_found *f,
                    bool (*is)(struct bytes name));

#endif
