/* SPDX-License-Identifier: Apache-2.0
 * Nodes stand in the order in which they are met: a parent is always older than
 * its children, so that one backward pass sums up the tree. */
#include "analyze/code/paths.h"

#include "base/sum.h"
#include "base/vec.h"
#include "model/hlo/hlo.h"
#include "names/input_names.h"
#include "names/op_names.h"
#include "names/pattern.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool paths_init(struct paths *p) {
    *p = (struct paths){0};
    return strs_init(&p->names);
}

void paths_free(struct paths *p) {
    for (int k = 0; k < PATH_VALUES; k++) {
        free(p->self[k].v);
        free(p->total[k].v);
    }
    free(p->v);
    strs_free(&p->names);
    map_free(&p->child);
    *p = (struct paths){0};
}

static uint32_t failed(struct paths *p, uint32_t parent) {
    p->oom = true;
    return parent;
}

uint32_t paths_child_id(struct paths *p, uint32_t parent, str_id name) {
    assert(parent == PATH_NONE || parent < p->n);
    uint32_t depth = parent == PATH_NONE ? 0 : p->v[parent].depth + 1;
    if (depth >= PATH_DEPTH_MAX) return parent;
    uint64_t key = ((uint64_t)parent << 32) | name;
    uint32_t *at = map_at(&p->child, key);
    if (at == NULL) return failed(p, parent);
    if (*at != MAP_NONE) return *at;
    if (p->n >= (1u << 30) - 1 || !VEC_ROOM(p->v, p->n, p->cap))
        return failed(p, parent);
    p->v[p->n] =
        (struct path_node){.parent = parent, .name = name, .depth = depth};
    return *at = (uint32_t)p->n++;
}

uint32_t paths_child(struct paths *p, uint32_t parent, struct bytes name) {
    str_id id = strs_intern(&p->names, name);
    if (id == STR_NONE) return failed(p, parent);
    return paths_child_id(p, parent, id);
}

/* Makes room for the nodes there are; the new ones have 0. */
static bool grow_column(struct path_column *c, size_t cap) {
    if (!vec_resize(&c->v, cap, sizeof *c->v)) return false;
    memset(c->v + c->cap, 0, (cap - c->cap) * sizeof *c->v);
    c->cap = cap;
    return true;
}

void paths_add(struct paths *p, uint32_t node, enum path_value v, int64_t by) {
    struct path_column *c = &p->self[v];
    if (node >= p->n) return; /* memory ran out: nothing is shown anyway */
    p->v[node].has |= 1u << v;
    if (by == 0) return;
    if (node >= c->cap && !grow_column(c, p->cap)) p->oom = true;
    else sat_inc(&c->v[node], by);
}

void paths_sum_up(struct paths *p) {
    for (size_t i = p->n; i-- > 0;)
        if (p->v[i].parent != PATH_NONE)
            p->v[p->v[i].parent].has |= p->v[i].has;
    for (int k = 0; k < PATH_VALUES; k++) {
        struct path_column *total = &p->total[k];
        if (p->self[k].cap == 0) continue;
        if (!grow_column(total, p->n)) {
            p->oom = true;
            return;
        }
        for (size_t i = p->n; i-- > 0;) {
            sat_inc(&total->v[i], paths_self(p, i, k));
            uint32_t parent = p->v[i].parent;
            if (parent == PATH_NONE) continue;
            assert(parent < i);
            sat_inc(&total->v[parent], total->v[i]);
        }
    }
}

struct order {
    const struct paths *p;
    enum path_value by;
};

/* Compares nodes: siblings come together, the largest first. */
static int compare(const void *x, const void *y, void *ctx) {
    const struct order *o = ctx;
    uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const struct path_node *a = &o->p->v[i], *b = &o->p->v[j];
    if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
    int64_t ta = paths_total(o->p, i, o->by), tb = paths_total(o->p, j, o->by);
    if (ta != tb) return ta > tb ? -1 : 1;
    return strcmp(strs_text(&o->p->names, a->name),
                  strs_text(&o->p->names, b->name));
}

/* Puts node i and all under it one behind the other, by a stack of nodes still
 * to print, on which siblings lie in reverse. by_parent is sorted by compare;
 * the children of x are [first[x], first[x + 1]). */
static void flatten(const struct paths *p, const uint32_t *by_parent,
                    const uint32_t *first, uint32_t *stack, uint32_t *out) {
    size_t n = 0, done = 0;
    for (size_t i = p->n; i-- > first[p->n];) stack[n++] = by_parent[i];
    while (n > 0) {
        uint32_t x = stack[--n];
        out[done++] = x;
        for (uint32_t i = first[x + 1]; i-- > first[x];)
            stack[n++] = by_parent[i];
    }
    assert(done == p->n);
}

uint32_t *paths_order(const struct paths *p, enum path_value by) {
    size_t n = p->n;
    uint32_t *sorted = vec_alloc(n + 1, sizeof *sorted);
    uint32_t *first = vec_alloc(n + 2, sizeof *first);
    uint32_t *stack = vec_alloc(n + 1, sizeof *stack);
    uint32_t *out = vec_alloc(n + 1, sizeof *out);
    if (sorted && first && stack && out) {
        for (size_t i = 0; i < n; i++) sorted[i] = (uint32_t)i;
        struct order o = {p, by};
        qsort_r(sorted, n, sizeof *sorted, compare, &o);
        size_t at = 0; /* roots have the largest parent number: they are last */
        for (size_t x = 0; x <= n; x++) {
            first[x] = (uint32_t)at;
            while (x < n && at < n && p->v[sorted[at]].parent == x) at++;
        }
        flatten(p, sorted, first, stack, out);
    } else {
        free(out);
        out = NULL;
    }
    free(sorted);
    free(first);
    free(stack);
    return out;
}

void paths_text(const struct paths *p, uint32_t node, const char *sep,
                size_t most, struct sink *out) {
    uint32_t chain[PATH_DEPTH_MAX];
    size_t n = 0, len = 0, nsep = strlen(sep);
    for (uint32_t i = node; i != PATH_NONE && n < PATH_DEPTH_MAX;
         i = p->v[i].parent) {
        size_t add = strs_bytes(&p->names, p->v[i].name).n + nsep;
        if (n > 0 && len + add > most) {
            sink_puts(out, "...");
            sink_puts(out, sep);
            break;
        }
        len += add;
        chain[n++] = i;
    }
    while (n-- > 0) {
        sink_puts(out, paths_name(p, chain[n]));
        if (n > 0) sink_puts(out, sep);
    }
}

/* ---- paths that names spell: each part is put right on its own ---- */

/* Takes the text before sep off *rest. Returns false at the end. */
static bool next_part(struct bytes *rest, const char *sep, struct bytes *part) {
    size_t n = strlen(sep);
    while (rest->n > 0) {
        const uint8_t *at = memmem(rest->p, rest->n, sep, n);
        size_t len = at ? (size_t)(at - rest->p) : rest->n;
        *part = (struct bytes){rest->p, len};
        size_t skip = at ? len + n : len;
        rest->p += skip;
        rest->n -= skip;
        if (part->n > 0) return true;
    }
    return false;
}

static bool is_grad(struct bytes part) {
    return part.n > strlen("_grad") && pattern_fits("*_grad", part);
}

/* Is it "gradients" or "gradients_3", of TensorFlow 1's tf.gradients()? */
static bool is_tf1_gradients(struct bytes part) {
    const char *word = "gradients";
    size_t n = strlen(word);
    if (part.n < n || memcmp(part.p, word, n) != 0) return false;
    if (part.n == n) return true;
    if (part.p[n] != '_' || part.n == n + 1) return false;
    for (size_t i = n + 1; i < part.n; i++)
        if (part.p[i] < '0' || part.p[i] > '9') return false;
    return true;
}

/* Is some part of it the name of a gradient function: Conv2D_grad? */
static bool has_grad_part(struct bytes rest) {
    struct bytes part;
    while (next_part(&rest, "/", &part))
        if (is_grad(part)) return true;
    return false;
}

uint32_t scope_path_tf(struct paths *p, struct bytes name, bool *backward) {
    struct bytes node = name, type, part;
    *backward = false;
    name_split_tf(name, &node, &type);
    bool iterator = name_is_iterator(node);
    uint32_t at = PATH_NONE;
    while (next_part(&node, iterator ? "::" : "/", &part)) {
        if (!iterator && BYTES_IS(part, "gradient_tape")) {
            *backward = true;
            continue;
        }
        if (!iterator && is_tf1_gradients(part) && has_grad_part(node)) {
            *backward = true;
            at = PATH_NONE; /* what follows is the forward op's whole name */
            continue;
        }
        if (*backward && is_grad(part)) part.n -= strlen("_grad");
        at = paths_child(p, at, part);
    }
    return at;
}

/* Takes word( ... ) off a part. Returns false if it was not there. */
static bool unwrap(struct bytes *part, const char *word) {
    size_t n = strlen(word);
    if (part->n < n + 2 || memcmp(part->p, word, n) != 0 || part->p[n] != '(' ||
        part->p[part->n - 1] != ')')
        return false;
    part->p += n + 1;
    part->n -= n + 2;
    return true;
}

uint32_t scope_path_xla(struct paths *p, struct bytes op_name, bool *backward) {
    struct bytes rest = op_name, part;
    uint32_t at = PATH_NONE;
    *backward = false;
    while (hlo_scope_next(&rest, &part)) {
        bool again = true;
        while (again) {
            bool back = unwrap(&part, "transpose");
            *backward |= back;
            again = back || unwrap(&part, "jvp");
        }
        if (part.n > 0) at = paths_child(p, at, part);
    }
    return at;
}
