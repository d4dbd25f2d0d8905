/* SPDX-License-Identifier: Apache-2.0
 * "the old dog sees the red boat at night, and the old dog sings." Words are
 * learnt soon, which word goes where later, and who sings last: for that the
 * model has to look back. */
#include "text.h"

#include <stdbool.h>
#include <string.h>

static const char alphabet[] = " abcdefghijklmnopqrstuvwxyz,.";

/* A digit stands for a word of that list, the same one each time. */
static const char sentence[] = "the 0 1 2 the 3 4 5, and the 0 1 6. ";

enum { LISTS = 7, WORDS = 8, MISSPELT = 100 /* one in so many */ };

static const char *const words[LISTS][WORDS] = {
    {"old", "young", "quick", "quiet", "wise", "small", "brave", "hungry"},
    {"dog", "cat", "horse", "sailor", "king", "child", "bird", "miller"},
    {"sees", "finds", "loves", "paints", "sells", "fears", "takes", "follows"},
    {"red", "green", "heavy", "round", "cold", "broken", "golden", "lost"},
    {"boat", "apple", "house", "letter", "stone", "river", "clock", "bridge"},
    {"in the garden", "by the sea", "at night", "under a tree", "in spring",
     "on a hill", "in the rain", "far away"},
    {"sings", "sleeps", "laughs", "waits", "dances", "eats", "cries", "runs"},
};

/* Where in a text we are: a place of the sentence, or in one of its words. */
struct reader {
    uint64_t state;
    unsigned chosen[LISTS];
    const char *at, *word; /* word: NULL outside of one */
};

/* splitmix64 */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static char next_char(struct reader *r) {
    if (r->word != NULL && *r->word != '\0') return *r->word++;
    r->word = NULL;
    if (*r->at == '\0') r->at = sentence;
    if (r->at == sentence)
        for (int i = 0; i < LISTS; i++)
            r->chosen[i] = (unsigned)(random_next(&r->state) % WORDS);
    char c = *r->at++;
    if (c < '0' || c > '9') return c;
    r->word = words[c - '0'][r->chosen[c - '0']];
    return *r->word++;
}

int text_vocabulary(void) { return (int)sizeof alphabet - 1; }

void text_tokens(uint64_t number, uint8_t *out, int n) {
    struct reader r = {.state = number, .at = sentence};
    for (uint64_t skip = random_next(&r.state) % 64; skip > 0; skip--)
        next_char(&r);
    for (int i = 0; i < n; i++) {
        char c = next_char(&r);
        bool wrong = random_next(&r.state) % MISSPELT == 0;
        if (wrong) c = alphabet[1 + random_next(&r.state) % 26];
        out[i] = (uint8_t)(strchr(alphabet, c) - alphabet);
    }
}
