/* SPDX-License-Identifier: Apache-2.0
 * Text from outside on its way to people. Names in profiles, tags, paths,
 * arguments and the environment may hold anything: bytes that steer a terminal,
 * characters that turn the direction of a line or cannot be seen at all. Here
 * stands the one rule that says which characters may be shown as they are; all
 * that prints asks it, and sink_screen() holds it against every byte that goes
 * to a screen, whoever wrote it. */
#ifndef BASE_TEXT_PLAIN_H
#define BASE_TEXT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_BAD UINT32_MAX /* a byte that is no UTF-8 */

/* Reads the character at s, of n > 0 bytes. Returns its length; where there is
 * none, *code becomes PLAIN_BAD and the length is 1. */
size_t plain_take(const char *s, size_t n, uint32_t *code);

/* May the character stand on a screen as it is? These may not: controls (C0,
 * DEL, C1), whatever changes the direction of text or takes no room (but for
 * marks on letters), separators of lines and paragraphs, non-characters,
 * PLAIN_BAD. */
bool plain_char(uint32_t code);

/* Returns how many of the n bytes at s are printable ASCII, up to the first
 * that is not: most text needs no other look. */
size_t plain_run(const char *s, size_t n);

enum plain_kind {
    PLAIN_LINE,  /* nothing else may stand in it */
    PLAIN_PAGE,  /* line feeds and tabs, too, and CR before LF */
    PLAIN_ASCII, /* the same page for a terminal that knows no UTF-8: of its
                    longer characters some bytes are controls there */
};

/* Puts '?' in place, one for each character and each byte that may not stand in
 * such a text. Returns the new length, which is never larger. */
size_t plain_clean(char *s, size_t n, enum plain_kind kind);

/* Does the same for a string of one line. */
void plain_string(char *s);

/* Returns how much of s is whole, without a character, or a CR LF, that the end
 * of s may have cut. */
size_t plain_whole(const char *s, size_t n);

#endif
