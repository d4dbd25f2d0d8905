/* SPDX-License-Identifier: Apache-2.0
 * Reading and finishing what a killed program left. */
#include "rec/salvage.h"

#include <dirent.h>
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

#include "rec/drain.h"
#include "rec/eventfile.h"
#include "rec/view.h"

enum {
    TRIES = 8, ZEROS = 64,
    OLD_PARTS = 16, /* before the last one, that are looked for */
    OLD_POINTER_S = 60,
};

__attribute__((format(printf, 3, 4))) static int
fail(char *why, size_t cap, const char *format, ...) {
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

/* --- the ring file ------------------------------------------------------ */

/* The path that the pointer holds: one line. */
static int read_pointer(int fd, char path[PATH_MAX]) {
    ssize_t n = pread(fd, path, PATH_MAX - 1, 0);
    if (n <= 1) return -1;
    path[n] = 0;
    char *end = strchr(path, '\n');
    if (end == NULL || path[0] != '/') return -1;
    *end = 0;
    return 0;
}

/* Opens the ring file that the pointer names. It must belong to whoever the
 * pointer belongs to: else a log folder could make us read any file. */
static int open_ring(const char *pointer, char path[PATH_MAX], char *why,
                     size_t cap) {
    struct stat a, b;
    int at = open(pointer, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (at < 0) return fail(why, cap, "%s", strerror(errno));
    bool ok = fstat(at, &a) == 0 && S_ISREG(a.st_mode) &&
              read_pointer(at, path) == 0;
    close(at);
    if (!ok) return fail(why, cap, "not a pointer to a ring file");
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return fail(why, cap, "its ring file %s is gone (a restart of the "
                    "machine?): what was not yet written is lost", path);
    if (fd < 0) return fail(why, cap, "%s: %s", path, strerror(errno));
    if (fstat(fd, &b) == 0 && S_ISREG(b.st_mode) && b.st_uid == a.st_uid)
        return fd;
    close(fd);
    return fail(why, cap, "%s is not a file of the same user", path);
}

/* The writer holds a lock on its ring file for as long as it lives. */
static bool is_alive(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int32_t rec_ring_pid(const char *pointer, bool *alive) {
    char path[PATH_MAX], why[256];
    struct rec_head h;
    *alive = false;
    int fd = open_ring(pointer, path, why, sizeof why);
    if (fd < 0) return 0;
    bool whole = pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                 memcmp(h.magic, REC_MAGIC, sizeof h.magic) == 0 &&
                 h.version == REC_VERSION && h.pid <= INT32_MAX;
    *alive = whole && is_alive(fd);
    close(fd);
    return whole ? (int32_t)h.pid : 0;
}

/* Killed, or looked at, while it was started: a file without its magic. */
static bool never_begun(int fd) {
    static const char none[sizeof REC_MAGIC - 1];
    char magic[sizeof none];
    ssize_t n = pread(fd, magic, sizeof magic, 0);
    return n == 0 || (n == (ssize_t)sizeof magic &&
                      memcmp(magic, none, sizeof magic) == 0);
}

static bool same_commit(int fd, unsigned active, const struct rec_commit *c) {
    struct rec_head now;
    return pread(fd, &now, sizeof now, 0) == (ssize_t)sizeof now &&
           now.active == active &&
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
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size < bytes)
        return false;
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
        ssize_t r = pread(fd, j->p + j->n, bytes - done, (off_t)done);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        done += (size_t)r;
        j->n += (size_t)r;
    }
    return true;
}

/* A plane: what its file holds by the commit, and the rest. */
static bool join_plane(struct joined *j, const char *stem,
                       const struct rec_commit *c, unsigned i,
                       const struct buffer *rest, char path[PATH_MAX]) {
    size_t at = j->n, bytes = (size_t)c->bytes[i];
    if (bytes > 0) {
        if (!rec_part_path(path, PATH_MAX, stem, c->part, i, false))
            return false;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        bool ok = fd >= 0 && join_file(j, fd, bytes);
        if (fd >= 0) close(fd);
        if (!ok) return false;
    }
    if (rest->n > 0) memcpy(j->p + j->n, rest->p, rest->n);
    j->n += rest->n;
    if (j->n - at >= FILES_HEAD) files_head(j->p + at, j->n - at);
    return true;
}

static int join(struct rest *r, const char *stem, struct rec_rest *out,
                char *why, size_t cap) {
    struct joined j = {NULL, 0, ZEROS + 2 * REC_PAGE};
    const struct rec_commit *c = r->commit;
    char path[PATH_MAX];
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
        if (!join_plane(&j, stem, c, i, &r->file[i], path)) {
            munmap(j.p, j.cap);
            return fail(why, cap, "%s is missing or shorter than it was", path);
        }
        if (i == 0 && c->bytes[0] > 0) memcpy(out->file, path, sizeof path);
    }
    out->p = j.p;
    out->n = j.n;
    out->mapped = j.cap;
    return 0;
}

/* One try; 1: it went on while we looked. stem: the files', as the pointer
 * stands to them: the folder may have been moved since. */
static int read_once(int fd, const char *stem, struct rec_rest *out, char *why,
                     size_t cap) {
    struct rec_view *v = calloc(1, sizeof *v);
    const char *reason;
    if (v == NULL) return no_memory(why, cap);
    if (never_begun(fd)) {
        free(v);
        out->state = REC_CLOSED;
        return 0;
    }
    if (rec_view_open(v, fd, false, &reason) != 0) {
        free(v);
        return fail(why, cap, "its ring file is %s", reason);
    }
    int result = 0;
    struct rec_head *h = v->head;
    unsigned active = h->active;
    struct rec_commit commit = h->commit[active];
    out->pid = h->pid;
    if (h->done) {
        out->state = REC_CLOSED;
    } else {
        struct rest *r = rest_encode(v);
        if (r == NULL) result = no_memory(why, cap);
        else result = join(r, stem, out, why, cap);
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

/* "<stem>.ring" -> the stem. */
static bool pointer_stem(const char *pointer, char stem[PATH_MAX]) {
    size_t n = strlen(pointer);
    if (n < 6 || n >= PATH_MAX || strcmp(pointer + n - 5, ".ring") != 0)
        return false;
    memcpy(stem, pointer, n - 5);
    stem[n - 5] = 0;
    return true;
}

int rec_rest_read(const char *pointer, struct rec_rest *out, char *why,
                  size_t cap) {
    char path[PATH_MAX], stem[PATH_MAX];
    memset(out, 0, sizeof *out);
    if (!pointer_stem(pointer, stem))
        return fail(why, cap, "its name does not end in .ring");
    int fd = open_ring(pointer, path, why, cap);
    if (fd < 0) return -1;
    int result = 1;
    for (int i = 0; i < TRIES && result == 1; i++) {
        out->state = is_alive(fd) ? REC_ALIVE : REC_DEAD;
        result = read_once(fd, stem, out, why, cap);
    }
    close(fd);
    if (result == 1)
        return fail(why, cap, "it is written too quickly to be read now");
    return result;
}

void rec_rest_free(struct rec_rest *r) {
    if (r->p != NULL) munmap(r->p, r->mapped);
    r->p = NULL;
    r->n = 0;
}

/* --- finishing ---------------------------------------------------------- */

struct finishing {
    struct drain d;
    struct rec_view v;
    struct eventfile events;
    bool scalars;
};

/* <logdir>/plugins/profile/<run>/<stem>: the log folder. */
static bool log_folder(const char *stem, char out[EVENTFILE_DIR_MAX]) {
    snprintf(out, EVENTFILE_DIR_MAX, "%.3800s", stem);
    for (int i = 0; i < 4; i++) {
        char *slash = strrchr(out, '/');
        if (slash == NULL) return false;
        *slash = 0;
    }
    return out[0] != 0;
}

/* The event file that the head names, if it is one and lies in the log folder:
 * it is going to be cut. */
static bool has_events(const struct rec_head *h) {
    static const char name[] = "/events.out.tfevents.";
    char dir[EVENTFILE_DIR_MAX];
    if (h->events[0] == 0 || !log_folder(h->stem, dir)) return false;
    size_t n = strlen(dir);
    return strncmp(h->events, dir, n) == 0 &&
           strncmp(h->events + n, name, sizeof name - 1) == 0 &&
           strchr(h->events + n + 1, '/') == NULL;
}

/* Back to what the last commit says, so that no scalar stands there twice. */
static void cut_events(const struct rec_head *h) {
    uint64_t bytes = h->commit[h->active].scalar_bytes;
    struct stat st;
    if (!has_events(h)) return;
    int fd = open(h->events, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size > bytes && ftruncate(fd, (off_t)bytes) != 0)
        errno = 0; /* then a point stands there twice */
    close(fd);
}

/* In the program's file where it had one, else in one whose name is noted
 * first: when this rescue is killed too, the next one cuts it back. */
static void resume_events(struct finishing *f) {
    struct rec_head *h = f->v.head;
    uint64_t bytes = h->commit[h->active].scalar_bytes;
    if (has_events(h) &&
        eventfile_resume(&f->events, h->events, bytes) == 0)
        return;
    if (eventfile_begin(&f->events) == 0 &&
        strlen(f->events.path) < sizeof h->events)
        memcpy(h->events, f->events.path, strlen(f->events.path) + 1);
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
    char dir[EVENTFILE_DIR_MAX];
    if (!f->scalars) {
        if (!log_folder(f->v.head->stem, dir) ||
            eventfile_init(&f->events, dir, f->v.head->host) != 0)
            return;
        f->scalars = true;
        resume_events(f);
    }
    eventfile_scalar(&f->events, tag, n, step, (float)value, unix_s);
}

static uint64_t dropped(const struct rec_view *v) {
    uint64_t n = v->head->drops_no_ring + v->head->drops_names;
    for (uint32_t i = 0; i < v->nrings; i++)
        for (int k = 0; v->ring[i] != NULL && k < REC_LOST_UNMATCHED; k++)
            n += v->ring[i]->lost[k];
    return n;
}

/* A part that was joined. Killed before its rename: that is made up for; or
 * after it: the devices' files, which are in it, may still be there. */
static bool finish_part(const struct rec_head *h, uint64_t part,
                        char path[PATH_MAX]) {
    struct files f;
    files_init(&f, h->stem, part);
    if (!rec_part_path(path, PATH_MAX, h->stem, part, 0, false)) return false;
    if (access(path, F_OK) == 0) return files_finish(&f, path) == 0;
    for (unsigned i = 1; i < REC_FILES; i++) files_remove(&f, i);
    return rec_part_path(path, PATH_MAX, h->stem, part, 0, true);
}

/* Parts before the last one are joined when it begins, then renamed. One
 * behind it was made and never used. */
static void finish_others(const struct rec_head *h) {
    uint64_t part = h->commit[h->active].part;
    char path[PATH_MAX];
    struct files f;
    files_init(&f, h->stem, part + 1);
    for (unsigned i = 0; i < REC_FILES; i++) files_remove(&f, i);
    for (uint64_t i = part > OLD_PARTS ? part - OLD_PARTS : 0; i < part; i++)
        finish_part(h, i, path);
}

/* Killed between the rename and the removal of the pointer: nothing is left to
 * do. */
static bool closed_already(const struct rec_head *h, char path[PATH_MAX]) {
    uint64_t part = h->commit[h->active].part;
    return rec_part_path(path, PATH_MAX, h->stem, part, 0, false) &&
           access(path, F_OK) != 0 && finish_part(h, part, path);
}

static int finish(struct finishing *f, struct rec_saved *out, char *why,
                  size_t cap) {
    struct rec_head *h = f->v.head;
    uint64_t before = h->commit[h->active].events;
    f->d.events = (struct enc_to){.self = f, .scalar = give_scalar};
    f->d.at_commit = flush_events;
    f->d.ctx = f;
    finish_others(h);
    if (h->done && closed_already(h, out->path)) return 0;
    if (drain_open(&f->d, &f->v, false) != 0)
        return fail(why, cap, "its files: %s", strerror(f->d.files.error));
    if (!h->done) {
        cut_events(h);
        drain_rings(&f->d, true, 0);
        encode_fact_int(&f->d.enc, 0, "opscope_unclosed", 1);
        if (dropped(&f->v) > 0)
            encode_fact_int(&f->d.enc, 0, "dropped_traces",
                            (int64_t)dropped(&f->v));
        if (drain_commit(&f->d) != 0)
            return fail(why, cap, "%s", strerror(f->d.files.error));
        if (f->scalars) eventfile_close(&f->events);
    }
    out->events = h->commit[h->active].events;
    out->rest_events = out->events - before;
    out->dropped = dropped(&f->v);
    if (drain_finish(&f->d, out->path) != 0)
        return fail(why, cap, "%s", strerror(f->d.files.error));
    return 0;
}

/* The stem in the ring file must be the pointer's own: it says which files are
 * written and removed. */
static bool same_place(const struct rec_head *h, const char *pointer) {
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(path, sizeof path, "%s.ring", h->stem);
    return realpath(pointer, real) != NULL && strcmp(path, real) == 0;
}

static int finish_ring(int fd, const char *pointer, struct rec_saved *out,
                       char *why, size_t cap) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const char *reason;
    if (fcntl(fd, F_OFD_SETLK, &l) != 0)
        return fail(why, cap, "the program is still running");
    struct finishing *f = calloc(1, sizeof *f);
    if (f == NULL) return fail(why, cap, "no memory");
    int result = -1;
    if (rec_view_open(&f->v, fd, true, &reason) != 0) {
        fail(why, cap, "its ring file is %s", reason);
    } else if (!same_place(f->v.head, pointer)) {
        fail(why, cap, "its ring file belongs to another profile");
    } else {
        out->pid = f->v.head->pid;
        result = finish(f, out, why, cap);
        drain_close(&f->d);
    }
    rec_view_close(&f->v);
    free(f);
    return result;
}

/* Is any file of the stem still being written? */
static bool has_parts(const char *stem) {
    char folder[PATH_MAX];
    const char *base = strrchr(stem, '/');
    snprintf(folder, sizeof folder, "%.*s",
             base == NULL ? 0 : (int)(base - stem), stem);
    DIR *d = opendir(base == NULL ? "." : folder);
    if (d == NULL) return true; /* who knows */
    base = base == NULL ? stem : base + 1;
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        found = strncmp(e->d_name, base, strlen(base)) == 0 && n > 5 &&
                strcmp(e->d_name + n - 5, ".part") == 0;
    }
    closedir(d);
    return found;
}

/* A pointer and nothing else: killed when the profile was closed and the ring
 * file gone, or before there was one. That one must be old: its program may be
 * about to make it. */
static bool only_pointer(const char *pointer, const char *ring) {
    char stem[PATH_MAX], path[PATH_MAX];
    struct stat st;
    if (!pointer_stem(pointer, stem) || has_parts(stem) ||
        (ring[0] != 0 && access(ring, F_OK) == 0))
        return false;
    bool closed = rec_part_path(path, sizeof path, stem, 0, 0, true) &&
                  access(path, F_OK) == 0;
    if (!closed && (lstat(pointer, &st) != 0 || !S_ISREG(st.st_mode) ||
                    time(NULL) - st.st_mtime < OLD_POINTER_S))
        return false;
    unlink(pointer);
    return true;
}

/* Killed while it started: nobody holds the ring file. Removes what there is
 * beside it. */
static bool clear_never_begun(int fd, const char *pointer, const char *ring) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char stem[PATH_MAX];
    const char *base = strrchr(ring, '/') + 1;
    struct files f;
    if (!pointer_stem(pointer, stem) || fcntl(fd, F_OFD_SETLK, &l) != 0 ||
        !never_begun(fd) ||
        (strncmp(base, "opscope-", 8) != 0 && strstr(base, ".rings") == NULL))
        return false;
    files_init(&f, stem, 0);
    files_remove(&f, 0);
    return true;
}

int rec_salvage_finish(const char *pointer, struct rec_saved *out, char *why,
                       size_t cap) {
    char path[PATH_MAX] = "";
    memset(out, 0, sizeof *out);
    int fd = open_ring(pointer, path, why, cap);
    if (fd < 0) return only_pointer(pointer, path) ? 0 : -1;
    struct stat st;
    int result = 0;
    if (fstat(fd, &st) != 0 || st.st_uid != geteuid()) /* could change it yet */
        result = fail(why, cap, "it is another user's: it can be read, and "
                      "closed by its owner");
    else if (!clear_never_begun(fd, pointer, path))
        result = finish_ring(fd, pointer, out, why, cap);
    close(fd);
    if (result != 0) return -1;
    unlink(path);
    unlink(pointer);
    return 0;
}
