/* SPDX-License-Identifier: Apache-2.0
 * The run's folder after the program. A pointer file or a ring may be damaged
 * or somebody else's: every byte is checked before it is believed. */
#include "capture/recover_run.h"

#include "capture/tree.h"
#include "ring/recover.h"
#include <dirent.h>
#include <limits.h>
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
static void each_file(const char *dir,
                      void (*each)(void *, const char *path, const char *name),
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

/* Some live too short to be seen in the tree. */
static bool is_of(const struct tree *tree, const struct recover_look *at) {
    return (tree->launch != 0 && at->launch == tree->launch) ||
           (at->pid > 0 &&
            map_get(&tree->by_pid, (uint64_t)at->pid) != MAP_NONE);
}

struct live {
    const struct tree *tree;
    size_t n;
};

static void count_live(void *ctx, const char *path, const char *name) {
    struct live *l = ctx;
    struct recover_look at;
    if (!ends_with(name, ".ring") || !recover_look_path(path, &at)) return;
    l->n += at.pid > 0 && at.alive && is_of(l->tree, &at);
}

size_t recover_run_live(const char *dir, const struct tree *tree) {
    struct live l = {tree, 0};
    each_file(dir, count_live, &l);
    return l.n;
}

static void note_any(void *ctx, const char *path, const char *name) {
    (void)path;
    if (!is_ours(name)) *(bool *)ctx = true;
}

bool recover_run_any(const char *dir) {
    bool any = false;
    each_file(dir, note_any, &any);
    return any;
}

struct finish {
    const struct tree *tree;
    bool alone, alive; /* some of the tree are */
    struct run_recovered *g;
};

/* Finishes the recording behind one pointer file. */
static void finish_one(void *ctx, const char *path, const char *name) {
    struct finish *f = ctx;
    struct run_recovered *g = f->g;
    struct recover_closed saved;
    struct recover_look at;
    char why[200] = "";
    if (!ends_with(name, ".ring")) return;
    recover_look_path(path, &at);
    if (at.alive || !(f->alone || is_of(f->tree, &at))) return;
    if (at.pid == 0 && f->alive) return; /* it is just being made */
    if (recover_close(path, &saved, why, sizeof why) == 0) {
        g->saved++;
        g->events += saved.events;
        g->rest += saved.ring_events;
        g->drops += saved.dropped;
    } else if (g->failed++ == 0) {
        snprintf(g->why, sizeof g->why, "%.90s: %.200s", name, why);
    }
}

static void count_profile(void *ctx, const char *path, const char *name) {
    struct run_recovered *g = ctx;
    (void)path;
    if (ends_with(name, ".xplane.pb") && !is_ours(name)) g->profiles++;
}

void recover_run_dead(const char *dir, const struct tree *tree, bool alone,
                      struct run_recovered *out) {
    struct finish f = {tree, alone, false, out};
    out->failed = 0; /* what failed before is tried again */
    for (size_t i = 0; i < tree->nprocs; i++) f.alive |= tree->procs[i].alive;
    each_file(dir, finish_one, &f);
}

void recover_run_all(const char *dir, const struct tree *tree, bool alone,
                     struct run_recovered *out) {
    recover_run_dead(dir, tree, alone, out);
    each_file(dir, count_profile, out);
}
