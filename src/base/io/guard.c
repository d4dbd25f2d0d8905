/* SPDX-License-Identifier: Apache-2.0
 * The SIGBUS guard. The handler puts zeros over the page that is gone and lets
 * the read go on.
 *
 * The table and the old disposition are mutable globals: a signal handler has
 * no other way to reach them. The table is a row of blocks, each twice as large
 * as the one before; a block that is there stays there, so that the handler
 * may walk them at any moment, on any thread, while others add to them under a
 * lock. It reads nothing but atomics and never waits. */
#include "base/io/guard.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 22, FIRST_BLOCK = 256 }; /* together a billion */

struct slot {
    atomic_uintptr_t lo, hi; /* hi is set last and cleared first */
    atomic_uint trips;       /* reads that hit a page that was gone */
    int next;                /* of a free one: another, or -1; by the lock */
};

static struct slot *_Atomic blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int first_free = -1, made; /* by the lock */
static struct sigaction before;

static size_t block_size(int k) { return (size_t)FIRST_BLOCK << k; }

/* Returns slot i: block k begins with number FIRST_BLOCK * (2^k - 1). */
static struct slot *slot_at(int i) {
    unsigned n = (unsigned)i / FIRST_BLOCK + 1;
    int k = 31 - __builtin_clz(n);
    struct slot *block = atomic_load(&blocks[k]);
    assert(i >= 0 && block != NULL);
    return &block[(size_t)i - (block_size(k) - FIRST_BLOCK)];
}

/* Adds the next block to the free slots; the lock is held. */
static bool guard_grow(void) {
    int k = 0;
    while (k < BLOCKS && atomic_load(&blocks[k]) != NULL) k++;
    struct slot *block = k < BLOCKS ? calloc(block_size(k), sizeof *block)
                                    : NULL;
    if (block == NULL) return false;
    for (size_t i = block_size(k); i-- > 0;) {
        block[i].next = first_free;
        first_free = made + (int)i;
    }
    made += (int)block_size(k);
    atomic_store(&blocks[k], block);
    return true;
}

bool guard_add(const void *p, size_t n, int *slot) {
    *slot = -1;
    if (n == 0) return true;
    pthread_mutex_lock(&lock);
    if (first_free >= 0 || guard_grow()) {
        *slot = first_free;
        first_free = slot_at(*slot)->next;
    }
    pthread_mutex_unlock(&lock);
    if (*slot < 0) return false;
    struct slot *s = slot_at(*slot);
    atomic_store(&s->trips, 0);
    atomic_store(&s->lo, (uintptr_t)p);
    atomic_store(&s->hi, (uintptr_t)p + n);
    return true;
}

void guard_remove(int slot) {
    if (slot < 0) return;
    struct slot *s = slot_at(slot);
    assert(atomic_load(&s->hi) != 0);
    atomic_store(&s->hi, 0);
    atomic_store(&s->lo, 0);
    pthread_mutex_lock(&lock);
    s->next = first_free;
    first_free = slot;
    pthread_mutex_unlock(&lock);
}

bool guard_tripped(int slot) {
    return slot >= 0 && atomic_load(&slot_at(slot)->trips) != 0;
}

static struct slot *slot_of(uintptr_t at) {
    for (int k = 0; k < BLOCKS; k++) {
        struct slot *block = atomic_load(&blocks[k]);
        if (block == NULL) return NULL;
        for (size_t i = 0; i < block_size(k); i++)
            if (at < atomic_load(&block[i].hi) &&
                at >= atomic_load(&block[i].lo))
                return &block[i];
    }
    return NULL;
}

/* Puts zeros over the page of `at`, and over more pages behind it each time: a
 * file that is cut is gone to its end, and a fault for every page would cost
 * more than reading the file did. */
static bool put_zeros(struct slot *s, uintptr_t at) {
    enum { MOST = 20 }; /* 4 GiB */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = at & ~(page - 1);
    uintptr_t end = atomic_load(&s->hi);
    unsigned trips = atomic_fetch_add(&s->trips, 1);
    size_t n = page << (trips < MOST ? trips : MOST);
    if (end <= from) return false; /* taken off meanwhile */
    if (n > end - from) n = end - from;
    return mmap((void *)from, n, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Treats a fault that is not ours as if our handler were not there. Without a
 * handler of its own the program gets the default, and the fault repeats. */
static void pass_on(int sig, siginfo_t *info, void *context) {
    sigset_t old;
    if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(sig, &dfl, NULL);
        if (info->si_code <= 0) raise(sig); /* sent, not a fault */
        return;
    }
    pthread_sigmask(SIG_BLOCK, &before.sa_mask, &old);
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(sig, info, context);
    else before.sa_handler(sig);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* mmap, sigaction and sysconf are plain system calls or constants on Linux, so
 * a signal handler may call them. */
static void on_sigbus(int sig, siginfo_t *info, void *context) {
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    struct slot *s = info->si_code > 0 ? slot_of(at) : NULL;
    if (s == NULL || !put_zeros(s, at)) pass_on(sig, info, context);
    errno = saved;
}

bool guard_installed(void) {
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == on_sigbus;
}

void guard_install(void) {
    struct sigaction sa = {.sa_sigaction = on_sigbus,
                           .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (guard_installed()) return;
    sigaction(SIGBUS, NULL, &before); /* known before we may be called */
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, NULL);
}
