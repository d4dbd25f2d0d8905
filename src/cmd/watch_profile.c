/* SPDX-License-Identifier: Apache-2.0
 * One look: find the file, import it as any other profile, keep its steps. */
#include "cmd/watch_profile.h"

#include "import/import.h"
#include "load/runs.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PAUSE_S 2.0

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void watch_profile_free(struct watch_profile *p) {
    free(p->path);
    *p = (struct watch_profile){0};
}

static int64_t mtime_of(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Newer counts; among a growing file and a finished one the growing does. */
struct newest {
    const char *path;
    bool part;
    int64_t mtime;
};

static void try_file(struct newest *best, const char *path) {
    struct stat st;
    size_t n = strlen(path);
    bool part = n > 5 && strcmp(path + n - 5, ".part") == 0;
    if (strstr(path, ".xplane.pb") == NULL || stat(path, &st) != 0) return;
    int64_t mtime = mtime_of(&st);
    if (best->path != NULL &&
        (part != best->part ? !part : mtime <= best->mtime))
        return;
    *best = (struct newest){path, part, mtime};
}

/* The profile to look at; yours, NULL when there is none. */
static char *find_profile(const char *logdir) {
    struct run_list runs;
    struct newest best = {0};
    if (runs_find(logdir, &runs, NULL) != 0) return NULL;
    for (size_t i = 0; i < runs.n; i++)
        for (size_t k = 0; k < runs.v[i].n; k++)
            try_file(&best, runs.v[i].files[k].path);
    char *path = best.path ? strdup(best.path) : NULL;
    runs_free(&runs);
    return path;
}

/* Reads the profile; its steps, when it has any. */
static void read_profile(struct watch_profile *p) {
    struct import_opts o = {0};
    struct trace *t = trace_new();
    if (t != NULL && import_file(p->path, t, &o, NULL) == 0 &&
        trace_seal(t, NULL) == 0) {
        struct watch_steps now = watch_profile_steps(t);
        if (now.have) p->steps = now;
    }
    trace_free(t);
}

void watch_profile_look(struct watch_profile *p, const char *logdir) {
    struct stat st;
    double start = now_s();
    if (start < p->next_s) return;
    char *path = find_profile(logdir);
    bool other = path == NULL || p->path == NULL || strcmp(path, p->path) != 0;
    free(p->path);
    p->path = path;
    if (path != NULL && stat(path, &st) == 0 &&
        (other || st.st_size != p->size || mtime_of(&st) != p->mtime_ns)) {
        p->size = st.st_size;
        p->mtime_ns = mtime_of(&st);
        read_profile(p);
    }
    double took = now_s() - start;
    p->next_s = start + (5 * took > PAUSE_S ? 5 * took : PAUSE_S);
}
