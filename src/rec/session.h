/* SPDX-License-Identifier: Apache-2.0
 * The one session of a process, between ops_start and ops_stop. Calls on the
 * path see only ops_state_ and their own thread; the lock here is for starting,
 * stopping, and a thread's first call. */
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

/* What a thread knows of itself. `word` is ops_state_ while its ring may be
 * written: one comparison tells that the session is the same and a window is
 * open. */
struct rec_thread {
    struct rec_ring *ring;
    struct rec_slot *slots;
    uint64_t mask;
    uint32_t word, gen;
    uint32_t fast;    /* = word where ticks are the CPU's; else no state */
    uint32_t index;   /* of the ring */
    uint32_t refused; /* session in which it got no ring */
    uint8_t rounds;   /* of destructors, since the thread began to end */
    bool ended;       /* thread_end() was here: nobody would tell of the end
                           of another ring */
    bool ours;        /* a thread of the recorder: it does not record */
    uintptr_t busy;   /* inside a call: where that has its frame on the stack,
                           or 0. Here and not in the ring, which may be
                           unmapped while a thread that has looked at the state
                           sleeps before it says so */
    struct rec_async *asyncs; /* the session's */
};
extern __thread struct rec_thread rec_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct session {
    pthread_mutex_t lock;
    uint32_t gen; /* of the session that runs; 0: none */
    uint32_t last_gen;
    pid_t pid;
    struct settings set;
    struct identity id;
    struct window window;
    bool windowed; /* not everything is wanted */
    struct ring_map map;
    uint64_t memory_used, memory_cap; /* address space of rings, bytes */
    uint64_t threads;                 /* that ever recorded in this session */
    struct rec_thread *owner[REC_RINGS]; /* of each ring, while it lives */
    uint64_t *tids;                      /* a bit for each tid that did */

    /* the flusher's own */
    struct session_paths paths;
    struct drain drain;
    struct eventfile events;
    bool events_open;
    pthread_t flusher;
    pthread_mutex_t flush_lock;
    pthread_cond_t wake, done;
    uint64_t asked, answered; /* requests to flush or dump: tickets */
    bool ask_dump, ask_stop;
    int dump_result;
    int begun;          /* 1: it runs; -1: it could not; 0: not yet */
    bool whole;         /* at its end: all of it is in the files */
    bool recorded;      /* a window was open at some time */
    uint32_t signalled; /* set by the signal handler */
    uint32_t told_rank; /* a new rank is not in the file yet */
    /* a capture on demand */
    uint32_t demand_steps_left;
    uint64_t demand_until_ns;
    bool saw_step;
    pthread_mutex_t problem_lock;
    const char *problem; /* atomic; what it points to stays */
};
extern struct session rec_session __attribute__((visibility("hidden")));

/* --- threads.c ----------------------------------------------------------- */

/* A ring for the calling thread; false: there is none to be had (counted). */
bool thread_attach(uint32_t gen);
/* How far a ring may be written; gives it more memory where that is what is
 * missing. From its own thread, inside of a call. */
uint64_t thread_room(struct rec_ring *r);
/* Memory for rings whose threads will need it soon: the flusher's. */
void threads_look_ahead(void);
/* A ring that nobody has yet, ready in memory, for the next thread. With the
 * lock. */
bool thread_spare(void);
/* Rings of threads that left without a word: the flusher's, with the lock. */
void threads_look_for_gone(void);
/* Nobody writes any more: waits until no thread is inside a call. */
void threads_quiesce(void);
/* Nobody has a ring any more. False: threads hang in a call. Their rings, and
 * the tables before, must stay mapped; the other rings are not any more. */
bool threads_unmap(void);
/* In the child of a fork: the parent's rings are not ours. */
void threads_forget(void);

/* --- session.c ----------------------------------------------------------- */

/* The lock, taken in a thread of the program. The flusher only tries it. */
void session_lock(struct host_state *q);
void session_unlock(const struct host_state *q);
void session_window(bool on);
/* A step begins: opens or closes the window. */
void session_step(int64_t number);
/* It ends, and none follows: nor is what follows part of a window of steps. */
void session_step_end(void);
/* The child's first call after a fork. */
void session_child(void);
void session_problem(const char *what, int error);

/* --- flusher.c ----------------------------------------------------------- */

/* Starts the thread and waits until it has made the session's files and rings:
 * 0, or -1 and ops_problem(). */
int flusher_start(void);
/* In a child of fork(), at once: forgets what it has of its parent. */
void flusher_forked(void);
/* Asks the flusher and waits for its answer; stop also joins it. */
uint64_t flusher_ask(bool dump);
int flusher_wait(uint64_t ticket);
/* Once in a process, and in each child of a fork. */
void flusher_init(void);
/* The rest is written, the files are closed, the ring file is gone unless not
 * all of it is in the files. */
void flusher_stop(void);

/* Attributes of every thread of ours: an ordinary one, whatever the thread is
 * that starts it, with a stack that is large enough beside the program's
 * thread-local variables. */
void rec_thread_attr(pthread_attr_t *a);

/* --- keeper.c: the thread that stays with the program -------------------- */

/* It shares the program's descriptors, keeps them open when the program's last
 * thread has ended, and does what must be done with them. All signals of the
 * caller are blocked by now; `signals` are those that it blocks itself. -1 and
 * ops_problem(). */
int keeper_start(const sigset_t *signals);
/* From the flusher, at its end: the keeper ends too. Then it is joined. */
void keeper_leave(void);
void keeper_join(void);
/* Once in a process, and in each child of a fork. */
void keeper_init(void);
/* When the program was ended by the keeper, ops_stop() runs in it: then it
 * serves the flusher until that is done. */
bool keeper_is_me(void);
void keeper_come_back(void);
void keeper_serve(void);
/* From the flusher. Lets the devices' tracers hand over what they have, for the
 * last time where told. */
void keeper_collect(struct encoder *e, bool last);
/* The program has no thread any more: ends it, as its last one would have
 * (status: of the main thread). */
void keeper_end_program(int status);
int keeper_tid(void);    /* 0: it does not run yet */
int keeper_listed(void); /* the same as /proc has it */
/* Nobody else has the keeper's table any more: it holds nothing open. */
void keeper_drop_table(void);
/* Counters of GPUs, when there are any. */
void keeper_sample(void (*give)(void *, const char *, double), void *to);
bool keeper_facts(void (*give)(void *, const char *, const char *), void *to);

/* --- record.c: what a scope costs, in ps; measured on a ring of its own -- */
uint64_t record_cost_ps(const struct ring_map *v);
/* Closes the step and epoch of the calling thread, and scopes of which it is
 * known that they were left. */
void record_close_steps(void);
/* The thread ends: so do its scopes, step and epoch. */
void record_close_all(void);

/* --- device.c ------------------------------------------------------------ */
bool device_any(void); /* is there a tracer? */
/* In the child of a fork: an accelerator's tracer does not work there. */
void device_forget(void);
/* In the keeper: begins those that have not, takes what they have. full() is
 * called, and waited for, whenever the batch is full. */
void device_start(void);
void device_take(bool last, void (*full)(void));
/* In the flusher, while the keeper waits: the batch goes into the files. */
void device_encode(struct encoder *e);
/* What is known of the devices at the end. */
void device_facts(struct encoder *e);

#endif
