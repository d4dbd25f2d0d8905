/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean": the nearest of some words to one that is not known.
 *
 *     struct suggest s = suggest_for("opps");
 *     for each known word: suggest_try(&s, word);
 *     suggest_best(&s) is "ops", or NULL when nothing is near enough */
#ifndef BASE_TEXT_SUGGEST_H
#define BASE_TEXT_SUGGEST_H

struct suggest {
    const char *word; /* what was typed; borrowed */
    const char *best; /* the nearest so far; borrowed */
    int cost;         /* its distance */
};

struct suggest suggest_for(const char *word);

/* Looks at one candidate; of equally near ones the first stays. O(len^2). */
void suggest_try(struct suggest *s, const char *candidate);

/* Returns the nearest word; NULL if it takes more than one edit and one more
 * for every four letters. */
const char *suggest_best(const struct suggest *s);

/* Returns the number of edits (insert, delete, replace, swap of neighbours)
 * from a to b; words over 63 letters are far from everything. */
int suggest_distance(const char *a, const char *b);

#endif
