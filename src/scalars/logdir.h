/* SPDX-License-Identifier: Apache-2.0
 * A log folder as TensorBoard sees it: every file below it with "tfevents" in
 * its name is an event file, and the folder that it lies in is its run ("." is
 * the log folder itself). The folder may be in use: reading it again finds new
 * files and what the old ones have grown by. Points that a killed program had
 * recorded and not written yet (ops_scalar) are taken from its memory. */
#ifndef SCALARS_LOGDIR_H
#define SCALARS_LOGDIR_H

#include "model/result.h"
#include "scalars/scalars.h"

struct logdir {
    char *root; /* the folder, or one event file */
    struct scalars scalars;
    struct logdir_file {
        uint64_t size; /* when it was last read */
        uint64_t inode;
        bool unreadable; /* and why: errno's text in reason */
        char reason[64];
        uint64_t rest; /* bytes behind it that a dead program left in its
                                memory; 0: none */
        uint64_t rest_points;
        bool rest_seen; /* in the last reading */
    } * files;          /* by file of the store */
    size_t nfiles, cap_files;
    struct map by_path;   /* hash of a path -> file */
    size_t folders;       /* looked at in the last reading */
    struct ops_err fatal; /* a limit was hit: code is not 0 */
    bool limited;         /* there were more folders than are looked at */
    uint64_t lost;        /* points that their programs could not write, by what
                      profiles and rings said in the last reading */
    struct map losses; /* hash of a profile's path, size and inode -> its share
                          of them: it is read once */
};

/* Finds and reads everything. Returns OPS_EIO if the path cannot be opened. A
 * folder without an event file is no error: it has no series. On success the
 * caller frees. */
int logdir_open(struct logdir *l, const char *path, struct ops_err *e);

/* Reads on: new files, and what is new in the known ones. A file that became
 * shorter or is another one now is read anew. It fails only if the folder
 * itself is gone or memory runs out. */
int logdir_refresh(struct logdir *l, struct ops_err *e);

/* Tells a result where it comes from and what was wrong with it: sources,
 * notes, remarks. follow: the program may still be writing, so that a record
 * that is not whole yet is no fault. */
void logdir_describe(const struct logdir *l, bool follow, struct result *r);

void logdir_free(struct logdir *l);

/* Does TensorBoard take a file of that name for an event file? */
bool logdir_is_event_file(const char *name);

#endif
