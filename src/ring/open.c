/* SPDX-License-Identifier: Apache-2.0
 * See open.h. Surprise: /proc/self belongs to the first thread of the process,
 * also its fd/; a thread with a table of its own is /proc/thread-self. */
#include "ring/open.h"

#include "ring/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/sys.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
enum { CLOSE_UNSHARED = 1 << 1 }; /* CLOSE_RANGE_UNSHARE */

/* Opens a file without /proc: what was opened must be what was seen. */
static int open_seen(int dir, const char *name, int flags,
                     const struct stat *seen) {
    struct stat st;
    int fd = sys_openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_dev == seen->st_dev && st.st_ino == seen->st_ino)
        return fd;
    sys_close(fd);
    errno = EINVAL;
    return -1;
}

int rec_open(int dir, const char *name, int flags) {
    char self[48];
    struct stat st;
    int at = sys_openat(dir, name, O_PATH | O_NOFOLLOW, 0);
    if (at < 0) return -1;
    if (sys_fstat(at, &st) != 0 || !S_ISREG(st.st_mode)) {
        sys_close(at);
        errno = EINVAL;
        return -1;
    }
    snprintf(self, sizeof self, "/proc/thread-self/fd/%d", at);
    int fd = sys_open(self, flags);
    if (fd < 0 && errno == ENOENT) fd = open_seen(dir, name, flags, &st);
    int error = errno;
    sys_close(at);
    errno = error;
    return fd;
}

int rec_create(int dir, const char *name, int flags, int mode) {
    struct stat st;
    int fd = sys_openat(dir, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd >= 0 && sys_fstat(fd, &st) == 0 && (st.st_mode & 0600) != 0600)
        fchmod(fd, (st.st_mode | 0600) & 07777);
    return fd;
}

int rec_mkdir(int dir, const char *name) {
    struct stat st;
    if (mkdirat(dir, name, REC_FOLDER_MODE) != 0) return errno;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700)
        fchmodat(dir, name, (st.st_mode | 0700) & 07777, 0);
    return 0;
}

static bool close_copy(void *ctx, const char *name) {
    (void)ctx;
    sys_close(atoi(name)); /* the list's own is the last: then it ends */
    return true;
}

/* Closes the copies where the kernel cannot leave them out. A pipe whose other
 * end waits for its end must not be held here. */
static void close_copies(void) {
    struct rlimit most;
    rlim_t n = 1 << 20;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_max < n)
        n = most.rlim_max;
    int dir = sys_open("/proc/thread-self/fd", O_PATH | O_DIRECTORY);
    if (dir >= 0 && sys_list(dir, close_copy, NULL)) return;
    for (rlim_t fd = 0; fd < n; fd++) sys_close((int)fd);
}

/* A sanitizer that finds a fault in here wants to print about it. */
enum { KEPT = SANITIZED_ADDRESS || SANITIZED_THREAD ? 3 : 0 };

int rec_own_table(void) {
    if (syscall(SYS_close_range, (unsigned)KEPT, ~0u,
                (unsigned)CLOSE_UNSHARED) != 0) {
        if (unshare(CLONE_FILES) != 0) return errno;
        close_copies();
    }
    /* 0, 1 and 2 lead nowhere: what this thread prints is lost */
    for (int fd = KEPT; fd >= 0 && fd < 2;)
        fd = sys_open("/", O_PATH | O_DIRECTORY);
    return 0;
}
