/* SPDX-License-Identifier: Apache-2.0
 * A nameless temporary file that grows and is mapped. It holds inflated data
 * and what comes out of pipes. The system may drop its pages when memory is
 * short. Disk space is reserved before it is written to: a full disk is an
 * error of scratch_room, not a SIGBUS later. */
#ifndef BASE_IO_SCRATCH_H
#define BASE_IO_SCRATCH_H

#include "base/bytes.h"
#include "base/err.h"

enum { BYTES_BEHIND = 64 }; /* zero bytes that follow every file's contents */

struct scratch {
    uint8_t *p; /* the mapping, writable until sealed; NULL when closed */
    size_t cap; /* bytes mapped and reserved on disk */
    int fd;     /* -1 when closed or sealed */
};

/* Opens a file in $TMPDIR, else in /tmp. OPS_EIO names the folder. */
int scratch_open(struct scratch *s, struct ops_err *e);

/* Grows the file to at least need bytes, to want if the disk has them; p may
 * move. Returns OPS_EIO if no space is left. */
int scratch_room(struct scratch *s, size_t need, size_t want,
                 struct ops_err *e);

/* Returns the bytes that its folder has left; SIZE_MAX if that is not known. */
size_t scratch_left(const struct scratch *s);

/* Cuts it to n bytes with BYTES_BEHIND zeros behind them, read-only. */
int scratch_seal(struct scratch *s, size_t n, struct ops_err *e);

/* Unmaps the file, which is then gone. A closed one stays closed. */
void scratch_close(struct scratch *s);

#endif
