/* SPDX-License-Identifier: Apache-2.0
 * Text that must fit into a room: it is cut between two characters, never in
 * one. A precision in a format ("%.80s") counts bytes and knows no characters:
 *
 *     cut_fmt(buf, sizeof buf, "the longest is %.*s", CUT(80, name));
 */
#ifndef BASE_TEXT_CUT_H
#define BASE_TEXT_CUT_H

#include "base/bytes.h"
#include <stdarg.h>
#include <stddef.h>

/* Returns how many bytes of s may be taken: at most `most`, and none of a
 * character that would not be whole. O(most). */
size_t cut_at(const char *s, size_t most);

/* The two arguments of "%.*s" for at most so many bytes of s, which is
 * evaluated twice. */
#define CUT(most, s) (int)cut_at((s), (most)), (s)

/* The same for bytes that need not be followed by a NUL. */
size_t cut_bytes_at(struct bytes b, size_t most);
#define CUT_BYTES(most, b) (int)cut_bytes_at((b), (most)), (const char *)(b).p

/* Writes like snprintf, but leaves out a character that would be cut at the
 * end. Returns the length of what stands in buf; cap > 0. */
size_t cut_fmt(char *buf, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
size_t cut_vfmt(char *buf, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Copies s into buf of cap > 8 bytes. Where it is too long "..." stands for its
 * middle: of a path both the beginning and the end are telling. Returns the
 * length. */
size_t cut_middle(char *buf, size_t cap, const char *s);

#endif
