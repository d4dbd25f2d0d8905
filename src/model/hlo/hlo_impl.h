/* SPDX-License-Identifier: Apache-2.0
 * Private to the HLO files of model: lookups at the seal, and (hlo_align.c)
 * which instruction launched which kernel, when all that is known is the order
 * of both and their names. */
#ifndef MODEL_HLO_HLO_IMPL_H
#define MODEL_HLO_HLO_IMPL_H

#include "base/bytes.h"
#include <stdbool.h>

struct trace;
struct hlo;

/* Returns the module that spans call so: "jit_step(8623)", or the name alone if
 * no other has it; ROW_NONE if there is none. */
uint32_t hlo_module_of(const struct trace *t, uint32_t source,
                       struct bytes label);

/* Returns the instruction of that name, or MAP_NONE. */
uint32_t hlo_find(const struct hlo *h, uint32_t module, uint32_t name);

/* Returns, by source, whether it carries compiled programs. The caller frees
 * it; NULL if out of memory. */
bool *hlo_sources(const struct trace *t);

/* Gives kernels of CUDA graphs the category of their own instruction. Returns
 * false if out of memory. */
bool hlo_place_graphs(struct trace *t);

#define ALIGN_NONE UINT32_MAX

/* A kernel as it ran. Names are numbers: equal names have equal numbers. */
struct align_kernel {
    uint32_t name;  /* all of it */
    uint32_t base;  /* without the numbers at its end */
    bool generated; /* some instruction has this base: it is no library's */
    bool helper;    /* of a library: comes before or behind the real work */
};

/* An instruction that may launch kernels, in schedule order. */
struct align_instr {
    uint32_t name, base; /* as the compiler writes them in names of kernels */
    uint8_t launch;      /* enum hlo_launch */
};

/* Sets out[i] to the instruction of kernel i, or ALIGN_NONE. The kernels must
 * be the launches of an unbroken part of the schedule, in order; where their
 * names contradict that, none is placed, and where two readings are equally
 * good, the kernels in which they differ are not. Returns false if out of
 * memory. O(hlo_align_cost), and nothing is placed if that is too much. */
bool hlo_align(const struct align_kernel *k, size_t n,
               const struct align_instr *s, size_t m, uint32_t *out);

/* Returns the steps that it takes for n kernels and m instructions: n * (|m -
 * n| + c), or m where that is too much. */
size_t hlo_align_cost(size_t n, size_t m);

#endif
