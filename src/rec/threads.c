/* SPDX-License-Identifier: Apache-2.0
 * Which thread has which ring. A thread gets one at its first call and keeps it
 * until it ends; then the flusher empties it, and the next thread may have
 * it. */
#include "rec/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rec/memory.h"
#include "rec/record.h"
#include "rec/threads.h"
#include "ring/clock.h"

enum {
    TID_BITS = 1 << 22, /* the kernel's limit on pids */
    RING_LEAST = 64 << 10,
    RING_FIRST = 16 << 10, /* bytes of slots that a ring begins with */
    RINGS_A_PAGE = 256,    /* places for rings in the head that get memory
                                  at once */
    RING_LOOK_AT = 32,     /* so many open scopes are many */
    BACK_RETRY = 4096,     /* losses between two tries for more memory */
    REFUSED_RETRY = 4096,  /* calls of a thread without a ring */
    LOOKS_A_ROUND = 8,     /* of a writer, whether the flusher dozes */
};

/* ops_state_ is never NO_WORD: the word of a thread without a ring compares
 * unequal to it, also to the 0 of a session that ends just then. */
#define NO_WORD UINT32_MAX
#define NO_THREAD                                                              \
    { .word = NO_WORD, .fast = NO_WORD }
__thread struct rec_thread rec_self = NO_THREAD;

static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static bool end_key_ok;

/* --- rings --------------------------------------------------------------- */

/* Returns how large the next ring is. Full rings take half of the memory; then
 * come smaller ones, so that a program with thousands of threads is seen in all
 * of them. Rings begin with little of what they may get: beyond the memory
 * there are small ones, for threads that come faster than the flusher can empty
 * the rings of those that went. */
static uint64_t ring_bytes(const struct session *s) {
    uint64_t bytes = s->set.o.ring_bytes, cap = s->memory_cap;
    while (bytes > RING_LEAST && bytes > cap / 4) bytes /= 2;
    if (s->memory_used > cap / 2) bytes /= 8;
    if (s->memory_used > cap - cap / 4) bytes /= 8;
    if (s->memory_used + bytes > cap || bytes < RING_LEAST) return RING_LEAST;
    return bytes;
}

/* Makes a new ring at the end of the file and puts its beginning in memory: all
 * of it would take a thread's first call milliseconds. The lock is held. */
static struct rec_ring *ring_new(void) {
    struct session *s = &rec_session;
    struct rec_head *h = s->map.head;
    uint64_t slots = ring_bytes(s), at = rec_paged(h->file_bytes);
    /* where addresses are limited (ulimit -v) little may be mapped */
    while (slots > RING_LEAST && at + REC_RING_HEAD + slots > s->map.bytes)
        slots /= 2;
    uint64_t bytes = REC_RING_HEAD + slots;
    uint64_t first = slots < RING_FIRST ? slots : RING_FIRST;
    if (h->nrings == REC_RINGS || at + bytes > s->map.bytes) return NULL;
    struct rec_ring *r = (struct rec_ring *)((char *)h + at);
    if ((h->nrings % RINGS_A_PAGE == 0 &&
         !memory_back(&h->rings[h->nrings],
                      RINGS_A_PAGE * sizeof h->rings[0])) ||
        !memory_back(r, REC_RING_HEAD + first))
        return NULL;
    h->file_bytes = at + bytes;
    s->memory_used += bytes;
    r->slots = slots / sizeof(struct rec_slot);
    r->backed_slots = first / sizeof(struct rec_slot);
    h->rings[h->nrings].at = at;
    h->rings[h->nrings].bytes = bytes;
    s->map.ring[h->nrings] = r;
    REC_PUBLISH(&h->nrings, h->nrings + 1);
    return r;
}

/* Gives a ring twice the memory that it has. Its thread and the flusher may
 * both be here: the same range twice does no harm, and is counted twice. */
static void ring_back(struct rec_ring *r) {
    uint64_t have = REC_ACQUIRE(&r->backed_slots);
    if (have >= r->slots ||
        !memory_back(rec_slots(r) + have, have * sizeof(struct rec_slot)))
        return;
    __atomic_compare_exchange_n(&r->backed_slots, &have, 2 * have, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Returns how far the ring may be written before its thread looks again. Slots
 * that have no memory are only met on the first round. */
static uint64_t ring_limit(const struct rec_ring *r) {
    uint64_t room = REC_ACQUIRE(&r->reusable_to);
    uint64_t have = REC_ACQUIRE(&r->backed_slots);
    uint64_t look = REC_LOAD(&r->head) + r->slots / LOOKS_A_ROUND;
    if (have < r->slots && have - REC_SLOT_MAX < room)
        room = have - REC_SLOT_MAX;
    return look < room ? look : room;
}

bool thread_lacks_memory(const struct rec_ring *r) {
    uint64_t have = REC_ACQUIRE(&r->backed_slots);
    return have < r->slots && r->head >= have - REC_SLOT_MAX;
}

uint64_t thread_room(struct rec_ring *r) {
    if (thread_lacks_memory(r) && r->lost[REC_LOST_MEMORY] % BACK_RETRY == 0) {
        struct host_state
            q; /* a handler that jumps out of here is not for us */
        host_state_save(&q);
        ring_back(r);
        host_state_restore(&q);
    }
    uint64_t used = r->head + r->slots - REC_ACQUIRE(&r->reusable_to);
    if (used >= r->slots / LOOKS_A_ROUND && REC_LOAD(&rec_session.dozing)) {
        struct host_state q;
        host_state_save(&q);
        flusher_wake();
        host_state_restore(&q);
    }
    return ring_limit(r);
}

void threads_look_ahead(void) {
    struct session *s = &rec_session;
    uint32_t n = REC_ACQUIRE(&s->map.head->nrings);
    for (uint32_t i = 0; i < n; i++) {
        struct rec_ring *r = s->map.ring[i];
        if (r == NULL || REC_ACQUIRE(&r->state) != REC_RING_LIVE) continue;
        uint64_t have = REC_ACQUIRE(&r->backed_slots);
        if (have < r->slots && REC_LOAD(&r->head) > have / 2) ring_back(r);
    }
}

static struct rec_ring *ring_free(uint32_t *index) {
    struct session *s = &rec_session;
    uint32_t n = s->map.head->nrings;
    for (uint32_t i = 0; i < n; i++) {
        struct rec_ring *r = s->map.ring[i];
        if (r != NULL && REC_ACQUIRE(&r->state) == REC_RING_FREE) {
            *index = i;
            return r;
        }
    }
    return NULL;
}

/* Returns the ring of the thread that ended first: a flight recorder keeps what
 * ended threads did until the memory is needed. */
static struct rec_ring *ring_ended(uint32_t *index) {
    struct session *s = &rec_session;
    struct rec_ring *oldest = NULL;
    for (uint32_t i = 0; i < s->map.head->nrings; i++) {
        struct rec_ring *r = s->map.ring[i];
        if (r == NULL || REC_ACQUIRE(&r->state) != REC_RING_ENDED ||
            (oldest != NULL && r->died >= oldest->died))
            continue;
        oldest = r;
        *index = i;
    }
    if (oldest != NULL) REC_PUBLISH(&oldest->state, REC_RING_FREE);
    return oldest;
}

bool thread_spare(void) {
    uint32_t i;
    return ring_free(&i) != NULL || ring_new() != NULL;
}

/* --- threads ------------------------------------------------------------- */

static pthread_key_t end_key;

/* Is called when a thread ends. Destructors of a thread are called in rounds,
 * while any of them has set a key again. Ours waits for the second round, so
 * that what the program's do in the first is recorded. It does not wait for the
 * last: a thread whose first call comes from one of them would be gone
 * before. */
static void thread_end(void *arg) {
    struct session *s = &rec_session;
    struct rec_thread *t = arg;
    struct host_state q;
    if (++t->rounds == 1 && pthread_setspecific(end_key, t) == 0) return;
    if (REC_LOAD(&s->pid) != getpid())
        return; /* a child that no handler has run for */
    record_close_all();
    session_lock(&q);
    struct rec_ring *r = rec_self.ring;
    if (r != NULL && s->gen != 0 && rec_self.gen == s->gen) {
        char name[REC_THREAD_NAME] = "";
        if (!r->named &&
            pthread_getname_np(pthread_self(), name, sizeof name) == 0)
            rec_name_put(r, name);
        r->died = rec_ticks();
        s->owner[rec_self.index] = NULL;
        REC_PUBLISH(&r->state, REC_RING_ENDED);
    }
    rec_self = (struct rec_thread)NO_THREAD;
    rec_self.ended = true;
    session_unlock(&q);
}

static void make_key(void) {
    end_key_ok = pthread_key_create(&end_key, thread_end) == 0;
}

void rec_thread_attr(pthread_attr_t *a) {
    enum { STACK = 512 << 10, PAGE = 4096 };
    /* this is what glibc takes of every stack for thread-local variables, and a
     * bit */
    size_t (*least)(const pthread_attr_t *) = NULL;
    void *f = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
    memcpy(&least, &f, sizeof least);
    pthread_attr_init(a);
    pthread_attr_setinheritsched(a, PTHREAD_EXPLICIT_SCHED);
    size_t bytes = STACK + (least != NULL ? least(a) : 0);
    pthread_attr_setstacksize(a, (bytes + PAGE - 1) / PAGE * PAGE);
}

static void ring_take(struct rec_ring *r) {
    struct session *s = &rec_session;
    uint64_t head = REC_LOAD(&r->head);
    r->first_slot = r->tail[0] = r->tail[1] = head;
    r->reusable_to = s->set.o.flight ? UINT64_MAX
                                     : head + r->slots - REC_SLOT_MAX;
    r->write_limit = ring_limit(r);
    r->depth = r->args_top = r->marks = 0;
    r->look_at = RING_LOOK_AT;
    r->step_time = r->epoch_time = 0;
    memset(r->lost, 0, sizeof r->lost);
    memset(r->reported, 0, sizeof r->reported);
    memset(r->unrecorded_begins, 0, sizeof r->unrecorded_begins);
    r->tid = (uint32_t)syscall(SYS_gettid);
    /* The same tid twice is two threads: this is the number of threads before,
     * or 0 for the first with this tid. */
    r->thread = ++s->threads;
    if (s->tids != NULL && r->tid < TID_BITS) {
        uint64_t *w = &s->tids[r->tid / 64], bit = UINT64_C(1) << r->tid % 64;
        if ((*w & bit) == 0) r->thread = 0;
        *w |= bit;
    }
    r->named = 0;
    char name[REC_THREAD_NAME] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    rec_name_put(r, name);
    REC_PUBLISH(&r->state, REC_RING_LIVE);
}

static bool attach(uint32_t gen) {
    struct session *s = &rec_session;
    struct rec_thread *t = &rec_self;
    uint32_t i = 0;
    if (s->gen != gen) return false;
    struct rec_ring *r = ring_free(&i);
    if (r == NULL && (r = ring_new()) != NULL) i = s->map.head->nrings - 1;
    if (r == NULL && s->set.o.flight) r = ring_ended(&i);
    if (r == NULL) {
        t->refused = gen;
        return false;
    }
    ring_take(r);
    t->ring = r;
    t->slots = rec_slots(r);
    t->mask = r->slots - 1;
    t->index = i;
    t->asyncs = s->map.asyncs;
    s->owner[i] = t;
    t->gen = gen;
    t->word = gen << OPS_GEN_SHIFT_ | OPS_ON_BIT_;
    t->fast = rec_clock_is_tsc() ? t->word : NO_WORD;
    return true;
}

/* Counts a call of a thread without a ring. */
static void count_lost(void) {
    if (OPS_STATE_() != 0)
        __atomic_fetch_add(&memory_losses()->no_ring, 1, __ATOMIC_RELAXED);
}

/* Signals are blocked first: a handler must neither come in here once more nor
 * leave by a jump. */
bool thread_attach(uint32_t gen) {
    struct host_state q;
    struct rec_thread *t = &rec_self;
    if (t->ours) return false;
    if (t->ended || (t->refused == gen && ++t->index % REFUSED_RETRY != 0)) {
        count_lost();
        return false;
    }
    session_lock(&q);
    /* without the key nobody would know that a thread has gone */
    pthread_once(&end_once, make_key);
    /* busy is set in a handler whose interrupted call uses the old ring */
    bool ok = t->busy == 0 && end_key_ok &&
              pthread_setspecific(end_key, t) == 0 && attach(gen);
    session_unlock(&q);
    if (!ok) count_lost();
    return ok;
}

void ops_thread_name(const char *name) {
    struct session *s = &rec_session;
    struct host_state q;
    if (name == NULL) return;
    if (OPS_STATE_() & OPS_PENDING_BIT_) session_child();
    uint32_t gen = OPS_STATE_() >> OPS_GEN_SHIFT_;
    if (gen == 0) return;
    if (rec_self.gen != gen && !thread_attach(gen)) return;
    session_lock(&q);
    if (s->gen != 0 && s->gen == rec_self.gen) {
        REC_PUT(&rec_self.ring->named, 1);
        rec_name_put(rec_self.ring, name);
    }
    session_unlock(&q);
}

/* --- the end ------------------------------------------------------------- */

/* Frees the ring of a thread that left without telling (by the system call, or
 * it made its first call in the last round of its destructors): what it knew of
 * itself is gone. */
static void forget_gone(uint32_t i) {
    struct session *s = &rec_session;
    struct rec_ring *r = s->map.ring[i];
    if (s->owner[i] == NULL || r == NULL ||
        syscall(SYS_tgkill, s->pid, r->tid, 0) == 0 || errno != ESRCH)
        return;
    s->owner[i] = NULL;
    /* open scopes end with the session */
    if (r->depth > 0 || r->marks != 0) return;
    r->died = rec_ticks();
    REC_PUBLISH(&r->state, REC_RING_ENDED);
}

void threads_look_for_gone(void) {
    for (uint32_t i = 0; i < rec_session.map.head->nrings; i++) forget_gone(i);
}

/* Is the ring's thread inside a call? The lock is held: a thread that tells of
 * its end cannot end meanwhile. */
static bool owner_busy(uint32_t i) {
    forget_gone(i);
    const struct rec_thread *t = rec_session.owner[i];
    return t != NULL && REC_ACQUIRE(&t->busy) != 0;
}

/* Waits for threads after ops_state_ became 0: no thread enters any more, and
 * one that is inside leaves within nanoseconds, unless it is not running just
 * now. The barrier makes the store of ops_state_ and the loads of `busy`
 * ordered with the stores and loads of all other threads, which then need
 * none. */
void threads_quiesce(void) {
    struct session *s = &rec_session;
    const struct timespec pause = {0, 50000};
    if (syscall(SYS_membarrier, 1 << 3 /* PRIVATE_EXPEDITED */, 0, 0) != 0) {
        struct timespec longer = {0, 10000000};
        nanosleep(&longer, NULL);
    }
    for (int tries = 0; tries < 400; tries++) {
        bool busy = false;
        for (uint32_t i = 0; i < s->map.head->nrings && !busy; i++)
            busy = owner_busy(i);
        if (!busy) return;
        nanosleep(&pause, NULL);
    }
}

bool threads_unmap(void) {
    struct session *s = &rec_session;
    struct rec_head *h = s->map.head;
    bool all = true;
    for (uint32_t i = 0; i < h->nrings; i++) all = all && !owner_busy(i);
    for (uint32_t i = 0; i < h->nrings && !all; i++)
        if (!owner_busy(i) && s->map.ring[i] != NULL)
            memory_unmap(s->map.ring[i], h->rings[i].bytes);
    if (!all)
        memory_unmap((char *)h + rec_paged(h->file_bytes),
                     s->map.bytes - rec_paged(h->file_bytes));
    memset(s->map.ring, 0, sizeof s->map.ring);
    memset(s->owner, 0, sizeof s->owner);
    return all;
}

void threads_forget(void) {
    rec_self = (struct rec_thread)NO_THREAD;
    memset(rec_session.owner, 0, sizeof rec_session.owner);
}
