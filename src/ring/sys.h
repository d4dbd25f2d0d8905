/* SPDX-License-Identifier: Apache-2.0
 * System calls on descriptors, for threads that have a table of their own.
 *
 * A number of theirs is something else in the program's table. Whoever follows
 * descriptors by their numbers does not know that: under ThreadSanitizer a
 * program that closes its number 7 would be told of a race with our number 7.
 * So these calls go past the C library, which is what is watched. */
#ifndef RING_SYS_H
#define RING_SYS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* This is for systems where the kernel's structures and registers are the C
 * library's. */
#if __SIZEOF_LONG__ == 8 && defined(SYS_fstat)
static inline int sys_fstat(int fd, struct stat *st) {
    return (int)syscall(SYS_fstat, fd, st);
}
static inline int sys_fstatfs(int fd, struct statfs *st) {
    return (int)syscall(SYS_fstatfs, fd, st);
}
static inline void *sys_mmap(void *p, size_t n, int prot, int flags, int fd,
                             int64_t at) {
    return (void *)syscall(SYS_mmap, p, n, prot, flags, fd, at);
}
static inline ssize_t sys_pread(int fd, void *p, size_t n, int64_t at) {
    return syscall(SYS_pread64, fd, p, n, at);
}
static inline ssize_t sys_pwrite(int fd, const void *p, size_t n, int64_t at) {
    return syscall(SYS_pwrite64, fd, p, n, at);
}
#else
static inline int sys_fstat(int fd, struct stat *st) { return fstat(fd, st); }
static inline int sys_fstatfs(int fd, struct statfs *st) {
    return fstatfs(fd, st);
}
static inline void *sys_mmap(void *p, size_t n, int prot, int flags, int fd,
                             int64_t at) {
    return mmap(p, n, prot, flags, fd, (off_t)at);
}
static inline ssize_t sys_pread(int fd, void *p, size_t n, int64_t at) {
    return pread(fd, p, n, (off_t)at);
}
static inline ssize_t sys_pwrite(int fd, const void *p, size_t n, int64_t at) {
    return pwrite(fd, p, n, (off_t)at);
}
#endif

static inline int sys_openat(int dir, const char *path, int flags, int mode) {
    return (int)syscall(SYS_openat, dir, path, flags | O_CLOEXEC, mode);
}
static inline int sys_open(const char *path, int flags) {
    return sys_openat(AT_FDCWD, path, flags, 0);
}
static inline int sys_close(int fd) { return (int)syscall(SYS_close, fd); }
static inline ssize_t sys_read(int fd, void *p, size_t n) {
    return syscall(SYS_read, fd, p, n);
}

/* Writes n bytes at an offset. Returns 0, or an errno; *done (may be NULL)
 * becomes the number of bytes written. */
int sys_write_all(int fd, const void *p, size_t n, uint64_t at, size_t *done);
/* Reads n bytes at an offset. Returns how many: fewer at the end of the file or
 * where it cannot be read. */
size_t sys_read_all(int fd, void *p, size_t n, uint64_t at);

/* Takes the lock on a file that goes with its descriptor. Returns false if
 * somebody else has it. */
static inline bool sys_lock(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

/* Calls each with the names in a folder, "." and ".." left out, until each says
 * false. Returns false if the folder cannot be listed. */
bool sys_list(int dir, bool (*each)(void *ctx, const char *name), void *ctx);

#endif
