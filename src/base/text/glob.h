/* SPDX-License-Identifier: Apache-2.0
 * Glob patterns over whole names: * any run of characters, ? one character,
 * [a-z] one of a set, [!a-z] one not in it, \ takes the next one as it is. */
#ifndef BASE_TEXT_GLOB_H
#define BASE_TEXT_GLOB_H

#include <stdbool.h>

/* Does the whole of text match? Characters are UTF-8 (a byte that is no UTF-8
 * counts as one). At worst O(pattern * text), for any pattern. */
bool glob_match(const char *pattern, const char *text);

/* Has the pattern any special character at all? */
bool glob_special(const char *pattern);

#endif
