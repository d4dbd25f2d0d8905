/* SPDX-License-Identifier: Apache-2.0
 * Natural merge sort: it finds the sorted runs and merges neighbours until one
 * is left. The same code serves keys and plain numbers. */
#include "base/sort.h"

#include "base/vec.h"
#include <stdlib.h>
#include <string.h>

static inline bool key_less(const struct sort_key *a,
                            const struct sort_key *b) {
    return a->hi != b->hi ? a->hi < b->hi : a->lo < b->lo;
}

static inline bool number_less(const uint64_t *a, const uint64_t *b) {
    return *a < *b;
}

/* clang-format off */
#define DEFINE_SORT(name, type, less)                                          \
/* Merges a[0..n) and b[0..m) into out. */                                     \
static void name##_merge(const type *a, size_t n, const type *b, size_t m,     \
                         type *out) {                                          \
    while (n > 0 && m > 0) {                                                   \
        bool second = less(b, a);                                              \
        *out++ = second ? *b : *a;                                             \
        b += second;                                                           \
        m -= second;                                                           \
        a += !second;                                                          \
        n -= !second;                                                          \
    }                                                                          \
    memcpy(out, a, n * sizeof *out);                                           \
    memcpy(out + n, b, m * sizeof *out);                                       \
}                                                                              \
                                                                               \
/* The starts of the sorted runs in v, and n behind them; NULL: no memory. */  \
static size_t *name##_runs(const type *v, size_t n, size_t *count) {           \
    size_t *starts = NULL, k = 0, cap = 0;                                     \
    for (size_t i = 0; i < n; i++) {                                           \
        if (i > 0 && !less(&v[i], &v[i - 1])) continue;                        \
        if (!VEC_ROOM(starts, k + 1, cap)) {                                   \
            free(starts);                                                      \
            return NULL;                                                       \
        }                                                                      \
        starts[k++] = i;                                                       \
    }                                                                          \
    starts[k] = n;                                                             \
    *count = k;                                                                \
    return starts;                                                             \
}                                                                              \
                                                                               \
bool name(type *v, size_t n) {                                                 \
    if (n < 2) return true;                                                    \
    size_t runs, *starts = name##_runs(v, n, &runs);                           \
    if (starts == NULL) return false;                                          \
    type *tmp = runs > 1 ? vec_alloc(n, sizeof *tmp) : NULL;                   \
    if (runs > 1 && tmp == NULL) {                                             \
        free(starts);                                                          \
        return false;                                                          \
    }                                                                          \
    type *from = v, *to = tmp;                                                 \
    while (runs > 1) {                                                         \
        size_t k = 0;                                                          \
        for (size_t i = 0; i < runs; i += 2) {                                 \
            size_t a = starts[i], b = starts[i + 1];                           \
            size_t end = i + 2 <= runs ? starts[i + 2] : b;                    \
            name##_merge(from + a, b - a, from + b, end - b, to + a);          \
            starts[k++] = a;                                                   \
        }                                                                      \
        starts[k] = n;                                                         \
        runs = k;                                                              \
        type *swap = from;                                                     \
        from = to;                                                             \
        to = swap;                                                             \
    }                                                                          \
    if (from != v) memcpy(v, from, n * sizeof *v);                             \
    free(tmp);                                                                 \
    free(starts);                                                              \
    return true;                                                               \
}

DEFINE_SORT(sort_keys, struct sort_key, key_less)
DEFINE_SORT(sort_numbers, uint64_t, number_less)
/* clang-format on */

int sort_by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}
