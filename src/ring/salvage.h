/* SPDX-License-Identifier: Apache-2.0
 * What a program that was killed left: files up to their last commit, and the
 * rest in its ring file. Reading joins the two in memory and changes nothing;
 * finishing does what ops_stop would have done.
 *
 * Both start from the pointer file "<stem>.ring" in the run's folder. Ring
 * files are taken for hostile. */
#ifndef RING_SALVAGE_H
#define RING_SALVAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rec_salvage_state {
    REC_DEAD,   /* the program has gone: this is all there will be */
    REC_ALIVE,  /* it still records: a snapshot */
    REC_CLOSED, /* it stopped in order, or never began: the files are whole by
                   themselves */
};

struct rec_rest {
    enum rec_salvage_state state;
    uint8_t *p; /* a whole XSpace: files and rest; 64 zero bytes behind */
    size_t n;
    size_t mapped;           /* for rec_rest_free */
    char file[NAME_MAX + 1]; /* the .part that is in it, beside the pointer; ""
                                when there is none. With its device files it
                                must not be read again */
    uint32_t pid;
    uint32_t damaged;     /* rings that make no sense, and are not in it */
    uint64_t rest_events; /* that only the rings had */
};

/* 0; or -1, or REC_REST_NO_MEMORY, and a sentence in why. REC_CLOSED has no
 * bytes. */
enum { REC_REST_NO_MEMORY = -2 };
int rec_rest_read(const char *pointer, struct rec_rest *out, char *why,
                  size_t cap);
void rec_rest_free(struct rec_rest *r);

/* The points of curves (ops_scalar) that only the rings of a dead program have,
 * as records of an event file: they belong behind the first `bytes` of the file
 * of that name in the log folder ("": there is none yet), where what follows by
 * now stands among them too. 0; -1: there is nothing to be read, or the program
 * is alive and will write them itself; or REC_REST_NO_MEMORY. */
struct rec_scalars {
    char file[256];
    uint64_t bytes;
    uint8_t *p;
    size_t n;
    uint64_t points;
};
int rec_scalars_read(const char *pointer, struct rec_scalars *out);
void rec_scalars_free(struct rec_scalars *s);

/* A look at the ring file that a pointer leads to. False: there is none on this
 * host. */
struct rec_look {
    int32_t pid;     /* who writes or wrote it; 0: it never began */
    bool alive;      /* it still does */
    bool mine;       /* the pointer is this user's */
    uint64_t bytes;  /* of memory that the ring file has */
    uint64_t launch; /* which `opscope record` started it, or 0 */
};
bool rec_ring_look(int dir, const char *name, struct rec_look *out);
/* The same of a path. */
bool rec_ring_look_path(const char *pointer, struct rec_look *out);

struct rec_saved {
    uint32_t pid;
    uint64_t events, rest_events, dropped;
};

/* Writes the rest into the files, closes them and removes ring file and
 * pointer. Not for a program that is still alive, nor for another user's. */
int rec_salvage_finish(const char *pointer, struct rec_saved *out, char *why,
                       size_t cap);
/* The same for the pointer of that name in an open folder. */
int rec_salvage_at(int dir, const char *name, struct rec_saved *out, char *why,
                   size_t cap);

#endif
