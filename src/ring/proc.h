/* SPDX-License-Identifier: Apache-2.0
 * Small files of /proc and /sys: read whole, looked up by the word that begins
 * a line. No streams, no memory of their own. */
#ifndef RING_PROC_H
#define RING_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first cap - 1 bytes of a file, with a 0 behind them: how many, or -1. A
 * file of an open descriptor is read from its beginning. */
long proc_read(const char *path, char *buf, size_t cap);
long proc_read_at(int dir, const char *path, char *buf, size_t cap);
long proc_reread(int fd, char *buf, size_t cap);

/* The rest of the line that begins with the key, behind ':' and blanks: its
 * begin and length. NULL: there is none. */
const char *proc_line(const char *text, const char *key, size_t *len);
/* The same, a number (its unit is not looked at). */
bool proc_u64(const char *text, const char *key, uint64_t *out);

/* Digits only, all of the text, at most INT64_MAX. */
bool proc_whole(const char *text, int64_t *out);

#endif
