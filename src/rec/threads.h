/* SPDX-License-Identifier: Apache-2.0
 * Which thread has which ring: what a thread knows of itself, and the calls by
 * which it gets a ring and gives it back. */
#ifndef REC_THREADS_H
#define REC_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rec_async;
struct rec_ring;
struct rec_slot;

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
    bool ended;       /* thread_end() has run: if the thread got another ring,
                           nobody would tell of that ring's end */
    bool ours;        /* a thread of the recorder: it does not record */
    uintptr_t busy;   /* inside a call: where that has its frame on the stack,
                           or 0. Here and not in the ring, which may be
                           unmapped while a thread that has looked at the state
                           sleeps before it says so */
    struct rec_async *asyncs; /* the session's */
};
extern __thread struct rec_thread rec_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Gives the calling thread a ring. Returns false if there is none to be had,
 * which is counted. */
bool thread_attach(uint32_t gen);
/* Returns how far a ring may be written, and gives it more memory where that is
 * what is missing. Its own thread calls it, inside a call. */
uint64_t thread_room(struct rec_ring *r);
/* Is the ring written up to the end of its memory, and should have more? */
bool thread_lacks_memory(const struct rec_ring *r);
/* Gives rings memory that their threads will need soon; for the flusher. */
void threads_look_ahead(void);
/* Makes sure that there is a ring in memory for the next thread. The caller has
 * the lock. */
bool thread_spare(void);
/* Frees rings of threads that left without telling; the flusher calls it, with
 * the lock. */
void threads_look_for_gone(void);
/* Waits until no thread is inside a call, when nobody may write any more. */
void threads_quiesce(void);
/* Unmaps the rings. Returns false if threads hang in a call: their rings, and
 * the tables before, stay mapped. */
bool threads_unmap(void);
/* Forgets the parent's rings, in the child of a fork: they are not ours. */
void threads_forget(void);

/* Fills in the attributes of every thread of ours: an ordinary one, whatever
 * the thread is that starts it, with a stack that is large enough beside the
 * program's thread-local variables. */
void rec_thread_attr(pthread_attr_t *a);

#endif
