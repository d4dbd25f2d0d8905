/* SPDX-License-Identifier: Apache-2.0
 * The training data: sentences made by a small grammar, so that there is
 * something to learn and nothing to download. */
#ifndef DEMO_TEXT_H
#define DEMO_TEXT_H

#include <stdint.h>

/* Characters known; token i is the i-th of them. */
int text_vocabulary(void);

/* n tokens, cut out of sentences at a random place, with some misspelt. The
 * same number gives the same tokens for ever. */
void text_tokens(uint64_t number, uint8_t *out, int n);

#endif
