/* SPDX-License-Identifier: Apache-2.0
 * Event files, written so that no reader ever sees half a record of ours:
 * records gather in the buffer and go out at an offset that only moves over
 * whole ones. When a write comes short (disk full), the file is cut back to
 * the last whole record; should even that fail, the next write starts at the
 * same offset and covers the torn one. */
#include "ring/eventfile.h"

#include "base/crc32c.h"
#include "base/pbw.h"
#include "ring/open.h"
#include "ring/sys.h"
#include "ring/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAME = 16,    /* length, its CRC, and the CRC behind the data */
    TRIES = 10000, /* names to try before giving up */
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SOURCE = 10,
    SOURCE_WRITER = 1,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
};

_Static_assert(EVENTFILE_BUFFER >= 8 * EVENTFILE_RECORD_MAX,
               "the largest record fits many times");

/* Puts the frame around data[0..n), which lies at p + 12; returns its end. */
static uint8_t *put_frame(uint8_t *p, size_t n) {
    uint64_t length = n;
    memcpy(p, &length, 8);
    uint32_t crc = crc32c_mask(crc32c(p, 8));
    memcpy(p + 8, &crc, 4);
    crc = crc32c_mask(crc32c(p + 12, n));
    memcpy(p + 12 + n, &crc, 4);
    return p + FRAME + n;
}

int eventfile_init(struct eventfile *f, int dir, const char *folder,
                   const char *host) {
    memset(f, 0, offsetof(struct eventfile, buf));
    f->fd = -1;
    f->dir = dir;
    if (host != NULL) snprintf(f->host, sizeof f->host, "%s", host);
    else if (gethostname(f->host, sizeof f->host - 1) != 0) f->host[0] = '\0';
    if (f->host[0] == '\0') memcpy(f->host, "localhost", sizeof "localhost");
    text_file_name(f->host);
    size_t n = strlen(folder);
    if (n >= sizeof f->folder) {
        f->error = ENAMETOOLONG;
        return -ENAMETOOLONG;
    }
    memcpy(f->folder, n > 0 ? folder : ".", n > 0 ? n + 1 : 2);
    return 0;
}

size_t eventfile_record(uint8_t *out, const char *tag, size_t n, int64_t step,
                        float value, double wall_time, bool *cut) {
    size_t len = text_cut(tag, n, EVENTFILE_TAG_MAX);
    uint8_t *p = out + 12;
    size_t value_size = pbw_bytes_size(VALUE_TAG, len) + 5;
    p = pbw_double(p, EVENT_WALL_TIME, wall_time);
    p = pbw_int(p, EVENT_STEP, step);
    p = pbw_len(p, EVENT_SUMMARY, pbw_bytes_size(SUMMARY_VALUE, value_size));
    p = pbw_len(p, SUMMARY_VALUE, value_size);
    p = pbw_bytes(p, VALUE_TAG, tag, len);
    *cut = text_mend(p - len, len) || len < n;
    p = pbw_float(p, VALUE_SIMPLE, value);
    return (size_t)(put_frame(out, (size_t)(p - out) - 12) - out);
}

void eventfile_scalar(struct eventfile *f, const char *tag, size_t n,
                      int64_t step, float value, double wall_time) {
    bool cut;
    if (f->n + EVENTFILE_RECORD_MAX > sizeof f->buf) {
        eventfile_flush(f);
        if (f->n + EVENTFILE_RECORD_MAX > sizeof f->buf) {
            f->lost++;
            return;
        }
    }
    f->n += eventfile_record(f->buf + f->n, tag, n, step, value, wall_time,
                             &cut);
    f->cut_tags += cut;
    f->waiting++;
}

/* Writes at the end of the file's whole records. Returns how many bytes went
 * out; *err says why not all of them. */
static size_t write_out(struct eventfile *f, const uint8_t *p, size_t n,
                        int *err) {
    size_t got = 0;
    struct rlimit most;
    /* Past this limit a write does not fail: it kills the program. */
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        f->size + n > most.rlim_cur) {
        *err = EFBIG;
        return 0;
    }
    *err = sys_write_all(f->fd, p, n, f->size, &got);
    return got;
}

/* Writes the first record of every file, all of it or nothing. Returns 0 or
 * errno. */
static int write_version(struct eventfile *f) {
    static const char version[] = "brain.Event:2", writer[] = "opscope";
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint8_t b[128], *p = b + 12;
    int err;
    p = pbw_double(p, EVENT_WALL_TIME,
                   (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    p = pbw_bytes(p, EVENT_FILE_VERSION, version, sizeof version - 1);
    p = pbw_len(p, EVENT_SOURCE,
                pbw_bytes_size(SOURCE_WRITER, sizeof writer - 1));
    p = pbw_bytes(p, SOURCE_WRITER, writer, sizeof writer - 1);
    size_t n = (size_t)(put_frame(b, (size_t)(p - b) - 12) - b);
    size_t got = write_out(f, b, n, &err);
    if (got == n) f->size = n;
    else if (got > 0 && ftruncate(f->fd, 0) != 0) err = errno;
    return err;
}

/* Makes a new file under a name that nobody has. Returns 0 or errno. */
static int create(struct eventfile *f) {
    char name[EVENTFILE_NAME_MAX];
    if (f->folder[0] == '\0') return ENAMETOOLONG;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%u",
                 (long long)time(NULL), f->host, (long)getpid(), f->files);
        f->fd = rec_create(f->dir, name, O_WRONLY, REC_FILE_MODE);
        if (f->fd >= 0) {
            f->files++;
            f->size = f->in_file = 0;
            snprintf(f->path, sizeof f->path, "%s/%s", f->folder, name);
            return 0;
        }
        if (errno == EEXIST) f->files++;
        else if (errno != EINTR) return errno;
    }
    return EEXIST;
}

static void leave_file(struct eventfile *f) {
    if (f->fd >= 0) sys_close(f->fd);
    f->fd = -1;
    f->path[0] = '\0';
    f->size = f->in_file = 0;
}

/* Finds out whether the file was removed, or cut by somebody else: what was in
 * it is then gone. */
static void check_file(struct eventfile *f) {
    struct stat st;
    if (f->fd < 0 || sys_fstat(f->fd, &st) != 0) return;
    if (st.st_nlink > 0 && (uint64_t)st.st_size >= f->size) return;
    f->lost += f->in_file;
    f->written -= f->in_file;
    leave_file(f);
}

int eventfile_begin(struct eventfile *f) {
    int err = f->fd < 0 ? create(f) : 0;
    if (err != 0) f->error = err;
    return -err;
}

int eventfile_resume(struct eventfile *f, const char *name, uint64_t size) {
    struct stat st;
    leave_file(f);
    int fd = rec_open(f->dir, name, O_WRONLY);
    if (fd < 0) return -errno;
    if (sys_fstat(fd, &st) != 0 || (uint64_t)st.st_size < size ||
        ftruncate(fd, (off_t)size) != 0) {
        sys_close(fd);
        return -EINVAL;
    }
    f->fd = fd;
    f->size = size;
    snprintf(f->path, sizeof f->path, "%s/%s", f->folder, name);
    return 0;
}

int eventfile_flush(struct eventfile *f) {
    int err = 0;
    if (f->n == 0) return 0;
    check_file(f);
    if (f->fd < 0) err = create(f);
    if (err == 0 && f->size == 0) err = write_version(f);
    if (err == 0) {
        size_t got = write_out(f, f->buf, f->n, &err);
        /* Takes the whole records among the first got bytes out of the
         * buffer. */
        size_t whole = 0, records = 0;
        while (whole < got) {
            uint64_t length;
            memcpy(&length, f->buf + whole, 8);
            if (length + FRAME > got - whole) break;
            whole += length + FRAME;
            records++;
        }
        f->size += whole;
        f->in_file += records;
        f->written += records;
        f->waiting -= records;
        f->out_records += records;
        f->out_bytes += whole;
        f->n -= whole;
        memmove(f->buf, f->buf + whole, f->n);
        if (err != 0 && ftruncate(f->fd, (off_t)f->size) != 0) err = errno;
    }
    if (err != 0) f->error = err;
    return -err;
}

void eventfile_mark(const struct eventfile *f, struct eventfile_mark *m) {
    *m = (struct eventfile_mark){
        .out_records = f->out_records,
        .out_bytes = f->out_bytes,
        .lost = f->lost,
        .cut_tags = f->cut_tags,
        .waiting = f->waiting,
        .files = f->files,
        .n = f->n,
    };
}

void eventfile_give_up(struct eventfile *f) {
    f->lost += f->waiting;
    f->n = f->waiting = 0;
}

/* Records go out in the order in which they came: those that waited at the mark
 * are the first in the buffer and the first in the file. A full disk may have
 * taken only some of them. */
void eventfile_rollback(struct eventfile *f, const struct eventfile_mark *m) {
    uint64_t bytes = f->out_bytes - m->out_bytes;
    uint64_t records = f->out_records - m->out_records;
    f->lost = m->lost;
    f->cut_tags = m->cut_tags;
    if (bytes <= m->n) {
        f->n = m->n - (size_t)bytes;
        f->waiting = m->waiting - records;
        return;
    }
    f->n = f->waiting = 0;
    f->out_bytes = m->out_bytes + m->n;
    f->out_records = m->out_records + m->waiting;
    if (f->files != m->files || f->fd < 0) return;
    f->size -= bytes - m->n;
    f->in_file -= records - m->waiting;
    f->written -= records - m->waiting;
    if (ftruncate(f->fd, (off_t)f->size) != 0) f->error = errno;
}

int eventfile_close(struct eventfile *f) {
    int rc = eventfile_flush(f);
    eventfile_give_up(f);
    leave_file(f);
    return rc;
}
