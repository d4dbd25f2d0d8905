/* SPDX-License-Identifier: Apache-2.0
 * What a program that was killed left: files up to their last commit, and what
 * they do not have in its ring file. Reading joins the two in memory and
 * changes nothing; closing does what ops_stop would have done.
 *
 * Both start from the pointer file "<stem>.ring" in the run's folder. Ring
 * files are taken for hostile. */
#ifndef RING_RECOVER_H
#define RING_RECOVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum recover_state {
    RECOVER_DEAD,   /* the program has gone: this is all there will be */
    RECOVER_ALIVE,  /* it still records: a snapshot */
    RECOVER_CLOSED, /* it stopped in order, or never began: the files are whole
                       by themselves */
};

struct recovered {
    enum recover_state state;
    uint8_t *p; /* a whole XSpace: files and rings; 64 zero bytes behind */
    size_t n;
    size_t mapped;           /* for recover_free */
    char file[NAME_MAX + 1]; /* the .part that is in it, beside the pointer; ""
                                when there is none. With its device files it
                                must not be read again */
    uint32_t pid;
    uint32_t damaged;     /* rings that make no sense, and are not in it */
    uint64_t ring_events; /* that only the rings had */
};

/* Returns 0; -1 or RECOVER_NO_MEMORY, and a sentence in why. RECOVER_CLOSED has
 * no bytes. */
enum { RECOVER_NO_MEMORY = -2 };
int recover_read(const char *pointer, struct recovered *out, char *why,
                 size_t cap);
void recover_free(struct recovered *r);

/* The points of curves (ops_scalar) that only the rings of a dead program have,
 * as records of an event file. They belong behind the first `bytes` of the file
 * of that name in the log folder ("": there is none yet); records that follow
 * there by now are among them, too. Returns 0; -1 if there is nothing to be
 * read, or the program is alive and will write them itself; or
 * RECOVER_NO_MEMORY. */
struct recovered_scalars {
    char file[256];
    uint64_t bytes;
    uint8_t *p;
    size_t n;
    uint64_t points;
    uint64_t lost; /* points that the program could not write, beside them */
};
int recover_scalars(const char *pointer, struct recovered_scalars *out);
void recover_scalars_free(struct recovered_scalars *s);

/* Looks at the ring file that a pointer leads to. Returns false if there is
 * none on this host. */
struct recover_look {
    int32_t pid;     /* who writes or wrote it; 0: it never began */
    bool alive;      /* it still does */
    bool mine;       /* the pointer is this user's */
    uint64_t bytes;  /* of memory that the ring file has */
    uint64_t launch; /* which `opscope record` started it, or 0 */
};
bool recover_look(int dir, const char *name, struct recover_look *out);
bool recover_look_path(const char *pointer, struct recover_look *out);

struct recover_closed {
    uint32_t pid;
    uint64_t events, ring_events, dropped;
};

/* Writes what the rings have into the files, closes them and removes ring file
 * and pointer. Refuses a program that is still alive, and another user's.
 * Returns 0; -1, and a sentence in why. The second is for the pointer of that
 * name in an open folder. */
int recover_close(const char *pointer, struct recover_closed *out, char *why,
                  size_t cap);
int recover_close_at(int dir, const char *name, struct recover_closed *out,
                     char *why, size_t cap);

#endif
