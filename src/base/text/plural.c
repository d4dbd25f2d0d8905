/* SPDX-License-Identifier: Apache-2.0
 * Words that agree with a number: see plural.h. */
#include "base/text/plural.h"

#include <stdbool.h>

char *plural_put(char *buf, size_t cap, const char *text, uint64_t n) {
    size_t len = 0;
    bool in = false, out = false; /* in a choice; in the part that goes out */
    for (; *text != '\0'; text++) {
        if (*text == '[') {
            in = true;
            out = n != 1;
        } else if (in && *text == '|') out = !out;
        else if (in && *text == ']') in = out = false;
        else if (!out && len + 1 < cap) buf[len++] = *text;
    }
    buf[len] = '\0';
    return buf;
}
