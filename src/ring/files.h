/* SPDX-License-Identifier: Apache-2.0
 * The files of a session while it is written: one for each plane, each a whole
 * XSpace of one plane at every moment, because its length field (a padded
 * varint) is patched after what it counts. Closing a part joins them: the
 * devices' files behind the host's, one rename. */
#ifndef RING_FILES_H
#define RING_FILES_H

#include <limits.h>
#include <stddef.h>

#include "ring/ring.h"

enum {
    FILES_HEAD = 6,        /* tag and padded length */
    FILES_LIMIT = 1 << 30, /* then a new part begins */
};

struct files {
    int dir;          /* the run's folder, which the caller keeps open */
    const char *stem; /* what the names in it begin with */
    uint64_t part;
    struct {
        int fd;       /* -1: not opened */
        uint64_t end; /* written, committed or not; 0: no such file */
    } f[REC_FILES];
    uint64_t committed[REC_FILES];
    int error; /* errno of what failed last; 0 */
};

void files_init(struct files *f, int dir, const char *stem, uint64_t part);

/* Writes the first FILES_HEAD bytes of a plane of so many in all: its tag and
 * the length of what follows. */
void files_head(uint8_t *head, uint64_t bytes);

/* Makes a new file for a plane; it must not exist. Returns -1 and f->error. */
int files_create(struct files *f, unsigned file);
/* Removes a file that was made and of which nothing was ever committed. */
void files_remove(struct files *f, unsigned file);
/* Goes on with a file that a dead process left, from `bytes` on. */
int files_resume(struct files *f, unsigned file, uint64_t bytes);

/* Has somebody removed the file under us? */
bool files_gone(const struct files *f);

/* Appends. Returns -1 if nothing more can be written until files_rollback. */
int files_write(struct files *f, unsigned file, const void *p, size_t n);
/* Forgets what was written since the last commit; a device's file that had
 * none is removed, so that its plane begins anew. */
void files_rollback(struct files *f);
/* Makes what was written count: patches the lengths. */
void files_commit(struct files *f);

/* Puts the devices' files and `tail` (n bytes: further planes) behind the
 * host's plane: the file is whole. Returns -1 and f->error if it cannot: then
 * nothing has changed but bytes that nobody reads. */
int files_join(struct files *f, const void *tail, size_t n);
/* Gives the joined file its final name, which goes to name, and removes the
 * devices'. Never replaces a file: takes another name (-2, -3, ...) if there is
 * one. */
int files_finish(struct files *f, char name[NAME_MAX + 1]);
/* Removes what files_create made, after a start that failed. */
void files_discard(struct files *f);
/* Closes the descriptors and leaves the files. */
void files_close(struct files *f);

#endif
