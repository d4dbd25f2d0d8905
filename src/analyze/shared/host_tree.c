/* SPDX-License-Identifier: Apache-2.0
 * There are two passes over the rows of each thread, parents first: one finds
 * the nearest kept ancestor and the number of kept children, the other merges.
 * One pass is enough for the merge, because a merged span hands its only
 * parent's name on: a chain of equal names collapses from the top. */
#include "analyze/shared/host_tree.h"
#include "base/vec.h"
#include "model/format.h"
#include "names/name_class.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

/* Returns the first name with the same prefix, which stands for the group. Such
 * prefixes are few (step markers), so a search by walking is cheap. */
static uint32_t group_of(const struct host_tree *h, str_id name, str_id *heads,
                         size_t *nheads, size_t cap) {
    const struct strs *s = &h->t->strs;
    struct bytes b = strs_bytes(s, name);
    if (op_is_mark(b)) return NAME_DROP;
    size_t n = name_group_prefix(b);
    if (n == 0 || n > b.n) return name;
    for (size_t i = 0; i < *nheads; i++) {
        struct bytes o = strs_bytes(s, heads[i]);
        if (name_group_prefix(o) == n && memcmp(o.p, b.p, n) == 0)
            return heads[i];
    }
    if (*nheads < cap) heads[(*nheads)++] = name;
    return name;
}

static void find_keys(struct host_tree *h) {
    enum { HEADS = 64 };
    str_id heads[HEADS];
    size_t nheads = 0;
    const struct spans *sp = &h->t->spans;
    for (size_t i = 0; i < h->t->ntracks; i++) {
        if (!host_tree_has(h, (uint32_t)i)) continue;
        const struct track *tr = &h->t->tracks[i];
        for (row_id r = tr->first; r < tr->end; r++) {
            str_id n = sp->name[r];
            if (h->key[n] == NAME_UNSEEN && n != 0)
                h->key[n] = group_of(h, n, heads, &nheads, HEADS);
        }
    }
}

/* Finds traces of regions alone (plain Chrome traces): regions are their
 * ops. */
static void find_regions(struct host_tree *h) {
    const struct trace *t = h->t;
    for (size_t s = 0; s < t->nsources; s++) h->regions[s] = 1;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (!host_tree_has(h, (uint32_t)i) || !h->regions[tr->source]) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            uint8_t k = t->spans.kind[r];
            if (k != SPAN_OP && k != SPAN_RUNTIME) continue;
            h->regions[tr->source] = 0;
            break;
        }
    }
}

bool host_tree_kind(const struct host_tree *h, row_id r, bool regions) {
    const struct spans *sp = &h->t->spans;
    uint8_t f = sp->flags[r];
    if ((f & SPAN_DERIVED) || h->key[sp->name[r]] == NAME_DROP) return false;
    switch (sp->kind[r]) {
    case SPAN_OP: return true;
    case SPAN_ANNOTATION:
    case SPAN_API:
    case SPAN_OVERHEAD: return !(f & SPAN_INSTANT);
    case SPAN_OTHER: return regions && !(f & SPAN_INSTANT);
    default: return false;
    }
}

static inline bool is_kept(const struct host_tree *h, row_id r, bool regions) {
    return !(h->t->spans.flags[r] & SPAN_ASYNC) &&
           host_tree_kind(h, r, regions);
}

/* Finds the nearest kept ancestors, not merged yet, and counts kept
 * children. */
static void nest_track(struct host_tree *h, const struct track *tr,
                       uint32_t *nchild) {
    const row_id *parent = h->t->spans.parent;
    bool regions = h->regions[tr->source];
    for (row_id r = tr->first; r < tr->end; r++) {
        row_id p = parent[r];
        if (p != ROW_NONE && h->rep[p] == ROW_NONE) p = h->up[p];
        bool kept = is_kept(h, r, regions);
        h->up[r] = p;
        h->rep[r] = kept ? r : ROW_NONE;
        nchild[r] = 0;
        if (kept && p != ROW_NONE) nchild[p]++;
    }
}

static void merge_track(struct host_tree *h, const struct track *tr,
                        const uint32_t *nchild) {
    const str_id *name = h->t->spans.name;
    bool torch = source_is_torchs(&h->t->sources[tr->source]);
    for (row_id r = tr->first; r < tr->end; r++) {
        row_id p = h->up[r];
        if (p == ROW_NONE) continue;
        assert(p < r);
        bool same = torch && h->rep[r] != ROW_NONE && nchild[p] == 1 &&
                    h->key[name[p]] == h->key[name[r]];
        h->up[r] = h->rep[p];
        if (same) h->rep[r] = h->rep[p];
    }
}

static bool is_op(uint8_t kind) {
    return kind == SPAN_OP || kind == SPAN_OTHER;
}

static void drop_tree(void *v) {
    struct host_tree *h = v;
    free(h->rep);
    free(h->up);
    free(h->op);
    free(h->key);
    free(h->regions);
    free(h);
}

/* Returns the tree of a trace; NULL if memory ran out. */
static void *make_tree(const struct trace *t) {
    size_t n = t->spans.n ? t->spans.n : 1;
    struct host_tree *h = calloc(1, sizeof *h);
    uint32_t *nchild = vec_alloc(n, sizeof *nchild);
    if (h == NULL || nchild == NULL) {
        free(nchild);
        free(h);
        return NULL;
    }
    h->t = t;
    h->rep = vec_alloc(n, sizeof *h->rep);
    h->up = vec_alloc(n, sizeof *h->up);
    h->key = calloc(t->strs.n + 1, sizeof *h->key);
    h->regions = calloc(t->nsources + 1, 1);
    if (t->links.n > 0) h->op = vec_alloc(n, sizeof *h->op);
    bool ok = h->rep && h->up && h->key && h->regions &&
              (h->op || t->links.n == 0);
    if (ok) {
        find_keys(h);
        find_regions(h);
    }
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (!host_tree_has(h, (uint32_t)i)) continue;
        nest_track(h, tr, nchild);
        merge_track(h, tr, nchild);
        /* the op around each row: deep stacks need not be climbed */
        for (row_id r = tr->first; h->op && r < tr->end; r++) {
            row_id p = h->up[r];
            bool here = p == ROW_NONE || is_op(t->spans.kind[p]);
            h->op[r] = here ? p : h->op[p];
        }
    }
    free(nchild);
    if (ok) return h;
    drop_tree(h);
    return NULL;
}

int host_tree_get(struct host_tree *h, const struct trace *t,
                  struct ops_err *e) {
    /* it hangs on no step: all views of a trace have the same */
    const struct host_tree *kept = trace_memo(trace_base(t), MEMO_HOST_TREE,
                                              make_tree, drop_tree);
    *h = kept != NULL ? *kept : (struct host_tree){.t = t};
    return kept != NULL ? 0 : fail_oom(e);
}

row_id host_tree_launcher_name(const struct host_tree *h, row_id call) {
    enum { CLIMB = 64 }; /* calls within calls; real ones are 2 deep */
    const struct spans *sp = &h->t->spans;
    if (!h->op || !host_tree_has(h, sp->track[call])) return ROW_NONE;
    row_id self = h->rep[call];
    if (self != ROW_NONE && is_op(sp->kind[self])) return self;
    if (h->op[call] != ROW_NONE) return h->op[call];
    if (self != ROW_NONE && sp->kind[self] == SPAN_ANNOTATION) return self;
    /* it is in no op: the innermost annotation around it counts */
    row_id r = h->up[call];
    for (int i = 0; i < CLIMB && r != ROW_NONE; i++, r = h->up[r])
        if (sp->kind[r] == SPAN_ANNOTATION) return r;
    return ROW_NONE;
}

row_id host_tree_launcher(const struct host_tree *h, row_id call) {
    row_id r = host_tree_launcher_name(h, call);
    if (r == ROW_NONE || is_op(h->t->spans.kind[r])) return r;
    const struct track *tr = &h->t->tracks[h->t->spans.track[call]];
    return source_is_torchs(&h->t->sources[tr->source]) ? ROW_NONE : r;
}
