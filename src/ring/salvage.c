/* SPDX-License-Identifier: Apache-2.0
 * Reading and finishing what a killed program left. */
#include "ring/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ring/drain.h"
#include "ring/eventfile.h"
#include "ring/open.h"
#include "ring/sys.h"
#include "ring/view.h"

enum {
    TRIES = 8,
    ZEROS = 64,
    OLD_PARTS = 16, /* before the last one, that are looked for */
    OLD_POINTER_S = 60,
};

__attribute__((format(printf, 3, 4))) static int fail(char *why, size_t cap,
                                                      const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, cap, format, ap);
    va_end(ap);
    return -1;
}

static int no_memory(char *why, size_t cap) {
    fail(why, cap, "no memory");
    return REC_REST_NO_MEMORY;
}

/* --- the pointer, and the ring file that it names ------------------------- */

/* A pointer in its folder. Files are looked up there and nowhere else: what the
 * ring file says of itself may be anything. */
struct at {
    int dir;
    char stem[NAME_MAX + 1]; /* the pointer's name without ".ring" */
    const char *name;        /* all of it */
    uid_t owner;
    char ring[PATH_MAX]; /* what it names; "" until it was read */
};

/* "<stem>.ring" -> the stem. */
static int at_init(struct at *a, int dir, const char *name, char *why,
                   size_t cap) {
    size_t n = strlen(name);
    *a = (struct at){.dir = dir, .name = name};
    if (n < 6 || n > NAME_MAX || strcmp(name + n - 5, ".ring") != 0)
        return fail(why, cap, "its name does not end in .ring");
    memcpy(a->stem, name, n - 5);
    return 0;
}

/* The folder of a path, opened, and the rest of it. -1: errno. */
static int open_folder_of(const char *path, const char **name) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = slash == NULL ? path : slash + 1;
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    if (n >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, n);
    folder[n] = 0;
    return sys_open(slash == NULL ? "."
                    : n == 0      ? "/"
                                  : folder,
                    O_PATH | O_DIRECTORY);
}

/* Recorders call ring files "opscope-..." in shared memory, "<stem>.rings"
 * beside the profile. A pointer that names anything else is not followed. */
static bool ring_named(const char *path, const char *stem) {
    const char *base = strrchr(path, '/') + 1;
    size_t n = strlen(stem);
    for (const char *p = path; *p != 0; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) return false;
    return strncmp(base, "opscope-", 8) == 0 ||
           (strncmp(base, stem, n) == 0 && strcmp(base + n, ".rings") == 0);
}

/* The path that the pointer holds: one line. */
static bool read_pointer(int fd, struct at *a) {
    ssize_t n = sys_pread(fd, a->ring, sizeof a->ring - 1, 0);
    a->ring[n > 0 ? n : 0] = 0;
    char *end = strchr(a->ring, '\n');
    if (end != NULL) *end = 0;
    if (end != NULL && a->ring[0] == '/' && ring_named(a->ring, a->stem))
        return true;
    a->ring[0] = 0;
    return false;
}

/* Opens the ring file that the pointer names. It must belong to whoever the
 * pointer belongs to: else a log folder could make us read any file. */
static int open_ring(struct at *a, int flags, char *why, size_t cap) {
    struct stat st;
    int at = rec_open(a->dir, a->name, O_RDONLY);
    if (at < 0) return fail(why, cap, "%s", strerror(errno));
    bool ok = sys_fstat(at, &st) == 0 && read_pointer(at, a);
    a->owner = st.st_uid;
    sys_close(at);
    if (!ok) return fail(why, cap, "not a pointer to a ring file");
    int fd = rec_open(AT_FDCWD, a->ring, flags);
    if (fd < 0 && errno == ENOENT)
        return fail(why, cap,
                    "its ring file %s is gone (a restart of the "
                    "machine?): what was not yet written is lost",
                    a->ring);
    if (fd < 0 && errno == EINVAL)
        return fail(why, cap, "%s is not a file", a->ring);
    if (fd < 0) return fail(why, cap, "%s: %s", a->ring, strerror(errno));
    if (sys_fstat(fd, &st) == 0 && st.st_uid == a->owner) return fd;
    sys_close(fd);
    return fail(why, cap, "%s is not a file of the same user", a->ring);
}

/* The writer holds a lock on its ring file for as long as it lives. */
static bool is_alive(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

bool rec_ring_look(int dir, const char *name, struct rec_look *out) {
    struct at a;
    struct rec_head h;
    struct stat st;
    char why[64];
    *out = (struct rec_look){0};
    if (at_init(&a, dir, name, why, sizeof why) != 0) return false;
    int fd = open_ring(&a, O_RDONLY, why, sizeof why);
    if (fd < 0) return false;
    out->mine = a.owner == geteuid();
    out->alive = is_alive(fd);
    out->bytes = sys_fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    size_t n = offsetof(struct rec_head, file_bytes);
    if (sys_pread(fd, &h, n, 0) == (ssize_t)n &&
        memcmp(h.magic, REC_MAGIC, sizeof h.magic) == 0 &&
        h.version == REC_VERSION && h.pid <= INT32_MAX) {
        out->pid = (int32_t)h.pid;
        out->launch = h.launch;
    }
    sys_close(fd);
    return true;
}

bool rec_ring_look_path(const char *pointer, struct rec_look *out) {
    const char *name;
    int dir = open_folder_of(pointer, &name);
    *out = (struct rec_look){0};
    bool there = dir >= 0 && rec_ring_look(dir, name, out);
    if (dir >= 0) sys_close(dir);
    return there;
}

/* Killed, or looked at, while it was started: a file without its magic. */
static bool never_begun(int fd) {
    static const char none[sizeof REC_MAGIC - 1];
    char magic[sizeof none];
    ssize_t n = sys_pread(fd, magic, sizeof magic, 0);
    return n == 0 || (n == (ssize_t)sizeof magic &&
                      memcmp(magic, none, sizeof magic) == 0);
}

static bool same_commit(int fd, unsigned active, const struct rec_commit *c) {
    struct rec_head now;
    size_t n = offsetof(struct rec_head, devices);
    return sys_pread(fd, &now, n, 0) == (ssize_t)n && now.active == active &&
           memcmp(&now.commit[active], c, sizeof *c) == 0;
}

/* --- the rest, in memory ------------------------------------------------ */

struct rest {
    struct drain d;
    struct buffer {
        uint8_t *p;
        size_t n, cap;
    } file[REC_FILES];
    const struct rec_commit *commit;
};

static int append(struct buffer *b, const void *p, size_t n) {
    if (n > b->cap - b->n) {
        size_t cap = b->cap * 2 + n + (64 << 10);
        uint8_t *q = realloc(b->p, cap);
        if (q == NULL) return -1;
        b->p = q;
        b->cap = cap;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* A plane that has no file yet begins here. */
static int rest_write(void *self, unsigned file, const void *p, size_t n) {
    struct rest *r = self;
    struct buffer *b = &r->file[file];
    if (b->n == 0 && r->commit->bytes[file] == 0) {
        uint8_t head[FILES_HEAD] = {0};
        if (append(b, head, sizeof head) != 0) return -1;
        encode_plane(&r->d.enc, file);
    }
    return append(b, p, n);
}

static void rest_free(struct rest *r) {
    drain_close(&r->d);
    for (unsigned i = 0; i < REC_FILES; i++) free(r->file[i].p);
    free(r);
}

static struct rest *rest_encode(struct rec_view *v) {
    struct rest *r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    struct enc_to to = {.self = r, .write = rest_write};
    r->commit = &v->head->commit[v->head->active];
    if (drain_open_memory(&r->d, v, to) != 0) {
        rest_free(r);
        return NULL;
    }
    if (r->commit->bytes[0] == 0) encode_head_facts(&r->d.enc);
    drain_rings(&r->d, true, 0);
    encode_fact_int(&r->d.enc, 0, "opscope_unclosed", 1);
    for (unsigned i = 0; i < REC_FILES; i++)
        if (r->file[i].n > 0) drain_names(&r->d, i);
    if (!r->d.enc.failed) return r;
    rest_free(r);
    return NULL;
}

/* --- file and rest as one ----------------------------------------------- */

struct joined {
    uint8_t *p;
    size_t n, cap;
};

/* `bytes` of a file at the end of what is joined: the host's, which comes first
 * and may be large, is mapped; others are read. */
static bool join_file(struct joined *j, int fd, size_t bytes) {
    struct stat st;
    if (sys_fstat(fd, &st) != 0 || (uint64_t)st.st_size < bytes) return false;
    if (j->n == 0 && bytes > 0) {
        void *p = mmap(j->p, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_FIXED, fd, 0);
        if (p == MAP_FAILED) return false;
        j->n = bytes;
        /* what the file has behind it, up to the end of the page */
        size_t tail = rec_paged(bytes) - bytes; /* there is room for it */
        memset(j->p + bytes, 0, tail);
        return true;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t r = sys_pread(fd, j->p + j->n, bytes - done, (off_t)done);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        done += (size_t)r;
        j->n += (size_t)r;
    }
    return true;
}

/* A plane: what its file holds by the commit, and the rest. */
static bool join_plane(struct joined *j, const struct at *a,
                       const struct rec_commit *c, unsigned i,
                       const struct buffer *rest, char name[NAME_MAX + 1]) {
    size_t at = j->n, bytes = (size_t)c->bytes[i];
    if (bytes > 0) {
        if (!rec_part_name(name, NAME_MAX + 1, a->stem, c->part, i, false))
            return false;
        int fd = rec_open(a->dir, name, O_RDONLY);
        bool ok = fd >= 0 && join_file(j, fd, bytes);
        if (fd >= 0) sys_close(fd);
        if (!ok) return false;
    }
    if (rest->n > 0) memcpy(j->p + j->n, rest->p, rest->n);
    j->n += rest->n;
    if (j->n - at >= FILES_HEAD) files_head(j->p + at, j->n - at);
    return true;
}

static int join(struct rest *r, const struct at *a, struct rec_rest *out,
                char *why, size_t cap) {
    struct joined j = {NULL, 0, ZEROS + 2 * REC_PAGE};
    const struct rec_commit *c = r->commit;
    char name[NAME_MAX + 1] = "";
    for (unsigned i = 0; i < REC_FILES; i++) {
        /* a part is at most FILES_LIMIT and what one pass adds */
        if (c->bytes[i] > (uint64_t)FILES_LIMIT * 8)
            return fail(why, cap, "damaged: a length is out of range");
        j.cap += (size_t)c->bytes[i] + r->file[i].n;
    }
    j.p = mmap(NULL, j.cap, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (j.p == MAP_FAILED) return no_memory(why, cap);
    for (unsigned i = 0; i < REC_FILES; i++) {
        if (c->bytes[i] == 0 && r->file[i].n == 0) continue;
        if (!join_plane(&j, a, c, i, &r->file[i], name)) {
            munmap(j.p, j.cap);
            return fail(why, cap, "%s is missing or shorter than it was", name);
        }
        if (i == 0 && c->bytes[0] > 0) memcpy(out->file, name, sizeof name);
    }
    out->p = j.p;
    out->n = j.n;
    out->mapped = j.cap;
    return 0;
}

/* One try; 1: it went on while we looked. */
static int read_once(int fd, const struct at *a, struct rec_rest *out,
                     char *why, size_t cap) {
    struct rec_view *v = calloc(1, sizeof *v);
    const char *reason;
    if (v == NULL) return no_memory(why, cap);
    if (never_begun(fd)) {
        free(v);
        out->state = REC_CLOSED;
        return 0;
    }
    if (rec_view_open(v, fd, &reason) != 0) {
        free(v);
        return fail(why, cap, "its ring file is %s", reason);
    }
    int result = 0;
    struct rec_head *h = v->head;
    unsigned active = h->active;
    struct rec_commit commit = h->commit[active];
    out->pid = h->pid;
    out->damaged = v->damaged;
    if (h->done) {
        out->state = REC_CLOSED;
    } else {
        struct rest *r = rest_encode(v);
        if (r == NULL) result = no_memory(why, cap);
        else result = join(r, a, out, why, cap);
        if (r != NULL) out->rest_events = r->d.enc.events - commit.events;
        if (r != NULL) rest_free(r);
        if (result == 0 && out->state == REC_ALIVE &&
            !same_commit(fd, active, &commit)) {
            rec_rest_free(out);
            result = 1;
        }
    }
    rec_view_close(v);
    free(v);
    return result;
}

static int read_at(int dir, const char *name, struct rec_rest *out, char *why,
                   size_t cap) {
    struct at a;
    if (at_init(&a, dir, name, why, cap) != 0) return -1;
    int fd = open_ring(&a, O_RDONLY, why, cap);
    if (fd < 0) return -1;
    int result = 1;
    for (int i = 0; i < TRIES && result == 1; i++) {
        out->state = is_alive(fd) ? REC_ALIVE : REC_DEAD;
        result = read_once(fd, &a, out, why, cap);
    }
    sys_close(fd);
    if (result == 1)
        return fail(why, cap, "it is written too quickly to be read now");
    return result;
}

int rec_rest_read(const char *pointer, struct rec_rest *out, char *why,
                  size_t cap) {
    const char *name;
    memset(out, 0, sizeof *out);
    int dir = open_folder_of(pointer, &name);
    if (dir < 0) return fail(why, cap, "%s", strerror(errno));
    int result = read_at(dir, name, out, why, cap);
    sys_close(dir);
    return result;
}

void rec_rest_free(struct rec_rest *r) {
    if (r->p != NULL) munmap(r->p, r->mapped);
    r->p = NULL;
    r->n = 0;
}

/* --- the scalars of the rest ---------------------------------------------- */

struct points {
    struct rec_scalars *out;
    size_t cap;
    bool oom;
};

static void add_point(void *self, const char *tag, size_t n, int64_t step,
                      double value, double unix_s) {
    struct points *p = self;
    struct rec_scalars *out = p->out;
    bool cut;
    if (out->n + EVENTFILE_RECORD_MAX > p->cap) {
        size_t cap = 2 * p->cap + 64 * EVENTFILE_RECORD_MAX;
        uint8_t *q = realloc(out->p, cap);
        if (q == NULL) {
            p->oom = true;
            return;
        }
        out->p = q;
        p->cap = cap;
    }
    out->n += eventfile_record(out->p + out->n, tag, n, step, (float)value,
                               unix_s, &cut);
    out->points++;
}

static int drop_bytes(void *self, unsigned file, const void *p, size_t n) {
    (void)self;
    (void)file;
    (void)p;
    (void)n;
    return 0;
}

static bool encode_points(struct rec_view *v, struct rec_scalars *out) {
    struct points p = {.out = out};
    struct drain *d = calloc(1, sizeof *d);
    if (d == NULL) return false;
    struct enc_to to = {.self = &p, .write = drop_bytes, .scalar = add_point};
    bool ok = drain_open_memory(d, v, to) == 0;
    if (ok) drain_rings(d, false, 0);
    if (ok) drain_close(d);
    free(d);
    return ok && !p.oom;
}

int rec_scalars_read(const char *pointer, struct rec_scalars *out) {
    struct at a;
    const char *name, *reason;
    char why[64];
    int result = -1;
    *out = (struct rec_scalars){0};
    int dir = open_folder_of(pointer, &name);
    struct rec_view *v = dir < 0 ? NULL : calloc(1, sizeof *v);
    if (v != NULL && at_init(&a, dir, name, why, sizeof why) == 0) {
        int fd = open_ring(&a, O_RDONLY, why, sizeof why);
        if (fd >= 0 && !is_alive(fd) && rec_view_open(v, fd, &reason) == 0) {
            const struct rec_head *h = v->head;
            const char *base = strrchr(h->events, '/');
            snprintf(out->file, sizeof out->file, "%.*s",
                     (int)sizeof out->file - 1, base == NULL ? "" : base + 1);
            out->bytes = h->commit[h->active].scalar_bytes;
            result = h->done                 ? -1
                     : encode_points(v, out) ? 0
                                             : REC_REST_NO_MEMORY;
        }
        rec_view_close(v);
        if (fd >= 0) sys_close(fd);
    }
    free(v);
    if (dir >= 0) sys_close(dir);
    if (result != 0) rec_scalars_free(out);
    return result;
}

void rec_scalars_free(struct rec_scalars *s) {
    free(s->p);
    *s = (struct rec_scalars){0};
}

/* --- finishing ---------------------------------------------------------- */

struct finishing {
    struct at *at;
    struct drain d;
    struct rec_view v;
    struct eventfile events;
    int logdir;            /* -1: not opened yet, or not to be found */
    char folder[PATH_MAX]; /* its path */
    bool scalars;
};

/* Is the folder of the pointer the one that the head names? */
static bool same_folder(const struct at *a, const char *folder) {
    struct stat x, y;
    return sys_fstat(a->dir, &x) == 0 && stat(folder, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder that the stem in the head lies in. */
static bool head_folder(const struct rec_head *h, char out[PATH_MAX]) {
    snprintf(out, PATH_MAX, "%s", h->stem);
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = 0;
    return true;
}

/* Whoever copied the log folder has a pointer to a ring that is not theirs. One
 * that was moved is: nothing stands where it was. */
static bool is_copy(const struct at *a, const struct rec_head *h) {
    char folder[PATH_MAX];
    struct stat st;
    const char *base = strrchr(h->stem, '/');
    if (base == NULL || strcmp(base + 1, a->stem) != 0 ||
        !head_folder(h, folder))
        return true;
    return !same_folder(a, folder) && stat(folder, &st) == 0;
}

/* The log folder: <logdir>/plugins/profile/<run>/<stem>. By the names in the
 * head while they hold, since each may be a link to somewhere else. */
static void open_logdir(struct finishing *f) {
    bool known = head_folder(f->v.head, f->folder) &&
                 same_folder(f->at, f->folder);
    for (int i = 0; known && i < 3; i++) {
        char *slash = strrchr(f->folder, '/');
        if (slash == NULL) known = false;
        else *slash = 0;
    }
    if (known && f->folder[0] != 0) {
        f->logdir = sys_open(f->folder, O_PATH | O_DIRECTORY);
    } else {
        f->logdir = sys_openat(f->at->dir, "../../..", O_PATH | O_DIRECTORY, 0);
        snprintf(f->folder, sizeof f->folder, "/");
    }
}

/* The event file that the head names, by its name in the log folder: it is
 * going to be cut. NULL: it names none. */
static const char *events_name(const struct finishing *f) {
    static const char begin[] = "events.out.tfevents.";
    const char *base = strrchr(f->v.head->events, '/');
    if (base == NULL || f->logdir < 0) return NULL;
    return strncmp(base + 1, begin, sizeof begin - 1) == 0 ? base + 1 : NULL;
}

/* Back to what the last commit says, so that no scalar stands there twice. */
static void cut_events(const struct finishing *f) {
    const struct rec_head *h = f->v.head;
    uint64_t bytes = h->commit[h->active].scalar_bytes;
    const char *name = events_name(f);
    struct stat st;
    int fd = name == NULL ? -1 : rec_open(f->logdir, name, O_WRONLY);
    if (fd < 0) return;
    if (sys_fstat(fd, &st) == 0 && (uint64_t)st.st_size > bytes &&
        ftruncate(fd, (off_t)bytes) != 0)
        errno = 0; /* then a point stands there twice */
    sys_close(fd);
}

/* In the program's file where it had one, else in one whose name is noted
 * first: when this rescue is killed too, the next one cuts it back. */
static void resume_events(struct finishing *f) {
    struct rec_head *h = f->v.head;
    uint64_t bytes = h->commit[h->active].scalar_bytes;
    const char *name = events_name(f);
    if (name != NULL && eventfile_resume(&f->events, name, bytes) == 0) return;
    if (eventfile_begin(&f->events) == 0 &&
        strlen(f->events.path) < sizeof h->events) {
        memcpy(h->events, f->events.path, strlen(f->events.path) + 1);
        drain_keep_events(&f->d);
    }
}

static void flush_events(struct drain *d, struct rec_commit *c, void *ctx) {
    struct finishing *f = ctx;
    (void)d;
    if (!f->scalars) return;
    eventfile_flush(&f->events);
    c->scalar_bytes = f->events.size;
}

static void give_scalar(void *self, const char *tag, size_t n, int64_t step,
                        double value, double unix_s) {
    struct finishing *f = self;
    if (!f->scalars) {
        if (f->logdir < 0 || eventfile_init(&f->events, f->logdir, f->folder,
                                            f->v.head->host) != 0)
            return;
        f->scalars = true;
        resume_events(f);
    }
    eventfile_scalar(&f->events, tag, n, step, (float)value, unix_s);
}

/* What no ring's line tells of. */
static uint64_t dropped_beside(const struct rec_head *h) {
    return h->lost.no_ring + h->lost.names + h->drops_write;
}

static uint64_t dropped(const struct rec_view *v) {
    uint64_t n = dropped_beside(v->head);
    for (uint32_t i = 0; i < v->nrings; i++)
        for (int k = 0; v->ring[i] != NULL && k < REC_LOST_UNMATCHED; k++)
            n += v->ring[i]->lost[k];
    return n;
}

static bool exists(int dir, const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A part that was joined. Killed before its rename: that is made up for; or
 * after it: the devices' files, which are in it, may still be there. */
static bool finish_part(const struct at *a, uint64_t part) {
    struct files f;
    char name[NAME_MAX + 1];
    files_init(&f, a->dir, a->stem, part);
    if (!rec_part_name(name, sizeof name, a->stem, part, 0, false))
        return false;
    if (exists(a->dir, name)) return files_finish(&f, name) == 0;
    for (unsigned i = 1; i < REC_FILES; i++) files_remove(&f, i);
    return true;
}

/* Parts before the last one are joined when it begins, then renamed. One
 * behind it was made and never used. */
static void finish_others(const struct at *a, const struct rec_head *h) {
    uint64_t part = h->commit[h->active].part;
    struct files f;
    files_init(&f, a->dir, a->stem, part + 1);
    for (unsigned i = 0; i < REC_FILES; i++) files_remove(&f, i);
    for (uint64_t i = part > OLD_PARTS ? part - OLD_PARTS : 0; i < part; i++)
        finish_part(a, i);
}

/* Killed between the rename and the removal of the pointer: nothing is left to
 * do. */
static bool closed_already(const struct at *a, const struct rec_head *h) {
    uint64_t part = h->commit[h->active].part;
    char name[NAME_MAX + 1];
    return rec_part_name(name, sizeof name, a->stem, part, 0, false) &&
           !exists(a->dir, name) && finish_part(a, part);
}

static int finish(struct finishing *f, int ring, struct rec_saved *out,
                  char *why, size_t cap) {
    struct rec_head *h = f->v.head;
    uint64_t before = h->commit[h->active].events;
    char name[NAME_MAX + 1];
    f->d.events = (struct enc_to){.self = f, .scalar = give_scalar};
    f->d.at_commit = flush_events;
    f->d.ctx = f;
    finish_others(f->at, h);
    if (h->done && closed_already(f->at, h)) return 0;
    if (drain_open(&f->d, &f->v, f->at->dir, f->at->stem, ring) != 0)
        return fail(why, cap, "its files: %s", strerror(f->d.files.error));
    if (!h->done) {
        cut_events(f);
        drain_rings(&f->d, true, 0);
        encode_fact_int(&f->d.enc, 0, "opscope_unclosed", 1);
        if (dropped_beside(h) > 0)
            encode_fact_int(&f->d.enc, 0, "dropped_traces",
                            (int64_t)dropped_beside(h));
        if (drain_commit(&f->d) != 0)
            return fail(why, cap, "%s", strerror(f->d.files.error));
        if (f->scalars) eventfile_close(&f->events);
    }
    out->events = h->commit[h->active].events;
    out->rest_events = out->events - before;
    out->dropped = dropped(&f->v);
    if (drain_finish(&f->d, name) != 0)
        return fail(why, cap, "%s", strerror(f->d.files.error));
    return 0;
}

static int finish_ring(int fd, struct at *a, struct rec_saved *out, char *why,
                       size_t cap) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const char *reason;
    if (fcntl(fd, F_OFD_SETLK, &l) != 0)
        return fail(why, cap, "the program is still running");
    struct finishing *f = calloc(1, sizeof *f);
    if (f == NULL) return fail(why, cap, "no memory");
    f->at = a;
    f->logdir = -1;
    files_init(&f->d.files, a->dir, a->stem, 0); /* nothing is open */
    int result = -1;
    if (rec_view_open(&f->v, fd, &reason) != 0) {
        fail(why, cap, "its ring file is %s", reason);
    } else if (is_copy(a, f->v.head)) {
        fail(why, cap, "its ring file belongs to another profile");
    } else {
        out->pid = f->v.head->pid;
        open_logdir(f);
        result = finish(f, fd, out, why, cap);
        drain_close(&f->d);
        if (f->logdir >= 0) sys_close(f->logdir);
    }
    rec_view_close(&f->v);
    free(f);
    return result;
}

struct finding {
    const char *stem;
    bool found;
};

static bool find_part(void *ctx, const char *name) {
    struct finding *f = ctx;
    size_t n = strlen(name);
    f->found = strncmp(name, f->stem, strlen(f->stem)) == 0 && n > 5 &&
               strcmp(name + n - 5, ".part") == 0;
    return !f->found;
}

/* Is any file of the stem still being written? Who knows, where the folder
 * cannot be listed. */
static bool has_parts(const struct at *a) {
    struct finding f = {a->stem, false};
    return !sys_list(a->dir, find_part, &f) || f.found;
}

/* A pointer and nothing else: killed when the profile was closed and the ring
 * file gone, or before there was one. That one must be old: its program may be
 * about to make it. */
static bool only_pointer(const struct at *a) {
    char name[NAME_MAX + 1];
    struct stat st;
    if (has_parts(a) || (a->ring[0] != 0 && exists(AT_FDCWD, a->ring)))
        return false;
    bool closed = rec_part_name(name, sizeof name, a->stem, 0, 0, true) &&
                  exists(a->dir, name);
    if (!closed &&
        (fstatat(a->dir, a->name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
         !S_ISREG(st.st_mode) || time(NULL) - st.st_mtime < OLD_POINTER_S))
        return false;
    unlinkat(a->dir, a->name, 0);
    return true;
}

/* Killed while it started: nobody holds the ring file. Removes what there is
 * beside it. */
static bool clear_never_begun(int fd, const struct at *a) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct files f;
    if (fcntl(fd, F_OFD_SETLK, &l) != 0 || !never_begun(fd)) return false;
    files_init(&f, a->dir, a->stem, 0);
    files_remove(&f, 0);
    return true;
}

int rec_salvage_at(int dir, const char *name, struct rec_saved *out, char *why,
                   size_t cap) {
    struct at a;
    struct stat st;
    memset(out, 0, sizeof *out);
    if (at_init(&a, dir, name, why, cap) != 0) return -1;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(why, cap, "%s", strerror(errno));
    if (st.st_uid != geteuid()) /* could change it yet */
        return fail(why, cap,
                    "it is another user's: it can be read, and "
                    "closed by its owner");
    int fd = open_ring(&a, O_RDWR, why, cap);
    if (fd < 0) return only_pointer(&a) ? 0 : -1;
    int result = 0;
    if (!clear_never_begun(fd, &a)) result = finish_ring(fd, &a, out, why, cap);
    if (result == 0) {
        unlink(a.ring);
        unlinkat(dir, name, 0);
    }
    sys_close(fd);
    return result;
}

int rec_salvage_finish(const char *pointer, struct rec_saved *out, char *why,
                       size_t cap) {
    const char *name;
    memset(out, 0, sizeof *out);
    int dir = open_folder_of(pointer, &name);
    if (dir < 0) return fail(why, cap, "%s", strerror(errno));
    int result = rec_salvage_at(dir, name, out, why, cap);
    sys_close(dir);
    return result;
}
