/* SPDX-License-Identifier: Apache-2.0
 * A path becomes bytes: mapped, and inflated first if it is gzip or zstd (into
 * an unlinked temporary file that is then mapped, so that its pages, too, can
 * be dropped by the system). */
#ifndef BASE_IO_FILE_H
#define BASE_IO_FILE_H

#include "base/bytes.h"
#include "base/err.h"

struct file {
    struct bytes bytes;  /* the contents, inflated; at least 64 readable zero
                            bytes follow them */
    size_t disk_bytes;   /* size on disk, compressed or not */
    const char *packing; /* "", "gzip" or "zstd" */
    bool damaged;        /* compressed data was cut or its checksum wrong */
    int slot;            /* its place in the guard against shrinking files */
};

enum {
    /* A compressed file may grow to 200 times its size, and all that are open
     * together to 64 MiB more: past that a file is taken for a bomb. Real
     * traces inflate 12 to 30 times. */
    FILE_MAX_RATIO = 200,
};

/* Opens and maps a file. Refuses what is not a regular file (a FIFO is read to
 * its end, up to 16 GiB). Returns OPS_EIO if it cannot be opened or read,
 * OPS_ELIMIT if it is a compression bomb, OPS_EFORMAT if it is compressed and
 * nothing can be inflated. A damaged tail is no error: damaged is set. */
int file_open(const char *path, struct file **out, struct ops_err *e);

/* Makes a file of bytes in memory. Nothing is copied: the caller keeps them
 * alive and must have 64 zero bytes behind them. For tests and fuzzers. */
int file_from_bytes(struct bytes b, struct file **out, struct ops_err *e);

/* Does the same for bytes at the start of a mapping, which the file takes over:
 * file_close() unmaps it, and so does a failure. */
int file_from_mapping(struct bytes b, size_t mapped, struct file **out,
                      struct ops_err *e);

void file_close(struct file *f);

/* Lets go of the memory behind a part of the contents that was read and is
 * hardly needed again: a later read takes it from the system's cache of the
 * file. Does nothing where the part is no file's pages. */
void file_forget(const struct file *f, struct bytes part);

/* Has the file on disk become shorter than what was mapped? Reading past its
 * new end gives zeros. */
bool file_shrank(const struct file *f);

/* Did a read meet such an end? This costs no look at the disk. */
bool file_tripped(const struct file *f);

/* Installs the SIGBUS guard for mapped files that shrink, before or after files
 * are mapped; once is enough. Faults elsewhere go to the handler that was there
 * before, or crash as they would have. Without the guard files are copied
 * before they are read. main() calls it, or a program that asked for it. */
void file_guard(void);

#endif
