/* SPDX-License-Identifier: Apache-2.0
 * What the arguments of a device span say: the launch shape of a kernel, the
 * size and direction of a copy, in the spellings of CUPTI's writers. */
#ifndef ANALYZE_SHARED_KERNEL_ARGS_H
#define ANALYZE_SHARED_KERNEL_ARGS_H

#include "model/trace.h"
#include "names/kernel_names.h"

/* -1 stands for a value that was not recorded. */
struct kernel_args {
    int64_t grid[3], block[3];
    int64_t registers;
    int64_t shared_bytes; /* static and dynamic */
    double occupancy_pct;
    bool occupancy_unknown; /* the profiler wrote 0 for it, although more warps
                               ran than that: occupancy_pct is -1 */
};

/* Reads a kernel's arguments. O(size of args). */
struct kernel_args kernel_args_of(const struct trace *t, row_id row);

/* Reads XSpace's text: "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1
 * block:128,1,1 occ_pct:50". What the text does not say stays in a as it is. */
void kernel_args_details(struct kernel_args *a, struct bytes text);

/* Return what XLA wrote on a kernel: the HLO instruction, else the framework's
 * op that it came from; kernel_framework_op has the other order. Empty if XLA
 * wrote nothing. Borrowed from the trace. */
struct bytes kernel_hlo_op(const struct trace *t, row_id row);
struct bytes kernel_framework_op(const struct trace *t, row_id row);

struct copy_args {
    enum copy_kind kind;
    int pageable;  /* 1, 0 or -1: not recorded */
    int64_t bytes; /* -1: not recorded */
};

/* Reads a copy's or fill's name and arguments. */
struct copy_args copy_args_of(const struct trace *t, row_id row);

/* Finds kind and pageable from a name ("Memcpy HtoD (Pinned -> Device)",
 * "MemcpyH2D") and, when not empty, from XSpace's text ("kind_src:pageable
 * kind_dst:device size:4096 dest:0 async:1"), which also gives the size. */
struct copy_args copy_args_from(struct bytes name, struct bytes details);

const char *copy_kind_name(enum copy_kind k);

#endif
