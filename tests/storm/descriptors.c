/* SPDX-License-Identifier: Apache-2.0
 * Acts with descriptors. The program knows every one that it has: the others
 * are not its own, and it may close them or use their numbers, as programs do
 * that clean up. What it wrote into its files must be what is in them. */
#include "storm.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { OWNED = 2048, FILES_MOST = 64, FILL_MOST = 1200, EOF_MS = 8000 };

/* A file's contents follow from the act and its number. */
struct owned {
    int fd;
    bool pipe; /* a pipe's, or nothing to look at */
    bool file;
    dev_t dev;
    ino_t ino;
    uint32_t act, index;
    uint32_t bytes;
};

static struct owned owned[OWNED];
static unsigned nowned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void descriptors_lock(void) { pthread_mutex_lock(&lock); }
void descriptors_unlock(void) { pthread_mutex_unlock(&lock); }

static struct owned *find(int fd) {
    for (unsigned i = 0; i < nowned; i++)
        if (owned[i].fd == fd) return &owned[i];
    return NULL;
}

static void own(struct owned o) {
    if (nowned < OWNED) owned[nowned++] = o;
}

void descriptor_own(int fd, bool pipe) {
    own((struct owned){.fd = fd, .pipe = pipe});
}

static void disown(int fd) {
    struct owned *o = find(fd);
    if (o != NULL) *o = owned[--nowned];
}

void descriptor_close(int fd) {
    descriptors_lock();
    disown(fd);
    close(fd);
    descriptors_unlock();
}

/* A child has no part in the pipes that others made: a reader that waits for
 * their end would wait for the child. The child has the lock that its parent
 * took. */
void descriptors_forked(void) {
    for (unsigned i = 0; i < nowned;) {
        if (owned[i].pipe) {
            close(owned[i].fd);
            owned[i] = owned[--nowned];
        } else i++;
    }
    pthread_mutex_init(&lock, NULL);
}

/* --- files --------------------------------------------------------------- */

static uint8_t byte_of(uint32_t act, uint32_t index, uint32_t at) {
    uint32_t x = act * 2654435761u ^ index * 40503u ^ at * 2246822519u;
    return (uint8_t)(x >> 13);
}

static bool put_contents(int fd, const struct owned *o) {
    uint8_t b[256];
    for (uint32_t at = 0; at < o->bytes; at += sizeof b) {
        uint32_t n = o->bytes - at < sizeof b ? o->bytes - at : sizeof b;
        for (uint32_t i = 0; i < n; i++)
            b[i] = byte_of(o->act, o->index, at + i);
        if (pwrite(fd, b, n, at) != (ssize_t)n) return false;
    }
    return true;
}

/* Returns NULL, or what is wrong with it. */
static const char *look_at(const struct owned *o) {
    struct stat st;
    uint8_t b[256];
    if (fstat(o->fd, &st) != 0) return "closed";
    if (st.st_dev != o->dev || st.st_ino != o->ino) return "another file";
    if (st.st_size != (off_t)o->bytes) return "of another size";
    for (uint32_t at = 0; at < o->bytes; at += sizeof b) {
        uint32_t n = o->bytes - at < sizeof b ? o->bytes - at : sizeof b;
        if (pread(o->fd, b, n, at) != (ssize_t)n) return "not to be read";
        for (uint32_t i = 0; i < n; i++)
            if (b[i] != byte_of(o->act, o->index, at + i)) return "changed";
    }
    return NULL;
}

static void say_wrong(const struct owned *o, const char *what) {
    struct act a = {.id = o->act};
    say(&a, "my file %u is %s", o->index, what);
}

void descriptors_verify(void) {
    descriptors_lock();
    for (unsigned i = 0; i < nowned; i++) {
        const char *what = owned[i].file ? look_at(&owned[i]) : NULL;
        if (what != NULL) say_wrong(&owned[i], what);
    }
    descriptors_unlock();
}

/* Makes a file. Returns -1 if no descriptor is free. The lock is held. */
static int make_file(const struct act *a, bool in_memory, uint32_t index,
                     uint32_t bytes, struct owned *out) {
    char path[320];
    struct stat st;
    snprintf(path, sizeof path, "%s/f%u.%u", workdir, a->id, index);
    int fd = in_memory
                 ? memfd_create("storm", MFD_CLOEXEC)
                 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return -1;
    fstat(fd, &st);
    *out = (struct owned){.fd = fd,
                          .file = true,
                          .dev = st.st_dev,
                          .ino = st.st_ino,
                          .act = a->id,
                          .index = index,
                          .bytes = bytes};
    put_contents(fd, out);
    return fd;
}

static enum flow do_files(const struct act *a) {
    int64_t n = arg_num(a, "n", 1);
    int64_t bytes = arg_num(a, "bytes", 100);
    descriptors_lock();
    for (int64_t i = 0; i < n && i < FILES_MOST; i++) {
        struct owned o;
        if (make_file(a, false, (uint32_t)i, (uint32_t)(bytes + i * 13), &o) <
            0)
            break;
        own(o);
    }
    descriptors_unlock();
    return GO_ON;
}

enum { NUMBERS = 2048 };

static bool filled[NUMBERS]; /* by do_fill() */

static int most_numbers(void) {
    struct rlimit l;
    getrlimit(RLIMIT_NOFILE, &l);
    return l.rlim_cur > NUMBERS ? NUMBERS : (int)l.rlim_cur;
}

/* Closes all descriptors that the program did not open itself. */
static void close_unknown(void) {
    int most = most_numbers();
    for (int fd = 3; fd < most; fd++)
        if (find(fd) == NULL && !filled[fd]) close(fd);
}

static enum flow do_closeall(const struct act *a) {
    descriptors_lock();
    closing_begins();
    if (arg_is(a, "what", "unknown")) {
        close_unknown();
    } else {
        syscall(SYS_close_range, 3, ~0u, 0);
        nowned = 0;
    }
    closing_ends();
    descriptors_unlock();
    return GO_ON;
}

/* Puts copies of a file of ours on numbers that are not ours, high ones too. */
static enum flow do_dupover(const struct act *a) {
    struct owned first;
    uint32_t x = a->id * 7919u;
    descriptors_lock();
    int most = most_numbers();
    if (make_file(a, false, 0, 500, &first) < 0) {
        descriptors_unlock();
        return GO_ON;
    }
    own(first);
    closing_begins();
    for (int64_t i = 0, n = arg_num(a, "n", 4); i < n; i++) {
        x = x * 1664525u + 1013904223u;
        int from = i % 2 == 0 ? 3 : most / 2 < 960 ? most / 2 : 960;
        int span = i % 2 == 0 ? most - 3 : most - from < 40 ? most - from : 40;
        struct owned o = first;
        o.fd = from + (int)(x >> 8) % span;
        if (find(o.fd) != NULL) continue;
        if (dup3(first.fd, o.fd, O_CLOEXEC) == o.fd) own(o);
    }
    closing_ends();
    descriptors_unlock();
    return GO_ON;
}

static int64_t open_more(const struct act *a, struct owned *v, int64_t n,
                         int64_t most) {
    for (; n < most; n++) {
        int fd = make_file(a, true, (uint32_t)n, 40, &v[n]);
        if (fd < 0) break;
        if (fd < NUMBERS) filled[fd] = true;
    }
    return n;
}

/* Opens files until every number is in use, closes those that it does not know,
 * takes their numbers too, and looks at all of them a little later. The lock is
 * held. */
static void fill_once(const struct act *a) {
    static struct owned v[FILL_MOST];
    int64_t most = arg_num(a, "most", 100), wrong = 0;
    if (most > FILL_MOST) most = FILL_MOST;
    int64_t n = open_more(a, v, 0, most);
    if (arg_num(a, "clean", 1)) close_unknown();
    n = open_more(a, v, n, FILL_MOST);
    sleep_us(arg_num(a, "us", 3000));
    for (int64_t i = 0; i < n; i++) {
        const char *what = look_at(&v[i]);
        if (what != NULL && wrong++ < 3) say_wrong(&v[i], what);
    }
    for (int64_t i = 0; i < n; i++) close(v[i].fd);
    memset(filled, 0, sizeof filled);
}

struct filling {
    const struct act *act;
    int over;
};

/* Records much at a time, so that the recorder is in the middle of writing. */
static void *keep_busy(void *arg) {
    struct filling *f = arg;
    struct name name = name_of(f->act->id, 0);
    while (!__atomic_load_n(&f->over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 20000; i++)
            CALL(f->act->id, 0, ops_instant(name.text));
        ops_flush();
        sleep_us(8000);
    }
    return NULL;
}

static enum flow do_fill(const struct act *a) {
    struct filling f = {a, 0};
    pthread_t t;
    bool busy = arg_num(a, "busy", 0) != 0 &&
                thread_start(&t, 0, keep_busy, &f) == 0;
    hostile(); /* a start that needs a descriptor has none */
    for (int64_t i = 0, n = arg_num(a, "rounds", 1); i < n; i++) {
        descriptors_lock();
        fill_once(a);
        descriptors_unlock();
        if (busy) sleep_us(5000);
    }
    __atomic_store_n(&f.over, 1, __ATOMIC_RELAXED);
    if (busy) pthread_join(t, NULL);
    return GO_ON;
}

/* The lowest free number is the program's; zero: programs rely on it that open
 * what is to be their input. */
static enum flow do_lowest(const struct act *a) {
    bool zero = arg_num(a, "zero", 0) != 0;
    int64_t n = arg_num(a, "n", 20), moved = 0;
    descriptors_lock();
    int first = zero ? 0 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int64_t i = 0; i < n && first >= 0; i++) {
        close(first);
        int fd = open("/dev/null", O_RDONLY | (zero ? 0 : O_CLOEXEC));
        if (fd != first && moved++ == 0 && fd >= 0) {
            dup2(fd, first);
            close(fd);
        }
        sched_yield();
    }
    if (!zero && first >= 0) close(first);
    descriptors_unlock();
    say(a, "%s", moved > 0 ? "another took my number" : "the numbers are mine");
    return GO_ON;
}

/* --- pipes --------------------------------------------------------------- */

/* Reads what comes until the end. Returns -1 if there is no end. */
static int read_to_end(int fd) {
    int got = 0;
    uint64_t until = now_ms() + EOF_MS;
    for (;;) {
        char b[64];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = (int64_t)(until - now_ms());
        if (left <= 0) return -1;
        int rc = poll(&p, 1, (int)left);
        if (rc < 0 && errno == EINTR) continue;
        if (rc <= 0) return -1;
        ssize_t n = read(fd, b, sizeof b);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return got;
        got += (int)n;
    }
}

static void records(const struct act *a, unsigned kind) {
    struct name name = name_of(a->id, kind);
    for (int i = 0; i < 3; i++) CALL(a->id, kind, ops_instant(name.text));
}

static void unsettle(const struct act *a) {
    if (arg_num(a, "again", 0)) session_restart();
    if (arg_num(a, "flush", 0)) ops_flush();
    if (arg_num(a, "us", 0)) sleep_us(arg_num(a, "us", 0));
}

static bool make_pipe(const struct act *a, int fd[2]) {
    descriptors_lock();
    int rc = arg_is(a, "kind", "socket")
                 ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)
                 : pipe2(fd, O_CLOEXEC);
    if (rc == 0) descriptor_own(fd[0], true);
    if (rc == 0) descriptor_own(fd[1], true);
    descriptors_unlock();
    return rc == 0;
}

/* The reader is this thread: nobody else has the other end. */
static enum flow pipe_self(const struct act *a) {
    int fd[2];
    if (!make_pipe(a, fd)) return GO_ON;
    records(a, 0);
    unsettle(a);
    ssize_t n = write(fd[1], "abc", 3);
    descriptor_close(fd[1]);
    int got = read_to_end(fd[0]);
    descriptor_close(fd[0]);
    say(a, "wrote %zd, read %d", n, got);
    return GO_ON;
}

/* The reader is a child, which records as well. */
static void pipe_reader(const struct act *a, int in, int out) {
    if (arg_is(a, "child", "first")) records(a, 1);
    close(out);
    if (arg_is(a, "child", "after")) records(a, 1);
    int got = read_to_end(in);
    close(in);
    _exit(got < 0 ? 99 : got);
}

static enum flow pipe_child(const struct act *a) {
    int fd[2];
    if (!make_pipe(a, fd)) return GO_ON;
    descriptors_lock(); /* the child is to keep its end */
    disown(fd[0]);
    disown(fd[1]);
    bool on = model_on();
    pid_t pid = fork();
    if (pid == 0) {
        self->nlate = self->nchild = 0;
        descriptors_forked();
        model_forked(BORN_BY_FORK, on);
        pipe_reader(a, fd[0], fd[1]);
    }
    descriptor_own(fd[1], true);
    close(fd[0]);
    descriptors_unlock();
    records(a, 0);
    unsettle(a);
    ssize_t n = write(fd[1], "abcd", 4);
    descriptor_close(fd[1]);
    int status = pid > 0 ? wait_for(pid) : -1;
    say(a, "wrote %zd, the child read %d", n,
        WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return GO_ON;
}

static enum flow do_pipe(const struct act *a) {
    return arg_is(a, "to", "child") ? pipe_child(a) : pipe_self(a);
}

/* --- locks --------------------------------------------------------------- */

/* Does another have the file locked? A child asks, since a process does not see
 * its own locks. */
static int locked_for_child(int fd) {
    pid_t me = getpid();
    descriptors_lock();
    pid_t pid = fork();
    if (pid == 0) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_GETLK, &l) != 0) _exit(3);
        _exit(l.l_type == F_UNLCK ? 0 : l.l_pid == me ? 1 : 2);
    }
    descriptors_unlock();
    int status = wait_for(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static enum flow lock_posix(const struct act *a) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct owned o;
    descriptors_lock();
    int fd = make_file(a, false, 0, 50, &o);
    if (fd >= 0) own(o);
    descriptors_unlock();
    if (fd < 0) return GO_ON;
    int rc = fcntl(fd, F_SETLK, &l);
    records(a, 0);
    unsettle(a);
    int seen = locked_for_child(fd);
    say(a, "locked %d, a child sees %d", rc, seen);
    descriptor_close(fd);
    return GO_ON;
}

/* This lock goes with the last copy of the descriptor: nobody else may have
 * one, but for a child that has just been made. */
static enum flow lock_flock(const struct act *a) {
    char path[320];
    struct owned o;
    descriptors_lock();
    int fd = make_file(a, false, 0, 50, &o);
    if (fd >= 0) descriptor_own(fd, true);
    descriptors_unlock();
    if (fd < 0) return GO_ON;
    int rc = flock(fd, LOCK_EX | LOCK_NB);
    records(a, 0);
    unsettle(a);
    snprintf(path, sizeof path, "%s/f%u.0", workdir, a->id);
    descriptors_lock();
    disown(fd);
    close(fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    int again = flock(fd, LOCK_EX | LOCK_NB);
    for (int i = 0; i < 300 && again != 0; i++) {
        sleep_us(10000);
        again = flock(fd, LOCK_EX | LOCK_NB);
    }
    close(fd);
    descriptors_unlock();
    say(a, "locked %d, and again %d", rc, again);
    return GO_ON;
}

static enum flow do_lock(const struct act *a) {
    return arg_is(a, "how", "flock") ? lock_flock(a) : lock_posix(a);
}

const struct verb descriptor_verbs[] = {
    {"files", do_files},     {"closeall", do_closeall},
    {"dupover", do_dupover}, {"fill", do_fill},
    {"lowest", do_lowest},   {"pipe", do_pipe},
    {"lock", do_lock},       {NULL, NULL},
};
