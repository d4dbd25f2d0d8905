/* SPDX-License-Identifier: Apache-2.0
 * Finding pointers of dead runs. */
#include "rec/rescue.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rec/salvage.h"

enum { RUNS = 256, POINTERS = 1024 };

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* A pointer of ours, not of a file system that others write to. */
static bool is_mine(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == getuid();
}

static unsigned rescue_run(const char *folder) {
    unsigned done = 0, looked = 0;
    DIR *d = opendir(folder);
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL && looked < POINTERS;) {
        char path[PATH_MAX], why[256];
        struct rec_saved saved;
        if (!ends_with(e->d_name, ".ring")) continue;
        looked++;
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 0 && (size_t)n < sizeof path && is_mine(path) &&
            rec_salvage_finish(path, &saved, why, sizeof why) == 0)
            done++;
    }
    closedir(d);
    return done;
}

unsigned rescue_folder(const char *logdir) {
    char folder[PATH_MAX], run[PATH_MAX];
    unsigned done = 0, looked = 0;
    int n = snprintf(folder, sizeof folder, "%s/plugins/profile", logdir);
    DIR *d = n > 0 && (size_t)n < sizeof folder ? opendir(folder) : NULL;
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL && looked < RUNS;) {
        if (e->d_name[0] == '.') continue;
        looked++;
        n = snprintf(run, sizeof run, "%s/%s", folder, e->d_name);
        if (n > 0 && (size_t)n < sizeof run) done += rescue_run(run);
    }
    closedir(d);
    return done;
}
