/* SPDX-License-Identifier: Apache-2.0
 * TensorBoard's event files become the store of scalars: this is the one reader
 * behind the importer `tfevents`, `opscope scalars` and `opscope watch`. */
#ifndef SCALARS_SUMMARY_H
#define SCALARS_SUMMARY_H

#include "scalars/scalars.h"

/* Is it an event file: is its first record whole, and an Event? */
bool summary_sniff(struct bytes all);

/* Reads the records of a file from where the last reading ended
 * (s->files[file].offset) to the last whole one. Damage is counted in the
 * file's own figures; out of memory sets s->oom. About 60 ns a scalar. */
void summary_read(struct scalars *s, uint32_t file, struct bytes all);

#endif
