/* SPDX-License-Identifier: Apache-2.0
 * Folders and names. */
#include "rec/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "rec/clock.h"
#include "rec/session.h"

enum { MEMORY_LEAST = 256 << 10 }; /* a few of the smallest rings */

static int fail(const char *what, int error) {
    session_problem(what, error);
    return -1;
}

/* mkdir -p. */
static int make_folders(char *path) {
    for (char *p = path + 1; *p != 0; p++) {
        if (*p != '/') continue;
        *p = 0;
        int bad = mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
        *p = '/';
        if (bad != 0 && bad != EROFS && bad != EACCES) return bad;
    }
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return 0;
    return errno;
}

static int make_absolute(char path[PATH_MAX]) {
    char real[PATH_MAX];
    if (realpath(path, real) == NULL) return errno;
    memcpy(path, real, sizeof real);
    return 0;
}

/* <logdir>/plugins/profile/<run>, as TensorBoard wants it. */
static int run_folder(struct session *s, char out[PATH_MAX]) {
    char run[64];
    struct settings *set = &s->set;
    int error = make_folders(set->logdir);
    if (error == 0) error = make_absolute(set->logdir);
    if (error != 0) return fail(set->logdir, error);
    if (set->o.run == NULL) {
        time_t now = time(NULL);
        struct tm tm;
        localtime_r(&now, &tm);
        strftime(run, sizeof run, "%Y_%m_%d_%H_%M_%S", &tm);
        snprintf(set->run, sizeof set->run, "%s", run);
        set->o.run = set->run; /* children of a fork go there too */
    }
    if (strchr(set->run, '/') != NULL || set->run[0] == '.')
        return fail("the run's name is not the name of a folder", 0);
    int n = snprintf(out, PATH_MAX, "%s/plugins/profile/%s", set->logdir,
                     set->run);
    if (n < 0 || n >= (int)sizeof s->view.head->stem - 300)
        return fail(set->logdir, ENAMETOOLONG);
    error = make_folders(out);
    return error == 0 ? 0 : fail(out, error);
}

/* Is the stem free? The part file is what takes it, later, with O_EXCL; here
 * only those are skipped that are in use. */
static bool stem_free(const char *stem) {
    char path[PATH_MAX];
    struct stat st;
    for (int i = 0; i < 2; i++)
        if (!rec_part_path(path, sizeof path, stem, 0, 0, i != 0) ||
            lstat(path, &st) == 0)
            return false;
    snprintf(path, sizeof path, "%.4000s.ring", stem);
    return lstat(path, &st) != 0;
}

/* Takes the pointer's name: whoever has it has the stem. */
static int take_stem(struct session *s, const char *folder, char *stem) {
    long long who = s->set.child || s->id.rank < 0 ? (long long)s->pid
                                                   : s->id.rank;
    for (int i = 1; i < 10000; i++) {
        char again[16] = "";
        if (i > 1) snprintf(again, sizeof again, "-%d", i);
        snprintf(stem, PATH_MAX, "%.3000s/%.200s_%lld%s", folder, s->id.host,
                 who, again);
        if (!stem_free(stem)) continue;
        snprintf(s->pointer_path, sizeof s->pointer_path, "%.4000s.ring", stem);
        int fd = open(s->pointer_path,
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                      0666);
        if (fd >= 0) {
            close(fd);
            return 0;
        }
        if (errno == EEXIST) continue;
        int error = errno;
        s->pointer_path[0] = 0;
        return fail(folder, error);
    }
    s->pointer_path[0] = 0;
    return fail("no name is free for the profile", EEXIST);
}

/* Rings take a quarter of what the file system has free, at most what was
 * asked for. */
static bool enough(struct session *s, const char *folder) {
    struct statvfs v;
    s->memory_cap = s->set.o.memory_bytes;
    if (statvfs(folder, &v) != 0) return false;
    uint64_t quarter = (uint64_t)v.f_bavail * v.f_frsize / 4;
    if (quarter < s->memory_cap) s->memory_cap = quarter;
    return s->memory_cap >= MEMORY_LEAST;
}

/* A reader tells by this lock that we live: it goes with the last copy of the
 * descriptor, and no child keeps one. */
static void take_lock(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_OFD_SETLK, &l);
}

/* Before there is a ring file: whoever finds the pointer after a kill knows
 * where it would be. */
static int write_pointer(struct session *s) {
    size_t n = strlen(s->ring_path);
    char line[PATH_MAX + 1];
    memcpy(line, s->ring_path, n);
    line[n] = '\n';
    int fd = open(s->pointer_path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    ssize_t w = write(fd, line, n + 1);
    close(fd);
    return w == (ssize_t)(n + 1) ? 0 : -1;
}

static int try_ring(struct session *s, const char *folder, const char *name) {
    if (!enough(s, folder)) return -1;
    int n = snprintf(s->ring_path, sizeof s->ring_path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof s->ring_path || write_pointer(s) != 0)
        return -1;
    s->fd = proc_high_fd(open(s->ring_path, O_RDWR | O_CREAT | O_EXCL |
                                                O_CLOEXEC | O_NOFOLLOW, 0600));
    if (s->fd < 0) return -1;
    proc_which_file(s->fd, &s->ring_file);
    take_lock(s->fd);
    return 0;
}

void place_check(struct session *s) {
    if (proc_same_file(s->fd, &s->ring_file)) return;
    int fd = proc_high_fd(open(s->ring_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd >= 0 && !proc_same_file(fd, &s->ring_file)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0) take_lock(fd);
    __atomic_store_n(&s->fd, fd, __ATOMIC_RELEASE);
}

/* In memory, where a store never waits for a disk; else beside the profile. */
static int open_ring(struct session *s, const char *stem) {
    char name[160];
    const char *base = strrchr(stem, '/') + 1;
    snprintf(name, sizeof name, "opscope-%u-%d-%u-%llx", (unsigned)getuid(),
             (int)s->pid, s->gen, (unsigned long long)rec_mono_ns());
    if (getenv("OPSCOPE_SHM") != NULL) {
        if (try_ring(s, getenv("OPSCOPE_SHM"), name) == 0) return 0;
    } else if (try_ring(s, "/dev/shm", name) == 0) {
        return 0;
    }
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(base - stem - 1), stem);
    snprintf(name, sizeof name, "%.140s.rings", base);
    if (try_ring(s, folder, name) == 0) return 0;
    s->ring_path[0] = 0;
    return fail("no memory for the rings", errno != 0 ? errno : ENOSPC);
}

int place_make(struct session *s, char stem[PATH_MAX]) {
    char folder[PATH_MAX];
    s->ring_path[0] = s->pointer_path[0] = 0;
    s->fd = -1;
    if (run_folder(s, folder) != 0 || take_stem(s, folder, stem) != 0)
        return -1;
    return open_ring(s, stem);
}

void place_remove(struct session *s, bool keep) {
    struct stat st;
    /* without the pointer nobody would ever find it */
    if (s->pointer_path[0] == 0 || lstat(s->pointer_path, &st) != 0)
        keep = false;
    if (proc_same_file(s->fd, &s->ring_file)) close(s->fd);
    if (!keep && s->ring_path[0] != 0) unlink(s->ring_path);
    if (!keep && s->pointer_path[0] != 0) unlink(s->pointer_path);
    s->fd = -1;
    s->ring_path[0] = s->pointer_path[0] = 0;
}
