/* SPDX-License-Identifier: Apache-2.0
 * The one session of a process, between ops_start and ops_stop. Calls on the
 * path see only ops_state_ and their own thread; the lock here is for starting,
 * stopping, and a thread's first call. */
#ifndef REC_SESSION_H
#define REC_SESSION_H

#include <pthread.h>
#include <sys/types.h>

#include "opscope/record.h"
#include "rec/drain.h"
#include "rec/eventfile.h"
#include "rec/identity.h"
#include "rec/proc.h"
#include "rec/quiet.h"
#include "rec/settings.h"
#include "rec/view.h"
#include "rec/window.h"

/* What a thread knows of itself. `word` is ops_state_ while its ring may be
 * written: one comparison tells that the session is the same and a window is
 * open. */
struct rec_thread {
    struct rec_ring *ring;
    struct rec_slot *slots;
    uint64_t mask;
    uint32_t word, gen;
    uint32_t fast;      /* = word where ticks are the CPU's; else no state */
    uint32_t index;     /* of the ring */
    uint32_t refused;   /* session in which it got no ring */
    bool attaching;     /* inside thread_attach(): a handler must not enter */
    bool ended;         /* thread_end() was here: nobody would tell of the end
                           of another ring */
    uint32_t busy;      /* inside a call: here and not in the ring, which may
                           be unmapped while a thread that has looked at the
                           state sleeps before it says so */
    struct rec_async *asyncs; /* the session's */
};
extern __thread struct rec_thread rec_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct session {
    pthread_mutex_t lock;
    uint32_t gen;          /* of the session that runs; 0: none */
    uint32_t last_gen;
    pid_t pid;
    struct settings set;
    struct identity id;
    struct window window;
    bool windowed;         /* not everything is wanted */
    struct rec_view view;
    int fd;                /* the ring file */
    struct proc_file ring_file;
    char ring_path[PATH_MAX], pointer_path[PATH_MAX];
    uint64_t memory_used, memory_cap;
    uint64_t threads;      /* that ever recorded in this session */
    struct rec_thread *owner[REC_RINGS]; /* of each ring, while it lives */
    uint32_t counting;     /* threads without a ring at drops_no_ring */
    uint64_t *tids;        /* a bit for each tid that did */

    /* the flusher's own */
    struct drain drain;
    struct eventfile events;
    bool events_open;
    pthread_t flusher;
    pthread_mutex_t flush_lock;
    pthread_cond_t wake, done;
    uint64_t asked, answered; /* requests to flush or dump: tickets */
    bool ask_dump, ask_stop;
    int dump_result;
    bool recorded;            /* a window was open at some time */
    uint32_t signalled;       /* set by the signal handler */
    uint32_t told_rank;       /* a new rank is not in the file yet */
    /* a capture on demand */
    uint32_t demand_steps_left;
    uint64_t demand_until_ns;
    bool saw_step;
    pthread_mutex_t problem_lock;
    char problem[256];
};
extern struct session rec_session __attribute__((visibility("hidden")));

/* --- threads.c ---------------------------------------------------------- */

/* A ring for the calling thread; false: there is none to be had (counted). */
bool thread_attach(uint32_t gen);
/* How far a ring may be written; gives it more memory where that is what is
 * missing. From its own thread, inside of a call. */
uint64_t thread_room(struct rec_ring *r, uint32_t index);
/* Memory for rings whose threads will need it soon: the flusher's. */
void threads_look_ahead(void);
/* A ring that nobody has yet, ready in memory, for the next thread. With the
 * lock. */
bool thread_spare(void);
/* Nobody writes any more: waits until no thread is inside a call, then unmaps
 * the rings. Rings of threads that hang in a call are left mapped, and then
 * the head must be too: false. */
void threads_quiesce(void);
bool threads_unmap(void);
/* In the child of a fork: the parent's rings are not ours. */
void threads_forget(void);
/* Memory behind [at, at + bytes) of the ring file: without it a store would be
 * a SIGBUS. False: there is none. */
bool ring_file_back(uint64_t at, uint64_t bytes);

/* --- session.c ---------------------------------------------------------- */

/* The lock, taken in a thread of the program. The flusher only tries it. */
void session_lock(struct quiet *q);
void session_unlock(const struct quiet *q);
void session_window(bool on);
/* A step begins: opens or closes the window. */
void session_step(int64_t number);
/* It ends, and none follows: nor is what follows part of a window of steps. */
void session_step_end(void);
/* The child's first call after a fork. */
void session_child(void);
void session_problem(const char *what, int error);

/* --- flusher.c ---------------------------------------------------------- */

/* Opens the files; then the thread starts. -1 and ops_problem(). */
int flusher_prepare(void);
int flusher_start(void);
/* In a child of fork(), at once: closes what it has of its parent. */
void flusher_forked(void);
/* Asks the flusher and waits for its answer; stop also joins it. */
uint64_t flusher_ask(bool dump);
int flusher_wait(uint64_t ticket);
/* Once in a process, and in each child of a fork. */
void flusher_init(void);
bool flusher_stop(void); /* false: not all of it is in the files */

/* --- record.c: what a scope costs, in ps; measured on a ring of its own --- */
uint64_t record_cost_ps(const struct rec_view *v);
/* Closes the step and epoch of the calling thread. */
void record_close_steps(void);
/* The thread ends: so do its scopes, step and epoch. */
void record_close_all(void);

/* --- device.c ----------------------------------------------------------- */
void device_start(void);
bool device_any(void); /* is there a tracer? */
/* In the child of a fork: an accelerator's tracer does not work there. */
void device_forget(void);
/* Takes what the tracers have, into the pass that is going on. */
void device_collect(struct encoder *e);
void device_stop(struct encoder *e);

#endif
