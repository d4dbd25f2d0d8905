/* SPDX-License-Identifier: Apache-2.0
 * The run's folder before the program and after it. mkdir() decides which
 * process is first: there is no look before it. A pointer file or a ring may be
 * damaged or belong to others: every byte is checked before it is believed. */
#include "capture/launch.h"

#include "base/text/cut.h"
#include "capture/tree.h"
#include "ring/recover.h"
#include "ring/text.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SAME_SECOND = 10000, /* runs that began in it: more is a loop gone wild */
    FOLDER_MODE = 0755,  /* nobody else writes there, whatever the umask */
};

void rundir_free(struct rundir *d) {
    free(d->logdir);
    free(d->path);
    free(d->name);
    *d = (struct rundir){0};
}

/* Makes path and what is missing above it; adds to *made how many. */
static int make_path(const char *path, int *made, struct ops_err *e) {
    char *copy = strdup(path);
    if (copy == NULL) return fail_oom(e);
    int rc = 0;
    for (char *p = copy + 1; rc == 0; p++) {
        if (*p != '/' && *p != '\0') continue;
        char was = *p;
        *p = '\0';
        if (mkdir(copy, FOLDER_MODE) == 0) ++*made;
        else if (errno != EEXIST)
            rc = fail(e, OPS_EIO, "cannot make the folder: %s",
                      strerror(errno));
        if (rc != 0) fail_in(e, copy);
        *p = was;
        if (was == '\0') break;
    }
    struct stat st;
    if (rc == 0 && (stat(copy, &st) != 0 || !S_ISDIR(st.st_mode))) {
        fail(e, OPS_EIO, "is not a folder");
        rc = fail_in(e, copy);
    }
    free(copy);
    return rc;
}

/* Makes the folder of a new run, under the first name that is free. */
static int make_new(struct rundir *d, const char *above, struct ops_err *e) {
    char when[32];
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm) == NULL ||
        strftime(when, sizeof when, "%Y_%m_%d_%H_%M_%S", &tm) == 0)
        return fail(e, OPS_EIO, "the system has no time");
    for (int i = 1; i < SAME_SECOND; i++) {
        char name[64];
        if (i == 1) snprintf(name, sizeof name, "%s", when);
        else snprintf(name, sizeof name, "%s_%d", when, i);
        free(d->path);
        if (asprintf(&d->path, "%s/%s", above, name) < 0) {
            d->path = NULL;
            return fail_oom(e);
        }
        if (mkdir(d->path, FOLDER_MODE) == 0) {
            d->made++;
            d->name = strdup(name);
            return d->name != NULL ? 0 : fail_oom(e);
        }
        if (errno != EEXIST) {
            fail(e, OPS_EIO, "cannot make the folder: %s", strerror(errno));
            return fail_in(e, d->path);
        }
    }
    fail(e, OPS_ELIMIT, "%d runs began in this second", SAME_SECOND);
    return fail_in(e, above);
}

static int make_all(const char *logdir, const char *name, struct rundir *d,
                    struct ops_err *e) {
    char *above;
    TRY(make_path(logdir, &d->made, e));
    d->logdir = realpath(logdir, NULL);
    if (d->logdir == NULL) {
        fail(e, OPS_EIO, "cannot be found: %s", strerror(errno));
        return fail_in(e, logdir);
    }
    if (asprintf(&above, "%s/plugins/profile", d->logdir) < 0)
        return fail_oom(e);
    int rc = make_path(above, &d->made, e);
    if (rc == 0 && name == NULL) {
        rc = make_new(d, above, e);
    } else if (rc == 0) {
        d->name = strdup(name);
        if (d->name == NULL || asprintf(&d->path, "%s/%s", above, name) < 0) {
            d->path = NULL;
            rc = fail_oom(e);
        }
        if (rc == 0) rc = make_path(d->path, &d->made, e);
    }
    free(above);
    return rc;
}

int rundir_make(const char *logdir, const char *name, struct rundir *out,
                struct ops_err *e) {
    *out = (struct rundir){0};
    if (*logdir == '\0')
        return fail(e, OPS_EUSAGE, "-o needs the name of a folder");
    if (name != NULL && (*name == '\0' || *name == '.' ||
                         strchr(name, '/') != NULL || strlen(name) > 200))
        return fail(e, OPS_EUSAGE,
                    "--run '%s': a run's name is the name of a "
                    "folder, without '/' and with no '.' at its beginning",
                    name);
    int rc = make_all(logdir, name, out, e);
    if (rc != 0) rundir_free(out);
    return rc;
}

void rundir_unmake(const struct rundir *d) {
    char *path = strdup(d->path);
    for (int i = 0; path != NULL && i < d->made && rmdir(path) == 0; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) break;
        *slash = '\0';
    }
    free(path);
}

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
            cut_fmt(out->why, sizeof out->why, "%.*s: %.*s", CUT(90, name),
                    CUT(200, why));
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
