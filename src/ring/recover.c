/* SPDX-License-Identifier: Apache-2.0
 * Reading, and closing, what a killed program left. */
#include "ring/recover.h"

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

#include "base/facts.h"
#include "ring/drain.h"
#include "ring/eventfile.h"
#include "ring/open.h"
#include "ring/ring_map.h"
#include "ring/sys.h"
#include "ring/text.h"

enum {
    TRIES = 8,
    ZEROS = 64,
    OLD_PARTS = 16, /* before the last one, that are looked for */
    OLD_POINTER_S = 60,
};

/* --- the pointer, and the ring file that it names ------------------------ */

/* A pointer in its folder. Files are looked up there and nowhere else: what the
 * ring file says of itself may be anything. */
struct pointer {
    int dir;
    char stem[NAME_MAX + 1]; /* the pointer's name without ".ring" */
    const char *name;        /* all of it */
    uid_t owner;
    char ring[PATH_MAX]; /* what it names; "" until it was read */
    char *why;           /* where what is wrong is told */
    size_t cap;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct pointer *a,
                                                      const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(a->why, a->cap, format, ap);
    va_end(ap);
    return -1;
}

static int no_memory(const struct pointer *a) {
    fail(a, "no memory");
    return RECOVER_NO_MEMORY;
}

/* Takes the stem off "<stem>.ring". */
static int pointer_init(struct pointer *a, int dir, const char *name, char *why,
                        size_t cap) {
    size_t n = strlen(name);
    *a = (struct pointer){.dir = dir, .name = name, .why = why, .cap = cap};
    if (n > NAME_MAX || !text_ends(name, ".ring"))
        return fail(a, "its name does not end in .ring");
    memcpy(a->stem, name, n - 5);
    return 0;
}

/* Does the same for a path: its folder is opened, and a->dir is the caller's to
 * close unless it is -1. */
static int pointer_open(struct pointer *a, const char *path, char *why,
                        size_t cap) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    *a = (struct pointer){.dir = -1, .why = why, .cap = cap};
    if (n >= sizeof folder) return fail(a, "%s", strerror(ENAMETOOLONG));
    memcpy(folder, path, n);
    folder[n] = 0;
    const char *open = slash == NULL ? "." : n == 0 ? "/" : folder;
    int dir = sys_open(open, O_PATH | O_DIRECTORY);
    if (dir < 0) return fail(a, "%s", strerror(errno));
    return pointer_init(a, dir, slash == NULL ? path : slash + 1, why, cap);
}

static void pointer_close(struct pointer *a) {
    if (a->dir >= 0) sys_close(a->dir);
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

/* Reads the path that the pointer holds: one line. */
static bool read_pointer(int fd, struct pointer *a) {
    size_t n = sys_read_all(fd, a->ring, sizeof a->ring - 1, 0);
    a->ring[n] = 0;
    char *end = strchr(a->ring, '\n');
    if (end != NULL) *end = 0;
    if (end != NULL && a->ring[0] == '/' && ring_named(a->ring, a->stem))
        return true;
    a->ring[0] = 0;
    return false;
}

/* Opens the ring file that the pointer names. Both must belong to one user:
 * else a log folder could make us read any file. */
static int open_ring(struct pointer *a, int flags) {
    struct stat st;
    int at = rec_open(a->dir, a->name, O_RDONLY);
    if (at < 0) return fail(a, "%s", strerror(errno));
    bool ok = sys_fstat(at, &st) == 0 && read_pointer(at, a);
    a->owner = st.st_uid;
    sys_close(at);
    if (!ok) return fail(a, "not a pointer to a ring file");
    int fd = rec_open(AT_FDCWD, a->ring, flags);
    if (fd < 0 && errno == ENOENT)
        return fail(a,
                    "its ring file %s is gone (a restart of the "
                    "machine?): what was not yet written is lost",
                    a->ring);
    if (fd < 0 && errno == EINVAL) return fail(a, "%s is not a file", a->ring);
    if (fd < 0) return fail(a, "%s: %s", a->ring, strerror(errno));
    if (sys_fstat(fd, &st) == 0 && st.st_uid == a->owner) return fd;
    sys_close(fd);
    return fail(a, "%s is not a file of the same user", a->ring);
}

/* Is the writer alive? It holds a lock on its ring file for as long as it
 * is. */
static bool is_alive(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static bool look(struct pointer *a, struct recover_look *out) {
    struct rec_head h;
    struct stat st;
    int fd = open_ring(a, O_RDONLY);
    if (fd < 0) return false;
    out->mine = a->owner == geteuid();
    out->alive = is_alive(fd);
    out->bytes = sys_fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    size_t n = offsetof(struct rec_head, file_bytes);
    if (sys_read_all(fd, &h, n, 0) == n &&
        memcmp(h.magic, REC_MAGIC, sizeof h.magic) == 0 &&
        h.version == REC_VERSION && h.pid <= INT32_MAX) {
        out->pid = (int32_t)h.pid;
        out->launch = h.launch;
    }
    sys_close(fd);
    return true;
}

bool recover_look(int dir, const char *name, struct recover_look *out) {
    struct pointer a;
    char why[64];
    *out = (struct recover_look){0};
    return pointer_init(&a, dir, name, why, sizeof why) == 0 && look(&a, out);
}

bool recover_look_path(const char *pointer, struct recover_look *out) {
    struct pointer a;
    char why[64];
    *out = (struct recover_look){0};
    bool there = pointer_open(&a, pointer, why, sizeof why) == 0 &&
                 look(&a, out);
    pointer_close(&a);
    return there;
}

/* Was the program killed, or is it looked at, while it started? Then the file
 * has no magic. */
static bool never_begun(int fd) {
    static const char none[sizeof REC_MAGIC - 1];
    char magic[sizeof none];
    size_t n = sys_read_all(fd, magic, sizeof magic, 0);
    return n == 0 || (n == sizeof magic && memcmp(magic, none, n) == 0);
}

/* --- what only the rings have, in memory --------------------------------- */

struct buffer {
    uint8_t *p;
    size_t n, cap;
};

/* What is not in the files: the body of each plane, or the end of it. */
struct unwritten {
    struct drain d;
    struct buffer file[REC_FILES];
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

/* Begins a plane that has no file with the head of one. */
static int unwritten_open(void *self, unsigned file) {
    struct unwritten *u = self;
    uint8_t head[FILES_HEAD] = {0};
    return append(&u->file[file], head, sizeof head);
}

static int unwritten_write(void *self, unsigned file, const void *p, size_t n) {
    struct unwritten *u = self;
    return append(&u->file[file], p, n);
}

static void unwritten_free(struct unwritten *u) {
    if (u == NULL) return;
    drain_free(&u->d);
    for (unsigned i = 0; i < REC_FILES; i++) free(u->file[i].p);
    free(u);
}

/* Puts what is known of a recording that its program did not close. */
static void unclosed_facts(struct encoder *e, const struct rec_head *h) {
    encoder_fact_int(e, 0, FACT_UNCLOSED, 1);
    encoder_losses(e, h);
}

/* Returns what is not in the files; NULL if there is no memory. */
static struct unwritten *unwritten_read(struct ring_map *map) {
    struct unwritten *u = calloc(1, sizeof *u);
    if (u == NULL) return NULL;
    struct encoder_out out = {.self = u,
                              .open = unwritten_open,
                              .write = unwritten_write};
    uint32_t begun = 0;
    u->commit = &map->head->commit[map->head->active];
    for (unsigned i = 0; i < REC_FILES; i++)
        if (u->commit->bytes[i] > 0) begun |= 1u << i;
    bool ok = drain_open_memory(&u->d, map, out, begun) == 0;
    if (ok) {
        encoder_begin(&u->d.enc, 0);
        drain_rings(&u->d, true, 0);
        unclosed_facts(&u->d.enc, map->head);
        for (unsigned i = 0; i < REC_FILES; i++)
            if (u->file[i].n > 0) drain_names(&u->d, i);
        ok = !u->d.enc.failed;
    }
    if (ok) return u;
    unwritten_free(u);
    return NULL;
}

/* --- files and rings as one ---------------------------------------------- */

/* Puts `bytes` of a file at the end of what is joined in b: the host's, which
 * comes first and may be large, is mapped; others are read. */
static bool join_file(struct buffer *b, int fd, size_t bytes) {
    struct stat st;
    if (sys_fstat(fd, &st) != 0 || (uint64_t)st.st_size < bytes) return false;
    if (b->n > 0) {
        if (sys_read_all(fd, b->p + b->n, bytes, 0) != bytes) return false;
        b->n += bytes;
        return true;
    }
    void *p = mmap(b->p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                   fd, 0);
    if (p == MAP_FAILED) return false;
    b->n = bytes;
    /* these bytes of the file follow, up to the end of the page */
    size_t tail = rec_paged(bytes) - bytes; /* there is room for it */
    memset(b->p + bytes, 0, tail);
    return true;
}

/* Joins plane i: what its file holds by the commit, and what it does not
 * hold. */
static bool join_plane(struct buffer *b, const struct pointer *a,
                       const struct unwritten *u, unsigned i,
                       char name[NAME_MAX + 1]) {
    const struct buffer *more = &u->file[i];
    size_t at = b->n, bytes = (size_t)u->commit->bytes[i];
    if (bytes > 0) {
        if (!rec_part_name(name, NAME_MAX + 1, a->stem, u->commit->part, i,
                           false))
            return false;
        int fd = rec_open(a->dir, name, O_RDONLY);
        bool ok = fd >= 0 && join_file(b, fd, bytes);
        if (fd >= 0) sys_close(fd);
        if (!ok) return false;
    }
    if (more->n > 0) memcpy(b->p + b->n, more->p, more->n);
    b->n += more->n;
    if (b->n - at >= FILES_HEAD) files_head(b->p + at, b->n - at);
    return true;
}

static int join(const struct unwritten *u, const struct pointer *a,
                struct recovered *out) {
    struct buffer b = {NULL, 0, ZEROS + 2 * REC_PAGE};
    const struct rec_commit *c = u->commit;
    char name[NAME_MAX + 1] = "";
    for (unsigned i = 0; i < REC_FILES; i++) {
        /* a part is at most FILES_LIMIT and what one pass adds */
        if (c->bytes[i] > (uint64_t)FILES_LIMIT * 8)
            return fail(a, "damaged: a length is out of range");
        b.cap += (size_t)c->bytes[i] + u->file[i].n;
    }
    b.p = mmap(NULL, b.cap, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b.p == MAP_FAILED) return no_memory(a);
    for (unsigned i = 0; i < REC_FILES; i++) {
        if (c->bytes[i] == 0 && u->file[i].n == 0) continue;
        if (!join_plane(&b, a, u, i, name)) {
            munmap(b.p, b.cap);
            return fail(a, "%s is missing or shorter than it was", name);
        }
        if (i == 0 && c->bytes[0] > 0) memcpy(out->file, name, sizeof name);
    }
    out->p = b.p;
    out->n = b.n;
    out->mapped = b.cap;
    return 0;
}

/* Tries once to read. Returns 1 if the program went on meanwhile. */
static int read_map(int fd, const struct pointer *a, struct ring_map *map,
                    struct recovered *out) {
    const char *reason;
    if (never_begun(fd)) {
        out->state = RECOVER_CLOSED;
        return 0;
    }
    if (ring_map_copy(map, fd, &reason) != 0)
        return fail(a, "its ring file is %s", reason);
    struct rec_head *h = map->head;
    unsigned active = h->active;
    struct rec_commit commit = h->commit[active];
    out->pid = h->pid;
    out->damaged = map->damaged;
    if (h->done) {
        out->state = RECOVER_CLOSED;
        return 0;
    }
    struct unwritten *u = unwritten_read(map);
    int result = u == NULL ? no_memory(a) : join(u, a, out);
    if (u != NULL) out->ring_events = u->d.enc.events - commit.events;
    unwritten_free(u);
    if (result != 0 || out->state != RECOVER_ALIVE) return result;
    struct rec_head now;
    size_t n = offsetof(struct rec_head, devices);
    if (sys_read_all(fd, &now, n, 0) == n && now.active == active &&
        memcmp(&now.commit[active], &commit, sizeof commit) == 0)
        return 0;
    recover_free(out);
    return 1;
}

static int read_ring(struct pointer *a, struct recovered *out) {
    int fd = open_ring(a, O_RDONLY);
    if (fd < 0) return -1;
    struct ring_map *map = calloc(1, sizeof *map);
    int result = map == NULL ? no_memory(a) : 1;
    for (int i = 0; i < TRIES && result == 1; i++) {
        out->state = is_alive(fd) ? RECOVER_ALIVE : RECOVER_DEAD;
        result = read_map(fd, a, map, out);
        ring_map_free(map);
    }
    free(map);
    sys_close(fd);
    return result == 1 ? fail(a, "it is written too quickly to be read now")
                       : result;
}

int recover_read(const char *pointer, struct recovered *out, char *why,
                 size_t cap) {
    struct pointer a;
    memset(out, 0, sizeof *out);
    int result = pointer_open(&a, pointer, why, cap);
    if (result == 0) result = read_ring(&a, out);
    pointer_close(&a);
    return result;
}

void recover_free(struct recovered *r) {
    if (r->p != NULL) munmap(r->p, r->mapped);
    r->p = NULL;
    r->n = 0;
}

/* --- the scalars that only the rings have -------------------------------- */

struct points {
    struct buffer records;
    uint64_t n;
    bool no_memory;
};

static void add_point(void *self, const char *tag, size_t n, int64_t step,
                      double value, double unix_s) {
    struct points *p = self;
    uint8_t record[EVENTFILE_RECORD_MAX];
    bool cut;
    size_t bytes = eventfile_record(record, tag, n, step, (float)value, unix_s,
                                    &cut);
    if (append(&p->records, record, bytes) != 0) p->no_memory = true;
    p->n++;
}

static int drop_bytes(void *self, unsigned file, const void *p, size_t n) {
    (void)self, (void)file, (void)p, (void)n;
    return 0;
}

static int read_points(struct ring_map *map, struct recovered_scalars *out) {
    const struct rec_head *h = map->head;
    const char *base = strrchr(h->events, '/');
    struct points p = {0};
    struct encoder_out to = {.self = &p,
                             .write = drop_bytes,
                             .scalar = add_point};
    if (h->done) return -1;
    snprintf(out->file, sizeof out->file, "%.*s", (int)sizeof out->file - 1,
             base == NULL ? "" : base + 1);
    out->bytes = h->commit[h->active].scalar_bytes;
    out->lost = h->drops_scalars;
    struct drain *d = calloc(1, sizeof *d);
    bool ok = d != NULL && drain_open_memory(d, map, to, UINT32_MAX) == 0;
    if (ok) {
        drain_rings(d, false, 0);
        drain_free(d);
    }
    free(d);
    out->p = p.records.p;
    out->n = p.records.n;
    out->points = p.n;
    return ok && !p.no_memory ? 0 : RECOVER_NO_MEMORY;
}

int recover_scalars(const char *pointer, struct recovered_scalars *out) {
    struct pointer a;
    const char *reason;
    char why[64];
    int result = -1;
    *out = (struct recovered_scalars){0};
    struct ring_map *map = calloc(1, sizeof *map);
    if (map != NULL && pointer_open(&a, pointer, why, sizeof why) == 0) {
        int fd = open_ring(&a, O_RDONLY);
        if (fd >= 0 && !is_alive(fd) && ring_map_copy(map, fd, &reason) == 0)
            result = read_points(map, out);
        ring_map_free(map);
        if (fd >= 0) sys_close(fd);
    }
    if (map != NULL) pointer_close(&a);
    free(map);
    if (result != 0) recover_scalars_free(out);
    return result;
}

void recover_scalars_free(struct recovered_scalars *s) {
    free(s->p);
    *s = (struct recovered_scalars){0};
}

/* --- closing ------------------------------------------------------------- */

struct closing {
    struct pointer *at;
    struct drain d;
    struct ring_map map;
    struct eventfile events;
    int logdir;            /* -1: not opened yet, or not to be found */
    char folder[PATH_MAX]; /* its path */
    bool scalars;
};

/* Is the folder of the pointer the one that the head names? */
static bool same_folder(const struct pointer *a, const char *folder) {
    struct stat x, y;
    return sys_fstat(a->dir, &x) == 0 && stat(folder, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Copies the folder that the stem in the head lies in. */
static bool head_folder(const struct rec_head *h, char out[PATH_MAX]) {
    snprintf(out, PATH_MAX, "%s", h->stem);
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = 0;
    return true;
}

/* Is the pointer in a copy of the log folder? Then the ring is not the copy's.
 * A folder that was moved is no copy: nothing stands where it was. */
static bool is_copy(const struct pointer *a, const struct rec_head *h) {
    char folder[PATH_MAX];
    struct stat st;
    const char *base = strrchr(h->stem, '/');
    if (base == NULL || strcmp(base + 1, a->stem) != 0 ||
        !head_folder(h, folder))
        return true;
    return !same_folder(a, folder) && stat(folder, &st) == 0;
}

/* Returns the event file that the head names, by its name in the log folder: it
 * is going to be cut. NULL if the head names none. */
static const char *events_name(const struct closing *f) {
    static const char begin[] = "events.out.tfevents.";
    const char *base = strrchr(f->map.head->events, '/');
    if (base == NULL || f->logdir < 0) return NULL;
    return strncmp(base + 1, begin, sizeof begin - 1) == 0 ? base + 1 : NULL;
}

static uint64_t events_bytes(const struct closing *f) {
    const struct rec_head *h = f->map.head;
    return h->commit[h->active].scalar_bytes;
}

/* Cuts the event file back to what the last commit says, so that no scalar
 * stands there twice. */
static void cut_events(const struct closing *f) {
    const char *name = events_name(f);
    uint64_t bytes = events_bytes(f);
    struct stat st;
    int fd = name == NULL ? -1 : rec_open(f->logdir, name, O_WRONLY);
    if (fd < 0) return;
    if (sys_fstat(fd, &st) == 0 && (uint64_t)st.st_size > bytes &&
        ftruncate(fd, (off_t)bytes) != 0)
        errno = 0; /* then a point stands there twice */
    sys_close(fd);
}

/* Goes on in the program's event file where it had one, else in one whose name
 * is noted first: if this recovery is killed too, the next one cuts it back. */
static void resume_events(struct closing *f) {
    struct rec_head *h = f->map.head;
    const char *name = events_name(f);
    if (name != NULL &&
        eventfile_resume(&f->events, name, events_bytes(f)) == 0)
        return;
    if (eventfile_begin(&f->events) == 0 &&
        strlen(f->events.path) < sizeof h->events) {
        memcpy(h->events, f->events.path, strlen(f->events.path) + 1);
        drain_keep_events(&f->d);
    }
}

static void flush_events(struct drain *d, struct rec_commit *c, void *ctx) {
    struct closing *f = ctx;
    (void)d;
    if (!f->scalars) return;
    eventfile_flush(&f->events);
    c->scalar_bytes = f->events.size;
}

static void take_scalar(void *ctx, const char *tag, size_t n, int64_t step,
                        double value, double unix_s) {
    struct closing *f = ctx;
    if (!f->scalars) {
        if (f->logdir < 0 || eventfile_init(&f->events, f->logdir, f->folder,
                                            f->map.head->host) != 0)
            return;
        f->scalars = true;
        resume_events(f);
    }
    eventfile_scalar(&f->events, tag, n, step, (float)value, unix_s);
}

static bool exists(int dir, const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Closes a part that was joined. If the program was killed before its rename,
 * the part is renamed; if after, the devices' files, which are in it, may still
 * be there. */
static bool close_part(const struct pointer *a, uint64_t part) {
    struct files f;
    char name[NAME_MAX + 1];
    files_init(&f, a->dir, a->stem, part);
    if (!rec_part_name(name, sizeof name, a->stem, part, 0, false))
        return false;
    if (exists(a->dir, name)) return files_finish(&f, name) == 0;
    for (unsigned i = 1; i < REC_FILES; i++) files_remove(&f, i);
    return true;
}

/* Closes the parts before the last one: they are joined when the last one
 * begins, then renamed. A part behind it was made and never used. */
static void close_other_parts(const struct pointer *a, uint64_t last) {
    struct files f;
    files_init(&f, a->dir, a->stem, last + 1);
    for (unsigned i = 0; i < REC_FILES; i++) files_remove(&f, i);
    for (uint64_t i = last > OLD_PARTS ? last - OLD_PARTS : 0; i < last; i++)
        close_part(a, i);
}

/* Writes what only the rings have. */
static int close_rings(struct closing *f) {
    cut_events(f);
    drain_rings(&f->d, true, 0);
    if (f->scalars) {
        eventfile_flush(&f->events);
        eventfile_give_up(&f->events);
        f->map.head->drops_scalars += f->events.lost;
    }
    unclosed_facts(&f->d.enc, f->map.head);
    if (drain_commit(&f->d) != 0) return -1;
    if (f->scalars) eventfile_close(&f->events);
    return 0;
}

static int close_files(struct closing *f, int ring,
                       struct recover_closed *out) {
    struct rec_head *h = f->map.head;
    struct ring_map *map = &f->map;
    uint64_t before = h->commit[h->active].events;
    uint64_t part = h->commit[h->active].part;
    char name[NAME_MAX + 1];
    f->d.scalar = take_scalar;
    f->d.at_commit = flush_events;
    f->d.ctx = f;
    close_other_parts(f->at, part);
    /* the program was killed between the rename and the removal of the pointer:
     * nothing is left to do */
    if (h->done &&
        rec_part_name(name, sizeof name, f->at->stem, part, 0, false) &&
        !exists(f->at->dir, name) && close_part(f->at, part))
        return 0;
    if (drain_open(&f->d, map, f->at->dir, f->at->stem, ring) != 0)
        return fail(f->at, "its files: %s", strerror(f->d.files.error));
    if (!h->done && close_rings(f) != 0)
        return fail(f->at, "%s", strerror(f->d.files.error));
    out->events = h->commit[h->active].events;
    out->ring_events = out->events - before;
    out->dropped = h->lost.no_ring + h->drops_write;
    for (uint32_t i = 0; i < map->nrings; i++)
        for (int k = 0; map->ring[i] != NULL && k < REC_LOST_UNMATCHED; k++)
            out->dropped += map->ring[i]->lost[k];
    if (drain_finish(&f->d, name) != 0)
        return fail(f->at, "%s", strerror(f->d.files.error));
    return 0;
}

static int close_ring(int fd, struct pointer *a, struct recover_closed *out) {
    const char *reason;
    if (!sys_lock(fd)) return fail(a, "the program is still running");
    struct closing *f = calloc(1, sizeof *f);
    if (f == NULL) return fail(a, "no memory");
    f->at = a;
    files_init(&f->d.files, a->dir, a->stem, 0); /* nothing is open */
    int result = -1;
    if (ring_map_copy(&f->map, fd, &reason) != 0) {
        fail(a, "its ring file is %s", reason);
    } else if (is_copy(a, f->map.head)) {
        fail(a, "its ring file belongs to another profile");
    } else {
        out->pid = f->map.head->pid;
        /* The log folder is <logdir> of <logdir>/plugins/profile/<run>/<stem>.
         * It is opened by the names in the head while they hold, since each may
         * be a link to somewhere else. */
        bool known = head_folder(f->map.head, f->folder) &&
                     same_folder(f->at, f->folder);
        for (int i = 0; known && i < 3; i++) {
            char *slash = strrchr(f->folder, '/');
            if (slash == NULL) known = false;
            else *slash = 0;
        }
        if (known && f->folder[0] != 0) {
            f->logdir = sys_open(f->folder, O_PATH | O_DIRECTORY);
        } else {
            f->logdir = sys_openat(f->at->dir, "../../..", O_PATH | O_DIRECTORY,
                                   0);
            snprintf(f->folder, sizeof f->folder, "/");
        }
        result = close_files(f, fd, out);
        drain_free(&f->d);
        if (f->logdir >= 0) sys_close(f->logdir);
    }
    ring_map_free(&f->map);
    free(f);
    return result;
}

struct part_search {
    const char *stem;
    bool found;
};

static bool find_part(void *ctx, const char *name) {
    struct part_search *f = ctx;
    f->found = strncmp(name, f->stem, strlen(f->stem)) == 0 &&
               text_ends(name, ".part");
    return !f->found;
}

/* Is there a pointer and nothing else? The program was killed when the profile
 * was closed and the ring file gone, or before there was one. In that case the
 * pointer must be old: its program may be about to make the ring file. If the
 * folder cannot be listed, the answer is no: files may still be written
 * there. */
static bool only_pointer(const struct pointer *a) {
    char name[NAME_MAX + 1];
    struct stat st;
    struct part_search parts = {a->stem, false};
    if (!sys_list(a->dir, find_part, &parts) || parts.found ||
        (a->ring[0] != 0 && exists(AT_FDCWD, a->ring)))
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

static int close_pointer(struct pointer *a, struct recover_closed *out) {
    struct stat st;
    if (fstatat(a->dir, a->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(a, "%s", strerror(errno));
    if (st.st_uid != geteuid()) /* could change it yet */
        return fail(a, "it is another user's: it can be read, and closed by "
                       "its owner");
    int fd = open_ring(a, O_RDWR);
    if (fd < 0) return only_pointer(a) ? 0 : -1;
    int result = 0;
    if (sys_lock(fd) && never_begun(fd)) {
        /* it was killed while it started: the files beside the ring go too */
        struct files f;
        files_init(&f, a->dir, a->stem, 0);
        files_remove(&f, 0);
    } else {
        result = close_ring(fd, a, out);
    }
    if (result == 0) {
        unlink(a->ring);
        unlinkat(a->dir, a->name, 0);
    }
    sys_close(fd);
    return result;
}

int recover_close_at(int dir, const char *name, struct recover_closed *out,
                     char *why, size_t cap) {
    struct pointer a;
    memset(out, 0, sizeof *out);
    if (pointer_init(&a, dir, name, why, cap) != 0) return -1;
    return close_pointer(&a, out);
}

int recover_close(const char *pointer, struct recover_closed *out, char *why,
                  size_t cap) {
    struct pointer a;
    memset(out, 0, sizeof *out);
    int result = pointer_open(&a, pointer, why, cap);
    if (result == 0) result = close_pointer(&a, out);
    pointer_close(&a);
    return result;
}
