/* SPDX-License-Identifier: Apache-2.0
 * Names are split at their slashes and each part is put right on its own. */
#include "analyze/code/scope_path.h"

#include "model/hlo/hlo.h"
#include "names/input_names.h"
#include "names/op_names.h"
#include "names/pattern.h"

/* Takes the text before sep off *rest; false at the end. */
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

/* "gradients", "gradients_3": tf.gradients() of TensorFlow 1. */
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

/* Has some part of it the name of a gradient function: Conv2D_grad? */
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

/* Takes word( ... ) off a part: true when it was there. */
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
