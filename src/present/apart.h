/* SPDX-License-Identifier: Apache-2.0
 * Names that are cut to a column and still differ. Kernels of one library have
 * the same beginning and the same end; what tells them apart is a number in the
 * middle, which is just what a cut takes away. */
#ifndef PRESENT_APART_H
#define PRESENT_APART_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* A text that does not fit its column. */
struct cut {
    const char *full;  /* all of it; NULL: it fits, and is left alone */
    const char *shown; /* what stands in the column; in the arena */
    size_t width;      /* the columns of the screen that it may take */
    bool alike;        /* another looked like it */
};

/* Cuts anew those of n texts that look alike although they are not: what all of
 * them have in common is left out, and what differs is shown; of paths that
 * share a long first part this is left out in any case. Where that is not
 * enough a number tells them apart ("~2"). Texts that are the same stay the
 * same. Returns false if memory ran out. O(n log n). */
bool cuts_apart(struct cut *v, size_t n, bool symbols, const char *dots,
                struct arena *a);

#endif
