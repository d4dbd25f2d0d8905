/* SPDX-License-Identifier: Apache-2.0
 * Kinds and flags of spans as words: on screen, and in the files that opscope
 * writes for other viewers and reads back. */
#ifndef MODEL_KIND_H
#define MODEL_KIND_H

#include "base/bytes.h"
#include <stdbool.h>
#include <stdint.h>

/* Returns "op", "kernel", ...; "other" for anything else. */
const char *kind_name(uint8_t kind);

/* Returns the word for flag bit number i; NULL if it is not written (instants
 * and overlapping spans show in their form already). */
const char *flag_name(unsigned i);

/* Reads "annotation step": a kind, then flags, blanks between them. Returns
 * false if the first word is no kind; unknown flags are passed over. */
bool kind_parse(struct bytes words, uint8_t *kind, uint8_t *flags);

#endif
