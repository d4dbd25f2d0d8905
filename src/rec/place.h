/* SPDX-License-Identifier: Apache-2.0
 * Where a session lives on disk: the run's folder, the stem of its files, the
 * ring file and the pointer to it. Nothing that exists is ever opened for
 * writing: every name is taken with O_EXCL or not at all. */
#ifndef REC_PLACE_H
#define REC_PLACE_H

#include <limits.h>
#include <stdbool.h>

struct session;

/* Makes the folders, picks a stem that is free (absolute, into stem), writes
 * the pointer, by which the rings are found after a kill, opens the ring file
 * (s->fd) and works out how much memory rings may have. -1 and
 * ops_problem(). */
int place_make(struct session *s, char stem[PATH_MAX]);
/* Has the program closed the ring file's descriptor? Then it is opened again:
 * without its lock we would be taken for dead. */
void place_check(struct session *s);
/* Closes and removes ring file and pointer; keep: only closes, for a rescue. */
void place_remove(struct session *s, bool keep);

#endif
