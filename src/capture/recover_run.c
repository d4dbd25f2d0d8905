/* SPDX-License-Identifier: Apache-2.0
 * The run's folder after the program. A pointer file or a ring may be damaged
 * or belong to others: every byte is checked before it is believed. */
#include "capture/recover_run.h"

#include "capture/tree.h"
#include "ring/recover.h"
#include "ring/text.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Is it our own file, "<host>_record.xplane.pb" or
 * "<host>_record_2.xplane.pb"? */
static bool is_ours(const char *name) {
    const char *p = strstr(name, "_record");
    if (p == NULL) return false;
    p += 7;
    if (*p == '_') p += 1 + strspn(p + 1, "0123456789");
    return strcmp(p, ".xplane.pb") == 0;
}

/* Returns the next file of the folder, hidden ones left out; NULL at the end.
 * *path is its path, in a buffer of PATH_MAX. */
static const char *next_file(DIR *d, const char *dir, char *path) {
    for (struct dirent *x; d != NULL && (x = readdir(d)) != NULL;) {
        int n = snprintf(path, PATH_MAX, "%s/%s", dir, x->d_name);
        if (x->d_name[0] != '.' && n > 0 && n < PATH_MAX) return x->d_name;
    }
    if (d != NULL) closedir(d);
    return NULL;
}

/* Is it of one of the tree's processes? Some live too short to be seen
 * there. */
static bool is_of(const struct tree *tree, const struct recover_look *at) {
    return (tree->launch != 0 && at->launch == tree->launch) ||
           (at->pid > 0 &&
            map_get(&tree->by_pid, (uint64_t)at->pid) != MAP_NONE);
}

size_t recover_run_live(const char *dir, const struct tree *tree) {
    char path[PATH_MAX];
    struct recover_look at;
    DIR *d = opendir(dir);
    size_t n = 0;
    for (const char *name; (name = next_file(d, dir, path)) != NULL;)
        if (text_ends(name, ".ring") && recover_look_path(path, &at))
            n += at.pid > 0 && at.alive && is_of(tree, &at);
    return n;
}

bool recover_run_any(const char *dir) {
    char path[PATH_MAX];
    DIR *d = opendir(dir);
    bool any = false;
    for (const char *name; (name = next_file(d, dir, path)) != NULL;)
        any |= !is_ours(name);
    return any;
}

void recover_run_dead(const char *dir, const struct tree *tree, bool alone,
                      struct run_recovered *out) {
    char path[PATH_MAX], why[200] = "";
    bool alive = false; /* some of the tree are */
    out->failed = 0;    /* what failed before is tried again */
    for (size_t i = 0; i < tree->nprocs; i++) alive |= tree->procs[i].alive;
    DIR *d = opendir(dir);
    for (const char *name; (name = next_file(d, dir, path)) != NULL;) {
        struct recover_closed closed;
        struct recover_look at;
        if (!text_ends(name, ".ring")) continue;
        recover_look_path(path, &at);
        if (at.alive || !(alone || is_of(tree, &at))) continue;
        if (at.pid == 0 && alive) continue; /* it is just being made */
        if (recover_close(path, &closed, why, sizeof why) == 0) {
            out->saved++;
            out->events += closed.events;
            out->rest += closed.ring_events;
            out->drops += closed.dropped;
        } else if (out->failed++ == 0) {
            snprintf(out->why, sizeof out->why, "%.90s: %.200s", name, why);
        }
    }
}

void recover_run_all(const char *dir, const struct tree *tree, bool alone,
                     struct run_recovered *out) {
    char path[PATH_MAX];
    recover_run_dead(dir, tree, alone, out);
    DIR *d = opendir(dir);
    for (const char *name; (name = next_file(d, dir, path)) != NULL;)
        out->profiles += text_ends(name, ".xplane.pb") && !is_ours(name);
}
