/* SPDX-License-Identifier: Apache-2.0
 * Private to the reader of HLO: an instruction as it stands in the file, and
 * what it costs. Everything here is borrowed from the file and lives as long as
 * the reading of one module. */
#ifndef IMPORT_XSPACE_HLO_H
#define IMPORT_XSPACE_HLO_H

#include "base/bytes.h"
#include "base/map.h"
#include <stdbool.h>

struct trace;

/* What an opcode is, as far as costs and launches go. */
enum hlo_class {
    HC_OTHER,  /* not known: no cost is given */
    HC_FREE,   /* does nothing at run time */
    HC_MOVE,   /* moves numbers, computes nothing */
    HC_SLICE,  /* reads only as much as it writes */
    HC_UPDATE, /* dynamic-update-slice: writes only a part, in place */
    HC_ELEM,   /* one operation per element */
    HC_TRANS,  /* one transcendental per element */
    HC_DOT,
    HC_CONV,
    HC_REDUCE,
    HC_WINDOW, /* reduce-window */
    HC_SCATTER,
    HC_SORT,
    HC_MAP,
    HC_FUSION,
    HC_CUSTOM,
    HC_CALL, /* runs another computation: call, async-start */
    HC_FLOW, /* while, conditional */
    HC_COMM, /* collectives, sends and receives */
    HC_DONE, /* the end of something that ran beside: nothing by itself */
};

enum { HLO_DIMS = 16 }; /* of an array; XLA itself has far fewer */

/* An array, or the sum of a tuple's. */
struct hlo_size {
    int64_t elements, bytes; /* of all arrays */
    int64_t dims[HLO_DIMS];  /* of the first */
    int64_t first_elements;
    int64_t last_bytes; /* of the last array of a tuple */
    uint32_t ndims, arrays;
    uint8_t type, last_type; /* XLA's number of the element type */
};

struct hlo_cost {
    int64_t flops, read, written; /* -1: unknown */
    uint8_t math; /* XLA type of the operands of matrix work; 0: none */
    bool full_f32;
    int64_t matrix; /* flops of the largest part that is matrix work */
};

/* An instruction as it stands in the file. */
struct hlo_raw {
    struct bytes name, opcode, shape, meta, target, config, fusion;
    struct bytes dot, window, conv, precision;
    uint64_t id;
    int64_t batch_groups;
    uint32_t operand, noperand; /* in ids: operands, computations */
    uint32_t call, ncall;
    uint32_t comp;
    uint8_t class;
    struct hlo_size size;
    struct hlo_cost cost;
};

/* A computation as it stands in the file: instructions [first, end). */
struct hlo_body {
    struct bytes name;
    uint64_t id;
    uint32_t first, end;
    uint32_t root; /* index of an instruction, or MAP_NONE */
    uint64_t root_id;
    bool folded;          /* the body of a fusion or a reduction */
    uint32_t kept;        /* index in the trace's table, or MAP_NONE */
    struct hlo_cost cost; /* of running it once; read and written: of a fusion
                             that has it as its body */
    /* what it ends with, as far as its instructions say: worked out when the
     * first fusion asks for it */
    struct bytes op, file;
    uint64_t line;
    bool asked;
};

struct hlo_reader {
    struct trace *t;
    struct hlo_raw *raw;
    size_t nraw, cap_raw;
    struct hlo_body *bodies;
    size_t nbodies, cap_bodies;
    uint64_t *ids;
    size_t nids, cap_ids;
    struct map by_id, body_by_id;
    uint32_t *users, *first_user; /* by instruction: who has it as operand */
    uint64_t steps;               /* left for counting what windows meet */
    size_t most; /* instructions that a module of this size can have */
    bool oom;
};

/* Return the size of a shape; write its text into out (cut when it is longer)
 * and return the number of bytes written (hlo_shape.c). */
struct hlo_size hlo_shape_size(struct bytes shape);
size_t hlo_shape_text(struct bytes shape, char *out, size_t cap);

/* Return the class of an opcode, and what an instruction costs (hlo_cost.c).
 * The computations that it calls must have their costs already. */
enum hlo_class hlo_class_of(struct bytes opcode);
void hlo_cost_of(struct hlo_reader *r, struct hlo_raw *i);
/* Works out what a fusion of this body reads and writes. It is done once per
 * body: any number of fusions may have the same one. */
void hlo_body_bytes(const struct hlo_reader *r, struct hlo_body *b);
/* Is the instruction a custom call of a library for matrix work? */
bool hlo_is_library(const struct hlo_raw *i);

/* Returns the operand k of an instruction, or NULL. */
const struct hlo_raw *hlo_operand(const struct hlo_reader *r,
                                  const struct hlo_raw *i, uint32_t k);
/* Returns the computation k that it calls, or NULL. */
const struct hlo_body *hlo_callee(const struct hlo_reader *r,
                                  const struct hlo_raw *i, uint32_t k);

/* Does the text, however long, hold the word? */
static inline bool hlo_has(struct bytes text, const char *word) {
    return text.n > 0 && memmem(text.p, text.n, word, strlen(word)) != NULL;
}

static inline int64_t hlo_mul(int64_t a, int64_t b) {
    int64_t v;
    if (a < 0 || b < 0) return 0;
    return __builtin_mul_overflow(a, b, &v) ? INT64_MAX : v;
}

#endif
