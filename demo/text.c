/* SPDX-License-Identifier: Apache-2.0
 * "the old dog sees a red boat in the garden, and the old dog sings." Words
 * are learnt soon, which words go where later, and who sings last: for that
 * the model has to look back. */
#include "text.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const char alphabet[] = " abcdefghijklmnopqrstuvwxyz,.";

static const char *const kinds[] = {"old", "young", "quick", "quiet",
                                    "red", "small", "brave", "hungry"};
static const char *const nouns[] = {"dog",  "cat",   "horse", "sailor",
                                    "king", "child", "bird",  "miller"};
static const char *const verbs[] = {"sees", "finds", "loves", "paints",
                                    "sells", "fears", "takes", "follows"};
static const char *const things[] = {"boat", "apple", "house", "letter",
                                     "stone", "river", "clock", "bridge"};
static const char *const places[] = {"in the garden", "by the sea",
                                     "at night", "under a tree"};
static const char *const ends[] = {"sings", "sleeps", "laughs", "waits"};

enum { ROOM = 128, MISSPELT = 100 };

/* splitmix64 */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static const char *pick(uint64_t *state, const char *const *words, int n) {
    return words[random_next(state) % (uint64_t)n];
}

/* Appends words, each with a space behind it. */
static int append(char *to, int at, const char *word) {
    int n = (int)strlen(word);
    assert(at + n + 1 < ROOM);
    memcpy(to + at, word, (size_t)n);
    to[at + n] = ' ';
    return at + n + 1;
}

/* One sentence; returns its length. */
static int sentence(uint64_t *state, char out[ROOM]) {
    const char *kind = pick(state, kinds, 8), *who = pick(state, nouns, 8);
    int n = append(out, 0, "the");
    n = append(out, n, kind);
    n = append(out, n, who);
    n = append(out, n, pick(state, verbs, 8));
    n = append(out, n, "the");
    n = append(out, n, pick(state, kinds, 8));
    n = append(out, n, pick(state, things, 8));
    n = append(out, n, pick(state, places, 4));
    out[n - 1] = ',';
    out[n++] = ' ';
    n = append(out, n, "and the");
    n = append(out, n, kind);
    n = append(out, n, who);
    n = append(out, n, pick(state, ends, 4));
    out[n - 1] = '.';
    out[n++] = ' ';
    return n;
}

int text_vocabulary(void) { return (int)sizeof alphabet - 1; }

void text_tokens(uint64_t number, uint8_t *out, int n) {
    uint64_t state = number * 0xd1342543de82ef95u + 1;
    char text[ROOM];
    int length = sentence(&state, text);
    int at = (int)(random_next(&state) % (uint64_t)length);
    for (int i = 0; i < n; i++, at++) {
        if (at == length) {
            length = sentence(&state, text);
            at = 0;
        }
        bool wrong = random_next(&state) % MISSPELT == 0;
        char c = wrong ? alphabet[1 + random_next(&state) % 26] : text[at];
        out[i] = (uint8_t)(strchr(alphabet, c) - alphabet);
    }
}
