/* SPDX-License-Identifier: Apache-2.0
 * The SIGBUS guard. The handler puts a page of zeros over the page that is
 * gone and lets the read go on; faults anywhere else crash as they would have.
 *
 * The table and the old disposition are mutable globals: a signal handler has
 * no other way to reach them. Slots are claimed and read with atomics only, so
 * that the handler may run at any moment, on any thread. */
#include "base/guard.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 1024 }; /* mapped files at a time: the ranks of a large job */

static struct slot {
    atomic_bool taken;
    atomic_bool tripped;
    atomic_uintptr_t lo, hi; /* hi is set last and cleared first */
} slots[SLOTS];

static struct sigaction before;

int guard_add(const void *p, size_t n) {
    if (n == 0) return -1;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[i];
        if (atomic_load(&s->taken) || atomic_exchange(&s->taken, true))
            continue;
        atomic_store(&s->tripped, false);
        atomic_store(&s->lo, (uintptr_t)p);
        atomic_store(&s->hi, (uintptr_t)p + n);
        return i;
    }
    return -1;
}

void guard_remove(int slot) {
    if (slot < 0) return;
    assert(slot < SLOTS && slots[slot].taken);
    atomic_store(&slots[slot].hi, 0);
    atomic_store(&slots[slot].lo, 0);
    atomic_store(&slots[slot].taken, false);
}

bool guard_tripped(int slot) {
    return slot >= 0 && atomic_load(&slots[slot].tripped);
}

static struct slot *slot_of(uintptr_t at) {
    for (int i = 0; i < SLOTS; i++)
        if (at < atomic_load(&slots[i].hi) && at >= atomic_load(&slots[i].lo))
            return &slots[i];
    return NULL;
}

/* mmap and sysconf are plain system calls or constants on Linux: safe here. */
static void on_sigbus(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct slot *s = slot_of(at);
    void *p = MAP_FAILED;
    if (s != NULL)
        p = mmap((void *)(at & ~(page - 1)), page, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p != MAP_FAILED)
        atomic_store(&s->tripped, true);
    else
        sigaction(SIGBUS, &before, NULL); /* the fault repeats, unguarded */
    errno = saved;
}

void guard_install(void) {
    struct sigaction sa = {.sa_sigaction = on_sigbus,
                           .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, &before);
}
