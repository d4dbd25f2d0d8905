/* SPDX-License-Identifier: Apache-2.0
 * Private to the seal: which instruction launched which kernel, when all that
 * is known is the order of both and their names. */
#ifndef MODEL_HLO_HLO_ALIGN_H
#define MODEL_HLO_HLO_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
