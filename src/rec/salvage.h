/* SPDX-License-Identifier: Apache-2.0
 * What a program that was killed left: files up to their last commit, and the
 * rest in its ring file. Reading joins the two in memory and changes nothing;
 * finishing does what ops_stop would have done.
 *
 * Both start from the pointer file "<stem>.ring" in the run's folder. Ring
 * files are taken for hostile. */
#ifndef REC_SALVAGE_H
#define REC_SALVAGE_H

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
    uint8_t *p;       /* a whole XSpace: files and rest; 64 zero bytes behind */
    size_t n;
    size_t mapped;    /* for rec_rest_free */
    char file[PATH_MAX]; /* the .part that is in it; "" when there is none.
                            With its device files it must not be read again */
    uint32_t pid;
    uint64_t rest_events; /* that only the rings had */
};

/* 0; or -1, or REC_REST_NO_MEMORY, and a sentence in why. REC_CLOSED has no
 * bytes. */
enum { REC_REST_NO_MEMORY = -2 };
int rec_rest_read(const char *pointer, struct rec_rest *out, char *why,
                  size_t cap);
void rec_rest_free(struct rec_rest *r);

/* Who writes the ring that a pointer leads to? 0: there is none on this host.
 * *alive: it still does. */
int32_t rec_ring_pid(const char *pointer, bool *alive);

struct rec_saved {
    char path[PATH_MAX]; /* the profile, closed */
    uint32_t pid;
    uint64_t events, rest_events, dropped;
};

/* Writes the rest into the files, closes them and removes ring file and
 * pointer. Not for a program that is still alive, nor for another user's. */
int rec_salvage_finish(const char *pointer, struct rec_saved *out, char *why,
                       size_t cap);

#endif
