/* SPDX-License-Identifier: Apache-2.0
 * Scalars into TensorBoard's event files, from inside a running program:
 *
 *     <dir>/events.out.tfevents.<unix seconds>.<host>.<pid>.<n>
 *
 *     record:  u64 length | u32 masked CRC of it | Event | u32 masked CRC of it
 *     first:   Event { wall_time, file_version "brain.Event:2", writer }
 *     others:  Event { wall_time, step, summary { value { tag, simple_value }}}
 *
 * simple_value, without a plugin's metadata, is what PyTorch writes and what
 * every TensorBoard shows as a scalar.
 *
 * Made for a thread of a program that is not ours: nothing is allocated,
 * printed or ended; no file is ever overwritten; what cannot be written waits
 * in the buffer, and what the buffer cannot hold is counted. One thread at a
 * time. */
#ifndef RING_EVENTFILE_H
#define RING_EVENTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVENTFILE_BUFFER = 1 << 17, /* bytes that wait for the next flush */
    EVENTFILE_TAG_MAX = 1000,   /* longer tags are cut */
    EVENTFILE_RECORD_MAX = 128 + EVENTFILE_TAG_MAX,
    EVENTFILE_NAME_MAX = 160,
    EVENTFILE_DIR_MAX = 3900,
    EVENTFILE_PATH_MAX = 4096,
};

struct eventfile {
    int fd;            /* -1: no file yet, or not now */
    int error;         /* errno of the last thing that failed, or 0 */
    uint64_t size;     /* bytes in the file, whole records only */
    uint64_t written;  /* scalars on disk, over all files */
    uint64_t lost;     /* scalars that no file has: no room, or the file
                               was removed under us */
    uint64_t cut_tags; /* scalars whose tag was cut or mended */
    uint64_t in_file;  /* scalars in the present file */
    uint64_t waiting;  /* scalars in buf */
    uint64_t out_records, out_bytes; /* that ever went from buf to a file */
    unsigned files;                  /* made so far: the n of the next name */
    int dir;                         /* the folder: the caller's */
    char folder[EVENTFILE_DIR_MAX];  /* its path */
    char host[65];                   /* letters, digits, '.', '_' and '-' */
    char path[EVENTFILE_PATH_MAX];   /* of the present file; "" when none */
    size_t n;                        /* bytes in buf */
    uint8_t buf[EVENTFILE_BUFFER];
};

/* Gets ready, but makes no file yet (a program that has no scalar leaves none).
 * dir is the folder, which stays open as long as this is used; folder is its
 * path; host NULL stands for the machine's name. Returns 0, or -ENAMETOOLONG if
 * the path is too long: then every scalar will be lost. */
int eventfile_init(struct eventfile *f, int dir, const char *folder,
                   const char *host);

/* Makes the file now, so that its name is known before anything is in it.
 * Returns 0 or -errno. */
int eventfile_begin(struct eventfile *f);

/* Goes on with a file of another process in the folder, from `size` on: what it
 * has behind that is cut off. Returns 0 or -errno: then a new file will be
 * made. */
int eventfile_resume(struct eventfile *f, const char *name, uint64_t size);

/* Adds a scalar. wall_time is Unix seconds. The tag is text of n bytes; bytes
 * that are not UTF-8 become '?', since TensorBoard would refuse the whole
 * record. A full buffer is flushed first. About 30 ns, and a write for each
 * 2,000 or so. */
void eventfile_scalar(struct eventfile *f, const char *tag, size_t n,
                      int64_t step, float value, double wall_time);

/* Writes the record of a scalar, as it stands in a file, to out, which has room
 * for EVENTFILE_RECORD_MAX. Returns its bytes. *cut: the tag was cut or
 * mended. */
size_t eventfile_record(uint8_t *out, const char *tag, size_t n, int64_t step,
                        float value, double wall_time, bool *cut);

/* Writes what waits, into a new file where there is none or where it was
 * removed. A folder that was removed is not made again. Returns 0 or -errno:
 * what was not written still waits, and the file ends with a whole record. */
int eventfile_flush(struct eventfile *f);

/* Gives up what waits: it is lost, and counted. */
void eventfile_give_up(struct eventfile *f);

/* Where a file stands, to come back to: the scalars since then come again. */
struct eventfile_mark {
    uint64_t out_records, out_bytes, lost, cut_tags, waiting;
    unsigned files;
    size_t n;
};
void eventfile_mark(const struct eventfile *f, struct eventfile_mark *m);
/* Cuts off what was added since the mark. What waited at the mark waits again,
 * as far as it was not written; where the file was removed, or another was
 * begun, what is in it stays. */
void eventfile_rollback(struct eventfile *f, const struct eventfile_mark *m);

/* Flushes and closes; what could not be written is lost, and counted. The
 * struct can be used again: the next flush makes a new file. */
int eventfile_close(struct eventfile *f);

#endif
