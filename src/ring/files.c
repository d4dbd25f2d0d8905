/* SPDX-License-Identifier: Apache-2.0
 * Plane files: append, commit, join, rename. */
#include "ring/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xspace.h"
#include "ring/open.h"
#include "ring/ring_map.h"
#include "ring/sys.h"

void files_init(struct files *f, int dir, const char *stem, uint64_t part) {
    memset(f, 0, sizeof *f);
    f->dir = dir;
    f->stem = stem;
    f->part = part;
    for (unsigned i = 0; i < REC_FILES; i++) f->f[i].fd = -1;
}

/* Makes the name of a plane's file in the folder, while it is written. */
static bool part_name(const struct files *f, unsigned file,
                      char name[NAME_MAX + 1]) {
    return rec_part_name(name, NAME_MAX + 1, f->stem, f->part, file, false);
}

static int failed(struct files *f, int error) {
    f->error = error != 0 ? error : EIO;
    return -1;
}

void files_head(uint8_t *head, uint64_t bytes) {
    head[0] = XSPACE_PLANES << 3 | PBW_BYTES;
    pbw_padded(head + 1, bytes - FILES_HEAD, FILES_HEAD - 1);
}

static int patch(int fd, uint64_t bytes) {
    uint8_t head[FILES_HEAD];
    files_head(head, bytes);
    return sys_write_all(fd, head, sizeof head, 0, NULL);
}

int files_create(struct files *f, unsigned file) {
    char name[NAME_MAX + 1];
    if (!part_name(f, file, name)) return failed(f, ENAMETOOLONG);
    int fd = rec_create(f->dir, name, O_RDWR, REC_FILE_MODE);
    if (fd < 0) return failed(f, errno);
    int error = patch(fd, FILES_HEAD);
    if (error != 0) {
        sys_close(fd);
        unlinkat(f->dir, name, 0);
        return failed(f, error);
    }
    f->f[file].fd = fd;
    f->f[file].end = f->committed[file] = FILES_HEAD;
    return 0;
}

void files_remove(struct files *f, unsigned file) {
    char name[NAME_MAX + 1];
    if (f->f[file].fd >= 0) sys_close(f->f[file].fd);
    f->f[file].fd = -1;
    f->f[file].end = 0;
    if (part_name(f, file, name)) unlinkat(f->dir, name, 0);
}

int files_resume(struct files *f, unsigned file, uint64_t bytes) {
    char name[NAME_MAX + 1];
    struct stat st;
    if (!part_name(f, file, name)) return failed(f, ENAMETOOLONG);
    int fd = rec_open(f->dir, name, O_RDWR);
    if (fd < 0) return failed(f, errno);
    if (bytes < FILES_HEAD || sys_fstat(fd, &st) != 0 ||
        (uint64_t)st.st_size < bytes) {
        sys_close(fd);
        return failed(f, EINVAL);
    }
    /* the process was killed between the commit and the length that tells of
     * it */
    int error = patch(fd, bytes);
    if (error != 0) {
        sys_close(fd);
        return failed(f, error);
    }
    f->f[file].fd = fd;
    f->f[file].end = f->committed[file] = bytes;
    return 0;
}

bool files_gone(const struct files *f) {
    struct stat st;
    return f->f[0].fd >= 0 && sys_fstat(f->f[0].fd, &st) == 0 &&
           st.st_nlink == 0;
}

int files_write(struct files *f, unsigned file, const void *p, size_t n) {
    if (f->f[file].fd < 0) return failed(f, EBADF);
    int error = sys_write_all(f->f[file].fd, p, n, f->f[file].end, NULL);
    if (error != 0) return failed(f, error);
    f->f[file].end += n;
    return 0;
}

/* Gives the space back as well: on a full disk other programs need it. */
void files_rollback(struct files *f) {
    for (unsigned i = 0; i < REC_FILES; i++) {
        if (f->f[i].fd < 0) continue;
        if (i > 0 && f->committed[i] == FILES_HEAD) {
            files_remove(f, i);
            continue;
        }
        f->f[i].end = f->committed[i];
        if (ftruncate(f->f[i].fd, (off_t)f->committed[i]) != 0)
            f->error = errno;
    }
}

void files_commit(struct files *f) {
    for (unsigned i = 0; i < REC_FILES; i++) {
        if (f->f[i].fd < 0 || f->f[i].end == f->committed[i]) continue;
        f->committed[i] = f->f[i].end;
        int error = patch(f->f[i].fd, f->committed[i]);
        if (error != 0) f->error = error;
    }
}

/* Appends the first `bytes` of a file to what `to` has up to *at. */
static int append_file(struct files *f, int from, uint64_t bytes, uint64_t *at,
                       int to) {
    char buf[64 << 10];
    for (uint64_t done = 0; done < bytes;) {
        uint64_t want = bytes - done < sizeof buf ? bytes - done : sizeof buf;
        size_t n = sys_read_all(from, buf, want, done);
        int error = n == 0 ? EIO : sys_write_all(to, buf, n, *at, NULL);
        if (error != 0) return failed(f, error);
        *at += n;
        done += n;
    }
    return 0;
}

/* Gives the file `from` the name `to` unless that exists, in one step. File
 * systems that cannot promise that (some network and FUSE ones) get a rename
 * after a look. */
static int take_name(int dir, const char *from, const char *to) {
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    if (faccessat(dir, to, F_OK, 0) == 0) return EEXIST;
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

static int name_it(struct files *f, const char *part, char name[NAME_MAX + 1]) {
    char stem[NAME_MAX + 16];
    int error = EEXIST;
    for (int i = 1; i < 1000 && error == EEXIST; i++) {
        if (i == 1) snprintf(stem, sizeof stem, "%s", f->stem);
        else snprintf(stem, sizeof stem, "%.*s-%d", NAME_MAX, f->stem, i);
        if (!rec_part_name(name, NAME_MAX + 1, stem, f->part, 0, true))
            return failed(f, ENAMETOOLONG);
        error = take_name(f->dir, part, name);
    }
    return error == 0 ? 0 : failed(f, error);
}

int files_join(struct files *f, const void *tail, size_t n) {
    int fd = f->f[0].fd;
    uint64_t at = f->committed[0];
    if (fd < 0) return failed(f, EBADF);
    if (ftruncate(fd, (off_t)at) != 0) return failed(f, errno);
    for (unsigned i = 1; i < REC_FILES; i++)
        if (f->f[i].fd >= 0 &&
            append_file(f, f->f[i].fd, f->committed[i], &at, fd) != 0)
            return -1;
    int error = sys_write_all(fd, tail, n, at, NULL);
    return error == 0 ? 0 : failed(f, error);
}

int files_finish(struct files *f, char name[NAME_MAX + 1]) {
    char part[NAME_MAX + 1];
    if (!part_name(f, 0, part)) return failed(f, ENAMETOOLONG);
    if (name_it(f, part, name) != 0) return -1;
    for (unsigned i = 1; i < REC_FILES; i++)
        if (part_name(f, i, part)) unlinkat(f->dir, part, 0);
    files_close(f);
    return 0;
}

void files_discard(struct files *f) {
    for (unsigned i = 0; i < REC_FILES; i++)
        if (f->f[i].fd >= 0) files_remove(f, i);
}

void files_close(struct files *f) {
    for (unsigned i = 0; i < REC_FILES; i++) {
        if (f->f[i].fd >= 0) sys_close(f->f[i].fd);
        f->f[i].fd = -1;
    }
}
