/* SPDX-License-Identifier: Apache-2.0
 * Folders and names. */
#include "rec/session_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rec/machine/cgroup.h"
#include "rec/memory.h"
#include "rec/recover_folder.h"
#include "rec/session.h"
#include "ring/clock.h"
#include "ring/open.h"
#include "ring/procfile.h"
#include "ring/sys.h"

enum {
    MEMORY_LEAST = 256 << 10, /* a few of the smallest rings */
    FOLDER = O_RDONLY | O_DIRECTORY,
    STEM_MAX = sizeof((struct rec_head *)0)->stem - 300, /* a name follows */
};

/* --- folders ------------------------------------------------------------- */

/* Makes a folder and those above it, as mkdir -p does. */
static int make_folders(char *path) {
    for (char *p = path + 1; *p != 0; p++) {
        if (*p != '/') continue;
        *p = 0;
        int bad = rec_mkdir(AT_FDCWD, path);
        *p = '/';
        if (bad != 0 && bad != EEXIST && bad != EROFS && bad != EACCES)
            return bad;
    }
    int bad = rec_mkdir(AT_FDCWD, path);
    return bad == EEXIST ? 0 : bad;
}

/* Opens a folder; one that may be written but not listed will do. */
static int open_folder(int at, const char *path) {
    int fd = sys_openat(at, path, FOLDER | O_NOFOLLOW, 0);
    if (fd < 0 && errno == EACCES)
        fd = sys_openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    return fd;
}

/* Opens the folder of that name, and makes it where it is missing. A link is
 * refused: whoever can write to the folder around it could send us anywhere. */
static int enter_folder(int at, const char *name, int *error) {
    *error = rec_mkdir(at, name);
    int fd = sys_openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd >= 0) *error = 0;
    else if (*error == 0 || *error == EEXIST) *error = errno;
    return fd;
}

/* Cuts the last name off a path; what is left of "a" is ".", of "/a" "/". */
static void cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) memcpy(path, ".", 2);
    else slash[slash == path] = 0;
}

/* Is a name in the path longer than the system allows? */
static bool long_name(const char *path) {
    size_t n = 0;
    for (; *path != 0 && n <= NAME_MAX; path++) n = *path == '/' ? 0 : n + 1;
    return n > NAME_MAX;
}

/* Will the paths below the log folder be too long? What is there of it counts
 * by its real path, and the rest as it is given. Nothing is made. */
static bool too_long(const struct settings *set) {
    enum { BELOW = sizeof "/plugins/profile/", RUN = 24 };
    char there[PATH_MAX], real[PATH_MAX];
    size_t given = strlen(set->logdir), run = strlen(set->run);
    memcpy(there, set->logdir, given + 1);
    while (realpath(there, real) == NULL) {
        real[0] = 0;
        if (strcmp(there, ".") == 0 || strcmp(there, "/") == 0) break;
        cut_name(there);
    }
    size_t n = strlen(real) + given - strlen(there);
    return long_name(set->logdir) ||
           n + BELOW + (run > 0 ? run : RUN) >= STEM_MAX;
}

/* Tells why the log folder cannot be used. Where something on the way to it is
 * no folder, that is named. */
static int no_log_folder(const char *logdir, int error) {
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s", logdir);
    while (error == ENOTDIR && stat(path, &st) != 0 && errno == ENOTDIR &&
           strchr(path, '/') != NULL)
        cut_name(path);
    return session_problem(path, error);
}

static int log_folder(struct session *s) {
    struct settings *set = &s->set;
    char real[PATH_MAX];
    if (too_long(set)) return session_problem(set->logdir, ENAMETOOLONG);
    /* a child's folder was there: one that is gone stays so */
    int error = set->child ? 0 : make_folders(set->logdir);
    if (error == 0 && realpath(set->logdir, real) == NULL) error = errno;
    if (error != 0) return no_log_folder(set->logdir, error);
    memcpy(set->logdir, real, sizeof real);
    s->paths.logdir = open_folder(AT_FDCWD, real);
    return s->paths.logdir >= 0 ? 0 : session_problem(set->logdir, errno);
}

/* Makes a folder for this run alone, named by the time. Ranks of one job that
 * start in the same second share it: they are one run. */
static int take_run(struct session *s, int profiles) {
    struct settings *set = &s->set;
    time_t now = time(NULL);
    struct tm tm;
    char when[64];
    localtime_r(&now, &tm);
    strftime(when, sizeof when, "%Y_%m_%d_%H_%M_%S", &tm);
    int error = EEXIST;
    for (int i = 1; i < 10000 && error == EEXIST; i++) {
        char again[16] = "";
        if (i > 1) snprintf(again, sizeof again, "_%d", i);
        snprintf(set->run, sizeof set->run, "%.64s%s", when, again);
        error = rec_mkdir(profiles, set->run);
        if (error == EEXIST && s->id.rank >= 0) error = 0;
    }
    set->o.run = set->run; /* children of a fork go there too */
    return error;
}

/* Opens <logdir>/plugins/profile/<run>, as TensorBoard wants it. */
static int run_folder(struct session *s) {
    struct settings *set = &s->set;
    int logdir = s->paths.logdir;
    if (set->o.run != NULL && (strchr(set->run, '/') != NULL ||
                               set->run[0] == '.' || set->run[0] == 0))
        return session_problem("the run's name is not the name of a folder", 0);
    char path[PATH_MAX + sizeof "/plugins/profile"];
    int error, plugins = enter_folder(logdir, "plugins", &error);
    int profiles = plugins < 0 ? -1 : enter_folder(plugins, "profile", &error);
    if (plugins >= 0) sys_close(plugins);
    if (profiles < 0) {
        snprintf(path, sizeof path, "%s/plugins%s", set->logdir,
                 plugins < 0 ? "" : "/profile");
        return session_problem(path, error);
    }
    if (set->o.run == NULL) error = take_run(s, profiles);
    else error = rec_mkdir(profiles, set->run);
    s->paths.run = open_folder(profiles, set->run);
    if (s->paths.run < 0 && (error == 0 || error == EEXIST)) error = errno;
    sys_close(profiles);
    int n = snprintf(s->paths.stem, sizeof s->paths.stem,
                     "%s/plugins/profile/%s", set->logdir, set->run);
    if (n < 0 || n >= STEM_MAX)
        return session_problem(set->logdir, ENAMETOOLONG);
    return s->paths.run >= 0 ? 0 : session_problem(s->paths.stem, error);
}

/* --- the stem ------------------------------------------------------------ */

/* Is the stem free? The part file takes it later, with O_EXCL; here only stems
 * in use are skipped. */
static bool stem_free(const struct session_paths *p, const char *base) {
    char name[NAME_MAX + 1];
    struct stat st;
    for (int i = 0; i < 2; i++)
        if (!rec_part_name(name, sizeof name, base, 0, 0, i != 0) ||
            fstatat(p->run, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return false;
    return true;
}

/* Takes the pointer's name: whoever has that has the stem. */
static int take_stem(struct session *s) {
    struct session_paths *p = &s->paths;
    long long who = s->set.child || s->id.rank < 0 ? (long long)s->pid
                                                   : s->id.rank;
    size_t folder = strlen(p->stem);
    char *base = p->stem + folder + 1;
    p->base = base;
    for (int i = 1; i < 10000; i++) {
        char again[16] = "";
        if (i > 1) snprintf(again, sizeof again, "-%d", i);
        snprintf(p->stem + folder, sizeof p->stem - folder, "/%.150s_%lld%s",
                 s->id.host, who, again);
        if (!stem_free(p, base)) continue;
        snprintf(p->pointer_name, sizeof p->pointer_name, "%.240s.ring", base);
        p->pointer = rec_create(p->run, p->pointer_name, O_RDWR, REC_FILE_MODE);
        if (p->pointer >= 0) return 0;
        if (errno == EEXIST) continue;
        int error = errno;
        p->stem[folder] = 0;
        return session_problem(p->stem, error);
    }
    return session_problem("no name is free for the profile", EEXIST);
}

/* --- the ring file ------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Is there enough memory? Rings take at most what was asked for, and a quarter
 * of what the file system and the container have left; those of all programs of
 * this user as much, or an eighth of the file system if that is more (some may
 * be in containers of their own, so that theirs do not count). */
static bool enough(struct session *s) {
    struct statfs v;
    struct rlimit l;
    struct cgroup g;
    if (sys_fstatfs(s->paths.memory, &v) != 0) return false;
    uint64_t unit = (uint64_t)v.f_frsize;
    cgroup_self(&g); /* memory of files in /dev/shm is the container's too */
    uint64_t left = least((uint64_t)v.f_bavail * unit, cgroup_memory_left(&g));
    s->memory_cap = least(s->set.o.memory_bytes, left / 4);
    if (getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur / 4 < s->memory_cap)
        s->memory_cap = l.rlim_cur / 4;
    uint64_t eighth = (uint64_t)v.f_blocks * unit / 8;
    s->paths.uid_cap = eighth > s->memory_cap ? eighth : s->memory_cap;
    return s->memory_cap >= MEMORY_LEAST;
}

int session_paths_no_rings(int error) {
    struct rlimit l;
    if (error == EFBIG ||
        (getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur / 4 < MEMORY_LEAST))
        return session_problem(
            "the limit on the size of files (ulimit -f) leaves no "
            "room for the rings",
            0);
    return session_problem("no memory for the rings", error);
}

static void ring_prefix(char out[64]) {
    snprintf(out, 64, "opscope-%u-", (unsigned)getuid());
}

/* Adds up what this user's ring files hold. */
struct counting {
    int dir;
    char prefix[64];
    uint64_t bytes;
};

static bool count_ring(void *ctx, const char *name) {
    struct counting *c = ctx;
    struct stat st;
    if (strncmp(name, c->prefix, strlen(c->prefix)) == 0 &&
        fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && st.st_uid == getuid())
        c->bytes += (uint64_t)st.st_blocks * 512;
    return true;
}

uint64_t session_paths_ring_bytes(const struct session_paths *p) {
    struct counting c = {.dir = p->memory};
    ring_prefix(c.prefix);
    sys_list(p->memory, count_ring, &c);
    return c.bytes;
}

/* Takes the lock by which a reader knows that we live: it goes with the
 * descriptor, of which there is one. */
static void take_lock(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_OFD_SETLK, &l);
}

/* Makes the ring file, locked before it has a name, where the system can do
 * that: if it is found unlocked, its program is gone. */
static int make_ring(int dir, const char *name) {
    char self[48];
    int fd = sys_openat(dir, ".", O_TMPFILE | O_RDWR, REC_RING_MODE);
    if (fd >= 0) {
        fchmod(fd, REC_RING_MODE);
        take_lock(fd);
        snprintf(self, sizeof self, "/proc/thread-self/fd/%d", fd);
        if (linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) == 0)
            return fd;
        sys_close(fd);
    }
    fd = rec_create(dir, name, O_RDWR, REC_RING_MODE);
    if (fd >= 0) take_lock(fd);
    return fd;
}

/* Writes the pointer before there is a ring file: after a kill it says where
 * that would be. */
static int write_pointer(struct session_paths *p, const char *folder) {
    char line[PATH_MAX + 8];
    int n = snprintf(line, sizeof line, "%s/%s\n", folder, p->ring_name);
    if (n < 0 || n >= PATH_MAX) return ENAMETOOLONG;
    if (ftruncate(p->pointer, 0) != 0) return errno;
    ssize_t w = sys_pwrite(p->pointer, line, (size_t)n, 0);
    return w == n ? 0 : w < 0 ? errno : ENOSPC;
}

/* Tries one folder, an absolute path. Returns 0 or errno. */
static int try_ring(struct session *s, const char *folder, const char *name) {
    struct session_paths *p = &s->paths;
    if (p->memory >= 0) sys_close(p->memory);
    snprintf(p->ring_name, sizeof p->ring_name, "%.250s", name);
    p->memory = open_folder(AT_FDCWD, folder);
    if (p->memory < 0) return errno;
    if (!enough(s)) return ENOSPC;
    int error = write_pointer(p, folder);
    if (error != 0) return error;
    p->ring = make_ring(p->memory, p->ring_name);
    return p->ring >= 0 ? 0 : errno;
}

/* Opens the ring file in memory, where a store never waits for a disk; else
 * beside the profile. */
static int open_ring(struct session *s) {
    struct session_paths *p = &s->paths;
    char prefix[64], name[NAME_MAX + 1], folder[PATH_MAX];
    const char *memory = s->set.memory[0] != 0 ? s->set.memory : "/dev/shm";
    ring_prefix(prefix);
    snprintf(name, sizeof name, "%s%d-%u-%llx", prefix, (int)s->pid, s->gen,
             (unsigned long long)rec_mono_ns());
    if (s->set.o.memory_bytes < MEMORY_LEAST)
        return session_problem(
            "memory_bytes is too small: 262144 are the least", 0);
    int error = realpath(memory, folder) == NULL ? errno
                                                 : try_ring(s, folder, name);
    if (error == 0) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(p->base - p->stem - 1),
             p->stem);
    snprintf(name, sizeof name, "%.240s.rings", p->base);
    if (try_ring(s, folder, name) == 0) return 0;
    p->ring_name[0] = 0;
    return session_paths_no_rings(error);
}

int session_paths_make(struct session *s) {
    struct session_paths *p = &s->paths;
    *p = (struct session_paths){
        .logdir = -1, .run = -1, .memory = -1, .ring = -1, .pointer = -1};
    if (log_folder(s) != 0 || run_folder(s) != 0 || take_stem(s) != 0 ||
        open_ring(s) != 0)
        return -1;
    /* Programs that die quickly, one after the other, leave a ring each, and
     * none lives long enough to recover those before it: then it is done
     * here. */
    enum { PATIENCE_NS = 50000000 };
    if (session_paths_ring_bytes(p) <= p->uid_cap / 2) return 0;
    recover_folder(p->logdir, rec_mono_ns() + PATIENCE_NS, NULL);
    if (session_paths_ring_bytes(p) <= p->uid_cap) return 0;
    return session_problem(
        "the rings of other programs of this user hold all the memory "
        "that there is for rings",
        0);
}

bool session_paths_gone(const struct session_paths *p) {
    struct stat st;
    return p->run >= 0 && sys_fstat(p->run, &st) == 0 && st.st_nlink == 0;
}

void session_paths_remove(struct session_paths *p, bool keep) {
    struct stat st;
    int *fds[] = {&p->ring, &p->pointer, &p->memory, &p->run, &p->logdir};
    /* without the pointer nobody would ever find the ring file */
    if (p->pointer < 0 || sys_fstat(p->pointer, &st) != 0 || st.st_nlink == 0)
        keep = false;
    if (!keep && p->ring >= 0) unlinkat(p->memory, p->ring_name, 0);
    if (!keep && p->pointer >= 0) unlinkat(p->run, p->pointer_name, 0);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0) sys_close(*fds[i]);
        *fds[i] = -1;
    }
}
