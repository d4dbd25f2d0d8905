/* SPDX-License-Identifier: Apache-2.0
 * A row of numbers as a line of text: eight heights of blocks. */
#ifndef SCALARS_SPARK_H
#define SCALARS_SPARK_H

#include <stdbool.h>
#include <stddef.h>

enum { SPARK_CHARS = 64, SPARK_BYTES = 3 * SPARK_CHARS + 1 };

/* n numbers in at most `width` characters (at most SPARK_CHARS): the mean of as
 * many as share a place, from the smallest to the largest of these. 'x' is a
 * place with no number in it but NaN and infinities. ascii: without blocks.
 * Returns buf. O(n). */
char *spark_line(const double *v, size_t n, size_t width, bool ascii,
                 char buf[SPARK_BYTES]);

#endif
