/* SPDX-License-Identifier: Apache-2.0
 * Words that agree with a number. Of "[one|many]" in a text the first stands
 * for a count of one, the second for any other: "file[|s] end[s|] too early"
 * is "file ends too early" or "files end too early". */
#ifndef BASE_TEXT_PLURAL_H
#define BASE_TEXT_PLURAL_H

#include <stddef.h>
#include <stdint.h>

/* Writes the text for n of them into buf of cap > 0 bytes, as much of it as
 * fits. It may be a format whose choices hold no conversion. Returns buf. */
char *plural_put(char *buf, size_t cap, const char *text, uint64_t n);

#endif
