/* SPDX-License-Identifier: Apache-2.0
 * What every scope of a program cost: time on host and device, memory, FLOPs,
 * weights, put on a tree of paths. A scope is a module, a name scope, an
 * operation or a line of code; all four are one walk (thread_walk.h) that asks
 * of each span which node it stands for.
 *
 * The backward pass belongs to the scope of the forward op that it
 * differentiates (arrows of the source, or the spelling of names). Node 0
 * holds what is in no scope: the roots sum to all that was counted. */
#ifndef ANALYZE_CODE_SCOPE_TREE_H
#define ANALYZE_CODE_SCOPE_TREE_H

#include "analyze/code/paths.h"

struct trace;
struct selection;

enum scope_by { BY_SCOPE, BY_MODULE, BY_OP, BY_CODE };

#define NO_SCOPE 0 /* the node of what is in no scope */

struct scope_tree {
    const struct trace *t;
    enum scope_by by;
    struct paths paths;
    bool device;        /* the trace has device work */
    bool device_memory; /* bytes are of devices, not of the host */
    bool memory;        /* allocations were recorded */
};

/* Returns what the trace can show best: modules, else name scopes, else ops. */
enum scope_by scope_tree_best(const struct trace *t);

/* Counts all that the selection has. After a failure nothing is held. O(n). */
int scope_tree_init(struct scope_tree *s, const struct trace *t,
                    const struct selection *scope, enum scope_by by,
                    struct ops_err *e);
void scope_tree_free(struct scope_tree *s);

/* torch does not record the parameters of a module, but its layers hand them to
 * a few known ops, always at the same places. Returns how many numbers these
 * inputs (op_weight_inputs()) have, by the shapes that were recorded of all
 * inputs, "[[32, 3, 8, 8], [16, 3, 3, 3], [16]]"; -1 if none is there. */
int64_t weights_from(struct bytes dims, unsigned inputs);

#endif
