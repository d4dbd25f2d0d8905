/* SPDX-License-Identifier: Apache-2.0
 * The run's folder after the program. A pointer file or a ring may be damaged
 * or somebody else's: every byte is checked before it is believed. */
#include "capture/gather.h"

#include "capture/tree.h"
#include "rec/ring.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* Our own file, "<host>_record.xplane.pb" or "<host>_record_2.xplane.pb". */
static bool is_ours(const char *name) {
    const char *p = strstr(name, "_record");
    if (p == NULL) return false;
    p += 7;
    if (*p == '_') p += 1 + strspn(p + 1, "0123456789");
    return strcmp(p, ".xplane.pb") == 0;
}

/* Calls each with the path of every file in the folder. */
static void each_file(const char *dir, void (*each)(void *, const char *path,
                                                    const char *name),
                      void *ctx) {
    DIR *d = opendir(dir);
    if (d == NULL) return;
    for (struct dirent *x; (x = readdir(d)) != NULL;) {
        char *path;
        if (x->d_name[0] == '.') continue;
        if (asprintf(&path, "%s/%s", dir, x->d_name) < 0) continue;
        each(ctx, path, x->d_name);
        free(path);
    }
    closedir(d);
}

/* The head of the ring that a pointer file leads to: who writes it, and is it
 * done? 0: there is no such ring (on this host). */
static int32_t ring_pid(const char *pointer, bool *done) {
    char path[4096];
    int fd = open(pointer, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, path, sizeof path - 1);
    if (fd >= 0) close(fd);
    if (n <= 1) return 0;
    path[n] = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (path[0] != '/') return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return 0;
    struct {
        char magic[8];
        uint32_t version, head_bytes, pid, gen;
    } h;
    _Static_assert(offsetof(struct rec_head, pid) == 16, "the same layout");
    bool whole = pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h;
    uint32_t is_done = 0;
    whole = whole && pread(fd, &is_done, sizeof is_done,
                           offsetof(struct rec_head, done)) ==
                         (ssize_t)sizeof is_done;
    close(fd);
    if (!whole || memcmp(h.magic, REC_MAGIC, 8) != 0 ||
        h.version != REC_VERSION || h.pid == 0 || h.pid > INT32_MAX)
        return 0;
    *done = is_done != 0;
    return (int32_t)h.pid;
}

struct live {
    const struct tree *tree;
    size_t n;
};

static void count_live(void *ctx, const char *path, const char *name) {
    struct live *l = ctx;
    bool done = false;
    if (!ends_with(name, ".ring")) return;
    int32_t pid = ring_pid(path, &done);
    if (pid == 0 || done) return;
    uint32_t i = map_get(&l->tree->by_pid, (uint64_t)pid);
    l->n += i != MAP_NONE && l->tree->procs[i].alive;
}

size_t gather_live(const char *dir, const struct tree *tree) {
    struct live l = {tree, 0};
    each_file(dir, count_live, &l);
    return l.n;
}

static void count_profile(void *ctx, const char *path, const char *name) {
    struct gathered *g = ctx;
    (void)path;
    if (ends_with(name, ".xplane.pb") && !is_ours(name)) g->profiles++;
}

void gather_finish(const char *dir, struct gathered *out) {
    *out = (struct gathered){0};
    each_file(dir, count_profile, out);
}
