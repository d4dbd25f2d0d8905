/* SPDX-License-Identifier: Apache-2.0
 * The tree of host spans that op tables are made of: seal's nesting, less the
 * spans that are no rows of such a table.
 *
 *   kept     ops, annotations and API calls on thread tracks; regions of
 *            unknown meaning where a source has nothing better
 *   dropped  machinery in between (RUNTIME spans), the frameworks' bookkeeping
 *            names; their children go to the nearest kept span around them
 *   merged   in torch's files, as torch does: an only child that has its
 *            parent's name is the same call seen twice, and is its parent. All
 *            other sources record what was called: f() inside of f() is a call
 *
 * Names are known here by a group number, so that ProfilerStep#3 and #4 are
 * one name. */
#ifndef ANALYZE_SHARED_HOST_TREE_H
#define ANALYZE_SHARED_HOST_TREE_H

#include "base/err.h"
#include "model/trace.h"

struct host_tree {
    const struct trace *t;
    row_id *rep;   /* by row: itself when kept; what it is merged into;
                       ROW_NONE when dropped. Thread tracks only: ask
                       host_tree_has() first */
    row_id *up;    /* by row, kept or not: nearest kept span around it, merged
                       ones resolved, or ROW_NONE */
    row_id *op;    /* by row, kept or not: nearest kept op (or region) around
                       it. NULL when the trace has no links */
    uint32_t *key; /* by str_id: the name's group, a str_id; NAME_UNSEEN */
    uint8_t *regions; /* by source: are regions of unknown meaning kept? */
};

#define NAME_UNSEEN 0 /* id 0 is "": a name that is empty stays unseen */
#define NAME_DROP   UINT32_MAX

/* Gets the tree over all thread tracks. The first call for a trace builds it,
 * in O(n), and the trace keeps it: 8 bytes a span, 12 with links. */
int host_tree_get(struct host_tree *h, const struct trace *t,
                  struct ops_err *e);

/* Do rep and up hold for the rows of this track? */
static inline bool host_tree_has(const struct host_tree *h, uint32_t track) {
    return h->t->tracks[track].kind == TRACK_THREAD;
}

/* Is the span of a kind that has rows in op tables, wherever it lies? regions:
 * those of unknown meaning have, too. */
bool host_tree_kind(const struct host_tree *h, row_id r, bool regions);

/* Returns the span that device work launched by this call is charged to, or
 * ROW_NONE: the innermost op around the call. Without an op it is an
 * annotation, except in torch's files, whose own tables charge work to ops
 * alone. */
row_id host_tree_launcher(const struct host_tree *h, row_id call);

/* Does the same with the annotation for every format: who launched the work. */
row_id host_tree_launcher_name(const struct host_tree *h, row_id call);

/* Returns the call that launched a device span; ROW_NONE if none was recorded.
 * Device spans are asked for in row order: *at is the place in the links, 0 at
 * first. A span with two launches belongs to the first. */
static inline row_id next_launch(const struct trace *t, row_id device,
                                 size_t *at) {
    const struct links *l = &t->links;
    while (*at < l->n && l->device[*at] < device) ++*at;
    return *at < l->n && l->device[*at] == device ? l->host[*at] : ROW_NONE;
}

#endif
