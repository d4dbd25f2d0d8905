/* SPDX-License-Identifier: Apache-2.0
 * Which rows belong to which, counted and laid out once: tracks by source and
 * by device, meta and allocators by source, memory events by allocator. */
#include "model/seal.h"

#include "base/array.h"
#include <stdlib.h>

/* Lays n numbers out in groups. The group of number i is the uint32_t that
 * stands `at` bytes into the i-th row of `size` bytes; a number in no group has
 * one of `groups` or more. */
static bool make_lists(struct lists *l, size_t n, size_t groups,
                       const void *rows, size_t at, size_t size) {
    l->v = malloc((n + 1) * sizeof *l->v);
    l->first = calloc(groups + 2, sizeof *l->first);
    if (l->v == NULL || l->first == NULL) return false;
#define GROUP(i) (*(const uint32_t *)((const char *)rows + (i)*size + at))
    /* counts stand one further on, so that filling moves each into its place */
    for (size_t i = 0; i < n; i++)
        if (GROUP(i) < groups) l->first[GROUP(i) + 2]++;
    for (size_t g = 1; g < groups + 2; g++) l->first[g] += l->first[g - 1];
    for (size_t i = 0; i < n; i++)
        if (GROUP(i) < groups) l->v[l->first[GROUP(i) + 1]++] = (uint32_t)i;
#undef GROUP
    return true;
}

bool seal_mem_lists(struct trace *t) {
    size_t n = t->nallocators, at = 0;
    t->mem_first = malloc((n + 1) * sizeof *t->mem_first);
    if (t->mem_first == NULL) return false;
    for (size_t i = 0; i <= n; i++) {
        while (at < t->mem.n && t->mem.allocator[at] < i) at++;
        t->mem_first[i] = at;
    }
    return make_lists(&t->allocators_of, n, t->nsources, t->allocators,
                      offsetof(struct allocator, source),
                      sizeof *t->allocators);
}

bool seal_lists(struct trace *t) {
    size_t size = sizeof *t->tracks;
    return make_lists(&t->of_source, t->ntracks, t->nsources, t->tracks,
                      offsetof(struct track, source), size) &&
           make_lists(&t->of_device, t->ntracks, t->ndevices, t->tracks,
                      offsetof(struct track, device), size) &&
           make_lists(&t->meta_of, t->nmeta, t->nsources, t->meta,
                      offsetof(struct meta, source), sizeof *t->meta);
}

void free_lists(struct trace *t) {
    struct lists *all[] = {&t->of_source, &t->of_device, &t->meta_of,
                           &t->allocators_of};
    free(t->mem_first);
    for (size_t i = 0; i < COUNT(all); i++) {
        free(all[i]->v);
        free(all[i]->first);
    }
}
