/* SPDX-License-Identifier: Apache-2.0
 * The compiled programs of XLA that a profile carries (HLO): their modules, and
 * the instructions that run on their own, each with the framework op and source
 * line it was compiled from and what it costs.
 *
 *     module  -> computations -> instructions, in the order of the schedule
 *     span    -> hlo_of_span() -> the instruction that it ran
 *
 * Only computations that are *run* are kept: the entry and the bodies of calls,
 * loops and branches. Bodies of fusions and the little functions of reductions
 * are folded into the cost of who uses them. -1 in a cost means unknown. */
#ifndef MODEL_HLO_HLO_H
#define MODEL_HLO_HLO_H

#include "base/sum.h"
#include "model/trace.h"
#include "names/dtype.h"

/* What a device does for an instruction. */
enum hlo_launch {
    HLO_LAUNCHES_NONE,    /* nothing: a parameter, a tuple, a bitcast */
    HLO_LAUNCHES_ONE,     /* one kernel, generated, named as it is */
    HLO_LAUNCHES_MAYBE,   /* a generated kernel, or a copy, a fill or nothing */
    HLO_LAUNCHES_LIBRARY, /* one or more kernels of a library */
    HLO_LAUNCHES_ANY,     /* any number of kernels, copies and fills */
    HLO_LAUNCHES_BODY,    /* what its computations launch */
};

struct hlo_instr {
    str_id name;     /* "loop_add_fusion.3" */
    str_id opcode;   /* "fusion", "custom-call", ... */
    str_id category; /* "loop fusion", "data formatting", or the opcode */
    str_id target;   /* of a custom call; else 0 */
    str_id op_name;  /* framework op: "jit(step)/jvp(main)/dot_general"; or 0 */
    str_id file;     /* source file, or 0 */
    str_id shape;    /* of the output: "f32[512,2048]", "(f32[2], s8[64])" */
    uint32_t line;   /* in file; 0: not recorded */
    uint32_t module; /* index in hlo->modules */
    uint32_t comp;   /* index in hlo->comps: where it stands */
    uint32_t called, ncalled; /* in hlo->called: what it runs */
    int64_t flops; /* operations, 2 for a multiply-add; a transcendental is 1;
                        -1: unknown */
    int64_t read_bytes;    /* of its operands; -1: unknown */
    int64_t written_bytes; /* of its outputs, without the workspace of
                                       a library; -1: unknown */
    uint8_t math;   /* enum dtype: of the operands of its matrix work (dot,
                       convolution), else of the (first) output */
    uint8_t launch; /* enum hlo_launch */
    bool matrix;    /* has a dot or convolution in it */
    bool full_f32;  /* asks for more than TF32 would give */
};

/* Instructions [first, end), in schedule order. */
struct hlo_comp {
    str_id name;
    uint32_t first, end, module;
};

struct hlo_module {
    str_id name;      /* "jit_step" */
    str_id label;     /* as spans refer to it: "jit_step(8623)" */
    uint64_t program; /* program id */
    uint32_t source;
    uint32_t entry; /* index in hlo->comps, or ROW_NONE */
};

struct hlo {
    struct hlo_module *modules;
    size_t nmodules, cap_modules;
    struct hlo_comp *comps;
    size_t ncomps, cap_comps;
    struct hlo_instr *instrs;
    size_t ninstrs, cap_instrs;
    uint32_t *called;
    size_t ncalled, cap_called;
    /* set by seal: */
    struct map by_name;  /* (module, name) -> instruction */
    struct map by_label; /* (source, label), (source, name) or, as a label, the
                            program's number: "(8623)" -> module */
    struct map by_cat;   /* (source, category) -> instruction, where spans of
                            that source have the category */
};

/* Returns the table of a trace, made when new; NULL if out of memory, which
 * sets t->oom. */
struct hlo *hlo_table(struct trace *t);
void hlo_free(struct hlo *h);

/* Moves what b knows behind what a knows, for trace_append(): the numbers of
 * sources and strings change by the two tables. */
void hlo_append(struct trace *a, const struct trace *b, const uint32_t *source,
                const uint32_t *str);

/* Finds the instruction of every category, and gives kernels of CUDA graphs
 * theirs back (see hlo_graph.c). It is part of the seal: rows are sorted, the
 * halves of links are still there. Returns false if out of memory. */
bool hlo_seal(struct trace *t);

/* Returns the instruction that this span ran: a kernel, copy or fill of a
 * device, or an op of XLA on the CPU. NULL if there is none, or it is not
 * known. O(1). */
const struct hlo_instr *hlo_of_span(const struct trace *t, row_id row);

/* Finds the next scope of a framework op's name, outermost first: "jit(step)",
 * "transpose(jvp(main))", "dot_general". Takes it off *rest (set to op_name at
 * first); slashes inside brackets do not part. Returns false at the end. Of a
 * name that was merged from several ("a/b;c/d") only the first counts. */
bool hlo_scope_next(struct bytes *rest, struct bytes *scope);

/* Writes "file:line" of an instruction into out, cut to fit. Returns its
 * length; 0 if it is not recorded. */
size_t hlo_source_text(const struct trace *t, const struct hlo_instr *i,
                       char *out, size_t cap);

/* Is this span the first of those that one execution of its instruction i
 * launched? A library may launch several kernels for one instruction; its
 * flops and bytes must count once. O(1). */
bool hlo_is_first(const struct trace *t, row_id row, const struct hlo_instr *i);

/* Returns the bytes read and written, or -1. */
static inline int64_t hlo_bytes(const struct hlo_instr *i) {
    if (i->read_bytes < 0 || i->written_bytes < 0) return -1;
    return sat_add(i->read_bytes, i->written_bytes);
}

#endif
