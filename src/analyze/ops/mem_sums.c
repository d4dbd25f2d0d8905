/* SPDX-License-Identifier: Apache-2.0
 * The trace has memory events by allocator, each in time order: here they are
 * merged, run by run, and summed up. */
#include "analyze/ops/mem_sums.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/vec.h"
#include <stdlib.h>

struct mem_item {
    int64_t ts, bytes;
    bool host;
};

static void merge(const struct mem_item *a, size_t na, const struct mem_item *b,
                  size_t nb, struct mem_item *out) {
    size_t i = 0, j = 0;
    while (i < na && j < nb) *out++ = b[j].ts < a[i].ts ? b[j++] : a[i++];
    while (i < na) *out++ = a[i++];
    while (j < nb) *out++ = b[j++];
}

/* Merges neighbouring runs until one is left; run r is [at[r], at[r + 1]).
 * Returns where the result stands: v or tmp. */
static struct mem_item *merge_runs(struct mem_item *v, struct mem_item *tmp,
                                   size_t *at, size_t runs) {
    while (runs > 1) {
        size_t k = 0;
        for (size_t r = 0; r < runs; r += 2) {
            size_t a = at[r], b = at[r + 1];
            size_t c = r + 1 < runs ? at[r + 2] : b;
            merge(v + a, b - a, v + b, c - b, tmp + a);
            at[k++] = a;
            at[k] = c;
        }
        runs = k;
        struct mem_item *swap = v;
        v = tmp;
        tmp = swap;
    }
    return v;
}

/* The source's events as runs; returns how many runs. */
static size_t collect(const struct trace *t, uint32_t source,
                      struct mem_item *v, size_t *at) {
    const struct mem_events *m = &t->mem;
    const struct lists *l = &t->allocators_of;
    size_t n = 0, runs = 0;
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++) {
        uint32_t a = l->v[k];
        bool host = t->allocators[a].device == ROW_NONE;
        if (t->mem_first[a] == t->mem_first[a + 1]) continue;
        at[runs++] = n;
        for (size_t i = t->mem_first[a]; i < t->mem_first[a + 1]; i++)
            v[n++] = (struct mem_item){m->ts[i], m->bytes[i], host};
    }
    at[runs] = n;
    return runs;
}

int mem_sums_init(struct mem_sums *m, const struct trace *t, uint32_t source,
                  struct ops_err *e) {
    const struct lists *l = &t->allocators_of;
    *m = (struct mem_sums){0};
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++)
        m->n += t->mem_first[l->v[k] + 1] - t->mem_first[l->v[k]];
    if (m->n == 0) return 0;
    struct mem_item *v = vec_alloc(2 * m->n, sizeof *v);
    size_t runs = l->first[source + 1] - l->first[source];
    size_t *at = malloc((runs + 3) * sizeof *at);
    m->ts = vec_alloc(m->n, sizeof *m->ts);
    m->host = vec_alloc(m->n + 1, sizeof *m->host);
    m->device = vec_alloc(m->n + 1, sizeof *m->device);
    bool ok = v && at && m->ts && m->host && m->device;
    if (ok) {
        const struct mem_item *x = merge_runs(v, v + m->n, at,
                                              collect(t, source, v, at));
        m->host[0] = m->device[0] = 0;
        for (size_t i = 0; i < m->n; i++) {
            m->ts[i] = x[i].ts;
            m->host[i + 1] = sum_of(m->host[i], x[i].host ? x[i].bytes : 0);
            m->device[i + 1] = sum_of(m->device[i], x[i].host ? 0 : x[i].bytes);
        }
    }
    free(v);
    free(at);
    if (ok) return 0;
    mem_sums_free(m);
    return fail_oom(e);
}

void mem_sums_free(struct mem_sums *m) {
    free(m->ts);
    free(m->host);
    free(m->device);
    *m = (struct mem_sums){0};
}

size_t mem_sums_before(const struct mem_sums *m, size_t from, int64_t ts) {
    size_t step = 1, lo = from, hi = from;
    while (hi < m->n && m->ts[hi] < ts) {
        lo = hi + 1;
        hi = step < m->n - lo ? lo + step : m->n;
        step *= 2;
    }
    return lo + lower_bound(m->ts + lo, hi - lo, ts);
}
