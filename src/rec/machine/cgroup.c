/* SPDX-License-Identifier: Apache-2.0
 * See cgroup.h. Surprise: version 1 writes "no limit" as a number, the largest
 * multiple of a page below 2^63. */
#include "rec/machine/cgroup.h"

#include "ring/procfile.h"
#include "ring/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The names of a level's files, by version. */
static const char *const memory_now[] = {"memory.usage_in_bytes",
                                         "memory.current"};
static const char *const memory_max[] = {"memory.limit_in_bytes", "memory.max"};
/* Pages of files, the lines of memory.stat for this level and those below; what
 * lies in /dev/shm is not among them. */
static const char *const file_pages[][2] = {{"total_inactive_file",
                                             "total_active_file"},
                                            {"inactive_file", "active_file"}};
static const char *const cpu_max[] = {"cpu.cfs_quota_us", "cpu.max"};

/* Is the word one of the list "a,b,c" of n bytes? */
static bool listed(const char *list, size_t n, const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= n; i++)
        if ((i == 0 || list[i - 1] == ',') &&
            memcmp(list + i, word, len) == 0 &&
            (i + len == n || list[i + len] == ','))
            return true;
    return false;
}

/* Finds the path in the line "7:cpu,cpuacct:/a/b" that lists the controller; in
 * "0::/a/b" if it is NULL. */
static bool path_of(const char *text, const char *controller, char *out,
                    size_t cap) {
    for (const char *p = text; p && *p; p = strchr(p, '\n')) {
        if (*p == '\n') p++;
        size_t end = strcspn(p, "\n");
        const char *list = memchr(p, ':', end);
        if (!list) continue;
        list++;
        const char *path = memchr(list, ':', end - (size_t)(list - p));
        if (!path) continue;
        size_t n = (size_t)(path - list);
        if (controller ? !listed(list, n, controller) : n != 0) continue;
        path++;
        n = end - (size_t)(path - p);
        if (n >= cap || n == 0 || *path != '/') return false;
        memcpy(out, path, n);
        out[n] = '\0';
        return true;
    }
    return false;
}

/* Takes dir up by one level, but not above its first `top` bytes. */
static bool go_up(char *dir, size_t top) {
    size_t n = strlen(dir);
    while (n > top && dir[n - 1] != '/') n--;
    while (n > top && dir[n - 1] == '/') n--;
    bool moved = n < strlen(dir);
    dir[n] = '\0';
    return moved;
}

static long read_in(const char *dir, const char *file, char *buf, size_t cap) {
    char path[CGROUP_PATH + 64];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    if (n < 0 || (size_t)n >= sizeof path) return -1;
    return procfile_read(path, buf, cap);
}

/* Finds the lowest folder from mount/path upwards that has the file. */
static bool find_level(char *dir, const char *mount, const char *path,
                       const char *file) {
    char buf[64];
    int n = snprintf(dir, CGROUP_PATH, "%s%s", mount, path);
    if (n < 0 || n >= CGROUP_PATH) n = 0;
    if (n == 0 || strstr(dir, "/../")) {
        dir[0] = '\0';
        return false;
    }
    do {
        if (read_in(dir, file, buf, sizeof buf) >= 0) return true;
    } while (go_up(dir, strlen(mount)));
    dir[0] = '\0';
    return false;
}

/* Finds where a controller's figures are: its own tree (v1), or the common one;
 * also the length of the mount's part of dir. */
static bool find_controller(const char *text, const char *root,
                            const char *controller, const char *const *file,
                            char *dir, size_t *top, bool *v2) {
    char path[CGROUP_PATH], mount[CGROUP_PATH];
    *v2 = !path_of(text, controller, path, sizeof path);
    if (*v2 && !path_of(text, NULL, path, sizeof path)) return false;
    for (int i = 0; i < (*v2 ? 2 : 1); i++) {
        snprintf(mount, sizeof mount, "%s%s%s", root,
                 *v2 ? (i ? "/unified" : "") : "/", *v2 ? "" : controller);
        *top = strlen(mount);
        if (find_level(dir, mount, path, file[*v2])) return true;
    }
    return false;
}

/* Returns the limit of one level; 0 if it has none. */
static uint64_t memory_level(const char *dir, bool v2) {
    char buf[64];
    int64_t n;
    if (read_in(dir, memory_max[v2], buf, sizeof buf) <= 0) return 0;
    buf[strcspn(buf, "\n")] = '\0';
    if (!procfile_whole(buf, &n) || n >= INT64_MAX - (1 << 20)) return 0;
    return (uint64_t)n;
}

static double cpu_level(const char *dir, bool v2) {
    char quota[64], period[64];
    int64_t q, p;
    if (read_in(dir, cpu_max[v2], quota, sizeof quota) <= 0) return 0;
    if (v2) { /* "max 100000" or "50000 100000" */
        char *space = strchr(quota, ' ');
        if (!space) return 0;
        *space = '\0';
        snprintf(period, sizeof period, "%s", space + 1);
    } else if (read_in(dir, "cpu.cfs_period_us", period, sizeof period) <= 0) {
        return 0;
    }
    quota[strcspn(quota, "\n")] = '\0';
    period[strcspn(period, "\n")] = '\0';
    if (!procfile_whole(quota, &q) || !procfile_whole(period, &p) || p == 0)
        return 0;
    return (double)q / (double)p; /* v1: -1 is no quota, and no whole number */
}

void cgroup_find(struct cgroup *g, const char *text, const char *root) {
    size_t top;
    char dir[CGROUP_PATH];
    memset(g, 0, sizeof *g);
    if (find_controller(text, root, "memory", memory_now, g->memory, &top,
                        &g->memory_v2)) {
        memcpy(dir, g->memory, sizeof dir);
        do {
            uint64_t n = memory_level(dir, g->memory_v2);
            if (n > 0 && (g->memory_limit == 0 || n < g->memory_limit))
                g->memory_limit = n;
        } while (go_up(dir, top));
    }
    if (find_controller(text, root, "cpu", cpu_max, dir, &top, &g->cpu_v2)) {
        do {
            double n = cpu_level(dir, g->cpu_v2);
            if (n <= 0) continue;
            if (!g->cpu[0]) memcpy(g->cpu, dir, sizeof dir);
            if (g->cpu_limit <= 0 || n < g->cpu_limit) g->cpu_limit = n;
        } while (go_up(dir, top));
    }
}

void cgroup_self(struct cgroup *g) {
    char text[4096];
    if (procfile_read("/proc/self/cgroup", text, sizeof text) < 0)
        text[0] = '\0';
    cgroup_find(g, text, "/sys/fs/cgroup");
}

static int open_in(const char *dir, const char *file) {
    char path[CGROUP_PATH + 64];
    if (!dir[0]) return -1;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return sys_open(path, O_RDONLY);
}

int cgroup_open_memory(const struct cgroup *g) {
    return open_in(g->memory, memory_now[g->memory_v2]);
}

int cgroup_open_cpu(const struct cgroup *g) {
    return open_in(g->cpu, "cpu.stat");
}

uint64_t cgroup_memory_left(const struct cgroup *g) {
    char text[8192];
    uint64_t n = 0, used = 0;
    if (g->memory_limit == 0) return UINT64_MAX;
    if (read_in(g->memory, memory_now[g->memory_v2], text, sizeof text) > 0)
        used = strtoull(text, NULL, 10);
    if (read_in(g->memory, "memory.stat", text, sizeof text) > 0)
        for (int i = 0; i < 2; i++)
            if (procfile_u64(text, file_pages[g->memory_v2][i], &n))
                used -= n < used ? n : used;
    return used < g->memory_limit ? g->memory_limit - used : 0;
}
