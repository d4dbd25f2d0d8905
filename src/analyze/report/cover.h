/* SPDX-License-Identifier: Apache-2.0
 * What `coverage` counts: which op calls have device time and memory, and why
 * the others have none; how much of the steps' wall time some event explains;
 * how much of the devices' time belongs to an op. */
#ifndef ANALYZE_REPORT_COVER_H
#define ANALYZE_REPORT_COVER_H

#include "base/err.h"
#include "model/trace.h"

struct host_tree;
struct selection;

/* Each op call has exactly one answer of either kind: the answers partition the
 * calls. */

/* Why an op call has no device time. What was recorded decides, then the name;
 * a call that launched nothing and has no other reason ran on the CPU. */
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

/* Fills c. Linear in spans and links, but for a search per memory event. */
int op_cover_init(struct op_cover *c, const struct host_tree *h,
                  const struct selection *in, struct ops_err *e);

/* Time explained of a whole, and the step that is explained worst. */
struct cover_part {
    int64_t have, whole;             /* ps */
    int64_t worst_have, worst_whole; /* whole is 0: no step */
    int64_t worst;                   /* that step's number */
};

struct step_cover {
    struct cover_part any;     /* an event of the host or of the device runs */
    struct cover_part host;    /* an op, call or region runs on the host */
    struct cover_part *device; /* by device: work runs on it */
    size_t steps;
};

/* Covers the steps in scope; a source with n devices counts n times in
 * `any`. */
int step_cover_init(struct step_cover *c, const struct trace *t,
                    const struct selection *in, struct ops_err *e);
void step_cover_free(struct step_cover *c);

/* Device work by whether an op is known for it. */
enum work_owner {
    WORK_OP,        /* launched in an op, or the compiler wrote its op on it */
    WORK_FOREIGN,   /* launched outside every op */
    WORK_GRAPH,     /* the same, as a part of a CUDA graph */
    WORK_NO_LAUNCH, /* its launch was not recorded */
    WORK_OWNERS,
};

struct work_cover {
    int64_t count[WORK_OWNERS], time[WORK_OWNERS];
    str_id name[WORK_OWNERS]; /* the longest single one, or 0 */
    int64_t early;            /* began before its launching call did */
    int64_t early_most;       /* ps, at most */
    str_id early_name;
};

/* Covers all device work in scope. Linear. */
void work_cover_init(struct work_cover *c, const struct host_tree *h,
                     const struct selection *in);

#endif
