/* SPDX-License-Identifier: Apache-2.0
 * Nearest word by edit distance. Two swapped neighbours count as one edit,
 * since that is the commonest slip. Three rows of the matrix are enough. */
#include "base/text/suggest.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

enum { WORD_MAX = 63, FAR_AWAY = INT_MAX };

static int least(int a, int b) { return a < b ? a : b; }

int suggest_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) return FAR_AWAY;
    int rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++) rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = rows[i % 3], *up = rows[(i + 2) % 3];
        const int *upper = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int d = up[j - 1] + (a[i - 1] != b[j - 1]);
            d = least(d, least(up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = least(d, upper[j - 2] + 1);
            now[j] = d;
        }
    }
    return rows[n % 3][m];
}

struct suggest suggest_for(const char *word) {
    return (struct suggest){word, NULL, FAR_AWAY};
}

void suggest_try(struct suggest *s, const char *candidate) {
    size_t n = strlen(s->word);
    int d = suggest_distance(s->word, candidate);
    /* "over" for "overview": the beginning of a word is a near miss too. */
    if (n >= 3 && strncmp(candidate, s->word, n) == 0) d = least(d, 1);
    if (d >= s->cost) return;
    s->cost = d;
    s->best = candidate;
}

const char *suggest_best(const struct suggest *s) {
    if (s->best == NULL) return NULL;
    int letters = (int)strnlen(s->word, WORD_MAX);
    return s->cost <= 1 + letters / 4 && s->cost < letters ? s->best : NULL;
}
