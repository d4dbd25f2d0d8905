/* SPDX-License-Identifier: Apache-2.0
 * Paths to bytes. The whole pages of a regular file are mapped; its last,
 * partial page is copied behind them into anonymous memory. So zeros follow the
 * contents whatever the size, and stay zeros when a running program appends to
 * the file. Small files are copied whole: a mapping costs the system more than
 * they are long, and the system has only so many mappings (a job may have ten
 * thousands of ranks). Large files, too, are copied, into a temporary file,
 * where nobody catches the SIGBUS of a mapped file that shrinks: a library must
 * not end its program. */
#include "base/io/file.h"
#include "base/io/inflate.h"
#include "base/io/scratch.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the SIGBUS guard ----
 *
 * Mapped files may shrink while they are read: without help the reader gets
 * SIGBUS and dies. Ranges listed here, any number of them, read as zeros
 * instead: the handler puts zeros over the page that is gone and lets the read
 * go on.
 *
 * The table and the old disposition are mutable globals: a signal handler has
 * no other way to reach them. The table is a row of blocks, each twice as large
 * as the one before; a block that is there stays there, so that the handler
 * may walk them at any moment, on any thread, while others add to them under a
 * lock. It reads nothing but atomics and never waits. */

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

/* Lists the range [p, p + n), whole pages; *slot becomes its place, -1 when n
 * is 0. Returns false if out of memory: it is then not guarded. Thread-safe. */
static bool guard_add(const void *p, size_t n, int *slot) {
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

/* Takes a range off, before it is unmapped. A slot of -1 does nothing. */
static void guard_remove(int slot) {
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

/* Is the handler installed, and has nobody replaced it since? */
static bool guard_installed(void) {
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == on_sigbus;
}

void file_guard(void) {
    struct sigaction sa = {.sa_sigaction = on_sigbus,
                           .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (guard_installed()) return;
    sigaction(SIGBUS, NULL, &before); /* known before we may be called */
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, NULL);
}

/* ---- files ---- */

#define FIFO_LIMIT  ((size_t)16 << 30)
#define RATIO_SLACK ((size_t)64 << 20)

/* How much of the slack the open files use. */
static size_t slack_used; /* atomic */

enum { FIFO_PIECE = 4 << 20, FIFO_PATIENCE_MS = 10000, SMALL_FILE = 1 << 16 };

/* What file_open hands out; the public part comes first. */
struct own {
    struct file f;
    char *path; /* NULL: cannot shrink (scratch, bytes) */
    dev_t dev;  /* which file it was that was mapped */
    ino_t ino;
    struct bytes map;       /* a regular file's mapping, or empty */
    uint8_t *copy;          /* or this is the file, NULL: it is not */
    struct scratch scratch; /* or this holds the contents */
    size_t slack;           /* bytes inflated beyond FILE_MAX_RATIO */
};

static struct own *own_new(void) {
    struct own *o = calloc(1, sizeof *o);
    if (o == NULL) return NULL;
    o->f.packing = "";
    o->f.slot = -1;
    o->scratch.fd = -1;
    return o;
}

/* Reads n bytes at offset. Returns how many there were: less than n when the
 * file has become shorter. */
static ssize_t read_at(int fd, uint8_t *to, size_t n, size_t offset) {
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(fd, to + got, n - got, (off_t)(offset + got));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -1;
        if (k == 0) break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

static int cannot_read(struct ops_err *e, int err) {
    return fail(e, OPS_EIO, "cannot be read: %s", strerror(err));
}

/* Copies the file into a temporary file. Returns false if there is no room. */
static bool copy_to_scratch(struct own *o, int fd, size_t size) {
    struct scratch s;
    struct ops_err e;
    ssize_t got = -1;
    if (scratch_open(&s, &e) != 0) return false;
    if (scratch_room(&s, size + BYTES_BEHIND, 0, &e) == 0)
        got = read_at(fd, s.p, size, 0);
    if (got < 0 || scratch_seal(&s, size, &e) != 0) {
        scratch_close(&s);
        return false;
    }
    o->scratch = s;
    o->f.bytes = (struct bytes){s.p, size};
    if ((size_t)got < size) return true;
    free(o->path);
    o->path = NULL;
    return true;
}

/* Maps size bytes of fd: whole pages from the file, the rest copied. Returns
 * false if the system has no room for the mapping. */
static bool map(struct own *o, int fd, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = size / page * page, rest = size - whole;
    size_t total = whole + (rest + BYTES_BEHIND + page - 1) / page * page;
    uint8_t *p = mmap(NULL, total, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    o->map = (struct bytes){p, total};
    o->f.bytes = (struct bytes){p, size};
    return (whole == 0 || mmap(p, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
                               0) != MAP_FAILED) &&
           read_at(fd, p + whole, rest, whole) >= 0 &&
           mprotect(p + whole, total - whole, PROT_READ) == 0 &&
           guard_add(p, whole, &o->f.slot);
}

static void unmap(struct own *o) {
    guard_remove(o->f.slot);
    o->f.slot = -1;
    if (o->map.p != NULL) munmap((void *)o->map.p, o->map.n);
    o->map = (struct bytes){NULL, 0};
    free(o->copy);
    o->copy = NULL;
}

/* Waits until there is something to read from the pipe, or its writer is gone;
 * where there is no writer at all, it does not wait for ever. */
static int await_data(int fd, bool writer, struct ops_err *e) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int k;
    do k = poll(&p, 1, writer ? -1 : FIFO_PATIENCE_MS);
    while (k < 0 && errno == EINTR);
    if (k < 0) return cannot_read(e, errno);
    if (k == 0)
        return fail(e, OPS_EIO,
                    "is a pipe that nobody opened for writing "
                    "within %d seconds",
                    FIFO_PATIENCE_MS / 1000);
    return 0;
}

/* Reads a pipe, which does not block, to its end into the scratch file. */
static int drain(struct own *o, int fd, struct ops_err *e) {
    struct scratch *s = &o->scratch;
    TRY(scratch_open(s, e));
    size_t n = 0;
    bool waited = false;
    for (;;) {
        TRY(scratch_room(s, n + FIFO_PIECE, n + n / 2, e));
        ssize_t k = read(fd, s->p + n, FIFO_PIECE);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno != EAGAIN) return cannot_read(e, errno);
        if (k < 0 || (k == 0 && n == 0 && !waited)) {
            waited = true; /* an end before the first byte: no writer yet */
            TRY(await_data(fd, k < 0, e));
            continue;
        }
        if (k == 0) break;
        n += (size_t)k;
        if (n > FIFO_LIMIT)
            return fail(e, OPS_ELIMIT,
                        "a pipe that gives more than %zu bytes; save them to "
                        "a file first",
                        FIFO_LIMIT);
    }
    TRY(scratch_seal(s, n, e));
    o->f.bytes = (struct bytes){s->p, n};
    o->f.disk_bytes = n;
    return 0;
}

/* If the contents are compressed, puts what is inside in their place: at most
 * what the ratio allows, and seven eighths of the room that is left, since
 * others need the folder, too. */
static int unpack(struct own *o, struct ops_err *e) {
    enum packing packing = inflate_sniff(o->f.bytes);
    if (packing == PACKING_NONE) return 0;
    struct scratch s;
    TRY(scratch_open(&s, e));
    size_t n;
    bool damaged;
    /* Files that are inflated at the same time may both get the rest of it. */
    size_t used = __atomic_load_n(&slack_used, __ATOMIC_RELAXED);
    size_t disk = o->f.disk_bytes, fair = SIZE_MAX / 4;
    if (disk <= fair / FILE_MAX_RATIO) fair = disk * FILE_MAX_RATIO;
    size_t limit = fair + (used < RATIO_SLACK ? RATIO_SLACK - used : 0);
    size_t room = scratch_left(&s), most = room - room / 8;
    int rc = inflate_into(o->f.bytes, packing, limit < most ? limit : most, &s,
                          &n, &damaged, e);
    if (rc == OPS_ELIMIT && most < limit)
        rc = fail(e, OPS_EIO,
                  "inflates to more than the folder for temporary files has "
                  "room for; set TMPDIR to another");
    if (rc == 0 && n > fair && n - fair > o->slack) {
        __atomic_fetch_add(&slack_used, n - fair - o->slack, __ATOMIC_RELAXED);
        o->slack = n - fair;
    }
    if (rc == 0) rc = scratch_seal(&s, n, e);
    if (rc != 0) {
        scratch_close(&s);
        return rc;
    }
    /* A compressed file that shrank while it was inflated is damaged, too,
     * and what was inflated can no longer shrink. */
    o->f.damaged |= damaged || file_shrank(&o->f);
    unmap(o);
    scratch_close(&o->scratch);
    free(o->path);
    o->path = NULL;
    o->scratch = s;
    o->f.bytes = (struct bytes){s.p, n};
    o->f.packing = packing == PACKING_ZSTD ? "zstd" : "gzip";
    return 0;
}

static int load(struct own *o, int fd, const char *path, struct ops_err *e) {
    struct stat st;
    if (fstat(fd, &st) != 0) return cannot_read(e, errno);
    if (S_ISFIFO(st.st_mode)) return drain(o, fd, e);
    if (S_ISDIR(st.st_mode))
        return fail(e, OPS_EIO, "is a folder; name a file in it");
    if (!S_ISREG(st.st_mode))
        return fail(e, OPS_EIO, "is neither a file nor a pipe");
    o->path = strdup(path);
    if (o->path == NULL) return fail_oom(e);
    o->dev = st.st_dev;
    o->ino = st.st_ino;
    o->f.disk_bytes = (size_t)st.st_size;
    size_t size = o->f.disk_bytes;
    if (size > SMALL_FILE &&
        ((!guard_installed() && copy_to_scratch(o, fd, size)) ||
         map(o, fd, size)))
        return 0;
    unmap(o);
    if (size > SIZE_MAX - BYTES_BEHIND) return fail_oom(e);
    o->copy = calloc(1, size + BYTES_BEHIND);
    if (o->copy == NULL) return fail_oom(e);
    o->f.bytes = (struct bytes){o->copy, size};
    ssize_t got = read_at(fd, o->copy, size, 0);
    if (got < 0) return cannot_read(e, errno);
    if ((size_t)got < size) return 0; /* it shrank, and the path tells */
    free(o->path);
    o->path = NULL;
    return 0;
}

static int cannot_open(struct ops_err *e, int err) {
    const char *hint = "";
    if (err == EACCES || err == EPERM) hint = "; ask its owner for read access";
    if (err == ENOENT || err == ENOTDIR) hint = "; check the path";
    if (err == EMFILE || err == ENFILE) hint = "; raise the limit (ulimit -n)";
    return fail(e, OPS_EIO, "cannot be opened: %s%s", strerror(err), hint);
}

int file_open(const char *path, struct file **out, struct ops_err *e) {
    struct own *o = own_new();
    if (o == NULL) return fail_oom(e);
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    int rc = fd < 0 ? cannot_open(e, errno) : load(o, fd, path, e);
    if (fd >= 0) close(fd);
    /* The loop runs twice: people do compress what is compressed already. */
    for (int i = 0; i < 2 && rc == 0; i++) rc = unpack(o, e);
    if (rc != 0) {
        file_close(&o->f);
        return rc;
    }
    *out = &o->f;
    return 0;
}

int file_from_bytes(struct bytes b, struct file **out, struct ops_err *e) {
    struct own *o = own_new();
    if (o == NULL) return fail_oom(e);
    o->f.bytes = b;
    o->f.disk_bytes = b.n;
    *out = &o->f;
    return 0;
}

int file_from_mapping(struct bytes b, size_t mapped, struct file **out,
                      struct ops_err *e) {
    assert(b.n + 64 <= mapped);
    if (file_from_bytes(b, out, e) != 0) {
        munmap((void *)b.p, mapped);
        return OPS_ELIMIT;
    }
    struct own *o = (struct own *)*out;
    o->map = (struct bytes){b.p, mapped};
    if (guard_add(b.p, mapped, &o->f.slot)) return 0;
    file_close(*out);
    return fail_oom(e);
}

void file_close(struct file *f) {
    if (f == NULL) return;
    struct own *o = (struct own *)f;
    unmap(o);
    scratch_close(&o->scratch);
    __atomic_fetch_sub(&slack_used, o->slack, __ATOMIC_RELAXED);
    free(o->path);
    free(o);
}

/* Only pages of a file come back as they were: those of a regular file that was
 * mapped (such a file has its path) and those of a temporary one. */
void file_forget(const struct file *f, struct bytes part) {
    const struct own *o = (const struct own *)f;
    bool mapped = o->map.p != NULL && o->path != NULL;
    if (!mapped && o->scratch.p == NULL) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)part.p + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)part.p + part.n) / page * page;
    uintptr_t all = (uintptr_t)f->bytes.p, end = all + f->bytes.n / page * page;
    if (from < all || to > end || from >= to) return;
    madvise((void *)from, to - from, MADV_DONTNEED);
}

bool file_tripped(const struct file *f) {
    return f->slot >= 0 && atomic_load(&slot_at(f->slot)->trips) != 0;
}

bool file_shrank(const struct file *f) {
    const struct own *o = (const struct own *)f;
    if (file_tripped(f)) return true;
    struct stat st;
    return o->path != NULL && stat(o->path, &st) == 0 && st.st_dev == o->dev &&
           st.st_ino == o->ino && (size_t)st.st_size < f->bytes.n;
}
