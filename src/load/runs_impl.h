/* SPDX-License-Identifier: Apache-2.0
 * What runs.c, runs_load.c, runs_own.c, runs_traced.c, told_steps.c and
 * step_clock.c share, for no other file. */
#ifndef LOAD_RUNS_IMPL_H
#define LOAD_RUNS_IMPL_H

#include "base/map.h"
#include "model/trace.h"

/* A trace that is not sealed yet, and what decides where it belongs. */
struct loaded_file {
    struct trace *t;
    const char *path;
    const struct importer *importer; /* NULL: not looked at yet */
    int64_t lo, hi;                  /* window, ps from the trace's epoch */
    bool taken;
};

/* What the name of a file of opscope's recorder says (runs_own.c). */
enum own_form { OWN_WHOLE, OWN_PART, OWN_RING };
struct own_file {
    size_t stem;           /* bytes of the path that are the stem */
    uint64_t part, device; /* 0: the first; the host's */
    enum own_form form;
};
/* Returns false if the path is not named like such a file. */
bool own_file_of(const char *path, struct own_file *out);
bool own_same_stem(const char *a, const char *b);

/* Files by their stem: a folder may hold any number of recordings, and each
 * file is compared only with those of its own stem. */
struct stems {
    struct map first; /* hash of a stem -> its first part */
    uint32_t *next;   /* by part: the next of the same hash, or ROW_NONE */
};
bool stems_init(struct stems *s, const struct loaded_file *v, size_t n);
void stems_free(struct stems *s);

/* Returns the first file with this path's stem, or ROW_NONE; s->next has
 * more. */
uint32_t stems_of(const struct stems *s, const char *path);

/* Did this .ring (imported) bring that file's contents with it? */
bool own_is_included(const struct loaded_file *ring, const char *path);

/* Makes one trace, that of the first file, of the files of each recording. */
int join_recordings(struct loaded_file *v, size_t n, const struct stems *s,
                    struct ops_err *e);

/* Makes one trace of what a framework traced of a process and what opscope
 * recorded of it meanwhile (runs_traced.c). */
int join_all_traced(struct loaded_file *v, size_t n, struct ops_err *e);

/* Gives a capture that has no wall clock the recording's, by the steps that
 * both have (step_clock.c). Returns false where they do not tell, or memory ran
 * out. */
bool clock_by_steps(struct loaded_file *capture, const struct loaded_file *own,
                    bool *oom);

/* Puts a row where nothing is counted. Returns false if there is no memory:
 * noted (runs_traced.c). */
bool put_row_aside(struct trace *t, row_id r);

/* Mends the steps of a recording of which it says itself that they are none, or
 * ended elsewhere, and their markers in the captures of the same process
 * (told_steps.c). Returns false if out of memory. */
bool mend_told_steps(struct loaded_file *own, struct loaded_file **captures,
                     size_t n);

/* A step of a recording. */
struct own_step {
    int64_t ts, dur;
    bool traced; /* by a framework, or its tracer's end is in it */
};

/* What stretches of steps tell of a program that runs ahead of its device, ps a
 * step (laps.c). */
struct lap_figures {
    int64_t step, low, high; /* the middle mean of a stretch (of an even number
                                the lower one), the least, the most */
    int64_t steps, laps;     /* how many there were */
};
/* Reads them; steps are sorted by start, and stretches that begin before `from`
 * do not count. *ahead tells whether the program ran ahead: else steps one by
 * one tell how long they take. Returns false if out of memory. */
bool laps_measure(const struct trace *own, const struct own_step *steps,
                  size_t n, int64_t from, struct lap_figures *out, bool *ahead);

/* Returns how many pairs of n files are compared before the rest is left as it
 * is: real jobs need one for each file, or a few. */
static inline size_t pairs_allowed(size_t n) {
    return ((size_t)1 << 20) + 64 * n;
}

#endif
