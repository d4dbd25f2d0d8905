/* SPDX-License-Identifier: Apache-2.0
 * Paths of names as a tree: a/b and a/c share their a. Each node has figures
 * of its own; totals are those of all nodes under it, so that own + children =
 * total holds exactly, whatever the figures are. */
#ifndef ANALYZE_CODE_PATHS_H
#define ANALYZE_CODE_PATHS_H

#include "base/err.h"
#include "base/io/sink.h"
#include "base/map.h"
#include "model/strs.h"

enum path_value {
    PATH_CALLS,
    PATH_HOST,      /* ps */
    PATH_HOST_BACK, /* of it, the backward pass */
    PATH_DEVICE,    /* ps */
    PATH_DEVICE_BACK,
    PATH_BYTES,
    PATH_FLOPS,
    PATH_PARAMS,
    PATH_VALUES,
};

#define PATH_NONE UINT32_MAX

/* Paths may nest this deep; what lies deeper counts in the node there. Python
 * itself stops at a thousand frames; made-up files must not make texts that
 * grow with the square of their length. */
enum { PATH_DEPTH_MAX = 512 };

struct path_node {
    uint32_t parent; /* PATH_NONE: a root */
    str_id name;     /* in paths.names */
    uint32_t depth;
    unsigned has; /* bit per value: known in it or below */
};

/* One value of all nodes; most trees have only a few of the values. */
struct path_column {
    int64_t *v; /* of the first cap nodes; the others have 0 */
    size_t cap;
};

struct paths {
    struct path_node *v; /* parents before their children */
    size_t n, cap;
    struct path_column self[PATH_VALUES], total[PATH_VALUES];
    struct strs names;
    struct map child; /* (parent, name) -> node */
    bool oom;
};

bool paths_init(struct paths *p);
void paths_free(struct paths *p);

/* Returns the node of that name under parent (PATH_NONE: a root), made when
 * new. When memory runs out, it sets oom and returns the parent. */
uint32_t paths_child(struct paths *p, uint32_t parent, struct bytes name);

/* Does the same for a name that is interned already. */
uint32_t paths_child_id(struct paths *p, uint32_t parent, str_id name);

void paths_add(struct paths *p, uint32_t node, enum path_value v, int64_t by);

/* Works out the totals and has, once all is added. O(n). */
void paths_sum_up(struct paths *p);

static inline int64_t path_value_of(const struct path_column *c, size_t node) {
    return node < c->cap ? c->v[node] : 0;
}

static inline int64_t paths_self(const struct paths *p, size_t node,
                                 enum path_value v) {
    return path_value_of(&p->self[v], node);
}

static inline int64_t paths_total(const struct paths *p, size_t node,
                                  enum path_value v) {
    return path_value_of(&p->total[v], node);
}

/* Returns node numbers in the order in which a tree is printed: roots and
 * siblings by that total, largest first, equal ones by name; children behind
 * their parents. The caller frees them; NULL if out of memory. */
uint32_t *paths_order(const struct paths *p, enum path_value by);

/* Appends the path as text, outermost first, to out, which must be in memory; a
 * path longer than most bytes is cut at the front, with "...". */
void paths_text(const struct paths *p, uint32_t node, const char *sep,
                size_t most, struct sink *out);

static inline const char *paths_name(const struct paths *p, uint32_t node) {
    return strs_text(&p->names, p->v[node].name);
}

/* The name scopes that an op's name spells out, as a path. What belongs to the
 * backward pass is found by how the frameworks spell it, and stands where its
 * forward scope stands:
 *
 *   TensorFlow  gradient_tape/net/conv/Conv2DBackpropFilter  net/conv/...
 *               gradients/conv/Conv2D_grad/ReluGrad       conv/Conv2D/ReluGrad
 *   JAX         jit(step)/transpose(jvp(layer0))/dot_general
 *                                            jit(step)/layer0/dot_general
 *   tf.data     Iterator::Root::Map[0]       Iterator / Root / Map[0]
 *
 * Return the node, PATH_NONE if the path is empty, and set *backward: of a
 * TensorFlow op or tf.data iterator by its span's name, and of an op of XLA by
 * its framework op's name. */
uint32_t scope_path_tf(struct paths *p, struct bytes name, bool *backward);
uint32_t scope_path_xla(struct paths *p, struct bytes op_name, bool *backward);

#endif
