/* SPDX-License-Identifier: Apache-2.0
 * Hundreds of patterns are tried on every distinct name, and nearly all fail:
 * so the first byte is compared before anything else. */
#include "names/pattern.h"

#include <assert.h>

enum { HEAD = 4096 };

/* For words of a few letters memchr() is faster than memmem(). */
static bool has(const char *word, size_t n, struct bytes name) {
    if (name.n > HEAD) name.n = HEAD;
    if (name.n < n) return false;
    const uint8_t *p = name.p, *end = name.p + (name.n - n + 1);
    while (p < end && (p = memchr(p, *word, (size_t)(end - p))) != NULL)
        if (memcmp(p++, word, n) == 0) return true;
    return false;
}

bool pattern_fits(const char *pattern, struct bytes name) {
    bool star = *pattern == '*';
    if (!star && (name.n == 0 || name.p[0] != (uint8_t)*pattern)) return false;
    pattern += star;
    size_t n = strlen(pattern);
    assert(n > 0);
    if (pattern[n - 1] != '*') {
        if (star ? name.n < n : name.n != n) return false;
        return memcmp(name.p + name.n - n, pattern, n) == 0;
    }
    if (star) return has(pattern, n - 1, name);
    return name.n >= n - 1 && memcmp(name.p, pattern, n - 1) == 0;
}

bool pattern_in(const char *const *list, struct bytes name) {
    char first = name.n > 0 ? (char)name.p[0] : '\0';
    for (; *list; list++) {
        char c = **list; /* most do not even begin like it */
        if (c != first && c != '*') continue;
        if (pattern_fits(*list, name)) return true;
    }
    return false;
}

unsigned pattern_first(const struct pattern *rows, size_t n, struct bytes name,
                       unsigned none) {
    for (size_t i = 0; i < n; i++)
        if (pattern_in(rows[i].names, name)) return rows[i].value;
    return none;
}

unsigned pattern_all(const struct pattern *rows, size_t n, struct bytes name) {
    unsigned all = 0;
    for (size_t i = 0; i < n; i++)
        if (pattern_in(rows[i].names, name)) all |= rows[i].value;
    return all;
}

bool word_in(const char *word, struct bytes name) {
    return has(word, strlen(word), name);
}

bool words_in(const char *const *list, struct bytes name) {
    for (; *list; list++)
        if (word_in(*list, name)) return true;
    return false;
}

unsigned words_first(const struct pattern *rows, size_t n, struct bytes name,
                     unsigned none) {
    for (size_t i = 0; i < n; i++)
        if (words_in(rows[i].names, name)) return rows[i].value;
    return none;
}
