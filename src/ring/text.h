/* SPDX-License-Identifier: Apache-2.0
 * Bytes that a program gave as text. A protobuf string must be UTF-8: one byte
 * that is not makes XProf and TensorBoard refuse the whole file. */
#ifndef RING_TEXT_H
#define RING_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/pbw.h"
#include "base/text/utf8.h"

/* Writes '?' over what is not UTF-8. Returns whether there was any. */
static inline bool text_mend(uint8_t *s, size_t n) {
    bool mended = false;
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8_len(s + i, n - i);
        if (k != 0) continue;
        s[i] = '?';
        k = 1;
        mended = true;
    }
    return mended;
}

/* Does the text end in that, with something before it? */
static inline bool text_ends(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* Makes a text fit for a file's name: letters, digits, '.', '-' and '_' stay,
 * everything else becomes '_'. */
static inline void text_file_name(char *s) {
    for (; *s != '\0'; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
              (*s >= '0' && *s <= '9') || strchr("._-", *s) != NULL))
            *s = '_';
}

/* Returns how much of a text of n bytes fits into `most` without cutting a
 * character. */
static inline size_t text_cut(const char *s, size_t n, size_t most) {
    if (n <= most) return n;
    n = most;
    while (n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80) n--;
    return n > 0 ? n : most; /* all continuation: no text */
}

/* Writes a string field as pbw_bytes does, mended where it is written. */
static inline uint8_t *text_field(uint8_t *p, uint32_t field, const char *s,
                                  size_t n) {
    p = pbw_bytes(p, field, s, n);
    text_mend(p - n, n);
    return p;
}

#endif
