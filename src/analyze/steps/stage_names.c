/* SPDX-License-Identifier: Apache-2.0
 * Names of tf.data iterators are paths: the pipeline from its end backwards,
 * Iterator::Root::Prefetch::BatchV2::TFRecord. Where a stage has several
 * inputs, or makes a new one for each element, an index follows its name. */
#include "analyze/steps/stage_names.h"

#include "base/array.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* More names than this that differ in indices alone are shown as one: FlatMap
 * and Repeat count elements and epochs, thousands of them. A Zip or Interleave
 * written by hand has fewer inputs. */
enum { INDICES_SHOWN = 16 };

static const struct {
    const char *text;
    enum stage_kind kind;
} kinds[] = {
    /* the first that the stage's name holds: the longer before the shorter */
    {"MapAndBatch", STAGE_MAP},   {"FlatMap", STAGE_FLOW},
    {"Prefetch", STAGE_PREFETCH}, {"Cache", STAGE_CACHE},
    {"Shuffle", STAGE_SHUFFLE},   {"Map", STAGE_MAP},
    {"Filter", STAGE_MAP},        {"ParseExample", STAGE_MAP},
    {"Scan", STAGE_MAP},          {"Batch", STAGE_BATCH},
    {"Window", STAGE_BATCH},      {"TensorSlice", STAGE_SOURCE},
    {"FromTensor", STAGE_SOURCE}, {"Range", STAGE_SOURCE},
    {"Record", STAGE_SOURCE},     {"TextLine", STAGE_SOURCE},
    {"SSTable", STAGE_SOURCE},    {"Generator", STAGE_SOURCE},
    {"Csv", STAGE_SOURCE},        {"CSV", STAGE_SOURCE},
    {"Sql", STAGE_SOURCE},        {"Random", STAGE_SOURCE},
    {"List", STAGE_SOURCE},       {"DataService", STAGE_SOURCE},
    {"Snapshot", STAGE_SOURCE},   {"Load", STAGE_SOURCE},
};

static const char *const kind_names[STAGE_KINDS] = {
    "wait",     "source", "map",    "batch", "shuffle", "cache",
    "prefetch", "flow",   "region", "op",    "pin",     "copy",
};

const char *stage_kind_name(enum stage_kind k) {
    assert(k < STAGE_KINDS);
    return kind_names[k];
}

static bool holds(struct bytes in, const char *text) {
    return memmem(in.p, in.n, text, strlen(text)) != NULL;
}

/* Where the last part of the path begins; 0: there is no "::". */
static size_t last_part(struct bytes name) {
    for (size_t i = name.n; i >= 2; i--)
        if (name.p[i - 1] == ':' && name.p[i - 2] == ':') return i;
    return 0;
}

enum stage_kind stage_kind_of(struct bytes iterator) {
    size_t at = last_part(iterator);
    struct bytes last = {iterator.p + at, iterator.n - at};
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (holds(last, kinds[i].text)) return kinds[i].kind;
    return STAGE_FLOW;
}

struct bytes stage_name_parent(struct bytes iterator) {
    size_t at = last_part(iterator);
    struct bytes up = {iterator.p, at < 2 ? 0 : at - 2};
    if (up.n == 0 || up.p[up.n - 1] != ']') return up;
    while (up.n > 0 && up.p[up.n - 1] != '[') up.n--;
    if (up.n > 0) up.n--;
    return up;
}

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
