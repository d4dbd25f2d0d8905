/* SPDX-License-Identifier: Apache-2.0
 * The one session of a process, between ops_start and ops_stop. Calls on the
 * hot path see only ops_state_ and their own thread; the lock here is for
 * starting, stopping, and a thread's first call. */
#ifndef REC_SESSION_H
#define REC_SESSION_H

#include <pthread.h>
#include <sys/types.h>

#include "opscope/record.h"
#include "rec/host_state.h"
#include "rec/machine/identity.h"
#include "rec/session_paths.h"
#include "rec/settings.h"
#include "ring/drain.h"
#include "ring/eventfile.h"
#include "ring/ring_map.h"
#include "ring/window.h"

struct rec_thread;

struct session {
    pthread_mutex_t lock;
    uint32_t gen; /* of the session that runs; 0: none */
    uint32_t last_gen;
    pid_t pid;
    uint64_t family; /* the same in all children of fork(), and theirs */
    struct settings set;
    struct identity id;
    struct window window;
    bool windowed; /* not everything is wanted */
    struct ring_map map;
    uint64_t memory_used, memory_cap; /* address space of rings, bytes */
    uint64_t threads;                 /* that ever recorded in this session */
    struct rec_thread *owner[REC_RINGS]; /* of each ring, while it lives */
    uint64_t *tids;                      /* a bit for each tid that did */

    /* used only by the flusher */
    struct session_paths paths;
    struct drain drain;
    struct eventfile events;
    bool events_open;
    pthread_t flusher;
    pthread_mutex_t flush_lock;
    pthread_cond_t wake, done;
    uint64_t asked, answered; /* requests to flush or dump: tickets */
    bool ask_dump, ask_stop;
    bool dozing; /* atomic: it sleeps for long, since nothing was recorded */
    bool woken;  /* a thread that records did it */
    int dump_result;
    int begun;             /* 1: it runs; -1: it could not; 0: not yet */
    bool whole;            /* at its end: all of it is in the files */
    bool recorded;         /* a window was open at some time */
    uint32_t signalled;    /* set by the signal handler */
    uint32_t rank_changed; /* a new rank is not in the file yet */
    /* of a capture on demand */
    uint32_t demand_steps_left;
    uint64_t demand_until_ns;
    bool saw_step;
    pthread_mutex_t problem_lock;
    const char *problem; /* atomic; what it points to stays */
};
extern struct session rec_session __attribute__((visibility("hidden")));

/* Take and give back the lock, in a thread of the program. The flusher only
 * tries to take it. */
void session_lock(struct host_state *q);
void session_unlock(const struct host_state *q);
void session_window(bool on);
/* Is this a child that marks no steps, and to be recorded? It is if it was made
 * inside a window; else while that of the process that began recording is
 * open. */
bool session_follows(void);
/* Begins a step: opens or closes the window. */
void session_step(int64_t number);
/* Ends the last step: what follows is not part of a window of steps either. */
void session_step_end(void);
/* Is the child's first call after a fork. */
void session_child(void);
/* Tells ops_problem() what went wrong, and the words for an errno unless it is
 * 0. Returns -1. */
int session_problem(const char *what, int error);

/* --- the flusher: the recorder's own thread, which takes what the rings hold
 * into the files (flusher.c) ---------------------------------------------- */

/* Starts the thread and waits until it has made the session's files and rings.
 * Returns 0, or -1 and ops_problem(). */
int flusher_start(void);
/* Forgets, in a child of fork(), at once what it has of its parent. */
void flusher_forked(void);
/* Asks the flusher and waits for its answer; stop also joins it. */
uint64_t flusher_ask(bool dump);
int flusher_wait(uint64_t ticket);
/* From a thread that fills its ring, with its signals blocked: wakes a flusher
 * that dozes. It may fail; the thread comes again before the ring is full. */
void flusher_wake(void);
/* Is called once in a process, and in each child of a fork. */
void flusher_init(void);
/* Writes the rest, closes the files and removes the ring file, unless not all
 * of it is in the files. */
void flusher_stop(void);

#endif
