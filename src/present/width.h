/* SPDX-License-Identifier: Apache-2.0
 * How wide a text is on a screen, and how to make it fit. Widths are terminal
 * columns, not bytes: a CJK character takes two, an accent of its own none.
 * The table is ours, so that output does not depend on the locale. */
#ifndef PRESENT_WIDTH_H
#define PRESENT_WIDTH_H

#include "base/io/sink.h"
#include <stddef.h>

/* Return the columns of a text, or of its first n bytes, as text_put writes
 * it. */
size_t text_width(const char *s);
size_t text_width_n(const char *s, size_t n);

/* Writes a text that may come from a hostile file, in one line: what is not
 * plain becomes '?', and the width is known. */
void text_put(struct sink *out, const char *s);
void text_put_n(struct sink *out, const char *s, size_t n);

/* Writes a paragraph, wrapped at column `limit`: the first line goes on at
 * column col, later ones are indented. A line feed ends it. */
void text_put_wrapped(struct sink *out, const char *s, size_t col,
                      size_t indent, size_t limit);

/* Writes what text_put does in at most `width` columns: `cut` ("…") takes the
 * place of the middle. */
void text_put_fit(struct sink *out, const char *s, size_t width,
                  const char *cut);

/* Does the same for C++ symbols, which lose what tells least first: "void" and
 * the parameters, then namespaces, then what stands in <>, from the inside. */
void symbol_put_fit(struct sink *out, const char *s, size_t width,
                    const char *cut);

/* Writes a C++ symbol without "void", parameters and namespaces. */
void symbol_put_bare(struct sink *out, const char *s);

#endif
