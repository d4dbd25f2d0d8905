/* SPDX-License-Identifier: Apache-2.0
 * Where a session lives on disk: the run's folder, the stem of its files, the
 * ring file and the pointer to it. Nothing that exists is ever opened for
 * writing: every name is taken with O_EXCL or not at all.
 *
 * Folders are opened once, and names are looked up in them: a program that
 * changes its root or its folder, or renames the log folder, changes nothing
 * for us. All of it is the flusher's, in whose table the descriptors are. */
#ifndef REC_SESSION_PATHS_H
#define REC_SESSION_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct session;

struct session_paths {
    int logdir, run;     /* the folders */
    int memory;          /* that of the ring file */
    int ring, pointer;   /* the files */
    char stem[PATH_MAX]; /* absolute; files' names begin with base */
    const char *base;    /* in stem */
    char pointer_name[NAME_MAX + 1];
    char ring_name[NAME_MAX + 1];
    uint64_t uid_cap; /* for all rings of this user */
};

/* Makes the folders, picks a stem that is free, writes the pointer, by which
 * the rings are found after a kill, makes the ring file and works out how much
 * memory rings may have. Returns 0, or -1 and ops_problem(). */
int session_paths_make(struct session *s);
/* Removes ring file and pointer and closes all. With keep it only closes, for a
 * recovery. */
void session_paths_remove(struct session_paths *p, bool keep);

/* Returns the bytes that ring files of this user hold in that folder. */
uint64_t session_paths_ring_bytes(const struct session_paths *p);
/* Tells ops_problem() that there are no rings, and why: they are a file, also
 * in memory, so that the limit on files applies to them. Returns -1. */
int session_paths_no_rings(int error);
/* Has the run's folder been removed? */
bool session_paths_gone(const struct session_paths *p);

#endif
