/* SPDX-License-Identifier: Apache-2.0
 * Pages of the ring file, and who may have how many.
 *
 * A page of a file in memory that nobody has touched has no memory behind it,
 * and when there is none left, touching it is a SIGBUS. So pages are asked for:
 * madvise() says no where a store would kill. Kernels before 5.14 do not know
 * that question; there, a futex on which nobody waits is woken in the page, for
 * which the kernel needs it as much as we do. */
#include "rec/memory.h"

#include "ring/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* This is shared by all processes that came from one. */
struct family {
    uint64_t bytes; /* that all of them hold */
    uint64_t cap;   /* 0: nobody has said */
    uint64_t refused;
    uint64_t unrecorded; /* processes that could not be recorded */
    uint32_t window;     /* is the first one's open? */
};

static struct family this_one;    /* where no page can be shared */
static struct rec_losses nowhere; /* before the first session */
static struct {
    struct family *all;
    uint64_t taken; /* by this process */
    bool crowded;
    bool failed;       /* there was no memory, although we might have had it */
    char *losses_page; /* NULL: not yet */
    struct rec_losses *losses;
} mem = {.all = &this_one, .losses = &nowhere};

static size_t page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

void memory_init(void) {
    void *p = mmap(NULL, sizeof *mem.all, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) mem.all = p;
}

void memory_allow(uint64_t bytes) {
    uint64_t cap = REC_LOAD(&mem.all->cap);
    while (bytes > cap &&
           !__atomic_compare_exchange_n(&mem.all->cap, &cap, bytes, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void *memory_map(int fd, size_t bytes) {
    /* there is no access yet: a program that locks all that it maps (mlockall)
     * would have all of it in memory at once */
    void *p = sys_mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd,
                       0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_DONTFORK);
    madvise(p, bytes, MADV_DONTDUMP);
    return p;
}

void memory_unmap(void *p, size_t bytes) { munmap(p, bytes); }

static bool populate(char *p, size_t n, size_t page) {
    while (madvise(p, n, MADV_POPULATE_WRITE) != 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        if (errno != EINVAL && errno != ENOSYS) return false;
        /* the contents of a page stay, since a thread may be writing */
        for (size_t i = 0; i < n; i += page)
            if (syscall(SYS_futex, p + i, FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
                return false;
        return true;
    }
    return true;
}

/* Counts n bytes as taken, before they are: at no moment is there more than the
 * limit. Returns false if they would be too many. */
static bool take(uint64_t n) {
    struct family *a = mem.all;
    uint64_t cap = REC_LOAD(&a->cap);
    uint64_t now = __atomic_add_fetch(&a->bytes, n, __ATOMIC_RELAXED);
    if (now <= cap && !REC_LOAD(&mem.crowded)) {
        __atomic_fetch_add(&mem.taken, n, __ATOMIC_RELAXED);
        return true;
    }
    __atomic_fetch_sub(&a->bytes, n, __ATOMIC_RELAXED);
    __atomic_fetch_add(&a->refused, 1, __ATOMIC_RELAXED);
    return false;
}

/* memory_count() may have set the count lower meanwhile. */
void memory_freed(uint64_t n) {
    struct family *a = mem.all;
    uint64_t now = REC_LOAD(&a->bytes);
    while (!__atomic_compare_exchange_n(&a->bytes, &now, now > n ? now - n : 0,
                                        false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static void untake(uint64_t n) {
    __atomic_fetch_sub(&mem.taken, n, __ATOMIC_RELAXED);
    memory_freed(n);
}

bool memory_back(void *p, size_t n) {
    uintptr_t page = page_size();
    uintptr_t from = (uintptr_t)p & ~(page - 1);
    uintptr_t to = ((uintptr_t)p + n + page - 1) & ~(page - 1);
    char *first = (char *)p - ((uintptr_t)p - from);
    if (!take(to - from)) return false;
    if (mprotect(first, to - from, PROT_READ | PROT_WRITE) == 0 &&
        populate(first, to - from, page))
        return true;
    untake(to - from);
    REC_PUT(&mem.failed, true);
    return false;
}

bool memory_failed(void) { return REC_LOAD(&mem.failed); }

void memory_give_back(void) {
    untake(REC_LOAD(&mem.taken));
    mem.crowded = mem.failed = false;
}

void memory_count(uint64_t bytes) { REC_PUT(&mem.all->bytes, bytes); }

void memory_forked(void) {
    mem.taken = 0;
    mem.crowded = mem.failed = false;
    /* where the page was there is a hole, which the program may have filled */
    mem.losses_page = NULL;
    mem.losses = &nowhere;
}

/* Maps one page where the losses were, or for the first time. */
static char *losses_page(int fd, off_t at, size_t page) {
    char *old = mem.losses_page;
    int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) |
                (old != NULL ? MAP_FIXED : 0);
    char *p = sys_mmap(old, page, PROT_READ | PROT_WRITE, flags, fd, at);
    if (p == MAP_FAILED) return NULL;
    /* a child that has the page would hold the whole file */
    if (fd >= 0) madvise(p, page, MADV_DONTFORK);
    return p;
}

bool memory_count_losses(int fd) {
    size_t page = page_size(), at = offsetof(struct rec_head, lost);
    if (fd < 0 && mem.losses_page == NULL) return true;
    char *p = losses_page(fd, fd < 0 ? 0 : (off_t)(at & ~(page - 1)), page);
    if (p == NULL) return false;
    mem.losses_page = p;
    struct rec_losses *l = (struct rec_losses *)(p + (at & (page - 1)));
    REC_PUBLISH(&mem.losses, l);
    return true;
}

struct rec_losses *memory_losses(void) {
    return REC_ACQUIRE(&mem.losses);
}

bool memory_is_much(void) {
    const struct family *a = mem.all;
    return REC_LOAD(&a->bytes) > REC_LOAD(&a->cap) / 8;
}

uint64_t memory_refused(void) { return REC_LOAD(&mem.all->refused); }

void memory_add_unrecorded(void) {
    __atomic_fetch_add(&mem.all->unrecorded, 1, __ATOMIC_RELAXED);
}

uint64_t memory_unrecorded(void) { return REC_LOAD(&mem.all->unrecorded); }

void memory_set_window(bool on) { REC_PUT(&mem.all->window, on); }

bool memory_window(void) { return REC_LOAD(&mem.all->window) != 0; }

void memory_crowded(bool yes) { REC_PUT(&mem.crowded, yes); }
