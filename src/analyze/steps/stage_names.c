/* SPDX-License-Identifier: Apache-2.0
 * Counts the names that differ in indices alone, then folds those of which
 * there are too many. */
#include "analyze/steps/stage_names.h"

#include "base/map.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <stdlib.h>
#include <string.h>

/* More names than this that differ in indices alone are shown as one: FlatMap
 * and Repeat count elements and epochs, thousands of them. A Zip or Interleave
 * written by hand has fewer inputs. */
enum { INDICES_SHOWN = 16 };

/* Text that is used again and again; n is 0: nothing. */
struct buf {
    uint8_t *p;
    size_t n, cap;
};

/* The name with every index as [*]; empty: it has none. False: out of
 * memory. */
static bool without_indices(struct buf *b, struct bytes name) {
    b->n = 0;
    if (memchr(name.p, '[', name.n) == NULL) return true;
    if (b->cap < name.n) { /* [0] -> [*]: never longer */
        if (!vec_resize(&b->p, 2 * name.n, 1)) return false;
        b->cap = 2 * name.n;
    }
    for (size_t i = 0; i < name.n; i++) {
        b->p[b->n++] = name.p[i];
        size_t k = i + 1;
        while (k < name.n && name.p[k] >= '0' && name.p[k] <= '9') k++;
        if (name.p[i] != '[' || k == i + 1 || k == name.n || name.p[k] != ']')
            continue;
        b->p[b->n++] = '*';
        i = k - 1;
    }
    return true;
}

/* Counts the names that become the same without their indices. */
static bool count_folded(const struct trace *t, struct strs *folded,
                         struct map *count, struct buf *b) {
    for (str_id id = 0; id < t->strs.n; id++) {
        if (!(t->name_class[id] & NAME_ITERATOR)) continue;
        if (!without_indices(b, strs_bytes(&t->strs, id))) return false;
        if (b->n == 0) continue;
        str_id to = strs_intern(folded, (struct bytes){b->p, b->n});
        uint32_t *n = to == STR_NONE ? NULL : map_at(count, to);
        if (n == NULL) return false;
        *n = *n == MAP_NONE ? 1 : *n + 1;
    }
    return true;
}

/* The name that stands for this one; STR_NONE: out of memory. */
static str_id name_for(struct bytes own, struct strs *names, struct buf *b,
                       const struct strs *folded, const struct map *count) {
    if (!without_indices(b, own)) return STR_NONE;
    struct bytes less = {b->p, b->n};
    str_id to = b->n ? strs_find(folded, less) : STR_NONE;
    uint32_t n = to == STR_NONE ? MAP_NONE : map_get(count, to);
    bool many = n != MAP_NONE && n > INDICES_SHOWN;
    return strs_intern(names, many ? less : own);
}

bool stage_names_fold(const struct trace *t, struct strs *names,
                      struct map *fold) {
    struct strs folded;
    struct map count = {0};
    struct buf b = {0};
    if (!strs_init(&folded)) return false;
    bool ok = count_folded(t, &folded, &count, &b);
    for (str_id id = 0; ok && id < t->strs.n; id++) {
        if (!(t->name_class[id] & NAME_INPUT)) continue;
        str_id to = name_for(strs_bytes(&t->strs, id), names, &b, &folded,
                             &count);
        ok = to != STR_NONE && map_set(fold, id, to);
    }
    free(b.p);
    map_free(&count);
    strs_free(&folded);
    return ok;
}
