/* SPDX-License-Identifier: Apache-2.0
 * Compilation inside the window: which spans of the host are work of a
 * compiler (torch.compile, XLA, jax.jit, tf.function, CUDA graphs), what they
 * compile, and whether it was compiled before.
 *
 * A compiler's spans nest in each other and run on several threads at once. The
 * outermost span of a thread owns all inside it, and what other threads do for
 * it meanwhile; no time is counted twice: the own times of all spans of a
 * source sum to a union. */
#ifndef ANALYZE_OPS_COMPILE_FIND_H
#define ANALYZE_OPS_COMPILE_FIND_H

#include "base/arena.h"
#include "base/err.h"
#include "model/trace.h"

enum compile_kind {
    COMPILE_TRACE,    /* runs the program's Python to record its ops */
    COMPILE_LOWER,    /* from what was recorded to the compiler's language */
    COMPILE_COMPILE,  /* the compiler itself; torch.compile: all of it */
    COMPILE_AUTOTUNE, /* times variants of a kernel to pick one */
    COMPILE_GUARD,    /* looks up which compiled code fits: no compilation */
    COMPILE_CAPTURE,  /* records or builds a CUDA graph */
    COMPILE_KINDS,
};

/* Returns the word that tables print: "trace", "lower", ... */
const char *compile_kind_name(enum compile_kind k);

/* What is compiled: one per source, framework, kind and name. */
struct compile_group {
    uint32_t source;
    enum compile_kind kind;
    const char *framework; /* "torch.compile", "jax", "xla", "tf.function",
                              "cuda" */
    const char *name;      /* the function as far as it is known */
};

/* One compilation, or one more piece of it. */
struct compile_span {
    uint32_t group;
    row_id row;    /* the span that it was seen by */
    uint32_t step; /* in which it began, or ROW_NONE */
    int64_t ts, end;
    int64_t own;        /* of it, what no span that began earlier claims */
    bool more;          /* a further piece of the compilation before it */
    bool again;         /* the same thing had been compiled before */
    const char *reason; /* what was different, or NULL: not recorded */
};

struct compiles {
    const struct trace *t;
    struct arena arena;
    struct compile_group *groups;
    size_t ngroups, cap_groups;
    struct compile_span *spans; /* by track, then start */
    size_t nspans;
    uint8_t *class; /* by str_id */
};

/* Finds all compilations. Linear in spans and names. Zeroed on error. */
int compiles_init(struct compiles *c, const struct trace *t, struct ops_err *e);
void compiles_free(struct compiles *c);

/* Returns the call of a function from Python in which it was compiled: that of
 * a jitted function (the outermost) or of a tf.function; ROW_NONE if none was
 * recorded. */
row_id compiles_call(const struct compiles *c, const struct compile_span *s);

/* Is this host span work of a compiler: one of the spans above, or inside one
 * on its thread? Guard checks are not. O(log spans). */
bool compiles_has(const struct compiles *c, row_id row);

#endif
