/* SPDX-License-Identifier: Apache-2.0
 * For every op call: has it device time, has it memory, and if not, why? Each
 * call has exactly one answer, so the answers partition the calls. */
#ifndef ANALYZE_REPORT_COVER_OPS_H
#define ANALYZE_REPORT_COVER_OPS_H

#include "base/err.h"
#include "model/trace.h"

/* Why an op call has no device time. What was recorded decides, then the
 * name; what launched nothing and has no other reason ran on the CPU. */
enum op_device {
    OP_ON_DEVICE,    /* it has: it or an op inside it launched device work */
    OP_NOT_RECORDED, /* launches were made, no device event came at all */
    OP_OUTSIDE,      /* its launch comes after the last device event */
    OP_DROPPED,      /* its launch has no device event */
    OP_NO_DEVICE,    /* no device and no launch was recorded */
    OP_VIEW,         /* new shape and strides on the same memory */
    OP_ALLOCATES,    /* only asks for memory, or asks about a tensor */
    OP_LIBRARY,      /* a collective: its library launches by itself */
    OP_FUSED,        /* in a compiled region: part of another op's kernel */
    OP_BOOKKEEPING,  /* the framework's own: autograd nodes, caches */
    OP_CPU,          /* launched nothing: ran on the CPU */
    OP_DEVICE_ANSWERS,
};

/* Why an op call has no memory. */
enum op_memory {
    OP_ALLOCATED, /* it has: an allocation or free was recorded inside */
    OP_MEM_OFF,   /* memory was not recorded */
    OP_MEM_VIEW,
    OP_IN_PLACE,  /* writes into its input: aten::add_ */
    OP_MEM_EAGER, /* TensorFlow, eager: allocations carry no op */
    OP_CUSTOM,    /* not one of the framework's: may allocate by itself */
    OP_MEM_NONE,  /* no allocation came: given or forwarded memory */
    OP_MEMORY_ANSWERS,
};

struct op_cover {
    int64_t ops; /* calls of framework operations in scope */
    int64_t device[OP_DEVICE_ANSWERS], memory[OP_MEMORY_ANSWERS];
    str_id device_name[OP_DEVICE_ANSWERS]; /* most frequent example, or 0 */
    str_id memory_name[OP_MEMORY_ANSWERS];
    int64_t launches, unanswered; /* launching calls; without device work */
    str_id unanswered_name;       /* an example, or 0 */
};

struct host_tree;
struct scope;

/* Fills c. Linear in spans and links, but for a search per memory event. */
int op_cover_init(struct op_cover *c, const struct host_tree *h,
                  const struct scope *in, struct ops_err *e);

#endif
