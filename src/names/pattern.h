/* SPDX-License-Identifier: Apache-2.0
 * Patterns: how this folder writes down names, as one would type them.
 *
 *   "nccl*"     the name starts with nccl
 *   "*:Apply*"  :Apply stands somewhere in the name
 *   "*Grad"     the name ends with Grad
 *   "aten::t"   the name is aten::t
 *
 * A star stands at an end of a pattern, never inside of it. */
#ifndef NAMES_PATTERN_H
#define NAMES_PATTERN_H

#include "base/bytes.h"
#include <stdbool.h>

/* Does the name fit the pattern? A text that may stand anywhere is looked for
 * in the first 4096 bytes: a kernel's arguments and a name of 1 MB tell nothing
 * more. O(length). */
bool pattern_fits(const char *pattern, struct bytes name);

/* Does the name fit one of the patterns? The list ends with NULL. */
bool pattern_in(const char *const *list, struct bytes name);

/* A list of patterns, and what the names that fit one of them mean. */
struct pattern {
    unsigned value;
    const char *const *names; /* ends with NULL */
};

/* Makes the list of a row in a table at file scope. */
#define NAMES(...)                                                             \
    (const char *const[]) { __VA_ARGS__, NULL }

/* Returns the value of the first of n rows that the name fits; "none" if it
 * fits none. */
unsigned pattern_first(const struct pattern *rows, size_t n, struct bytes name,
                       unsigned none);

/* Returns the values of all rows that the name fits, joined by "or". */
unsigned pattern_all(const struct pattern *rows, size_t n, struct bytes name);

/* Does the plain word stand anywhere in the name? */
bool word_in(const char *word, struct bytes name);
bool words_in(const char *const *list, struct bytes name);
unsigned words_first(const struct pattern *rows, size_t n, struct bytes name,
                     unsigned none);

#endif
