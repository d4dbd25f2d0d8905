/* SPDX-License-Identifier: Apache-2.0
 * The groups of an op table: one per name and kind, found by direct arrays;
 * with --group also per shapes, stack or module, found by hashing. */
#ifndef ANALYZE_OPS_OP_GROUPS_H
#define ANALYZE_OPS_OP_GROUPS_H

#include "analyze/shared/intervals.h"
#include "analyze/shared/pystack.h"
#include "base/map.h"
#include "model/trace.h"

struct host_tree;
struct hlo_instr;

enum group_by { GROUP_SHAPES = 1, GROUP_STACK = 2, GROUP_MODULE = 4 };

struct op_group {
    int64_t calls;
    int64_t host, host_self, device, device_self; /* ps */
    int64_t host_wait; /* of host_self: for ops of other threads */
    int64_t host_bytes, host_self_bytes, device_bytes, device_self_bytes;
    int64_t flops;
    str_id key;                   /* the name's group; in op_groups.texts for
                                      what runs on a device alone */
    str_id shapes, stack, module; /* in op_groups.texts; 0: none */
    const struct hlo_instr *hlo;  /* an instruction of XLA, or NULL */
    str_id program;               /* of XLA, in op_groups.texts; 0: none */
    uint32_t place;               /* of --by rank: a source of it, + 1 */
    uint32_t order;               /* when it was made: breaks ties */
    uint32_t open;                /* calls of it that are open now */
    struct once once;             /* what its total time has already */
    uint8_t kind;                 /* enum span_kind; SPAN_KERNEL: an op that
                                      is known from its device work alone */
    uint8_t rule;                 /* of torch_flops_rule() */
    bool has_device, has_memory, has_flops;
    bool async;    /* spans that belong to no thread: they have no self time */
    bool function; /* calls of a tf.function: no op, its ops run elsewhere */
};

struct op_groups {
    const struct trace *t;
    struct op_group *v;
    size_t n, cap;
    uint32_t *slot[5]; /* by kind (op, annotation, api, region, those of no
                            thread), then name: group + 1; 0: none yet */
    struct strs texts; /* names of device ops, shapes, stacks, modules */
    struct map in_program[2]; /* (program, name), on the host and on devices ->
                                 group */
    str_id *program;    /* by category: program in texts; STR_NONE: not read
                            yet */
    unsigned by;        /* enum group_by */
    uint32_t *rank;     /* by source: the first of the same rank; NULL: rows are
                            not split by rank */
    struct map in_rank; /* (group of all ranks, source) -> group */
    /* used only when by is set: */
    struct map finer[3]; /* (group so far, text) -> number, one per criterion */
    uint32_t nfiner;
    struct pystack stacks;
};

/* list is "shapes,module" or NULL. Returns OPS_EUSAGE for an unknown word. */
int op_groups_init(struct op_groups *g, const struct trace *t, const char *list,
                   struct ops_err *e);
void op_groups_free(struct op_groups *g);

/* Returns the group of a kept row, made when new; ROW_NONE if out of memory. */
uint32_t op_groups_of(struct op_groups *g, const struct host_tree *h,
                      row_id row);

/* Returns the group of a span that belongs to no thread: one per name, not
 * split further. ROW_NONE if out of memory. */
uint32_t op_groups_async(struct op_groups *g, row_id row);

/* Returns the group of an op that is known by what the source wrote on its
 * device work (XLA), row; equal names in two programs are two ops. Returns
 * ROW_NONE if out of memory. */
uint32_t op_groups_device(struct op_groups *g, struct bytes name, row_id row);

/* Splits groups by rank from now on. Returns false if out of memory. */
bool op_groups_by_rank(struct op_groups *g);

/* Returns the part of a group that is of that source's rank; the group itself
 * where they are not split, and ROW_NONE for ROW_NONE. */
uint32_t op_groups_in_rank(struct op_groups *g, uint32_t group,
                           uint32_t source);

/* Returns a text of a group; NULL for id 0. */
const char *op_groups_text(const struct op_groups *g, str_id id);

#endif
