/* SPDX-License-Identifier: Apache-2.0
 * UTF-8: check, mend, encode. */
#ifndef BASE_TEXT_UTF8_H
#define BASE_TEXT_UTF8_H

#include "base/bytes.h"
#include <stdbool.h>

/* Returns the length (1 to 4) of the valid sequence at p; 0 if not valid. */
size_t utf8_len(const uint8_t *p, size_t n);

/* Are the bytes valid UTF-8 with no NUL in it? */
bool utf8_clean(struct bytes b);

/* Copies b to out (room for 3 * b.n), each bad byte as U+FFFD and each NUL as
 * a blank, and adds their number to *mended. Returns the bytes written. */
size_t utf8_mend(struct bytes b, uint8_t *out, size_t *mended);

/* Encodes a code point (surrogates and beyond 10FFFF become U+FFFD). Returns
 * the length, 1 to 4. */
size_t utf8_put(uint32_t code, uint8_t out[4]);

#endif
