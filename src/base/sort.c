/* SPDX-License-Identifier: Apache-2.0
 * Natural merge sort: find the runs, merge neighbours until one is left. */
#include "base/sort.h"

#include "base/vec.h"
#include <stdlib.h>
#include <string.h>

static bool less(const struct sort_key *a, const struct sort_key *b) {
    return a->hi != b->hi ? a->hi < b->hi : a->lo < b->lo;
}

/* Merges a[0..n) and b[0..m) into out. */
static void merge(const struct sort_key *a, size_t n, const struct sort_key *b,
                  size_t m, struct sort_key *out) {
    while (n > 0 && m > 0) {
        if (less(b, a)) {
            *out++ = *b++;
            m--;
        } else {
            *out++ = *a++;
            n--;
        }
    }
    memcpy(out, a, n * sizeof *out);
    memcpy(out + n, b, m * sizeof *out);
}

/* The starts of the sorted runs in v, and n behind them; NULL: no memory. */
static size_t *find_runs(const struct sort_key *v, size_t n, size_t *count) {
    size_t *starts = NULL, k = 0, cap = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && !less(&v[i], &v[i - 1])) continue;
        if (!VEC_ROOM(starts, k + 1, cap)) {
            free(starts);
            return NULL;
        }
        starts[k++] = i;
    }
    starts[k] = n;
    *count = k;
    return starts;
}

bool sort_keys(struct sort_key *v, size_t n) {
    if (n < 2) return true;
    size_t runs, *starts = find_runs(v, n, &runs);
    if (starts == NULL) return false;
    struct sort_key *tmp = runs > 1 ? vec_alloc(n, sizeof *tmp) : NULL;
    if (runs > 1 && tmp == NULL) {
        free(starts);
        return false;
    }
    struct sort_key *from = v, *to = tmp;
    while (runs > 1) {
        size_t k = 0;
        for (size_t i = 0; i < runs; i += 2) {
            size_t a = starts[i], b = starts[i + 1];
            size_t end = i + 2 <= runs ? starts[i + 2] : b;
            merge(from + a, b - a, from + b, end - b, to + a);
            starts[k++] = a;
        }
        starts[k] = n;
        runs = k;
        struct sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != v) memcpy(v, from, n * sizeof *v);
    free(tmp);
    free(starts);
    return true;
}
