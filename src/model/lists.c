/* SPDX-License-Identifier: Apache-2.0
 * Who belongs to whom, counted and laid out once: tracks by source and by
 * device, meta and allocators by source, memory events by allocator. */
#include "model/seal.h"

#include <stdlib.h>

/* Lays n numbers out in groups; of(t, i) is the group of i, or groups and more:
 * it is in none. */
static bool make_lists(struct lists *l, const struct trace *t, size_t n,
                       size_t groups,
                       size_t (*of)(const struct trace *t, size_t i)) {
    l->v = malloc((n + 1) * sizeof *l->v);
    l->first = calloc(groups + 2, sizeof *l->first);
    if (l->v == NULL || l->first == NULL) return false;
    /* counted one further on, so that filling moves each into its place */
    for (size_t i = 0; i < n; i++)
        if (of(t, i) < groups) l->first[of(t, i) + 2]++;
    for (size_t g = 1; g < groups + 2; g++) l->first[g] += l->first[g - 1];
    for (size_t i = 0; i < n; i++)
        if (of(t, i) < groups) l->v[l->first[of(t, i) + 1]++] = (uint32_t)i;
    return true;
}

static size_t track_source(const struct trace *t, size_t i) {
    return t->tracks[i].source;
}

static size_t track_device(const struct trace *t, size_t i) {
    return t->tracks[i].device;
}

static size_t meta_source(const struct trace *t, size_t i) {
    return t->meta[i].source;
}

static size_t allocator_source(const struct trace *t, size_t i) {
    return t->allocators[i].source;
}

bool seal_mem_lists(struct trace *t) {
    size_t n = t->nallocators, at = 0;
    t->mem_first = malloc((n + 1) * sizeof *t->mem_first);
    if (t->mem_first == NULL) return false;
    for (size_t i = 0; i <= n; i++) {
        while (at < t->mem.n && t->mem.allocator[at] < i) at++;
        t->mem_first[i] = at;
    }
    return make_lists(&t->allocators_of, t, n, t->nsources, allocator_source);
}

bool seal_lists(struct trace *t) {
    return make_lists(&t->of_source, t, t->ntracks, t->nsources,
                      track_source) &&
           make_lists(&t->of_device, t, t->ntracks, t->ndevices,
                      track_device) &&
           make_lists(&t->meta_of, t, t->nmeta, t->nsources, meta_source);
}

void free_lists(struct trace *t) {
    struct lists *all[] = {&t->of_source, &t->of_device, &t->meta_of,
                           &t->allocators_of};
    free(t->mem_first);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->v);
        free(all[i]->first);
    }
}
